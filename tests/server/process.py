"""A cluster as a process of its own, as `aliquot up` starts it."""

import subprocess
import sys
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import yaml

from tests.server.client import Client, speaking


def started(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start one that keeps its objects in a folder; it answers by then."""
    (folder / "kubeconfig").unlink(missing_ok=True)
    command = [sys.executable, "-m", "aliquot", "up", "--data-dir", str(folder), *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1200):
        if (folder / "kubeconfig").exists():
            return server
        time.sleep(0.05)
    server.kill()
    pytest.fail("the server does not start")


def reaching(folder: Path) -> AbstractAsyncContextManager[Client]:
    """A client of the one that keeps its objects there."""
    written = yaml.safe_load((folder / "kubeconfig").read_text())
    url = written["clusters"][0]["cluster"]["server"]
    return speaking(url, folder / "ca.crt", written["users"][0]["user"]["token"])
