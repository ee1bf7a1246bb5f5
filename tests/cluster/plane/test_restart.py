"""An API server that ends and begins again, and forgets its past: the control plane goes on.

These servers are the story's own: nobody else's may be ended.
"""

from pathlib import Path

from tests.build.manifests import GPU, limited_pod, quota
from tests.cluster.conftest import Start
from tests.cluster.plane.cluster import Cluster
from tests.cluster.plane.conftest import on


def test_a_server_that_begins_again_is_taken_up_where_it_was(start: Start, tmp_path: Path) -> None:
    with start() as server, on(server, tmp_path) as cluster:
        cluster.nodes(2, gpu=2)
        cluster.apply(
            quota("team-a", {"gpu": 1}, {"gpu": 4}),
            quota("team-b", {"gpu": 3}, {"gpu": 3}),
            *(limited_pod(f"team-a/a{number}", 1) for number in (1, 2, 3, 4)),
        )
        scheduler = cluster.start()
        cluster.running(*(f"team-a/a{number}" for number in (1, 2, 3, 4)))
        cluster.apply(limited_pod("team-b/b1", 1))
        cluster.running("team-b/b1")
        victims = cluster.evictions(1)
    try:
        with start() as server, on(server, tmp_path) as cluster:
            kept = [each for each in ("a1", "a2", "a3", "a4") if f"team-a/{each}" not in victims]
            cluster.apply(limited_pod("team-a/late", 1))
            cluster.pending("team-a/late", "BorrowingExhausted")
            cluster.untouched(*(f"team-a/{each}" for each in kept), "team-b/b1")
            assert cluster.evictions() == victims
            cluster.delete("Pod", "team-b/b1")
            cluster.running("team-a/late")
            cluster.shows("ElasticQuota", "team-b/quota", {"status": {"used": {GPU: "0"}}})
            assert cluster.evictions() == victims
            assert scheduler.process.is_alive()
            scheduler.stop()
    finally:
        scheduler.kill()


def test_nothing_is_done_twice_by_who_takes_over(cluster: Cluster) -> None:
    """The scheduler ends while somebody makes way; the next one waits for the same pod."""
    cluster.nodes(2, gpu=1)
    cluster.apply(
        quota("team-a", {"gpu": 0}, {"gpu": 3}),
        quota("team-b", {"gpu": 2}, {"gpu": 2}),
        *(limited_pod(f"team-a/a{number}", 1) for number in (1, 2)),
    )
    with cluster.kubelet.keeping_pods():
        with cluster.scheduler():
            cluster.running("team-a/a1", "team-a/a2")
            cluster.apply(limited_pod("team-b/b", 1))
            cluster.pending("team-b/b", "WaitingForVictims")
            (victim,) = cluster.evictions(1)
        with cluster.scheduler():
            cluster.apply(limited_pod("team-a/late", 1))
            cluster.pending("team-a/late", "BorrowingExhausted")
            assert cluster.evictions() == [victim]
            cluster.leaving(victim)
            (spared,) = {"team-a/a1", "team-a/a2"} - {victim}
            cluster.untouched(spared)
    with cluster.scheduler():
        cluster.running("team-b/b")
        cluster.untouched(spared)
        assert cluster.evictions() == [victim]
