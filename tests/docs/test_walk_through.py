"""The walk through the embedded cluster is what kubectl really says, where there is kubectl."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.docs.test_examples import ROOT, blocks

AGE = re.compile(r"\b\d+[smhd]\b")
SPACES = re.compile(" +")


def plain(text: str) -> list[str]:
    """Without ages, which pass, and the widths of columns that they decide."""
    return [SPACES.sub(" ", AGE.sub("AGE", line)).strip() for line in text.splitlines()]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="NOT run: there is no kubectl here")
def test_kubectl_says_what_the_page_shows(tmp_path: Path) -> None:
    ((_, session),) = blocks("session")
    kubeconfig = tmp_path / "kubeconfig"
    words = ["up", "--nodes", "2x8", "--port", "0"]
    words += ["--gpu-model", "NVIDIA-A100-SXM4-80GB"]
    words += ["--kubeconfig", str(kubeconfig), "--data-dir", str(tmp_path / "data")]
    start = [sys.executable, "-m", "aliquot", *words]
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as server:
        try:
            walk(server, session, {**os.environ, "KUBECONFIG": str(kubeconfig)})
        finally:
            server.terminate()
            assert server.wait(60) == 0


def walk(server: "subprocess.Popen[str]", session: str, environment: dict[str, str]) -> None:
    """Once the nodes are there, one step after the other."""
    assert server.stdout is not None
    assert "kubeconfig" in server.stdout.readline()
    ready = ["kubectl", "wait", "--for=condition=Ready", "nodes", "--all", "--timeout=20s"]
    for _ in range(50):
        if subprocess.run(ready, env=environment, capture_output=True, check=False).returncode:
            time.sleep(0.2)
        else:
            break
    for step in session.split("$ ")[1:]:
        command, _, shown = step.partition("\n")
        done = subprocess.run(
            shlex.split(command),
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=90,
        )
        assert plain(done.stdout) == plain(shown), command
