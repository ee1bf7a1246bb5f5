"""Facts about placement: small clusters, a pod that is to be placed, and what is right.

For every node a fact says whether it takes the pod, and if not, which plugin of kube-scheduler
refuses it; where preferences occur, it has the scores of the nodes that take it. The answers are
those of kube-scheduler 1.37 with its default plugins. One fact a line, in `facts.jsonl.xz`.
"""

import json
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document
from aliquot.engine import Engine
from aliquot.json import Body
from aliquot.simulation.ages import Ages
from aliquot.simulation.world import World
from aliquot.validation.inputs import collect

FILE = Path(__file__).parent / "facts.jsonl.xz"
Scores = dict[str, dict[str, Any]]
"""By node and plugin: raw and normalised."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A cluster with one pod to be placed, and what kube-scheduler says of every node."""

    number: int
    uses: list[str]
    """The features that occur."""
    decides: list[str]
    """Those of them without which the answer would be another one."""
    bodies: list[Body]
    """All objects, the pod last."""
    pod: str
    feasible: list[str]
    refused: dict[str, str]
    scores: Scores


@cache
def facts() -> list[Fact]:
    """All facts."""
    lines = lzma.decompress(FILE.read_bytes()).decode().splitlines()
    return [_fact(json.loads(line)) for line in lines]


def _fact(line: Body) -> Fact:
    bodies = [_body("Namespace", name, labels) for name, labels in line["namespaces"].items()]
    bodies += [_node(each) for each in line["nodes"]]
    bodies += line.get("others", [])
    bodies += [_pod(each) for each in (*line["pods"], line["pod"])]
    return Fact(
        line["fact"],
        line["uses"],
        line["decides"],
        bodies,
        line["pod"]["name"],
        line["feasible"],
        line["refused"],
        line.get("scores", {}),
    )


def _body(kind: str, name: str, labels: dict[str, str], **content: Any) -> Body:
    namespace, _, name = name.rpartition("/")
    metadata = {"name": name, "labels": labels}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **content}


def _node(line: Body) -> Body:
    status = {"allocatable": line["allocatable"], "conditions": line.get("conditions", [])}
    return _body("Node", line["name"], line["labels"], spec=line.get("spec", {}), status=status)


def _pod(line: Body) -> Body:
    spec = line["spec"]
    for word in ("initContainers", "containers"):
        for container in spec.get(word, ()):
            container.setdefault("image", "registry.k8s.io/pause:3.10")
    status = {"phase": line["phase"]} if "phase" in line else {}
    return _body("Pod", line["name"], line["labels"], spec=spec, status=status)


def cluster(fact: Fact) -> tuple[Engine, World]:
    """An engine that knows the cluster of a fact, as a simulation tells it, and its world."""
    documents = [Document(f"object {i}", body) for i, body in enumerate(fact.bodies)]
    inputs = collect(documents, Configuration())
    engine = Engine("capacity")
    world = World(engine.apply, inputs.cards, Ages(inputs.manifests()))
    for change in inputs.changes:
        world.change(change)
    return engine, world
