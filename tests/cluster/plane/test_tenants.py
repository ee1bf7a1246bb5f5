"""What a tenant with `edit` rights in one namespace can do to the others, through the API server.

The rules are tried one by one in tests/scenarios/tenants, tests/engine/test_open_quotas.py and
tests/kube/webhook/test_tenants.py. Here they are tried together, on a cluster as it is: without the
webhook first, then with it.
"""

from pathlib import Path

from aliquot.json import Body
from tests.build.manifests import GPU, KOORDINATOR, labelled, limited_pod, quota, tree_quota
from tests.cluster.api.wire import Answer
from tests.cluster.kube.webhooks import running, unregister
from tests.cluster.plane.cluster import Cluster

OLDER = "ElasticQuota.scheduling.sigs.k8s.io"
DEFAULT = "koordinator-system/koordinator-default-quota"
SHARED = "the cluster is shared"
CRITICAL = "system-cluster-critical"
CLOSED = "quota team-b/b is not open to pods of namespace team-a, only to those of team-b"

_EDIT = "system:aggregate-to-edit"
"""What a controller makes the role `edit` of, which does not run beside the real API server."""


class Tenant:
    """A user who may edit one namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._wire = cluster.wire
        self.namespace = namespace
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        assert self._wire.post("/api/v1/namespaces", space).code in (201, 409)
        group = "rbac.authorization.k8s.io"
        role = {"apiGroup": group, "kind": "ClusterRole", "name": _EDIT}
        user = {"apiGroup": group, "kind": "User", "name": "tenant"}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "tenant"},
            "roleRef": role,
            "subjects": [user],
        }
        where = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
        assert self._wire.post(where, binding).code in (201, 409)
        pods = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
        probe = limited_pod(f"{namespace}/probe")
        cluster.until(lambda: self.call("POST", pods, probe).code != 201)

    def call(self, method: str, path: str, body: Body) -> Answer:
        own = {"Impersonate-User": "tenant", "Impersonate-Group": "system:authenticated"}
        return self._wire.call(method, path, body, headers={**self._wire.authorization, **own})

    def create(self, name: str, named: str = "") -> Answer:
        """Send a pod, as important as a pod can be; returns what the server says."""
        body = limited_pod(f"{self.namespace}/{name}", 1, priorityClassName=CRITICAL)
        body = labelled(body, name=named) if named else body
        return self.call("POST", f"/api/v1/namespaces/{self.namespace}/pods", body)


def test_what_a_tenant_can_do_where_no_webhook_looks(cluster: Cluster) -> None:
    """Neither a label nor a priority takes anything from another team, or changes the policy."""
    cluster.nodes(1, gpu=6)
    cluster.apply(
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
    try:
        with running(cluster.server.kubeconfig, tmp_path, "--policy", "hierarchy"):
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
    finally:
        unregister(cluster.wire)
