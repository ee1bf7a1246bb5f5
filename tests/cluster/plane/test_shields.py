"""Shields for borrowed pods: nothing that a tenant can do keeps another team's guarantee away."""

from aliquot.json import Body
from tests.build.manifests import KOORDINATOR, limited_pod, quota
from tests.cluster.plane.cluster import Cluster

YEAR = 31_536_000
NOT_PREEMPTIBLE = {f"{KOORDINATOR}preemptible": "false"}


def borrower(name: str, labels: Body | None = None, **spec: object) -> Body:
    """A pod of team-a that was bound past the scheduler."""
    return limited_pod(f"team-a/{name}", 1, labels=labels or {}, nodeName="node-1", **spec)


def test_no_shield_keeps_a_guarantee_away(cluster: Cluster) -> None:
    shields = ["budget", "two-budgets", "year", "left", "not-preemptible"]
    cluster.nodes(1, gpu=6)
    cluster.apply(
        quota("team-a/q", {"gpu": 1}, {"gpu": 6}),
        quota("team-b/q", {"gpu": 5}, {"gpu": 6}),
        borrower("kept", NOT_PREEMPTIBLE),
        borrower("budget", {"app": "one"}),
        borrower("two-budgets", {"app": "two"}),
        borrower("year", terminationGracePeriodSeconds=YEAR),
        borrower("left"),
        borrower("not-preemptible", NOT_PREEMPTIBLE),
    )
    cluster.running("team-a/kept", *(f"team-a/{name}" for name in shields))
    cluster.budget("team-a/one", 0, minAvailable=1, selector={"matchLabels": {"app": "one"}})
    for name in ("two", "three"):
        two = {"matchLabels": {"app": "two"}}
        cluster.budget(f"team-a/{name}", 0, minAvailable=1, selector=two)
    eviction = {"deleteAfter": "500ms", "maxGrace": "100s"}
    with cluster.scheduler("--policy", "capacity", eviction=eviction):
        with cluster.kubelet.keeping_pods():
            cluster.delete("Pod", "team-a/left", grace=YEAR)
            cluster.apply(limited_pod("team-b/p", 5))
            cluster.leaving(*(f"team-a/{name}" for name in shields))
            cluster.until(lambda: [name for name in ("year", "left") if grace(cluster, name) > 100])
            overridden = "DisruptionBudgetOverridden"
            cluster.told("Pod", "team-a/budget", overridden, "deleteAfter", "team-b/p is owed")
            cluster.told("Pod", "team-a/two-budgets", overridden, "more than one")
            cluster.untouched("team-a/kept")
        cluster.running("team-b/p")
        cluster.untouched("team-a/kept")


def grace(cluster: Cluster, name: str) -> int:
    """The grace period with which a pod of team-a terminates."""
    return int(cluster.get("Pod", f"team-a/{name}")["metadata"]["deletionGracePeriodSeconds"])


def test_a_resize_past_the_webhook_is_counted_and_told(cluster: Cluster) -> None:
    cluster.nodes(1, cpu=8)
    cluster.apply(quota("team-a/q", {"cpu": 2}, {"cpu": 2}), limited_pod("team-a/p", {"cpu": 1}))
    with cluster.scheduler("--policy", "capacity"):
        cluster.running("team-a/p")
        found = cluster.get("Pod", "team-a/p")["spec"]["containers"]
        found[0]["resources"] = {"requests": {"cpu": "3"}, "limits": {"cpu": "3"}}
        cluster.patch("Pod", "team-a/p", {"spec": {"containers": found}}, "resize")
        cluster.told("Pod", "team-a/p", "ResizedAboveMax", "max 2 cpu, used 3, this pod has 3")
        cluster.shows("ElasticQuota", "team-a/q", {"status": {"used": {"cpu": "3"}}})
