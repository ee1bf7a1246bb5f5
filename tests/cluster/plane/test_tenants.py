"""What a tenant with `edit` rights in one namespace can do to the others, through the API server.

The rules are tried one by one in tests/scenarios/tenants, tests/engine/test_open_quotas.py and
tests/kube/webhook/test_tenants.py. Here they are tried together, on a cluster as it is: without the
webhook first, then with it.
"""

from pathlib import Path

import pytest

from tests.build.manifests import GPU, KOORDINATOR, limited_pod, namespace, quota, tree_quota
from tests.cluster.plane.cluster import Cluster
from tests.cluster.plane.tenants import POLICIES, Tenant, two_teams, uses, webhook

OLDER = "ElasticQuota.scheduling.sigs.k8s.io"
DEFAULT = "koordinator-system/koordinator-default-quota"
SHARED = "the cluster is shared"
CLOSED = "quota team-b/b is not open to pods of namespace team-a, only to those of team-b"
_REFUSED = {
    "capacity": "BorrowingExhausted",
    "fair": "BorrowingExhausted",
    "hierarchy": "RuntimeExceeded",
    "queues": "QueueOverDeserved",
}
"""Why a pod of a team waits that has all it is guaranteed, where nothing is idle."""


@pytest.mark.parametrize("there", [False, True], ids=["no-webhook", "webhook"])
@pytest.mark.parametrize("policy", POLICIES)
def test_neither_label_nor_priority_takes_what_another_team_is_guaranteed(
    cluster: Cluster, tmp_path: Path, policy: str, there: bool
) -> None:
    """Of six GPUs, team-a is guaranteed two. All of its pods have the highest priority there is."""
    cluster.nodes(1, gpu=6)
    cluster.apply(*two_teams(policy, 2, 4))
    tenant, knobs = Tenant(cluster, "team-a"), {"hierarchy": {"revokeAfter": "1s"}}
    names = ["p1", "p2", "p3"]
    with (
        webhook(cluster, tmp_path, policy, there),
        cluster.scheduler("--policy", policy, **knobs),
    ):
        labels = ["b", "koordinator-system-quota", "koordinator-default-quota"]
        if policy == "hierarchy":
            for name, named in zip(("q1", "q2"), labels, strict=False):
                answer = tenant.create(name, named)
                if there:
                    said = answer.refused(403, "Forbidden")["message"]
                    assert "is not open to pods of namespace team-a" in said
                else:
                    cluster.pending(f"team-a/{name}", "QuotaNotAllowed")
            labels = ["", "", "koordinator-default-quota"]
        for name, named in zip(names, labels, strict=True):
            tenant.create(name, named).done(201)
        cluster.running(*(f"team-a/{name}" for name in names))
        owners = [f"team-b/b{number}" for number in range(4)]
        cluster.apply(*(limited_pod(owner, 1) for owner in owners))
        cluster.running(*owners)
        uses(cluster, policy, "team-b", 4)
        assert len(cluster.evictions(1)) == 1
        tenant.create("c1").done(201)
        cluster.pending("team-a/c1", _REFUSED[policy])
        cluster.untouched(*owners)
        uses(cluster, policy, "team-b", 4)


