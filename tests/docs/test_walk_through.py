"""The walk through the embedded cluster is what kubectl really says, where there is kubectl."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import clone
from tests.docs.test_examples import blocks

AGE = re.compile(r"\b\d+[smhd]\b")
SPACES = re.compile(" +")


def plain(text: str) -> list[str]:
    """Without ages, which pass, and the widths of columns that they decide."""
    return [SPACES.sub(" ", AGE.sub("AGE", line)).strip() for line in text.splitlines()]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="NOT run: there is no kubectl here")
def test_kubectl_says_what_the_page_shows(tmp_path: Path) -> None:
    ((page, session),) = blocks("session")
    (begun,) = (body for found, body in blocks("sh") if found == page)
    start, export, ready = begun.splitlines()
    assert (start.split()[0], start[-2:]) == ("aliquot", " &")
    assert export == "export KUBECONFIG=kubeconfig"
    folder = clone(tmp_path / "clone")
    words = [sys.executable, "-m", "aliquot", *start.removesuffix(" &").split()[1:]]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL) as server:
        try:
            walk(ready, session, folder)
        finally:
            server.terminate()
            assert server.wait(60) == 0


def walk(ready: str, session: str, folder: Path) -> None:
    """Once the nodes are there, one step after the other, in the folder that the page names."""
    environment = {**os.environ, "KUBECONFIG": str(folder / "kubeconfig")}
    subprocess.run(["bash", "-c", ready], cwd=folder, env=environment, check=True, timeout=90)
    for step in session.split("$ ")[1:]:
        command, _, shown = step.partition("\n")
        done = subprocess.run(
            shlex.split(command),
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=90,
        )
        assert plain(done.stdout) == plain(shown), command
