"""Objects that make no sense, that come late, or twice; and a scheduler that only looks."""

from aliquot.dialects import crds
from aliquot.kube.api.resource import CUSTOM
from tests.build.manifests import GPU, annotated, limited_pod, queue, quota
from tests.cluster.conftest import established
from tests.cluster.plane.cluster import Cluster

OLDER = "ElasticQuota.scheduling.sigs.k8s.io"


def test_an_object_that_makes_no_sense_leaves_the_last_good_one(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=4)
    cluster.apply(quota("team", {"gpu": 2}, {"gpu": 2}), limited_pod("team/p1", 2))
    with cluster.scheduler() as scheduler:
        cluster.running("team/p1")
        cluster.apply(quota("team", {"gpu": "500m"}, {"gpu": 4}))
        scheduler.wait_for("left as it was, because it makes no sense")
        cluster.apply(limited_pod("team/p2", 1))
        cluster.pending("team/p2", "QuotaMaxExceeded", "max 2")
        cluster.shows("ElasticQuota", "team/quota", {"status": {"used": {GPU: "2"}}})
        cluster.apply(quota("team", {"gpu": 3}, {"gpu": 3}))
        cluster.running("team/p2")
        cluster.untouched("team/p1")


def test_of_two_quotas_of_one_name_one_stands(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=8)
    cluster.apply(
        quota("team", {"gpu": 1}, {"gpu": 1}, group="scheduling.sigs.k8s.io"),
        quota("team", {"gpu": 2}, {"gpu": 2}),
        *(limited_pod(f"team/p{number}", 1) for number in (1, 2, 3)),
    )
    with cluster.scheduler() as scheduler:
        cluster.running("team/p1", "team/p2")
        cluster.pending("team/p3", "QuotaMaxExceeded", "max 2")
        assert scheduler.says("several of one name", standing="scheduling.x-k8s.io")
        cluster.delete("ElasticQuota", "team/quota")
        cluster.apply(limited_pod("team/p4", 1))
        cluster.pending("team/p4", "QuotaMaxExceeded", "max 1")
        cluster.shows(OLDER, "team/quota", {"status": {"used": {GPU: "2"}}})
        cluster.untouched("team/p1", "team/p2")
        cluster.delete(OLDER, "team/quota")
        cluster.running("team/p3", "team/p4")


def test_a_kind_that_is_defined_later_is_heard_of(cluster: Cluster) -> None:
    name = "queues.scheduling.volcano.sh"
    (definition,) = (each for each in crds.definitions() if each["metadata"]["name"] == name)
    cluster.nodes(1, gpu=2)
    cluster.delete("CustomResourceDefinition", name)
    cluster.until(lambda: cluster.wire.get(CUSTOM[name].path()).code != 404)
    try:
        cluster.apply(limited_pod("team/p", 1))
        with cluster.scheduler() as scheduler:
            cluster.running("team/p")
            cluster.apply(definition)
            cluster.until(lambda: not established(cluster.wire, definition))
            cluster.apply(queue("q"), annotated(limited_pod("team/q", 1), queue="q"))
            scheduler.wait_for("the cluster is shared", policy="queues")
            cluster.running("team/q")
            cluster.shows("Queue", "q", {"status": {"allocated": {GPU: "1"}}})
            cluster.untouched("team/p")
    finally:
        cluster.apply(definition)
        cluster.until(lambda: not established(cluster.wire, definition))


def test_a_dry_run_writes_nothing(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=4)
    cluster.apply(
        quota("team-a", {"gpu": 2}, {"gpu": 4}, group="nos.nebuly.com"),
        quota("team-b", {"gpu": 2}, {"gpu": 2}, group="nos.nebuly.com"),
        *(limited_pod(f"team-a/a{number}", 1, nodeName="node-1") for number in (1, 2, 3, 4)),
        limited_pod("team-b/b", 2),
        limited_pod("team-b/large", 3),
    )
    cluster.running(*(f"team-a/a{number}" for number in (1, 2, 3, 4)))
    before = cluster.versions()
    with cluster.scheduler("--dry-run") as scheduler:
        scheduler.wait_for("would decide", decision="evict")
        scheduler.wait_for("would decide", decision="hold", pod="team-b/large")
        cluster.apply(limited_pod("team-a/more", 1))
        scheduler.wait_for("would decide", decision="hold", pod="team-a/more")
        cluster.delete("Pod", "team-a/more")
    assert cluster.versions() == before
