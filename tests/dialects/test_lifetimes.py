"""What a pod's object says of its start, its end and its grace period."""

from typing import Any

import pytest

from aliquot.dialects.core import lifetimes, pods
from aliquot.dialects.nos.cards import Cards
from aliquot.engine import SECOND, Pod
from aliquot.errors import InputError
from tests.build.manifests import pod
from tests.dialects.manifests import read

EXPECTED = "aliquot.dev/expected-duration"


def engine_pod(started: int = 0, gone_by: int | None = None, **more: Any) -> Pod:
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if gone_by is not None else {}
    body = pod("a/p", {"cpu": 1}, **more)
    body["metadata"] |= deleted
    return pods.pod(read(body), "u", (0, True), 0, Cards(), started=started, gone_by=gone_by)


def owned_by(kind: str, controller: bool = True) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": "o", "controller": controller}]}


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({}, None),
        ({"activeDeadlineSeconds": 90}, 90),
        ({"annotations": {EXPECTED: "2m"}}, 120),
        ({"activeDeadlineSeconds": 90, "annotations": {EXPECTED: "2m"}}, 90),
        ({"activeDeadlineSeconds": 150, "annotations": {EXPECTED: "2m"}}, 120),
        ({"annotations": {"sim.aliquot.dev/duration": "2m"}}, None),
        ({"terminationGracePeriodSeconds": 5}, None),
    ],
)
def test_a_pod_ends_by_its_deadline_or_its_expected_duration(
    more: dict[str, Any], seconds: int | None
) -> None:
    expected = None if seconds is None else seconds * SECOND
    assert engine_pod(**more).expected_duration == expected
    running = engine_pod(started=7, nodeName="n", **more)
    assert running.expected_end == (None if expected is None else 7 + expected)
    assert engine_pod(**more).expected_end is None


def test_a_terminating_pod_ends_with_its_grace_period() -> None:
    assert engine_pod(gone_by=40, nodeName="n", activeDeadlineSeconds=90).expected_end == 40


@pytest.mark.parametrize("value", ["soon", "-5s", True])
def test_an_expected_duration_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"annotations\[aliquot.dev/expected-duration\].*duration"):
        engine_pod(annotations={EXPECTED: value})


@pytest.mark.parametrize(
    ("more", "may_end"),
    [
        ({}, True),
        (owned_by("Job"), True),
        (owned_by("JobSet"), True),
        (owned_by("RayCluster"), True),
        (owned_by("Deployment"), False),
        (owned_by("ReplicaSet"), False),
        (owned_by("StatefulSet"), False),
        (owned_by("DaemonSet"), False),
        (owned_by("ReplicationController"), False),
        (owned_by("Node"), False),
        (owned_by("ReplicaSet", controller=False), True),
        ({**owned_by("ReplicaSet"), "annotations": {EXPECTED: "2m"}}, True),
        ({**owned_by("DaemonSet"), "gone_by": 5}, True),
    ],
)
def test_pods_of_services_do_not_end_by_themselves(more: dict[str, Any], may_end: bool) -> None:
    assert engine_pod(**more).may_end is may_end


@pytest.mark.parametrize(
    ("deletion", "termination", "seconds"),
    [(7, 50, 7), (0, 50, 0), (None, 50, 50), (None, None, 30), (None, -1, 0)],
)
def test_the_grace_period_of_the_deletion_comes_before_that_of_the_spec(
    deletion: int | None, termination: int | None, seconds: int
) -> None:
    body = pod("a/p", {"cpu": 1}, terminationGracePeriodSeconds=termination)
    body["metadata"]["deletionGracePeriodSeconds"] = deletion
    manifest = read(body)
    assert lifetimes.grace_period(manifest, pods.spec(manifest)) == seconds * SECOND


@pytest.mark.parametrize(
    ("status", "start"),
    [
        ({}, None),
        ({"startTime": "1970-01-01T00:00:05Z"}, 5),
        ({"conditions": [("PodScheduled", "True", 3)]}, 3),
        ({"conditions": [("Ready", "True", 9), ("PodScheduled", "True", 3)]}, 3),
        ({"conditions": [("PodScheduled", "False", 3)]}, None),
        ({"conditions": [("PodScheduled", "True", 3)], "startTime": "1970-01-01T00:00:05Z"}, 5),
    ],
)
def test_a_pod_starts_when_its_kubelet_says_so_and_until_then_when_it_was_bound(
    status: dict[str, Any], start: int | None
) -> None:
    conditions = [
        {"type": kind, "status": is_so, "lastTransitionTime": f"1970-01-01T00:00:0{second}Z"}
        for kind, is_so, second in status.pop("conditions", ())
    ]
    manifest = read(pod("a/p", {"cpu": 1}, status={**status, "conditions": conditions}))
    expected = None if start is None else start * SECOND
    assert lifetimes.start_time(manifest, pods.status(manifest)) == expected
