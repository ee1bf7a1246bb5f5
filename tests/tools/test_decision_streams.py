"""The record of decisions: the same in every process, and a difference is found.

Python's hash seed differs between processes. Nothing that the engine decides, or remembers of what
it has decided, may depend on it: a scheduler that takes over must find what its predecessor found.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aliquot.json import Body
from tests.build import manifests
from tests.build.manifests import QUEUE_NAME

_ROOT = Path(__file__).parents[2]
_TOOL = _ROOT / "tools" / "decision_streams.py"
_SCENARIO = _ROOT / "tests" / "scenarios" / "kep-9" / "reclaim.yaml"
_FINGERPRINT = """
from aliquot.engine.books.repeat_guard import fingerprint
from tests.build.values import gpu_ask, pod
print(fingerprint(pod("p", 1), pod("q", 2, "b", quota="x", shape={"gpu": gpu_ask(1, 2)})))
"""
_NEW_QUOTA = """
from aliquot.engine import Engine
from tests.build.values import pod_set, quota_set
engine = Engine()
names = [f"team-{number}" for number in range(8)]
for name in names:
    engine.apply(pod_set(f"p-{name}", 1, name))
engine.apply(quota_set("all", 4, namespaces=frozenset(names)))
print(*(decision.pod.name for decision in engine.cycle()))
"""
_TEAMS = [f"team-{number}" for number in range(8)]


def _python(*words: str, seed: int = 0) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(_ROOT)}
    return subprocess.run(
        [sys.executable, *words], env=env, capture_output=True, text=True, check=False
    )


def _new_queues(folder: Path) -> Path:
    """A scenario in which eight namespaces move to other queues at once, with their pods."""

    def namespace(name: str, queue: str) -> Body:
        return manifests.resource("v1", "Namespace", name, annotations={QUEUE_NAME: queue})

    path = folder / "scenario.json"
    scenario = {
        "apiVersion": "aliquot.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "namespaces-move"},
        "policy": "queues",
        "objects": [
            *(manifests.queue(name) for name in ("q", "r")),
            *(namespace(name, "q") for name in _TEAMS),
            *(manifests.pod(f"{name}/p") for name in _TEAMS),
        ],
        "steps": [{"at": 0}, {"at": 1, "apply": [namespace(name, "r") for name in _TEAMS]}],
    }
    path.write_text(json.dumps(scenario))
    return path


def _record(folder: Path, seed: int) -> Path:
    scenarios = ("--scenarios", str(_SCENARIO), "--scenarios", str(_new_queues(folder)))
    words = ("--random", "12", *scenarios, "--texts", str(folder / "texts"))
    done = _python(str(_TOOL), "record", str(folder / "record.txt"), *words, seed=seed)
    assert done.returncode == 0, done.stderr
    return folder / "record.txt"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two records, under different hash seeds."""
    one, other = (_record(tmp_path_factory.mktemp(f"seed-{seed}"), seed) for seed in (1, 2))
    return one, other


def _compare(one: Path, other: Path) -> subprocess.CompletedProcess[str]:
    texts = ("--texts", str(one.parent / "texts"), str(other.parent / "texts"))
    return _python(str(_TOOL), "compare", str(one), str(other), *texts)


def test_decisions_do_not_depend_on_the_hash_seed(records: tuple[Path, Path]) -> None:
    done = _compare(*records)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = records[0].read_text().splitlines()
    assert len({line.split()[0] for line in lines}) == len(lines) >= 26
    assert sum(int(line.split()[1]) for line in lines) > 100, "there are decisions to compare"


@pytest.mark.parametrize("script", [_FINGERPRINT, _NEW_QUOTA], ids=["fingerprint", "new quota"])
def test_books_do_not_depend_on_the_hash_seed(script: str) -> None:
    one, other = (_python("-c", script, seed=seed) for seed in (1, 2))
    assert one.returncode == 0, one.stderr
    assert one.stdout == other.stdout


def test_a_difference_is_found(records: tuple[Path, Path], tmp_path: Path) -> None:
    name = "decisions/random/0003-queues"
    before = records[0].parent / "texts" / f"{name}.txt"
    after = tmp_path / "texts" / f"{name}.txt"
    after.parent.mkdir(parents=True)
    after.write_text(before.read_text().replace("  deadline None", "  deadline 7", 1))
    changed = tmp_path / "record.txt"
    lines = records[0].read_text().splitlines()
    there = next(number for number, line in enumerate(lines) if line.startswith(f"{name} "))
    lines[there] = f"{lines[there].rpartition(' ')[0]} {'0' * 64}"
    changed.write_text("\n".join([*lines, ""]))
    done = _compare(records[0], changed)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{name}\n  line ")
    assert "before   deadline None\n    after    deadline 7\n1 of " in done.stdout


def test_a_missing_stream_is_found(records: tuple[Path, Path], tmp_path: Path) -> None:
    shorter = tmp_path / "record.txt"
    shorter.write_text("".join(records[0].read_text().splitlines(keepends=True)[1:]))
    done = _python(str(_TOOL), "compare", str(records[0]), str(shorter))
    assert done.returncode == 1
    assert "1 streams are in one record only" in done.stdout
