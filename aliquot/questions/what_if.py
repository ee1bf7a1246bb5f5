"""What a change would lead to: the answer of `aliquot what-if`, as plain data.

The change is laid over the objects (`overlay`), and both are played in virtual time: the objects as
they are, and as they would be. What the second play does is what `aliquot simulate` does with the
changed objects, because it is that. Nothing is written anywhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Key, read
from aliquot.dialects.core.simulation_annotations import ARRIVAL
from aliquot.engine import quantity
from aliquot.errors import ArgumentError
from aliquot.mirror.store import Change
from aliquot.questions import copies, overlay
from aliquot.questions.moment import Moment
from aliquot.questions.sources.source import Source
from aliquot.simulation import outcome
from aliquot.simulation.simulation import Simulation

Result = dict[str, Any]
_MANY_OBJECTS = 4_000
"""Beyond this, to read the objects twice takes more than a second."""
_PLAIN_KINDS = {
    *("Node", "Pod", "PriorityClass", "ElasticQuota", "CompositeElasticQuota", "Queue"),
    *("GPUResourceQuota", "GPU", "PodDisruptionBudget", "Namespace", "ResourceQuota"),
}
DRAINED = "Drained"
"""The reason of a pod that leaves a node which is drained: no decision of the scheduler."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What is changed: objects applied and deleted, nodes added and drained."""

    changed: Sequence[Document] = ()
    delete: Sequence[str] = ()
    add_nodes: int = 0
    like: str | None = None
    drain: Sequence[str] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        if self.add_nodes and self.like is None:
            raise ArgumentError("--add-nodes needs --like NODE")
        if self.like is not None and not self.add_nodes:
            raise ArgumentError("--like needs --add-nodes N")
        if not (self.changed or self.delete or self.add_nodes or self.drain):
            raise ArgumentError(
                "what if what? -f CHANGE, --delete KIND/NAMESPACE/NAME, "
                "--add-nodes N --like NODE or --drain NODE says it"
            )

    def of(self, documents: Sequence[Document]) -> tuple[list[Document], list[str]]:
        """The objects as they would be, and the pods that are drained."""
        gone: list[str] = []
        changed = overlay.lay_over(overlay.without(documents, self.delete), self.changed)
        if self.like is not None:
            changed = overlay.with_nodes(changed, self.add_nodes, self.like)
        for node in self.drain:
            changed, pods = overlay.drained(changed, node)
            gone += pods
        return changed, gone

    def words(self, files: Sequence[str]) -> str:
        """The change in words; `files` are those that its objects are from."""
        found = [f"{each} is applied" for each in files]
        found += [f"{each} is deleted" for each in self.delete]
        if self.like is not None:
            nodes = (
                "1 node like it is"
                if self.add_nodes == 1
                else f"{self.add_nodes} nodes like it are"
            )
            found.append(f"beside {self.like} {nodes} added")
        found += [f"{each} is drained" for each in self.drain]
        return " and ".join(found)


def consequences(source: Source, hypothesis: Hypothesis, until: int | None = None) -> Result:
    """What would start, be evicted and wait, before and after the change."""
    changed, drained = hypothesis.of(source.documents)
    found = None
    if len(source.documents) > _MANY_OBJECTS:
        found = _difference(source.documents, changed)
    if found is not None and _is_plain(source.documents, found):
        before, after = _both(source, found, until)
    else:
        after = _play(replace(source, documents=changed), until)
        before = copies.ask(lambda: _play(source, until))
    return {
        "policy": after["policy"],
        "until": after["until"],
        "starts": [
            {"pod": each["pod"], "node": each["node"], "at": each["at"]}
            for each in after["bindings"]
        ],
        "evictions": [
            *({"pod": pod, "for": None, "reason": DRAINED} for pod in drained),
            *(
                {"pod": each["pod"], "for": each["for"], "reason": each["reason"]}
                for each in after["evictions"]
            ),
        ],
        "quotas": _pairs(before["quotas"], after["quotas"]),
        "pending": {"before": before["pending"], "after": after["pending"]},
    }


