"""Runs `aliquot webhook` beside an API server, as its command line is given."""

import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aliquot.bench.envtest import answers, free_ports
from aliquot.bench.process import child
from aliquot.json import Body
from aliquot.kube.api.resource import CUSTOM
from tests.cluster.api.wire import Wire

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
BOTH = tuple(
    f"{CONFIGURATIONS}/{word}webhookconfigurations/aliquot" for word in ("validating", "mutating")
)


@dataclass(frozen=True)
class Webhook:
    """A webhook that runs."""

    process: "subprocess.Popen[bytes]"
    port: int
    folder: Path

    @property
    def certificate(self) -> str:
        """What it shows to whoever asks."""
        return ssl.get_server_certificate(("127.0.0.1", self.port))

    def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


@contextmanager
def running(kubeconfig: Path, folder: Path, *more: str) -> Iterator[Webhook]:
    """A webhook that is asked by its address, ready to judge."""
    port, health = free_ports(2)
    command = [sys.executable, "-m", "aliquot", "webhook", "--kubeconfig", str(kubeconfig)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--health-port", str(health)]
    command += ["--url", f"https://127.0.0.1:{port}", *more]
    with child(command, folder) as made:
        made.wait(lambda: answers(f"http://127.0.0.1:{health}/readyz"))
        yield Webhook(made.process, port, folder)


def where(body: Body, named: bool = True) -> str:
    """Where an object of our kinds is, or where it is sent to."""
    group = body["apiVersion"].rpartition("/")[0]
    resource = next(e for e in CUSTOM.values() if (e.group, e.kind) == (group, body["kind"]))
    metadata = body["metadata"]
    return resource.path(metadata.get("namespace"), metadata["name"] if named else None)


def unregister(api: Wire) -> None:
    """Have nobody asked any more."""
    for path in BOTH:
        api.delete(path)
