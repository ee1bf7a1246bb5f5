"""Pods that state no spread, as watched: by Services and owners, whichever comes first."""

import random
from typing import Any

import msgspec
import pytest

from aliquot.dialects.configuration import Configuration, Constraint, Placement
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.nos.cards import Cards
from aliquot.engine import NO_RULES, DefaultConstraint, Event, Pod, PodSet, Requirement
from aliquot.kube.api.resource import OWNERS, SERVICES, Resource
from aliquot.kube.intake.intake import Intake
from aliquot.kube.intake.objects import Objects, shape_of
from aliquot.kube.intake.pods import Pods
from aliquot.mirror.mirror import Mirror
from tests.build import manifests
from tests.kube.workshop import Answers

ZONE = (DefaultConstraint("zone", 1, True),)
BY_KIND = {each.kind: each for each in (SERVICES, *OWNERS)}


class Spread:
    """A mirror of a cluster whose pods are spread by default."""

    def __init__(self, constraints: tuple[DefaultConstraint, ...] = ZONE) -> None:
        self.heard: list[Event] = []
        self.mirror = Mirror(self.heard.append, Cards(), live=True, default_constraints=constraints)
        self.objects = Objects(self.mirror)
        self.pods = Pods(self.mirror, {"aliquot"})

    def pod(self, name: str, owner: str = "", **labels: str) -> Pod:
        """A pod is there; `owner` is a kind and a name."""
        body = manifests.pod(f"a/{name}", {"cpu": "1"}, schedulerName="aliquot")
        body["metadata"] |= {"uid": name, "labels": labels}
        if owner:
            kind, _, bare = owner.partition("/")
            reference = {"apiVersion": "apps/v1", "kind": kind, "name": bare, "controller": True}
            body["metadata"]["ownerReferences"] = [reference]
        self.pods.put(msgspec.convert(body, PodWire))
        return self.mirror.records[name].pod

    def put(self, kind: str, name: str, selector: Any, namespace: str = "a") -> list[str]:
        """An object that selects pods is there; the names of the pods that are sent anew."""
        resource = BY_KIND[kind]
        body = {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}
        return self._settled(
            lambda: self.objects.put(resource, msgspec.convert(body, shape_of(resource)))
        )

    def gone(self, kind: str, name: str) -> list[str]:
        return self._settled(lambda: self.objects.gone(BY_KIND[kind], "a", name))

    def selected(self, name: str) -> tuple[Requirement, ...] | None:
        """The labels of the pods that a pod is spread among; None: it is not spread."""
        rules = self.mirror.records[name].pod.rules
        if not rules.spread:
            assert rules is NO_RULES
            return None
        (constraint,) = rules.spread
        assert constraint.selector.namespaces == ("a",)
        return constraint.selector.labels

    def _settled(self, act: Any) -> list[str]:
        self.heard.clear()
        act()
        self.objects.settle()
        return [each.pod.name for each in self.heard if isinstance(each, PodSet)]


def exactly(**labels: str) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, "In", (value,)) for key, value in sorted(labels.items()))


def test_all_services_of_the_namespace_that_select_a_pod_count() -> None:
    spread = Spread()
    spread.pod("p", app="s", tier="web")
    spread.pod("other", app="x")
    assert spread.put("Service", "one", {"app": "s"}) == ["p"]
    assert spread.selected("p") == exactly(app="s")
    assert spread.put("Service", "two", {"tier": "web"}) == ["p"]
    assert spread.selected("p") == exactly(app="s", tier="web")
    for name, selector in (("none", None), ("all", {}), ("other", {"tier": "db"})):
        assert spread.put("Service", name, selector) == []
    assert spread.put("Service", "far", {"app": "s"}, namespace="b") == []
    assert spread.selected("other") is None
    assert spread.put("Service", "one", {"app": "x"}) == ["p", "other"]
    assert (spread.selected("p"), spread.selected("other")) == (
        exactly(tier="web"),
        exactly(app="x"),
    )
    assert spread.gone("Service", "two") == ["p"]
    assert spread.selected("p") is None


