"""Koordinator's trees, told with real objects: runtimes, recycling, and whose pod is whose."""

import json

from tests.build.manifests import (
    GPU,
    KOORDINATOR,
    labelled,
    limited_pod,
    namespace,
    priority_class,
    tree_quota,
)
from tests.cluster.plane.cluster import Cluster

OLDER = "ElasticQuota.scheduling.sigs.k8s.io"
SOON = {"revokeAfter": "1s"}
MADE = "koordinator-system"


def figure(cluster: Cluster, name: str, word: str, wanted: dict[str, str]) -> None:
    """Wait until a quota says this in an annotation."""

    def problem() -> object:
        annotations = cluster.get(OLDER, name)["metadata"].get("annotations") or {}
        said = annotations.get(KOORDINATOR + word)
        return None if said and json.loads(said) == wanted else f"{name}: {annotations}"

    cluster.until(problem)


def test_a_tree_shares_what_is_there(cluster: Cluster) -> None:
    """Children share what their parent has; who asks for less than its min lends the rest."""
    cluster.nodes(1, gpu=10)
    cluster.apply(
        namespace(MADE),
        tree_quota("top/research", {"gpu": 6}, {"gpu": 10}, is_parent="true"),
        tree_quota("top/vision", {"gpu": 4}, {"gpu": 10}, parent="research"),
        tree_quota("top/speech", {"gpu": 2}, {"gpu": 10}, parent="research"),
        tree_quota("top/sales", {"gpu": 4}, {"gpu": 4}),
        *(labelled(limited_pod(f"top/v{n}", 1), **{"quota-name": "vision"}) for n in range(6)),
        labelled(limited_pod("top/s0", 1), name="speech"),
    )
    with cluster.scheduler():
        cluster.running(*(f"top/v{n}" for n in range(6)), "top/s0")
        figure(cluster, "top/vision", "runtime", {GPU: "6"})
        figure(cluster, "top/vision", "request", {GPU: "6"})
        figure(cluster, "top/speech", "runtime", {GPU: "1"})
        figure(cluster, "top/research", "request", {GPU: "7"})
        cluster.shows(OLDER, "top/research", {"status": {"used": {GPU: "7"}}})
        cluster.shows(OLDER, "top/vision", {"status": {"used": {GPU: "6"}}})
        for name in ("koordinator-system-quota", "koordinator-default-quota"):
            cluster.shows(OLDER, f"{MADE}/{name}", {"kind": "ElasticQuota"})
        assert cluster.evictions() == []


def test_what_is_beyond_the_runtime_is_recycled_in_time(cluster: Cluster) -> None:
    """The design's example: A uses everything, B asks for as much, and each ends with a half."""
    cluster.nodes(1, gpu=4)
    cluster.apply(
        priority_class("low", -1),
        tree_quota("a/a", {"gpu": 1}, {"gpu": 4}, lend="true"),
        tree_quota("b/b", {"gpu": 1}, {"gpu": 4}),
        *(limited_pod(f"a/a{n}", 1, schedulerName="koord-scheduler") for n in (1, 2, 3)),
        limited_pod("a/a0", 1, priorityClassName="low"),
    )
    with cluster.scheduler(hierarchy=SOON):
        cluster.running("a/a0", "a/a1", "a/a2", "a/a3")
        cluster.apply(
            *(limited_pod(f"b/b{n}", 1, schedulerName="koord-scheduler") for n in (1, 2, 3))
        )
        cluster.pending("b/b3", "RuntimeExceeded")
        cluster.running("b/b1", "b/b2")
        cluster.gone("a/a0", "a/a3")
        cluster.told("Pod", "a/a0", "Preempted", "Recycled")
        figure(cluster, "a/a", "runtime", {GPU: "2"})
        figure(cluster, "b/b", "runtime", {GPU: "2"})
        cluster.pending("b/b3", "RuntimeExceeded")
        cluster.untouched("a/a1", "a/a2", "b/b1", "b/b2")
        assert cluster.evictions(2) == ["a/a0", "a/a3"]


