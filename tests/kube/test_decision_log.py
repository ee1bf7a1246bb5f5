"""The decision log: bounded by size and age, in memory and in a folder."""

import json
from pathlib import Path

import pytest

from aliquot.engine import SECOND, Engine, Evict, Pod, Reason, Shape, Wait
from aliquot.engine import Refusal as EngineRefusal
from aliquot.kube.observe.decision_log import Bounds, DecisionLog, answer

NOW = 1_700_000_000 * SECOND
HOUR = 3600 * SECOND


def wait(name: str) -> Wait:
    return Wait(Pod(name, "a", name, Shape(())), EngineRefusal(Reason.NO_NODE_FITS, f"no {name}"))


def named(lines: list[bytes]) -> list[str]:
    return [json.loads(line)["pod"] for line in lines]


def test_the_oldest_go_when_there_are_too_many_bytes() -> None:
    one = DecisionLog()
    one.note(Engine(), [wait("p-0")], NOW)
    (line,) = one.lines()
    log = DecisionLog(Bounds(size=3 * len(line)))
    for number in range(5):
        log.note(Engine(), [wait(f"p-{number}")], NOW)
    assert named(log.lines()) == ["a/p-2", "a/p-3", "a/p-4"]


def test_the_oldest_go_when_they_are_too_old() -> None:
    log = DecisionLog(Bounds(age=HOUR))
    for number in range(4):
        log.note(Engine(), [wait(f"p-{number}")], NOW + number * HOUR // 2)
    assert named(log.lines()) == ["a/p-1", "a/p-2", "a/p-3"]


def test_one_pod_and_the_last_so_many() -> None:
    log = DecisionLog()
    evict = Evict(Pod("v", "b", "v", Shape(()), node="n"), wait("p-1").pod, Reason.PREEMPTED, "m")
    log.note(Engine(), [wait("p-1"), wait("p-10"), evict], NOW)
    assert named(log.lines("a/p-1")) == ["a/p-1", "b/v"]  # and for whom another went
    assert named(log.lines(most=1)) == ["b/v"]
    assert json.loads(log.lines()[0])["at"] == "2023-11-14T22:13:20Z"


def test_files_of_a_folder_outlive_the_process_and_are_bounded(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    for part in range(2):
        log = DecisionLog(Bounds(size=8_000), folder)
        for number in range(200):
            log.note(Engine(), [wait(f"p-{part}-{number}")], NOW + (200 * part + number) * SECOND)
    files = sorted(folder.iterdir())
    assert len(files) > 1
    text = b"".join(file.read_bytes() for file in files)
    assert len(text) < 10_000
    found = named(text.splitlines())
    assert found[-1] == "a/p-1-199"
    assert found == [f"a/p-1-{number}" for number in range(200 - len(found), 200)]


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    log = DecisionLog(folder=blocked / "log")
    log.note(Engine(), [wait("p")], NOW)
    assert named(log.lines()) == ["a/p"]


@pytest.mark.parametrize("leads", [True, False])
def test_an_answer_says_whether_this_replica_decides(leads: bool) -> None:
    head, *lines = answer([b"{}"], leads)
    assert json.loads(head) == {"leader": leads}
    assert lines == [b"{}"]
