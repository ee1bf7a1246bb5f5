"""Pods, whoever's quotas there are: whose they are, why they wait, and where room is held."""

import time

from aliquot.kube.execution.pod_status import MOMENT
from tests.build.manifests import (
    GPU,
    TENSOR_FUSION,
    asking,
    limited_pod,
    priority_class,
    quota,
    ready_node,
)
from tests.cluster.plane.cluster import Cluster


def test_others_pods_are_left_alone_but_what_they_hold_counts(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=4)
    cluster.apply(
        quota("team", {"gpu": 4}, {"gpu": 4}),
        limited_pod("team/others", 3, schedulerName="default-scheduler", nodeName="node-1"),
        limited_pod("team/waits", 1, schedulerName="default-scheduler"),
    )
    before = cluster.get("Pod", "team/waits")
    with cluster.scheduler():
        cluster.apply(limited_pod("team/ours", 2))
        cluster.pending("team/ours", "QuotaMaxExceeded", "used 3")
        cluster.shows("ElasticQuota", "team/quota", {"status": {"used": {GPU: "3"}}})
        cluster.delete("ElasticQuota", "team/quota")
        cluster.pending("team/ours", "Unschedulable")
        cluster.apply(limited_pod("team/small", 1))
        cluster.running("team/small")
        assert cluster.get("Pod", "team/waits") == before
        cluster.untouched("team/others")


def test_only_what_a_node_would_help_is_called_unschedulable(cluster: Cluster) -> None:
    """Autoscalers buy nodes for that word."""
    cluster.nodes(1, gpu=2)
    cluster.apply(
        quota("team", {"gpu": 4}, {"gpu": 4}),
        limited_pod("team/large", 3),
        limited_pod("team/huge", 5),
    )
    with cluster.scheduler():
        cluster.pending("team/large", "Unschedulable")
        cluster.pending("team/huge", "QuotaMaxExceeded")
        cluster.told("Pod", "team/large", "FailedScheduling")
        since = cluster.condition("team/large")["lastTransitionTime"]
        assert since
        cluster.apply(ready_node("node-2", gpu=4))
        cluster.running("team/large", on="node-2")
        cluster.told("Pod", "team/large", "Scheduled", "team/large", "node-2")
        cluster.pending("team/huge", "QuotaMaxExceeded")


def test_a_reason_that_changes_all_the_time_is_written_about_once_a_second(
    cluster: Cluster,
) -> None:
    """Each change of its quota's max is another reason to wait, and a decision of its own."""
    cluster.nodes(1, gpu=2)
    cluster.apply(quota("team", {"gpu": 4}, {"gpu": 4}), limited_pod("team/p", 5))
    with cluster.scheduler():
        cluster.pending("team/p", "QuotaMaxExceeded")
        began, written = time.monotonic(), set()
        for number in range(41):
            most = 8 if number % 2 == 0 and number < 40 else 4
            cluster.apply(quota("team", {"gpu": 4}, {"gpu": most}))
            time.sleep(0.03)
            written.add(cluster.get("Pod", "team/p")["metadata"]["resourceVersion"])
        seconds = time.monotonic() - began
        cluster.pending("team/p", "QuotaMaxExceeded", "max 4")
        assert len(written) <= seconds / MOMENT + 2


def test_where_room_is_held_is_said_while_others_leave(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=2)
    cluster.apply(
        quota("team-a", {"gpu": 0}, {"gpu": 4}),
        quota("team-b", {"gpu": 2}, {"gpu": 2}),
        limited_pod("team-a/a", 2),
    )
    with cluster.scheduler():
        cluster.running("team-a/a")
        with cluster.kubelet.keeping_pods():
            cluster.apply(limited_pod("team-b/b", 2))
            cluster.pending("team-b/b", "WaitingForVictims", "node-1")
            cluster.leaving("team-a/a")
            cluster.shows("Pod", "team-b/b", {"status": {"nominatedNodeName": "node-1"}})
            cluster.apply(limited_pod("team-a/late", 2))
            cluster.pending("team-a/late", "BorrowingExhausted")
            cluster.waiting("team-b/b", "team-a/late")
        cluster.running("team-b/b")
        cluster.waiting("team-a/late")


def test_room_is_not_held_for_ever(cluster: Cluster) -> None:
    """Who makes way does not leave: after a while nobody counts on it any more."""
    cluster.nodes(1, gpu=2)
    cluster.apply(
        quota("team-a", {"gpu": 0}, {"gpu": 2}),
        quota("team-b", {"gpu": 2}, {"gpu": 2}),
        limited_pod("team-a/a", 2, terminationGracePeriodSeconds=1),
    )
    with cluster.scheduler(eviction={"holdFor": "1s"}):
        cluster.running("team-a/a")
        with cluster.kubelet.keeping_pods():
            cluster.apply(limited_pod("team-b/b", 2))
            cluster.shows("Pod", "team-b/b", {"status": {"nominatedNodeName": "node-1"}})
            cluster.shows("Pod", "team-b/b", {"status": {"nominatedNodeName": None}})
            cluster.waiting("team-b/b")
        cluster.running("team-b/b")
        assert cluster.evictions(1) == ["team-a/a"]