@dataclass(frozen=True, slots=True)
class _Difference:
    """What a change leaves other than it was."""

    applied: Sequence[Document]
    deleted: Sequence[Key]

    @property
    def kinds(self) -> set[str]:
        """The kinds of the objects."""
        applied = {str(each.body.get("kind")) for each in self.applied}
        return applied | {kind for kind, _, _ in self.deleted}


def _difference(before: Sequence[Document], after: Sequence[Document]) -> _Difference:
    """The objects that are new or others, and the keys of those that are gone."""
    kept = {id(each) for each in before}
    there = {id(each) for each in after}
    old = {overlay.identity(each) for each in before if id(each) not in there}
    new = [each for each in after if id(each) not in kept]
    left = old - {overlay.identity(each) for each in new}
    return _Difference(new, sorted((k for k in left if k is not None), key=_pods_first))


def _is_plain(before: Iterable[Document], found: _Difference) -> bool:
    """Is the change one of objects that make no pods, to objects that are there from the start?

    Only then does it lead to the same pods, by name, whether it is read with all the objects or
    applied to them.
    """
    return found.kinds <= _PLAIN_KINDS and not any(
        map(_arrives_later, chain(before, found.applied))
    )


def _arrives_later(document: Document) -> bool:
    """May the object, or one that it names, arrive after the start? Of a pod, its own word says."""
    body = document.body
    metadata = body.get("metadata")
    if body.get("kind") == "Pod" and isinstance(metadata, dict):
        return ARRIVAL in (metadata.get("annotations") or ())
    return body.get("kind") == "Timeline" or ARRIVAL in str(body)


def _both(source: Source, found: _Difference, until: int | None) -> tuple[Result, Result]:
    """Both plays of a large cluster, which is read once: each by a copy, one with the change."""
    moment = Moment(source, settled=False)
    read_anew = (read(each) for each in found.applied)
    applied = tuple(each for each in read_anew if each is not None)
    deleted = tuple((k, "--delete") for k in found.deleted)
    change = Change(moment.simulation.now, applied, deleted)
    before = copies.begin(lambda: _go_on(moment.simulation, until))
    try:
        error = moment.first_error(change)
        if error is not None:
            raise error.error()
        moment.simulation.world.change(change)
        after = _go_on(moment.simulation, until)
    finally:
        played = before()
    return played, after


def _go_on(simulation: Simulation, until: int | None) -> Result:
    """Play on from a moment at which nothing is decided yet."""
    simulation.settle()
    return _run(simulation, until)


def _pods_first(key: Key) -> tuple[bool, Key]:
    return key[0] != "Pod", key


def _play(source: Source, until: int | None) -> Result:
    return _run(source.simulation(), until)


def _run(simulation: Simulation, until: int | None) -> Result:
    simulation.run(until)
    return outcome.course(simulation)


def _pairs(before: list[Result], after: list[Result]) -> list[Result]:
    """The figures of each quota, before and after; null where there is none."""
    old, new = ({each["name"]: each for each in quotas} for quotas in (before, after))
    return [
        {"name": name, "before": old.get(name), "after": new.get(name)}
        for name in dict.fromkeys([*old, *new])
    ]


def resources(pair: Result) -> list[str]:
    """Of a quota's pair: the resources that a bound of it names, or that it uses, in either."""
    sides = [each for each in (pair["before"], pair["after"]) if each is not None]
    named = {r for each in sides for word in ("min", "max") for r in each[word]}
    named |= {r for each in sides for r, amount in each["used"].items() if amount != "0"}
    return sorted(named)


def figures(quota: Mapping[str, Any] | None, resource: str) -> tuple[int, int]:
    """Used and min of a quota; 0 where there is none."""
    if quota is None:
        return 0, 0
    used, low = (quantity.amount(resource, quota[w].get(resource, "0")) for w in ("used", "min"))
    return used, low
