"""Recordings: every scenario is recorded and replayed, and what does not replay is said."""

import json
from pathlib import Path

import pytest

from aliquot.dialects import configuration
from aliquot.errors import InputError
from aliquot.mirror.recording import RecordingEngine, replay
from aliquot.simulation import scenario
from aliquot.simulation.outcome import outcome
from aliquot.simulation.scenario import Scenario
from aliquot.simulation.simulation import Simulation

FOLDER = Path(__file__).parents[1] / "scenarios"
FILES = sorted(each for each in FOLDER.rglob("*.yaml") if "kind: Scenario" in each.read_text())


def played(found: Scenario, lines: list[bytes] | None) -> Simulation:
    knobs = configuration.knobs(found.settings)
    if lines is None:
        simulation = Simulation(found.inputs, found.policy, knobs)
    else:
        simulation = Simulation(
            *(found.inputs, found.policy, knobs),
            lambda policy, more: RecordingEngine(policy, more, lines.append),
        )
    for at, _ in found.steps:
        simulation.run(at)
    return simulation


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(FOLDER)))
def test_a_recording_replays_and_changes_nothing(file: Path) -> None:
    for found, again in zip(scenario.load([str(file)]), scenario.load([str(file)]), strict=True):
        lines: list[bytes] = []
        recorded = played(found, lines)
        result = replay(lines, file.name)
        assert result.difference is None, found.name
        assert result.cycles > 0
        assert outcome(recorded) == outcome(played(again, None))


def recording() -> list[bytes]:
    (found, *_) = scenario.load([str(FOLDER / "kep-9" / "reclaim.yaml")])
    lines: list[bytes] = []
    played(found, lines)
    return lines


def test_another_decision_is_found_with_its_line_and_time() -> None:
    lines = recording()
    at = next(n for n, line in enumerate(lines) if b'"what":"started"' in line)
    body = json.loads(lines[at])
    body["decisions"][0]["node"] = "elsewhere"
    lines[at] = json.dumps(body).encode()
    found = replay(lines, "f").difference
    assert found is not None
    assert found.line == at + 1
    assert found.recorded[0]["node"] == "elsewhere" != found.replayed[0]["node"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "not a line of a recording"),
        (b'{"event":{"":"NodeSet","node":{"":"Engine"}}}', "'Engine' is no type of the engine"),
        (b'{"event":{"":"Popen","args":["x"]}}', "'Popen' is no type of the engine"),
        (b'{"event":{"":"NodeSet","size":1}}', "NodeSet"),
        (b'{"event":{"":"PodGone","uid":7}}', "event"),
        (b'{"cycle":"now"}', "whole number"),
    ],
)
def test_what_is_no_recording_is_refused_with_its_line(line: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as refused:
        replay([recording()[0], line], "f")
    assert "f, line 2" in str(refused.value)


def test_a_recording_begins_with_its_engine() -> None:
    with pytest.raises(InputError, match="comes before a line with the engine"):
        replay(recording()[1:], "f")
    with pytest.raises(InputError, match="holds no recording"):
        replay([], "f")
