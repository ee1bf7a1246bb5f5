"""Admission by quota: what its annotation lets in, counted from the moment that a pod is let in."""

import json
from typing import Any

import pytest

from aliquot.kube.webhook import usage
from aliquot.kube.webhook.cache import Cache
from tests.build.manifests import KOORDINATOR, limited_pod, pod
from tests.dialects.manifests import read
from tests.kube.webhook.writes import changed, cluster, create, member, named, update

Body = dict[str, Any]


def limiting(most: Body | None, high: Body, name: str = "m") -> Body:
    said = {} if most is None else {f"{KOORDINATOR}admission": json.dumps(most)}
    return changed(member(name, annotations=said), max=high, min={})


def asking(path: str, asks: Body, quota: str = "m") -> Body:
    body = limited_pod(path, labels=named(quota))
    body["spec"]["containers"][0]["resources"] = {"requests": asks}
    return body


def refusals(cache: Cache, *pods: Body) -> list[str]:
    return [create(cache, each).refusal for each in pods]


GPU = "nvidia.com/gpu"
GIB60 = {"cpu": 20, "memory": "60Gi"}
SMALL = {"cpu": 2, "memory": "4Gi"}
CASES: list[tuple[Body | None, Body, Body, Body, bool]] = [
    ({}, GIB60, {}, SMALL, True),
    ({}, GIB60, {"cpu": 19, "memory": "50Gi"}, SMALL, False),
    ({"cpu": 30, "memory": "60Gi"}, GIB60, {"cpu": 19, "memory": "50Gi"}, SMALL, True),
    ({}, {GPU: 2}, {}, {**SMALL, GPU: 2}, True),
    ({}, {GPU: 2}, {GPU: 2}, {GPU: 2}, False),
    ({"cpu": 0, "memory": 0}, {"cpu": 4, "memory": "8Gi"}, {}, SMALL, False),
    ({"batch-cpu": 0}, {"cpu": 4, "memory": "8Gi"}, {}, SMALL, True),
    ({}, {"cpu": 1, "memory": "2Gi"}, {}, SMALL, False),
    (None, {"cpu": 1, "memory": "2Gi"}, {}, SMALL, True),
]


@pytest.mark.parametrize(("most", "high", "there", "asks", "allowed"), CASES)
def test_what_a_quota_lets_in(
    most: Body | None, high: Body, there: Body, asks: Body, allowed: bool
) -> None:
    running = [asking("m/there", there)] if there else []
    cache = cluster(limiting(most, high), *running)
    (refusal,) = refusals(cache, asking("m/p", asks))
    assert (refusal == "") == allowed, refusal


def test_a_refusal_has_the_numbers() -> None:
    cache = cluster(limiting({"cpu": 10}, {"cpu": 20}), asking("m/there", {"cpu": 8}))
    ok, refusal = refusals(cache, asking("m/p", {"cpu": 1}), asking("m/q", {"cpu": 3}))
    assert ok == ""
    assert refusal == (
        "quota m/m admits pods that ask for 10 cpu together; those there are ask for 9, this one "
        "for 3; ask for less, delete pods of the quota, or have its annotation admission raised"
    )


def test_a_pod_that_was_let_in_counts_until_it_is_shown_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = cluster(limiting({}, {"cpu": 10}))
    first = asking("m/p", {"cpu": 6})
    assert refusals(cache, first, first) == ["", ""], "the same pod once more, as API servers do"
    assert create(cache, asking("m/q", {"cpu": 6})).refusal
    cache.put(read(first))
    assert create(cache, asking("m/q", {"cpu": 6})).refusal
    assert not create(cache, asking("m/r", {"cpu": 4})).refusal
    monkeypatch.setattr(usage, "_SHOWN_AFTER", 0.0)
    assert not create(cache, asking("m/s", {"cpu": 4})).refusal, "pod r never came"


def test_a_pod_that_moves_is_let_in_by_its_new_quota() -> None:
    quotas = [limiting({}, {"cpu": 4}, "m"), limiting({}, {"cpu": 4}, "full"), member("open")]
    for each in quotas:
        each["metadata"]["namespace"] = "koordinator-system"  # open to pods of all namespaces
    cache = cluster(*quotas, asking("m/there", {"cpu": 4}, "full"))
    old = asking("m/p", {"cpu": 2})
    assert not create(cache, old).refusal
    assert "system/full admits" in update(cache, old, asking("m/p", {"cpu": 2}, "full")).refusal
    assert not update(cache, old, asking("m/p", {"cpu": 2}, "open")).refusal
    same = asking("m/p", {"cpu": 2})
    same["metadata"]["annotations"] = {"note": "x"}
    assert not update(cache, old, same).refusal


def test_pods_without_a_limit_are_all_let_in() -> None:
    cache = cluster(member("m"), pod("m/there", {"cpu": 99}))
    assert refusals(cache, asking("m/p", {"cpu": 99})) == [""]


def test_a_negative_limit_is_refused() -> None:
    said = {f"{KOORDINATOR}admission": json.dumps({"cpu": -1})}
    quota = changed(member("m", annotations=said), max={"cpu": 4}, min={})
    assert "cpu: -1 is negative" in create(cluster(), quota).refusal
