"""Runs `aliquot webhook` beside an API server, as its command line is given."""

import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import urllib3

from aliquot.dialects.documents import Body
from aliquot.kube.resource import CUSTOM
from tests.cluster.api.wire import Wire

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
BOTH = tuple(
    f"{CONFIGURATIONS}/{word}webhookconfigurations/aliquot" for word in ("validating", "mutating")
)
_PATIENCE = 60.0


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
        return self.process.wait(timeout=20)


@contextmanager
def running(kubeconfig: Path, folder: Path, *more: str) -> Iterator[Webhook]:
    """A webhook that is asked by its address, ready to judge."""
    folder.mkdir(parents=True, exist_ok=True)
    port, health = free_ports(2)
    command = [sys.executable, "-m", "aliquot", "webhook", "--kubeconfig", str(kubeconfig)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--health-port", str(health)]
    command += ["--url", f"https://127.0.0.1:{port}", *more]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        _wait(process, health, folder)
        yield Webhook(process, port, folder)
    finally:
        process.kill()
        process.wait()


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


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _wait(process: "subprocess.Popen[bytes]", port: int, folder: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while not _is_ready(port):
        said = (folder / "log").read_text(errors="replace")[-3000:]
        assert process.poll() is None, f"ended with {process.returncode}: {said}"
        assert time.monotonic() < end, f"not ready: {said}"
        time.sleep(0.05)


def _is_ready(port: int) -> bool:
    url = f"http://127.0.0.1:{port}/readyz"
    try:
        return urllib3.request("GET", url, retries=False, timeout=2).status == 200
    except urllib3.exceptions.HTTPError:
        return False
