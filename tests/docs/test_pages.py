"""Every page runs as it is written, from where it says, on a cluster that is there."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ACTIVATE, BLOCK, clone, environment, play, steps
from tests.docs.test_examples import PAGES, ROOT

_NOT_PLAYED = {
    "README.md": "make sets up an environment and runs this suite",
    "CONTRIBUTING.md": "make sets up an environment and runs this suite",
    "docs/tasks/install.md": "needs an image and Helm; tests/cluster/install applies it",
    "docs/tasks/up.md": "played by test_walk_through",
}
_APPLIES = re.compile(r"aliquot manifests .*\|\s*kubectl|deployment aliquot-scheduler", re.DOTALL)
"""Installs Aliquot, or removes it: tests/cluster/install does that on a real server."""
_ALIQUOT = re.compile(r"^(?:\$ )?aliquot |\| *aliquot ", re.MULTILINE)
_KUBECTL = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="NOT run: there is no kubectl here"
)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def played() -> list[Path]:
    """The pages with commands."""
    return [page for page in PAGES if name(page) not in _NOT_PLAYED and len(steps(page)) > 1]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    """A cluster with two teams on it, of the page's own; yields its kubeconfig."""
    kubeconfig = tmp_path / "kubeconfig"
    words = ["up", "--nodes", "2x8", "--gpu-model", "NVIDIA-A100-SXM4-80GB"]
    words += ["--kubeconfig", str(kubeconfig), "--data-dir", str(tmp_path / "data")]
    start = [sys.executable, "-m", "aliquot", *words]
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert any(line.startswith("kubeconfig: ") for line in server.stdout)
            until_it_works("kubectl", "apply", "-f", "docs/tasks/two-teams.yaml", on=kubeconfig)
            yield kubeconfig
        finally:
            server.terminate()
            assert server.wait(60) == 0


def until_it_works(*command: str, on: Path) -> None:
    for _ in range(100):
        done = subprocess.run(
            command, cwd=ROOT, env=environment(on), capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return
        time.sleep(0.2)
    raise AssertionError(done.stderr)


@_KUBECTL
@pytest.mark.parametrize("page", played(), ids=name)
def test_a_page_runs_as_it_is_written(page: Path, cluster: Path, tmp_path: Path) -> None:
    kept = [step for step in steps(page) if not _APPLIES.search(step.text)]
    assert len(kept) > 1, "nothing of this page is run"
    done = play(kept, clone(tmp_path / "clone"), cluster)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@_KUBECTL
def test_a_dump_has_the_quotas_whichever_way_it_is_made(cluster: Path, tmp_path: Path) -> None:
    folder = clone(tmp_path / "clone")
    page = ROOT / "docs" / "tasks" / "simulate.md"
    ways = [step for step in steps(page) if "cluster.yaml" in step.text]
    assert len(ways) == 2
    for step in ways:
        done = play([steps(page)[0], step], folder, cluster)
        assert done.returncode == 0, done.stderr
        assert "name: quota-a" in (folder / "cluster.yaml").read_text()
        assert "quota-a  nvidia.com/gpu" in done.stdout


@_KUBECTL
def test_a_write_is_refused_in_the_words_of_the_page(cluster: Path, tmp_path: Path) -> None:
    page = ROOT / "docs" / "tasks" / "admission.md"
    (shown,) = (body for language, body in BLOCK.findall(page.read_text()) if language == "refused")
    command, _, refusal = shown.partition("\n")
    (quota,) = (step.text for step in steps(page) if step.path == "quota.yaml")
    (tmp_path / "quota.yaml").write_text(quota)
    done = subprocess.run(
        command.removeprefix("$ ").split(),
        cwd=tmp_path,
        env=environment(cluster),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.endswith(refusal), "warnings may come before it"


@pytest.mark.parametrize("page", [each for each in PAGES if each.name != "CHANGELOG.md"], ids=name)
def test_a_page_with_commands_says_how_aliquot_is_found(page: Path) -> None:
    text = page.read_text()
    shown = [match for match in BLOCK.finditer(text) if match[1] in ("sh", "console")]
    first = next((match for match in shown if _ALIQUOT.search(match[2])), None)
    assert first is None or ACTIVATE in text[: first.end()]
