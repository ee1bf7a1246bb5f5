"""KEP-9, told with real objects: borrow, give back, and never beyond max."""

import pytest

from tests.build.manifests import GPU, limited_pod, priority_class, quota
from tests.cluster.plane.cluster import Cluster

ASKS = "capacityscheduler"


def test_what_is_lent_comes_back_when_its_owner_asks(cluster: Cluster) -> None:
    """The first story of the design."""
    cluster.nodes(2, gpu=5)
    cluster.apply(
        quota("team-a", {"gpu": 4}, {"gpu": 6}),
        quota("team-b", {"gpu": 6}, {"gpu": 8}),
        limited_pod("team-a/a1", 2, schedulerName=ASKS),
        limited_pod("team-b/b1", 3, schedulerName=ASKS),
    )
    with cluster.scheduler():
        cluster.running("team-a/a1", "team-b/b1")
        cluster.apply(limited_pod("team-a/a2", 2, schedulerName=ASKS))
        cluster.running("team-a/a2")
        cluster.apply(limited_pod("team-a/a3", 2, schedulerName=ASKS))
        cluster.running("team-a/a3")
        cluster.apply(limited_pod("team-a/a4", 1, schedulerName=ASKS))
        cluster.pending("team-a/a4", "QuotaMaxExceeded", "max 6", "used 6")
        cluster.told("Pod", "team-a/a4", "FailedScheduling", "QuotaMaxExceeded: quota team-a/")
        cluster.apply(limited_pod("team-b/b2", 3, schedulerName=ASKS))
        cluster.running("team-b/b2")
        cluster.gone("team-a/a3")
        cluster.untouched("team-a/a1", "team-a/a2", "team-b/b1")
        cluster.told("Pod", "team-a/a3", "Preempted", "ReclaimedForMin", "team-b/b2")
        cluster.told("Pod", "team-b/b2", "Preempting", "ReclaimedForMin", "team-a/a3")
        cluster.shows("ElasticQuota", "team-a/quota", {"status": {"used": {GPU: "4"}}})
        cluster.shows("ElasticQuota", "team-b/quota", {"status": {"used": {GPU: "6"}}})
        cluster.apply(limited_pod("team-b/b3", 1, schedulerName=ASKS))
        cluster.pending("team-b/b3", "BorrowingExhausted")
        assert cluster.evictions(1) == ["team-a/a3"]


def test_only_who_borrows_gives_back(cluster: Cluster) -> None:
    """The second story: within min from others that borrow, above it from one's own."""
    cluster.nodes(1, gpu=10)
    cluster.apply(
        priority_class("high", 1000),
        quota("team-a", {"gpu": 3}, {"gpu": 4}),
        quota("team-b", {"gpu": 4}, {"gpu": 6}),
        quota("team-c", {"gpu": 3}, {"gpu": 4}),
        *(limited_pod(f"team-a/a{number}", 1) for number in (1, 2, 3, 4)),
        limited_pod("team-b/b1", 3),
        *(limited_pod(f"team-c/c{number}", 1) for number in (1, 2, 3)),
    )
    others = ["team-c/c1", "team-c/c2", "team-c/c3"]
    with cluster.scheduler():
        cluster.running("team-a/a1", "team-a/a4", "team-b/b1", *others)
        cluster.apply(limited_pod("team-b/b2", 1))
        cluster.running("team-b/b2")
        cluster.untouched("team-b/b1", *others)
        (victim,) = cluster.evictions(1)
        assert victim.startswith("team-a/")
        cluster.apply(limited_pod("team-b/b3", 1, priorityClassName="high"))
        cluster.running("team-b/b3")
        cluster.gone("team-b/b2")
        cluster.told("Pod", "team-b/b2", "Preempted", "PreemptedInQuota", "team-b/b3")
        cluster.untouched("team-b/b1", *others)


def test_priority_means_nothing_to_other_quotas(cluster: Cluster) -> None:
    """The design's example: above its min, a quota takes from nobody else."""
    cluster.nodes(1, cpu=2)
    cluster.apply(
        priority_class("high-priority", 1_000_000),
        quota("quota1", {"cpu": 0}, {"cpu": 2}),
        quota("quota2", {"cpu": 0}, {"cpu": 2}),
        quota("quota3", {"cpu": 1}, {"cpu": 2}),
        limited_pod("quota1/nginx", {"cpu": 1}, schedulerName=ASKS),
    )
    with cluster.scheduler():
        cluster.running("quota1/nginx")
        cluster.apply(
            limited_pod(
                "quota2/nginx", {"cpu": 1}, schedulerName=ASKS, priorityClassName="high-priority"
            )
        )
        cluster.pending("quota2/nginx", "BorrowingExhausted")
        cluster.untouched("quota1/nginx")
        cluster.apply(limited_pod("quota3/nginx", {"cpu": 1}, schedulerName=ASKS))
        cluster.running("quota3/nginx")
        cluster.gone("quota1/nginx")


def test_victims_may_be_on_several_nodes(cluster: Cluster) -> None:
    """What the design calls its known limitation is none here."""
    cluster.nodes(2, cpu=3)
    cluster.apply(
        quota("quota1", {"cpu": 0}, {"cpu": 2}),
        quota("quota2", {"cpu": 2}, {"cpu": 2}),
        limited_pod("quota1/n1", {"cpu": 1}, nodeSelector={"kubernetes.io/hostname": "node-1"}),
        limited_pod("quota1/n2", {"cpu": 1}, nodeSelector={"kubernetes.io/hostname": "node-2"}),
    )
    with cluster.scheduler():
        cluster.running("quota1/n1", on="node-1")
        cluster.running("quota1/n2", on="node-2")
        cluster.apply(limited_pod("quota2/n", {"cpu": 2}))
        cluster.running("quota2/n")
        cluster.gone("quota1/n1", "quota1/n2")


