"""Every example in the documentation is what the commands really say."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from aliquot.dialects import configuration
from aliquot.dialects.core import documents
from aliquot.engine.model.reasons import Reason
from aliquot.simulation import scenario
from tests.forks import fork

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for found, body in FENCE.findall(page.read_text()):
            if found == language:
                yield str(page.relative_to(ROOT)), body


def ids(value: str) -> str:
    return value.split("\n")[0]


@pytest.mark.parametrize(("page", "block"), list(blocks("console")), ids=ids)
def test_console_blocks_show_what_comes_out(page: str, block: str, tmp_path: Path) -> None:
    command, _, shown = block.partition("\n")
    assert command.startswith("$ aliquot "), page
    words = shlex.split(command.removeprefix("$ aliquot "))
    out, err = tmp_path / "out", tmp_path / "err"
    process = fork(words, out, err, folder=ROOT)
    process.join()
    assert process.exitcode == 0, err.read_text()
    assert out.read_text() == shown


@pytest.mark.parametrize(("page", "block"), list(blocks("yaml")), ids=ids)
def test_yaml_blocks_are_read(page: str, block: str, tmp_path: Path) -> None:
    kind = yaml.safe_load(block)["kind"]
    if kind == "Scenario":
        file = tmp_path / "my-scenarios" / "scenario.yaml"
        file.parent.mkdir(parents=True)
        (tmp_path / "examples").symlink_to(ROOT / "examples")
        file.write_text(block)
        for each in scenario.load([str(file)]):
            assert scenario.run(each).differences == []
    elif kind == "Configuration":
        assert (
            configuration.read(next(documents.parse(block, page))) == configuration.Configuration()
        )
    else:
        assert list(documents.parse(block, page))


@pytest.mark.parametrize(("page", "block"), list(blocks("python")), ids=ids)
def test_python_blocks_run(page: str, block: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{page}: {done.stderr}"


def test_every_reason_is_explained() -> None:
    page = (ROOT / "docs" / "reference" / "reasons.md").read_text()
    assert [reason for reason in Reason if f"`{reason}`" not in page] == []


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