@pytest.mark.parametrize("kind", [each.kind for each in OWNERS])
def test_the_owner_of_a_pod_counts_whichever_is_seen_first(kind: str) -> None:
    spread = Spread()
    labels = {"app": "s"}
    selector = labels if kind == "ReplicationController" else {"matchLabels": labels}
    spread.pod("early", f"{kind}/o", **labels)
    spread.pod("alone", **labels)
    assert spread.put(kind, "o", selector) == ["early"]
    spread.pod("late", f"{kind}/o", **labels)
    assert spread.selected("early") == spread.selected("late") == exactly(app="s")
    assert spread.selected("alone") is None
    spread.put("Service", "s", {"app": "s"})
    assert spread.selected("late") == spread.selected("alone") == exactly(app="s")
    assert spread.gone("Service", "s") == ["alone"]
    assert sorted(spread.gone(kind, "o")) == ["early", "late"]
    assert spread.selected("early") is None


def test_other_owners_and_other_objects_of_that_name_do_not_count() -> None:
    spread = Spread()
    spread.put("ReplicaSet", "o", {"matchLabels": {"app": "s"}})
    spread.pod("p", "Job/o", app="s")
    spread.pod("q", "StatefulSet/o", app="s")
    assert spread.selected("p") is spread.selected("q") is None


def test_pods_share_their_rules_whatever_labels_they_have_that_no_selector_reads() -> None:
    spread = Spread()
    spread.put("Service", "s", {"app": "s"})
    first = spread.pod("p", app="s", index="0").rules
    assert spread.pod("q", app="s", index="1").rules is first
    assert spread.pod("r", app="s", index="0").rules is first


def test_what_changes_nothing_is_no_news() -> None:
    spread = Spread()
    spread.put("Service", "s", {"app": "s"})
    spread.pod("p", app="s")
    assert spread.put("Service", "s", {"app": "s"}) == []
    assert spread.put("Service", "again", {"app": "s"}) == []


def test_whatever_order_things_come_in_pods_have_the_same_rules() -> None:
    dice = random.Random(7)
    steps: list[Any] = [
        ("put", "Service", "one", {"app": "s"}),
        ("put", "Service", "two", {"tier": "web"}),
        ("put", "ReplicaSet", "r", {"matchLabels": {"app": "s", "hash": "1"}}),
        ("pod", "p", "ReplicaSet/r", {"app": "s", "hash": "1", "tier": "web"}),
        ("pod", "q", "", {"tier": "web"}),
        ("pod", "r", "ReplicaSet/r", {"app": "s", "hash": "1"}),
    ]
    found = set()
    for _ in range(50):
        dice.shuffle(steps)
        spread = Spread()
        for word, *given in steps:
            if word == "put":
                spread.put(*given)
            else:
                spread.pod(*given[:2], **given[2])
        found.add(tuple(spread.mirror.records[each].pod.rules for each in "pqr"))
    ((p, q, r),) = found
    assert p.spread[0].selector.labels == exactly(app="s", hash="1", tier="web")
    assert q.spread[0].selector.labels == exactly(tier="web")
    assert r.spread[0].selector.labels == exactly(app="s", hash="1")


def test_the_kinds_are_watched_only_where_default_constraints_are_configured() -> None:
    def watched(*constraints: Constraint) -> set[str]:
        placement = Placement(default_constraints=list(constraints))
        client: Any = Answers()
        intake = Intake(client, Configuration(placement=placement), "capacity", lambda: None)
        return set(intake.missing)

    wanted: tuple[Resource, ...] = (SERVICES, *OWNERS)
    names = {each.full_name for each in wanted}
    assert watched() & names == set()
    assert watched(Constraint(1, "zone", "DoNotSchedule")) - watched() == names