def test_the_older_group_is_read_alike(cluster: Cluster) -> None:
    older = "scheduling.sigs.k8s.io"
    cluster.nodes(1, gpu=4)
    cluster.apply(
        quota("team-a", {"gpu": 1}, {"gpu": 3}, group=older),
        quota("team-b", {"gpu": 3}, {"gpu": 4}),
        *(limited_pod(f"team-a/a{number}", 1) for number in (1, 2, 3, 4)),
    )
    with cluster.scheduler():
        cluster.running("team-a/a1", "team-a/a2", "team-a/a3")
        cluster.pending("team-a/a4", "QuotaMaxExceeded")
        cluster.shows(f"ElasticQuota.{older}", "team-a/quota", {"status": {"used": {GPU: "3"}}})
        cluster.apply(limited_pod("team-b/b", 3))
        cluster.running("team-b/b")
        cluster.gone("team-a/a2", "team-a/a3")
        cluster.shows(f"ElasticQuota.{older}", "team-a/quota", {"status": {"used": {GPU: "1"}}})


def test_quotas_come_change_and_go_while_pods_run(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=8)
    cluster.apply(*(limited_pod(f"team-a/a{number}", 2) for number in (1, 2)))
    with cluster.scheduler():
        cluster.running("team-a/a1", "team-a/a2")
        cluster.apply(quota("team-a", {"gpu": 4}, {"gpu": 4}))
        cluster.shows("ElasticQuota", "team-a/quota", {"status": {"used": {GPU: "4"}}})
        cluster.apply(limited_pod("team-a/a3", 2))
        cluster.pending("team-a/a3", "QuotaMaxExceeded")
        cluster.apply(quota("team-a", {"gpu": 6}, {"gpu": 6}))
        cluster.running("team-a/a3")
        cluster.apply(quota("team-a", {"gpu": 2}, {"gpu": 2}), limited_pod("team-a/a4", 1))
        cluster.pending("team-a/a4", "QuotaMaxExceeded", "max 2", "used 6")
        cluster.untouched("team-a/a1", "team-a/a2", "team-a/a3")
        cluster.delete("ElasticQuota", "team-a/quota")
        cluster.running("team-a/a4")


def test_a_lowered_quota_gives_back_if_it_is_to(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=8)
    pods = [limited_pod(f"team-a/a{number}", 2) for number in (1, 2, 3)]
    cluster.apply(quota("team-a", {"gpu": 6}, {"gpu": 6}), *pods)
    with cluster.scheduler(eviction={"onQuotaLowered": "evict"}):
        cluster.running("team-a/a1", "team-a/a2", "team-a/a3")
        cluster.apply(quota("team-a", {"gpu": 4}, {"gpu": 4}))
        cluster.shows("ElasticQuota", "team-a/quota", {"status": {"used": {GPU: "4"}}})
        assert len(cluster.evictions(1)) == 1


@pytest.fixture
def spared(cluster: Cluster) -> Cluster:
    """One borrower, whom a budget spares, stands in the way of team-b's guarantee."""
    cluster.nodes(1, gpu=2)
    cluster.apply(
        quota("team-a", {"gpu": 0}, {"gpu": 2}),
        quota("team-b", {"gpu": 2}, {"gpu": 2}),
        limited_pod("team-a/a", 2, labels={"app": "web"}, nodeName="node-1"),
    )
    cluster.running("team-a/a")
    cluster.budget("team-a/web", 0, minAvailable=1)
    return cluster


def test_a_budget_is_asked_again_until_it_agrees(spared: Cluster) -> None:
    with spared.scheduler(eviction={"deleteAfter": "0s"}):
        spared.apply(limited_pod("team-b/b", 2))
        spared.pending("team-b/b", "WaitingForVictims")
        spared.told("Pod", "team-b/b", "FailedScheduling", "disruption budget")
        spared.untouched("team-a/a")
        spared.apply(limited_pod("team-a/other", labels={"app": "web"}, nodeName="node-1"))
        spared.running("team-a/other")
        if spared.server.real:
            spared.allow("team-a/web", 1)  # the embedded one does by itself, and it is used at once
        spared.running("team-b/b")
        spared.gone("team-a/a")
        spared.untouched("team-a/other")


def test_a_budget_spares_who_is_no_longer_in_the_way(spared: Cluster) -> None:
    with spared.scheduler(eviction={"deleteAfter": "0s"}) as scheduler:
        spared.apply(limited_pod("team-b/b", 2))
        spared.pending("team-b/b", "WaitingForVictims")
        spared.delete("Pod", "team-b/b")
        scheduler.wait_for("not evicted", pod="team-a/a")
        spared.untouched("team-a/a")
        spared.apply(limited_pod("team-b/b", 2))
        spared.pending("team-b/b", "WaitingForVictims")


def test_guarantees_may_come_before_budgets(spared: Cluster) -> None:
    with spared.scheduler("--delete-after", "500ms"):
        spared.apply(limited_pod("team-b/b", 2))
        spared.running("team-b/b")
        spared.gone("team-a/a")
