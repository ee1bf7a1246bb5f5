"""A cluster as a process of its own, as `aliquot up` starts it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

import yaml

from tests.cluster.api.polling import eventually
from tests.server.client import Client, speaking


@contextmanager
def started(folder: Path, *options: str) -> "Iterator[subprocess.Popen[bytes]]":
    """One that keeps its objects in a folder, and answers; it is killed if the block leaves it."""
    (folder / "kubeconfig").unlink(missing_ok=True)
    command = [sys.executable, "-m", "aliquot", "up", "--data-dir", str(folder), *options]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as server:
        try:
            eventually(lambda: _answers(server, folder / "kubeconfig"), seconds=120)
            yield server
        finally:
            server.kill()


def _answers(server: "subprocess.Popen[bytes]", kubeconfig: Path) -> bool:
    assert server.poll() is None, "the server does not start"
    return kubeconfig.exists()


def reaching(folder: Path) -> AbstractAsyncContextManager[Client]:
    """A client of the one that keeps its objects there."""
    written = yaml.safe_load((folder / "kubeconfig").read_text())
    url = written["clusters"][0]["cluster"]["server"]
    return speaking(url, folder / "ca.crt", written["users"][0]["user"]["token"])
