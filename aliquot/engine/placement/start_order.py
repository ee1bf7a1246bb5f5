"""In which order the pods of a gang are given nodes: each after those that it must be near.

The pods count for each other one after the other, as if they had come one by one. A launcher that
must run near a worker would wait for its own gang if it were looked at first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from aliquot.engine.books.label_sets import LabelSet, Selection
from aliquot.engine.model.pod import Pod
from aliquot.engine.placement.ask import Ask
from aliquot.engine.placement.rule_sets import RuleSets


@dataclass(slots=True)
class _Group:
    """Pods of a gang that selectors see alike, and which pods these must be near."""

    label_set: LabelSet
    near: Selection | None
    places: list[int] = field(default_factory=list)


def start_order(rule_sets: RuleSets, pods: Sequence[Pod], asks: Sequence[Ask]) -> list[int]:
    """The places of the pods in that order; else as they stand.

    In a circle, pods that are near each other by their own kind come first.
    """
    places = list(range(len(pods)))
    if len(set(asks)) == 1 or not any(rule_sets.must_be_near(each.rule_set) for each in asks):
        return places
    left = _groups(rule_sets, pods, asks)
    found: list[int] = []
    while left:
        ready = [group for group in left if not _waits(group, left)]
        if not ready:
            ready = [group for group in left if group.near in group.label_set.selections][:1]
        for group in ready or left[:1]:
            left.remove(group)
            found += group.places
    return found


def own_keys(rule_sets: RuleSets, asks: Iterable[Ask]) -> tuple[str, ...]:
    """The topology keys by which pods must run near their own kind, of which none runs yet."""
    ruled = dict.fromkeys(each.rule_set for each in asks if each.rule_set is not None)
    return tuple(dict.fromkeys(key for each in ruled for key in rule_sets.own_keys(each)))


def _groups(rule_sets: RuleSets, pods: Sequence[Pod], asks: Sequence[Ask]) -> list[_Group]:
    found: dict[tuple[Ask, int], _Group] = {}
    for place, (pod, ask) in enumerate(zip(pods, asks, strict=True)):
        label_set = rule_sets.counts.label_sets.of(pod.namespace, pod.labels)
        key = ask, id(label_set)
        if key not in found:
            found[key] = _Group(label_set, rule_sets.must_be_near(ask.rule_set))
        found[key].places.append(place)
    return list(found.values())


def _waits(group: _Group, left: list[_Group]) -> bool:
    """Must pods of a group be near some of another one that is still to come?"""
    others = (each for each in left if each is not group)
    return group.near is not None and any(
        group.near in each.label_set.selections for each in others
    )