def test_what_a_tenant_can_do_where_no_webhook_looks(cluster: Cluster) -> None:
    """Neither a label nor a priority takes anything from another team, or changes the policy."""
    cluster.nodes(1, gpu=6)
    cluster.apply(
        namespace("koordinator-system"),
        quota("team-a", {"gpu": 2}, {"gpu": 6}),
        quota("team-b/b", {"gpu": 4}, {"gpu": 6}),
        *(limited_pod(f"team-b/b{number}", 1) for number in range(4)),
    )
    tenant = Tenant(cluster, "team-a")
    if cluster.server.real:
        where = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/team-a/elasticquotas"
        tenant.call("POST", where, quota("team-a/more", {"gpu": 6})).refused(403, "Forbidden")
    with cluster.scheduler() as scheduler:
        cluster.running(*(f"team-b/b{number}" for number in range(4)))
        for name, named in (("p1", "b"), ("p2", "koordinator-system-quota")):
            tenant.create(name, named=named).done(201)
        cluster.running("team-a/p1", "team-a/p2")
        tenant.create("c1").done(201)
        cluster.pending("team-a/c1", "BorrowingExhausted")
        shows = {"status": {"used": {GPU: "4"}}}
        cluster.shows("ElasticQuota.scheduling.x-k8s.io", "team-b/b", shows)
        assert not scheduler.says(SHARED, policy="hierarchy")
        cluster.apply(tree_quota("team-c/tree", {"gpu": 0}, {"gpu": 6}, lend="true"))
        scheduler.wait_for(SHARED, policy="hierarchy")
        for name, named in (("p3", "b"), ("p4", "koordinator-system-quota")):
            tenant.create(name, named=named).done(201)
        cluster.pending("team-a/p3", "QuotaNotAllowed", CLOSED)
        cluster.pending("team-a/p4", "QuotaNotAllowed", "only to those of aliquot-system, kube-")
        cluster.pending("team-a/c1", "RuntimeExceeded")
        made = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "aliquot"}}}
        cluster.shows(OLDER, DEFAULT, made)
        figures = {f"{KOORDINATOR}runtime": f'{{"{GPU}":"0"}}'}
        cluster.shows(OLDER, DEFAULT, {"metadata": {"annotations": figures}})
    cluster.delete(OLDER, "team-c/tree")
    with cluster.scheduler() as scheduler:
        assert scheduler.says(SHARED, policy="capacity")
        cluster.pending("team-a/p3", "BorrowingExhausted")
        cluster.untouched(*(f"team-b/b{number}" for number in range(4)), "team-a/p1", "team-a/p2")
        assert cluster.evictions() == []


def test_what_the_webhook_refuses_a_tenant(cluster: Cluster, tmp_path: Path) -> None:
    """A pod that names a closed quota is refused; pods that may name one keep it from deletion."""
    cluster.apply(
        tree_quota("team-a/top", {"gpu": 2}, {"gpu": 6}, is_parent="true"),
        tree_quota("team-a/a", {"gpu": 2}, {"gpu": 6}, parent="top"),
        tree_quota("team-b/b", {"gpu": 2}, {"gpu": 6}),
    )
    tenant = Tenant(cluster, "team-a")
    foreign = tenant.create("before", named="b").done(201)
    with webhook(cluster, tmp_path, "hierarchy", True):
        cluster.until(lambda: tenant.create("p1", named="b").code == 201)
        for named in ("b", "koordinator-system-quota"):
            said = tenant.create("p2", named=named).refused(403, "Forbidden")["message"]
            assert "is not open to pods of namespace team-a" in said
        said = tenant.create("p2", named="top").refused(403, "Forbidden")["message"]
        assert "is a parent and holds no pods" in said
        tenant.create("own", named="a").done(201)
        tenant.create("default", named="koordinator-default-quota").done(201)
        label = {"metadata": {"labels": {f"{KOORDINATOR}name": "b"}}}
        answer = cluster.wire.patch("/api/v1/namespaces/team-a/pods/own", label)
        assert CLOSED in answer.refused(403, "Forbidden")["message"]
        colour = {"metadata": {"labels": {"colour": "blue"}}}
        cluster.patch("Pod", f"team-a/{foreign['metadata']['name']}", colour)
        path = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/{}/elasticquotas/{}"
        answer = cluster.wire.delete(path.format("team-a", "a"))
        assert "it is the quota of Pod" in answer.refused(403, "Forbidden")["message"]
        cluster.delete("Pod", "team-a/own")
        cluster.delete(OLDER, "team-b/b")
        cluster.until(lambda: cluster.wire.delete(path.format("team-a", "a")).code != 200)