def test_what_nobody_has_a_right_to_is_lent_until_somebody_asks(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=4)
    weight = json.dumps({GPU: 0, "cpu": 1})
    cluster.apply(
        tree_quota("a/a", {"gpu": 2}, {"gpu": 4, "cpu": 9}, weight=weight),
        tree_quota("b/b", {"gpu": 2}, {"gpu": 4, "cpu": 9}),
        *(limited_pod(f"a/a{n}", 1) for n in (1, 2, 3, 4)),
    )
    with cluster.scheduler():
        cluster.running(*(f"a/a{n}" for n in (1, 2, 3, 4)))
        figure(cluster, "a/a", "runtime", {GPU: "2", "cpu": "0"})
        cluster.apply(limited_pod("b/b1", 2))
        cluster.running("b/b1")
        cluster.gone("a/a3", "a/a4")
        cluster.told("Pod", "a/a4", "Preempted", "SurplusReturned", "b/b1")
        cluster.untouched("a/a1", "a/a2")


def test_quotas_that_nobody_wrote_become_objects(cluster: Cluster) -> None:
    """Pods without a quota are in one of these; both can be edited then."""
    cluster.nodes(1, gpu=4)
    cluster.apply(namespace(MADE))  # the scheduler has no right to create namespaces
    cluster.apply(tree_quota("a/a", {"gpu": 1}, {"gpu": 4}, lend="true"), limited_pod("x/p", 2))
    default = f"{MADE}/koordinator-default-quota"
    with cluster.scheduler():
        cluster.running("x/p")
        cluster.shows(OLDER, f"{MADE}/koordinator-system-quota", {"kind": "ElasticQuota"})
        cluster.shows(OLDER, default, {"status": {"used": {GPU: "2"}}})
        cluster.apply(limited_pod("x/large", 4))
        cluster.pending("x/large", "RuntimeExceeded")
        cluster.patch(OLDER, default, {"spec": {"max": {GPU: "3"}}})
        cluster.pending("x/large", "QuotaMaxExceeded", "max 3")  # so the new max is known
        cluster.apply(limited_pod("x/q", 2))
        cluster.pending("x/q", "QuotaMaxExceeded", "max 3")
        cluster.shows(OLDER, default, {"spec": {"max": {GPU: "3"}}})
        cluster.patch(OLDER, default, {"spec": {"max": {GPU: "4"}}})
        cluster.running("x/q")
        cluster.waiting("x/large")


def test_a_parent_runs_no_pods(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=4)
    cluster.apply(
        tree_quota("top/research", {"gpu": 2}, {"gpu": 4}, is_parent="true"),
        tree_quota("top/vision", {"gpu": 2}, {"gpu": 4}, parent="research"),
        labelled(limited_pod("top/p", 1), name="research"),
        labelled(limited_pod("top/q", 1), name="vision"),
    )
    with cluster.scheduler():
        cluster.pending("top/p", "ParentQuota", "research")
        cluster.running("top/q")
        cluster.patch("Pod", "top/p", {"metadata": {"labels": {f"{KOORDINATOR}name": "vision"}}})
        cluster.running("top/p")


def test_an_ancestor_bounds_all_below_it(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=8)
    cluster.apply(
        tree_quota("top/research", {"gpu": 2}, {"gpu": 2}, is_parent="true"),
        tree_quota("top/vision", {"gpu": 1}, {"gpu": 4}, parent="research"),
        *(labelled(limited_pod(f"top/p{n}", 1), name="vision") for n in (1, 2, 3)),
    )
    with cluster.scheduler():
        cluster.running("top/p1", "top/p2")
        cluster.pending("top/p3", "QuotaMaxExceeded", "research")
        grown = tree_quota("top/research", {"gpu": 2}, {"gpu": 3}, is_parent="true")
        cluster.apply(grown)
        cluster.running("top/p3")
