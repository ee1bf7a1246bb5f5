"""On what terms a cluster is shared, when its objects change while it runs."""

from tests.build.manifests import GPU, annotated, limited_pod, queue, quota, tree_quota
from tests.cluster.plane.cluster import Cluster

SHARED = "the cluster is shared"


def test_the_first_queue_changes_the_policy_and_evicts_nobody(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=4)
    cluster.apply(*(limited_pod(f"team/p{number}", 1) for number in (1, 2, 3)))
    with cluster.scheduler() as scheduler:
        cluster.running("team/p1", "team/p2", "team/p3")
        assert scheduler.says(SHARED, policy="capacity")
        cluster.apply(queue("q"))
        scheduler.wait_for(SHARED, policy="queues")
        cluster.apply(annotated(limited_pod("team/q1", 1), queue="q"))
        cluster.running("team/q1")
        cluster.shows("Queue", "q", {"status": {"allocated": {GPU: "1"}}})
        cluster.untouched("team/p1", "team/p2", "team/p3")
        assert cluster.evictions() == []


def test_the_first_tree_changes_the_policy_and_evicts_nobody(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=4)
    cluster.apply(
        quota("team-a", {"gpu": 2}, {"gpu": 4}),
        quota("team-b", {"gpu": 2}, {"gpu": 2}),
        *(limited_pod(f"team-a/a{number}", 1) for number in (1, 2, 3)),
    )
    with cluster.scheduler() as scheduler:
        cluster.running("team-a/a1", "team-a/a2", "team-a/a3")
        cluster.apply(tree_quota("team-c/tree", {"gpu": 0}, {"gpu": 4}, lend="true"))
        scheduler.wait_for(SHARED, policy="hierarchy")
        cluster.apply(limited_pod("team-c/c1", 1))
        cluster.running("team-c/c1")
        cluster.untouched("team-a/a1", "team-a/a2", "team-a/a3")
        cluster.delete("ElasticQuota.scheduling.sigs.k8s.io", "team-c/tree")
        cluster.until(lambda: scheduler.lines and not _last(scheduler.lines, "capacity"))
        cluster.untouched("team-a/a1", "team-a/a2", "team-a/a3", "team-c/c1")
        assert cluster.evictions() == []


def test_queues_beside_quotas_change_nothing_until_somebody_decides(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=4)
    cluster.apply(quota("team", {"gpu": 2}, {"gpu": 2}), limited_pod("team/p1", 1))
    with cluster.scheduler() as scheduler:
        cluster.running("team/p1")
        cluster.apply(queue("q"))
        scheduler.wait_for("the objects contradict each other")
        cluster.apply(limited_pod("team/p2", 1), limited_pod("team/p3", 1))
        cluster.running("team/p2")
        cluster.pending("team/p3", "QuotaMaxExceeded")
    refused = cluster.start()
    refused.process.join(60)
    assert refused.process.exitcode == 2
    assert "say which policy holds by --policy" in refused.log.read_text()
    with cluster.scheduler("--policy", "capacity"):
        cluster.delete("Pod", "team/p1")
        cluster.running("team/p3")


def _last(lines: list[dict[str, object]], policy: str) -> bool:
    """Is this the policy that was last said?"""
    said = [line["policy"] for line in lines if line["event"] == SHARED]
    return said[-1] == policy
