"""nos, told with real objects: labels that follow the pods, fair sharing of what is borrowed."""

from tests.build.manifests import GPU, composite, limited_pod, quota, ready_node
from tests.cluster.plane.cluster import Cluster

COM, AI = "nos.nebuly.com", "nos.nebuly.ai"
MEMORY = "nos.nebuly.ai/gpu-memory"
SLICE = "nvidia.com/gpu-10gb"


def capacity(cluster: Cluster, name: str, wanted: str | None, group: str = COM) -> None:
    cluster.shows("Pod", name, {"metadata": {"labels": {f"{group}/capacity": wanted}}})


def uses(cluster: Cluster, team: str, memory: int) -> None:
    used = {"status": {"used": {MEMORY: str(memory)}}}
    cluster.shows("ElasticQuota.nos.nebuly.ai", f"{team}/quota", used)


def test_pods_say_whether_they_are_within_their_quota(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=6)
    cluster.apply(
        quota("team-a", {"gpu": 2}, group=COM),
        quota("team-b", {"gpu": 4}, group=COM),
        *(
            limited_pod(f"team-a/a{number}", 1, schedulerName="nos-scheduler")
            for number in (1, 2, 3)
        ),
        limited_pod("elsewhere/p", 1),
    )
    with cluster.scheduler():
        cluster.running("team-a/a1", "team-a/a2", "team-a/a3", "elsewhere/p")
        for name, wanted in (("a1", "in-quota"), ("a2", "in-quota"), ("a3", "over-quota")):
            capacity(cluster, f"team-a/{name}", wanted)
        cluster.shows(f"ElasticQuota.{COM}", "team-a/quota", {"status": {"used": {GPU: "3"}}})
        cluster.delete("Pod", "team-a/a1")
        capacity(cluster, "team-a/a3", "in-quota")
        cluster.apply(quota("team-a", {"gpu": 1}, group=COM))
        capacity(cluster, "team-a/a3", "over-quota")
        capacity(cluster, "team-a/a2", "in-quota")
        cluster.delete(f"ElasticQuota.{COM}", "team-a/quota")
        capacity(cluster, "team-a/a2", None)
        assert "labels" not in cluster.get("Pod", "elsewhere/p")["metadata"]
        cluster.untouched("team-a/a2", "team-a/a3")


def test_what_is_borrowed_is_shared_by_guarantee(cluster: Cluster) -> None:
    """The design's example: A takes a slice from B, which has more than its part, and no second."""
    cluster.apply(
        ready_node("node-1", **{SLICE: "8"}),
        quota("team-a", {MEMORY: 40}, group=AI),
        quota("team-b", {MEMORY: 10}, group=AI),
        quota("team-c", {MEMORY: 30}, group=AI),
        *(limited_pod(f"team-a/a{number}", {SLICE: "1"}) for number in (1, 2, 3, 4)),
        *(limited_pod(f"team-b/b{number}", {SLICE: "1"}) for number in (1, 2, 3, 4)),
    )
    with cluster.scheduler():
        cluster.running(*(f"team-{team}/{team}{n}" for team in "ab" for n in (1, 2, 3, 4)))
        cluster.apply(limited_pod("team-a/a5", {SLICE: "1"}))
        cluster.running("team-a/a5")
        cluster.gone("team-b/b4")
        cluster.told("Pod", "team-b/b4", "Preempted", "FairShare", "team-a/a5")
        capacity(cluster, "team-a/a5", "over-quota", AI)
        uses(cluster, "team-a", 50)
        uses(cluster, "team-b", 30)
        cluster.apply(limited_pod("team-a/a6", {SLICE: "1"}))
        cluster.pending("team-a/a6", "BorrowingExhausted")
        assert cluster.evictions(1) == ["team-b/b4"]
        cluster.delete("Pod", "team-a/a6")
        cluster.apply(limited_pod("team-c/c1", {SLICE: "1"}))
        cluster.running("team-c/c1")
        assert len(cluster.evictions(2)) == 2


def test_a_quota_over_several_namespaces_counts_once(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=8)
    cluster.apply(
        composite("admin/pair", ["team-a", "team-b"], {"gpu": 3}, {"gpu": 4}),
        quota("team-c", {"gpu": 5}, group=COM),
        limited_pod("team-a/a1", 2),
        limited_pod("team-b/b1", 2),
    )
    with cluster.scheduler():
        cluster.running("team-a/a1", "team-b/b1")
        cluster.shows("CompositeElasticQuota", "admin/pair", {"status": {"used": {GPU: "4"}}})
        capacity(cluster, "team-a/a1", "in-quota")
        capacity(cluster, "team-b/b1", "over-quota")
        cluster.apply(limited_pod("team-a/a2", 1))
        cluster.pending("team-a/a2", "QuotaMaxExceeded", "max 4")
        cluster.apply(limited_pod("team-c/c1", 5))
        cluster.running("team-c/c1")
        cluster.gone("team-b/b1")
        cluster.shows("CompositeElasticQuota", "admin/pair", {"status": {"used": {GPU: "3"}}})


def test_gpu_memory_is_worked_out_from_cards_and_slices(cluster: Cluster) -> None:
    """The design's example of 42 GB: a card of 32 GB, and a slice."""
    slices = {"nvidia.com/mig-1g.10gb": "4"}
    cluster.apply(
        ready_node("node-1", gpu=2, **slices),
        quota("team-a", {MEMORY: 50}, {MEMORY: 60}, group=AI),
        limited_pod("team-a/a1", {"gpu": 1, "nvidia.com/mig-1g.10gb": "1"}),
    )
    with cluster.scheduler():
        cluster.running("team-a/a1")
        uses(cluster, "team-a", 42)
        cluster.apply(limited_pod("team-a/a2", {"nvidia.com/mig-1g.10gb": "2"}))
        cluster.pending("team-a/a2", "QuotaMaxExceeded", "60")
        cluster.apply(quota("team-a", {MEMORY: 70}, {MEMORY: 70}, group=AI))
        cluster.running("team-a/a2")
        uses(cluster, "team-a", 62)
