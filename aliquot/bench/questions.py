"""Questions to a large cluster, measured: `explain` and `what-if`, from a cold start on a file.

5,000 nodes, 1,000 quotas and 50,000 pods, of which 2,000 wait, are written as a snapshot, as a dump
in JSON and, a tenth of them, in YAML. Each command is a process of its own. Times are of the CPU,
with the copies of a process that answer (`questions.copies`): another process beside is no part of
them.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import yaml

from aliquot.bench.figure import Figure
from aliquot.dialects.core.documents import Document
from aliquot.errors import ProcessError
from aliquot.json import Body
from aliquot.questions.explanation import explain_pod
from aliquot.questions.moment import Moment
from aliquot.questions.sources import snapshot
from aliquot.questions.sources.source import Source

GPU = "nvidia.com/gpu"
NODES, QUOTAS, PODS, WAITING = 5_000, 1_000, 50_000, 2_000
_CARDS, _PART = 8, 10
_WITH_CARD = 7
"""Rounds of pods over all nodes that take a GPU each, so that one is left on every node."""
_ASKED = "team-0000/waits-00000"
_SINCE = "2026-01-09T00:00:00Z"


def questions(progress: Callable[[str], None]) -> list[Figure]:
    """What each question takes on each kind of file, and without reading it."""
    bodies = list(_cluster(1))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        change = folder / "change.json"
        change.write_bytes(msgspec.json.encode(_quota(0, 50)))
        found = []
        for words, file, budget in _files(folder, bodies, progress):
            for question in (("explain", "pod", _ASKED), ("what-if", "-f", str(change))):
                progress(f"{question[0]} on {words}")
                took = _cold([*question, "--from", str(file), "-o", "json"])
                found.append(Figure(f"{question[0]} on {words}, cold", took, "s CPU", budget))
    progress("explain, the question itself")
    return [*found, Figure("explain, the question itself", _itself(bodies), "s CPU", "<= 1")]


def _files(
    folder: Path, bodies: list[Body], progress: Callable[[str], None]
) -> Iterator[tuple[str, Path, str]]:
    """The cluster in each kind of file, and the budget of a question to it."""
    progress(f"{NODES:,} nodes, {QUOTAS:,} quotas, {PODS:,} pods, in files")
    taken, compact = folder / "cluster.json.gz", folder / "dump.json"
    snapshot.write(_source(bodies), taken, time.time_ns())
    compact.write_bytes(msgspec.json.encode(_listed(bodies)))
    yield "a snapshot", taken, "<= 5"
    yield "a dump in JSON", compact, "<= 15"
    text = folder / "dump.yaml"
    text.write_text(yaml.dump(_listed(list(_cluster(_PART))), Dumper=yaml.CSafeDumper))
    yield "a tenth of it in YAML", text, ""


def _cold(words: list[str]) -> float:
    """Seconds of the CPU that a command takes, with all processes that it starts."""
    before = os.times()
    done = subprocess.run([sys.executable, "-m", "aliquot", *words], capture_output=True, text=True)
    if done.returncode:
        raise ProcessError(f"aliquot {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return _used(before)


def _used(before: os.times_result) -> float:
    return sum(os.times()[:4]) - sum(before[:4])


def _itself(bodies: list[Body]) -> float:
    """Seconds of the CPU that the answer takes once the cluster is in the engine's books."""
    moment = Moment(_source(bodies))
    before = os.times()
    explain_pod(moment, _ASKED)
    return _used(before)


def _source(bodies: list[Body]) -> Source:
    documents = [Document(f"items[{number}]", body) for number, body in enumerate(bodies)]
    return Source("generated", documents, taken=time.time_ns())


def _listed(bodies: list[Body]) -> Body:
    return {"apiVersion": "v1", "kind": "List", "items": bodies}


def _cluster(part: int) -> Iterator[Body]:
    """The objects as a server gives them, or so small a part of them."""
    nodes, quotas = NODES // part, QUOTAS // part
    yield from (_node(number) for number in range(nodes))
    yield from (_quota(number, 40) for number in range(quotas))
    waiting = WAITING // part
    for number in range(PODS // part - waiting):
        at, team = f"node-{number % nodes:04}", number % quotas
        yield _pod(f"runs-{number:05}", team, int(number < _WITH_CARD * nodes), at)
    yield from (_pod(f"waits-{number:05}", number % quotas, 2) for number in range(waiting))


def _node(number: int) -> Body:
    has = {"cpu": "96", "memory": "1Ti", GPU: str(_CARDS), "pods": "110"}
    metadata = _metadata(f"node-{number:04}") | {"labels": {"example.com/rack": f"r{number // 32}"}}
    status = {"allocatable": has, "capacity": has}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def _quota(number: int, least: int) -> Body:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": _metadata("quota") | {"namespace": f"team-{number:04}"},
        "spec": {"min": {GPU: str(least)}, "max": {GPU: "80"}},
    }


def _pod(name: str, team: int, cards: int, node: str | None = None) -> Body:
    asks = {"cpu": "4", "memory": "16Gi", **({GPU: str(cards)} if cards else {})}
    container = {
        "name": "main",
        "image": "registry.example.com/train:1.2.3",
        "command": ["python", "-m", "train"],
        "env": [{"name": f"SETTING_{n}", "value": "x" * 20} for n in range(10)],
        "resources": {"limits": asks, "requests": asks},
    }
    spec: Body = {
        "schedulerName": "aliquot",
        "restartPolicy": "Never",
        "priority": 0,
        "containers": [container],
    }
    status: Body = {"phase": "Pending"}
    if node is not None:
        spec["nodeName"] = node
        status = {"phase": "Running", "startTime": _SINCE}
    metadata = _metadata(name) | {"namespace": f"team-{team:04}", "labels": {"app": "train"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _metadata(name: str) -> Body:
    about = {"uid": f"uid-of-{name}", "resourceVersion": "1", "creationTimestamp": _SINCE}
    return {"name": name, **about}
