"""KEP-9, told with real objects: borrow, give back, and never beyond max."""

from tests.cluster.plane.cluster import Cluster
from tests.cluster.plane.manifests import pod, quota


def test_idle_min_is_lent_and_comes_back_when_its_owner_asks(cluster: Cluster) -> None:
    cluster.nodes(2, gpu=5)
    cluster.apply(
        quota("team-a/quota", {"gpu": 4}, {"gpu": 6}),
        quota("team-b/quota", {"gpu": 6}, {"gpu": 8}),
        *(pod(f"team-a/a{number}", 2) for number in (1, 2)),
        pod("team-b/b1", 3),
    )
    with cluster.scheduler():
        cluster.running("team-a/a1", "team-a/a2", "team-b/b1")
        cluster.apply(pod("team-a/a3", 2))
        cluster.running("team-a/a3")
        cluster.apply(pod("team-a/a4", 1))
        cluster.pending("team-a/a4", "QuotaMaxExceeded", "max 6")
        cluster.apply(*(pod(f"team-b/b{number}", 1) for number in (2, 3, 4)))
        cluster.running("team-b/b2", "team-b/b3", "team-b/b4")
        cluster.gone("team-a/a3")
        cluster.untouched("team-a/a1", "team-a/a2", "team-b/b1")
