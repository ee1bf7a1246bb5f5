"""What commands print with `-o json` fits the schemas in the documentation, to the last key."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from aliquot.cli.main import run
from tests.docs.schemas import problems
from tests.docs.test_examples import ROOT

FOLDER = ROOT / "docs" / "reference" / "schemas"
SCHEMAS = sorted(each.stem for each in FOLDER.glob("*.json"))
COMMANDS = [
    ("simulate", "simulate examples/kep-9/story-1"),
    ("simulate", "simulate examples/volcano/gang"),
    ("simulate", "simulate examples/tensor-fusion/fractions"),
    ("simulate", "simulate examples/koordinator/runtime"),
    ("simulate", "simulate examples/nos/fair-share"),
    ("validate", "validate docs/tasks/new-team.yaml"),
    ("test", "test tests/scenarios/kep-9/max.yaml"),
    ("explain-pod", "explain pod vision/eval --from examples/kep-9/waiting/cluster.yaml"),
    ("explain-pod", "explain pod vision/train --from examples/kep-9/waiting/cluster.yaml"),
    ("explain-pod", "explain pod research/grey-0 --from examples/topology/racks.yaml"),
    ("explain-pod", "explain pod child-a-1/train-99 --from examples/koordinator/tree"),
    ("explain-quota", "explain quota vision/quota --from examples/kep-9/waiting/cluster.yaml"),
    ("explain-quota", "explain quota child-b-1/child-b-1 --from examples/koordinator/tree"),
    (
        "what-if",
        "what-if --from examples/kep-9/waiting/cluster.yaml -f docs/tasks/more-for-vision.yaml",
    ),
    ("what-if", "what-if --from examples/kep-9/waiting/cluster.yaml -f docs/tasks/new-team.yaml"),
    ("what-if", "what-if --from examples/kep-9/waiting/cluster.yaml --drain gpu-1"),
    (
        "what-if-defragment",
        "what-if --from docs/tasks/fragmented.yaml --defragment vision/train",
    ),
    ("tree", "tree --from examples/koordinator/tree"),
    ("tree", "tree --from examples/volcano/table-1"),
    ("top-quotas", "top quotas --from examples/nos/fair-share"),
    ("top-pods", "top pods --from examples/tensor-fusion/fractions"),
    ("top-nodes", "top nodes --from examples/kep-9/story-1"),
    ("top-gpus", "top gpus --from examples/tensor-fusion/fractions"),
    ("queue", "queue --from examples/kep-9/story-2"),
    ("compare", "compare examples/nos/fair-share --policy capacity,fair"),
    ("history", "history --from RECORDING"),
    ("replay", "replay RECORDING"),
]
"""Add a line for a new answer, and its schema beside the others."""


@pytest.fixture
def recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    file = str(tmp_path / "run.jsonl")
    assert run(["simulate", str(ROOT / "examples/kep-9/story-1"), "--record", file]) == 0
    capsys.readouterr()
    return file


@pytest.mark.parametrize(("schema", "command"), COMMANDS, ids=[each for _, each in COMMANDS])
def test_what_is_printed_fits_its_schema(
    schema: str,
    command: str,
    recording: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    words = [recording if word == "RECORDING" else word for word in shlex.split(command)]
    assert run([*words, "-o", "json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert any(found.values())
    assert list(problems(json.loads((FOLDER / f"{schema}.json").read_text()), found)) == []


def test_every_schema_is_tried_and_is_on_the_page() -> None:
    assert {each for each, _ in COMMANDS} == set(SCHEMAS)
    page = (FOLDER.parent / "schemas.md").read_text()
    assert all(f"(schemas/{each}.json)" in page for each in SCHEMAS)


def test_what_does_not_fit_is_found() -> None:
    schema = json.loads((FOLDER / "queue.json").read_text())
    fine: dict[str, Any] = {"policy": "fair", "quota": None, "pods": []}
    assert list(problems(schema, fine)) == []
    assert list(problems(schema, {**fine, "more": 1})) == [".more is not in the schema"]
    assert list(problems(schema, {"policy": "fair", "pods": []})) == [".quota is missing"]
    assert list(problems(schema, {**fine, "quota": 7})) == [".quota: 7 is not ['string', 'null']"]
