"""Commands that run until they are stopped: by SIGINT, even if it was ignored, and by SIGTERM."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from aliquot.bench.envtest import answers, free_ports
from aliquot.server.credentials import kubeconfig
from tests.cluster.api.polling import eventually
from tests.signals import sigint

both = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@both
@pytest.mark.parametrize("more", [("--no-scheduler", "--nodes", "0"), ("--demo",)], ids=str)
def test_a_cluster_is_stopped(tmp_path: Path, number: int, more: tuple[str, ...]) -> None:
    with _started(tmp_path, "up", *more) as (process, log):
        eventually(lambda: _runs(process) and b"url: " in log.read_bytes(), seconds=120)
        process.send_signal(number)
        assert process.wait(timeout=60) == 0, log.read_text()
    assert "Traceback" not in log.read_text()


@both
@pytest.mark.parametrize("command", ["scheduler", "webhook"])
def test_the_control_plane_is_stopped_also_if_it_reaches_no_server(
    tmp_path: Path, number: int, command: str
) -> None:
    nowhere, port, health = free_ports(3)
    file = tmp_path / "kubeconfig"
    cluster = {"server": f"http://127.0.0.1:{nowhere}"}
    file.write_text(yaml.safe_dump(kubeconfig(cluster, "token")))
    words = [command, "--kubeconfig", str(file), "--host", "127.0.0.1"]
    words += [
        "--health-port",
        str(health),
        *(["--port", str(port)] if command == "webhook" else []),
    ]
    with _started(tmp_path, *words) as (process, log):
        alive = f"http://127.0.0.1:{health}/livez"
        eventually(lambda: _runs(process) and answers(alive), seconds=120)
        process.send_signal(number)
        assert process.wait(timeout=60) == 0, log.read_text()
    assert "Traceback" not in log.read_text()


@contextmanager
def _started(folder: Path, *words: str) -> "Iterator[tuple[subprocess.Popen[bytes], Path]]":
    """The command, with SIGINT ignored as in a background job, and its log; killed in the end."""
    log = folder / "log"
    with log.open("wb") as said, sigint(ignored=True):
        command = [sys.executable, "-m", "aliquot", *words]
        process = subprocess.Popen(command, stdout=said, stderr=said, cwd=folder)
    with process:
        try:
            yield process, log
        finally:
            process.kill()


def _runs(process: "subprocess.Popen[bytes]") -> bool:
    assert process.poll() is None, "it ended by itself"
    return True
