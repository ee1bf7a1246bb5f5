"""Two teams that share a cluster, and what one of them may do: `edit` in its own namespace."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aliquot.json import Body
from tests.build.manifests import GPU, labelled, limited_pod, namespace, queue, quota
from tests.cluster.api.wire import Answer
from tests.cluster.kube.webhooks import running, unregister
from tests.cluster.plane.cluster import Cluster

POLICIES = ("capacity", "fair", "hierarchy", "queues")
CRITICAL = "system-cluster-critical"

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
        """Send a request as this user."""
        own = {"Impersonate-User": "tenant", "Impersonate-Group": "system:authenticated"}
        return self._wire.call(method, path, body, headers={**self._wire.authorization, **own})

    def create(self, name: str, named: str = "", **spec: object) -> Answer:
        """Send a pod, as important as a pod can be; returns what the server says."""
        body = limited_pod(f"{self.namespace}/{name}", 1, priorityClassName=CRITICAL, **spec)
        body = labelled(body, name=named) if named else body
        return self.call("POST", f"/api/v1/namespaces/{self.namespace}/pods", body)


def two_teams(policy: str, a: int, b: int) -> list[Body]:
    """Quotas `a` and `b` of team-a and team-b, which guarantee so many GPUs; each may have all.

    Under `queues` that is what their queues, called as the teams are, deserve.
    """
    lows = {"team-a": a, "team-b": b}
    if policy != "queues":
        return [
            quota(f"{team}/{team[-1]}", {"gpu": low}, {"gpu": a + b}) for team, low in lows.items()
        ]
    named = {team: {"scheduling.volcano.sh/queue-name": team} for team in lows}
    return [
        *(
            queue(team, capability={"gpu": a + b}, deserved={GPU: low})
            for team, low in lows.items()
        ),
        *(namespace(team, **named[team]) for team in lows),
    ]


def uses(cluster: Cluster, policy: str, team: str, gpus: int) -> None:
    """Wait until the status of a team's quota, or queue, says that it uses so many GPUs."""
    if policy == "queues":
        cluster.shows("Queue", team, {"status": {"allocated": {GPU: str(gpus)}}})
    else:
        shown = {"status": {"used": {GPU: str(gpus)}}}
        cluster.shows("ElasticQuota.scheduling.x-k8s.io", f"{team}/{team[-1]}", shown)


@contextmanager
def webhook(cluster: Cluster, folder: Path, policy: str, there: bool) -> Iterator[None]:
    """A webhook judges pods for as long as the block lasts, if it is to be there."""
    if not there:
        yield
        return
    try:
        with running(cluster.server.kubeconfig, folder, "--policy", policy):
            yield
    finally:
        unregister(cluster.wire)
