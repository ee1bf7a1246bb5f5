"""Shields for borrowed pods: nothing that a tenant can do keeps another team's guarantee away."""

from pathlib import Path

import pytest

from aliquot.json import Body
from tests.build.manifests import KOORDINATOR, limited_pod, namespace, queue, quota
from tests.cluster.plane.cluster import Cluster
from tests.cluster.plane.tenants import POLICIES, two_teams, webhook

YEAR = 31_536_000
NOT_PREEMPTIBLE = {f"{KOORDINATOR}preemptible": "false"}


def borrower(name: str, labels: Body | None = None, **spec: object) -> Body:
    """A pod of team-a that another scheduler binds."""
    more = {"schedulerName": "another", **spec}
    return limited_pod(f"team-a/{name}", 1, labels=labels or {}, **more)


@pytest.mark.parametrize("there", [False, True], ids=["no-webhook", "webhook"])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_shield_keeps_a_guarantee_away(
    cluster: Cluster, tmp_path: Path, policy: str, there: bool
) -> None:
    cluster.nodes(1, gpu=6)
    important = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 5}
    cluster.apply({**important, "metadata": {"name": "important"}}, *two_teams(policy, 1, 5))
    with webhook(cluster, tmp_path, policy, there):
        on_node = borrower("left", nodeName="node-1")
        if there:
            answer = cluster.wire.post("/api/v1/namespaces/team-a/pods", on_node)
            assert "spec.nodeName" in answer.refused(403, "Forbidden")["message"]
            on_node = borrower("left")
        borrowers = [
            borrower("kept", NOT_PREEMPTIBLE, priorityClassName="important"),
            borrower("budget", {"app": "one"}),
            borrower("two-budgets", {"app": "two"}),
            borrower("year", terminationGracePeriodSeconds=YEAR),
            borrower("not-preemptible", NOT_PREEMPTIBLE),
        ]
        cluster.apply(on_node, *borrowers)
        for each in borrowers if "nodeName" in on_node["spec"] else (*borrowers, on_node):
            cluster.bind(f"team-a/{each['metadata']['name']}", "node-1")
        _take_back(cluster, policy)


def _take_back(cluster: Cluster, policy: str) -> None:
    """Team-b asks for its guarantee; all pods of team-a but the one within its min go."""
    shields = ["budget", "two-budgets", "year", "left", "not-preemptible"]
    cluster.running("team-a/kept", *(f"team-a/{name}" for name in shields))
    cluster.budget("team-a/one", 0, minAvailable=1, selector={"matchLabels": {"app": "one"}})
    for name in ("two", "three"):
        two = {"matchLabels": {"app": "two"}}
        cluster.budget(f"team-a/{name}", 0, minAvailable=1, selector=two)
    settings: Body = {"eviction": {"deleteAfter": "500ms", "maxGrace": "100s"}}
    if policy == "hierarchy":
        settings["hierarchy"] = {"revokeAfter": "1s"}
    with cluster.scheduler("--policy", policy, **settings):
        with cluster.kubelet.keeping_pods():
            cluster.delete("Pod", "team-a/left", grace=YEAR)
            cluster.apply(limited_pod("team-b/p", 5))
            cluster.leaving(*(f"team-a/{name}" for name in shields))
            cluster.until(lambda: [name for name in ("year", "left") if grace(cluster, name) > 100])
            overridden = "DisruptionBudgetOverridden"
            cluster.told("Pod", "team-a/budget", overridden, "deleteAfter", "is owed")
            cluster.told("Pod", "team-a/two-budgets", overridden, "more than one")
            cluster.untouched("team-a/kept")
        cluster.running("team-b/p")
        cluster.untouched("team-a/kept")


def grace(cluster: Cluster, name: str) -> int:
    """The grace period with which a pod of team-a terminates."""
    return int(cluster.get("Pod", f"team-a/{name}")["metadata"]["deletionGracePeriodSeconds"])


@pytest.mark.parametrize("policy", POLICIES)
def test_a_resize_past_the_webhook_is_counted_and_told(cluster: Cluster, policy: str) -> None:
    cluster.nodes(1, cpu=8)
    ceiling = quota("team-a/q", {"cpu": 2}, {"cpu": 2})
    if policy == "queues":
        ceiling = queue("team-a", capability={"cpu": 2})
        cluster.apply(namespace("team-a", **{"scheduling.volcano.sh/queue-name": "team-a"}))
    cluster.apply(ceiling, limited_pod("team-a/p", {"cpu": 1}))
    with cluster.scheduler("--policy", policy):
        cluster.running("team-a/p")
        found = cluster.get("Pod", "team-a/p")["spec"]["containers"]
        found[0]["resources"] = {"requests": {"cpu": "3"}, "limits": {"cpu": "3"}}
        cluster.patch("Pod", "team-a/p", {"spec": {"containers": found}}, "resize")
        cluster.told("Pod", "team-a/p", "ResizedAboveMax", "max 2 cpu, used 3, this pod has 3")
        if policy == "queues":
            cluster.shows("Queue", "team-a", {"status": {"allocated": {"cpu": "3"}}})
        else:
            cluster.shows("ElasticQuota", "team-a/q", {"status": {"used": {"cpu": "3"}}})