def test_a_more_important_pod_takes_the_room_that_is_held(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=2)
    cluster.apply(
        priority_class("high", 1000),
        quota("team-a", {"gpu": 0}, {"gpu": 2}),
        quota("team-b", {"gpu": 2}, {"gpu": 2}),
        limited_pod("team-a/a", 2),
    )
    with cluster.scheduler():
        cluster.running("team-a/a")
        with cluster.kubelet.keeping_pods():
            cluster.apply(limited_pod("team-b/b", 2))
            cluster.shows("Pod", "team-b/b", {"status": {"nominatedNodeName": "node-1"}})
            cluster.apply(limited_pod("team-b/urgent", 2, priorityClassName="high"))
            cluster.shows("Pod", "team-b/urgent", {"status": {"nominatedNodeName": "node-1"}})
            cluster.shows("Pod", "team-b/b", {"status": {"nominatedNodeName": None}})
        cluster.running("team-b/urgent")
        cluster.waiting("team-b/b")
        assert cluster.evictions(1) == ["team-a/a"]


def test_pods_that_go_or_are_bound_by_others_while_they_wait(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=8)
    cluster.apply(
        quota("team", {"gpu": 4}, {"gpu": 4}),
        *(limited_pod(f"team/p{number}", 2) for number in (1, 2)),
    )
    with cluster.scheduler():
        cluster.running("team/p1", "team/p2")
        cluster.apply(
            limited_pod("team/gone", 2), limited_pod("team/bound", 2), limited_pod("team/stays", 2)
        )
        for name in ("gone", "bound", "stays"):
            cluster.pending(f"team/{name}", "QuotaMaxExceeded")
        cluster.delete("Pod", "team/gone")
        cluster.bind("team/bound", "node-1")
        cluster.running("team/bound")
        cluster.shows("ElasticQuota", "team/quota", {"status": {"used": {GPU: "6"}}})
        cluster.delete("Pod", "team/p1")
        cluster.shows("ElasticQuota", "team/quota", {"status": {"used": {GPU: "4"}}})
        cluster.waiting("team/stays")
        cluster.delete("Pod", "team/p2")
        cluster.running("team/stays")
        cluster.shows("ElasticQuota", "team/quota", {"status": {"used": {GPU: "4"}}})


def test_a_name_that_is_used_again_is_another_pod(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=2)
    cluster.apply(quota("team", {"gpu": 2}, {"gpu": 2}), limited_pod("team/p", 2))
    with cluster.scheduler():
        for size in (1, 2):
            cluster.running("team/p")
            cluster.delete("Pod", "team/p")
            cluster.apply(limited_pod("team/p", size))
        cluster.running("team/p")
        cluster.shows("ElasticQuota", "team/quota", {"status": {"used": {GPU: "2"}}})
        assert cluster.evictions() == []


def test_gates_keep_a_pod_waiting(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=2)
    gates = [{"name": "example.com/first"}, {"name": "example.com/second"}]
    cluster.apply(
        quota("team", {"gpu": 2}, {"gpu": 2}),
        limited_pod("team/gated", 2, schedulingGates=gates),
    )
    with cluster.scheduler():
        cluster.apply(limited_pod("team/free", 1))
        cluster.running("team/free")
        cluster.pending("team/gated", "SchedulingGated")
        assert cluster.events("Pod", "team/gated") == []
        cluster.patch("Pod", "team/gated", {"spec": {"schedulingGates": gates[1:]}})
        cluster.delete("Pod", "team/free")
        cluster.patch("Pod", "team/gated", {"spec": {"schedulingGates": None}})
        cluster.running("team/gated")


def test_a_pod_that_makes_no_sense_waits_and_says_so(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=2)
    cluster.apply(
        asking(limited_pod("team/odd"), vram_request="lots"), limited_pod("team/plain", 1)
    )
    with cluster.scheduler():
        cluster.running("team/plain")
        cluster.pending("team/odd", "InvalidPod", "vram-request", "lots")
        cluster.told("Pod", "team/odd", "FailedScheduling", "lots")
        mended = {"metadata": {"annotations": {f"{TENSOR_FUSION}vram-request": None}}}
        cluster.patch("Pod", "team/odd", mended)
        cluster.running("team/odd")


def test_the_numbers_of_a_reason_are_those_of_now(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=4)
    cluster.apply(
        quota("team-a", {"gpu": 1}, {"gpu": 2}),
        quota("team-b", {"gpu": 3}, {"gpu": 4}),
        *(limited_pod(f"team-a/a{number}", 1) for number in (1, 2, 3)),
    )
    with cluster.scheduler():
        cluster.running("team-a/a1", "team-a/a2")
        cluster.pending("team-a/a3", "QuotaMaxExceeded", "max 2")
        cluster.patch("ElasticQuota", "team-a/quota", {"spec": {"max": {GPU: 1}}})
        cluster.pending("team-a/a3", "QuotaMaxExceeded", "max 1")
