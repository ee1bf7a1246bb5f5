"""Gangs that run near each other, by labels of nodes and by HyperNodes, told with real objects."""

from aliquot.json import Body
from tests.build.manifests import annotated, limited_pod, pod_group, ready_node
from tests.cluster.plane.cluster import Cluster

RACK = "example.com/rack"


def node(name: str, rack: str) -> Body:
    body = ready_node(name, cpu=2)
    body["metadata"]["labels"] = {RACK: rack}
    return body


def member(name: str, group: str, **more: str) -> Body:
    return annotated(limited_pod(f"a/{name}", {"cpu": 2}), group=group, **more)


def hyper_node(name: str, tier: int, kind: str, *members: str) -> Body:
    chosen = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for each in members]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": chosen},
    }


def places(cluster: Cluster, *names: str) -> set[str]:
    return {cluster.get("Pod", f"a/{name}")["spec"]["nodeName"] for name in names}


def test_a_gang_waits_for_one_rack_and_stays_in_it(cluster: Cluster) -> None:
    cluster.apply(node("n0", "r0"), node("n1", "r0"), node("n2", "r1"))
    group = pod_group("a/g", minMember=3)
    group["metadata"]["annotations"] = {"aliquot.dev/topology-required": RACK}
    with cluster.scheduler(topology=[RACK]):
        cluster.apply(group, *(member(f"p{number}", "g") for number in range(3)))
        cluster.pending(
            "a/p0", "Unschedulable", "all pods in one domain of", "has room for 2 of 3 pods"
        )
        cluster.apply(node("n3", "r0"), node("n4", "r1"))
        cluster.running("a/p0", "a/p1", "a/p2")
        assert places(cluster, "p0", "p1", "p2") == {"n0", "n1", "n3"}
        cluster.apply(member("late", "g"))
        cluster.pending("a/late", "Unschedulable", "its running pods are in r0")
        cluster.delete("Pod", "a/p1")
        cluster.running("a/late")
        assert places(cluster, "p0", "p2", "late") == {"n0", "n1", "n3"}


def test_a_gang_runs_in_one_hyper_node_of_a_tier_that_is_allowed(cluster: Cluster) -> None:
    cluster.apply(*(node(f"n{number}", "r") for number in range(4)))
    cluster.apply(hyper_node("s0", 1, "Node", "n0"), hyper_node("s1", 1, "Node", "n1", "n3"))
    group = pod_group("a/g", minMember=2)
    group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    with cluster.scheduler():
        cluster.apply(group, member("p0", "g"), member("p1", "g"))
        cluster.running("a/p0", "a/p1")
        assert places(cluster, "p0", "p1") == {"n1", "n3"}
        wide = pod_group("a/wide", minMember=2)
        wide["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 2}
        cluster.apply(wide, member("q0", "wide"), member("q1", "wide"))
        cluster.pending("a/q0", "Unschedulable", "all pods in one domain of", "HyperNode tier")
        cluster.apply(hyper_node("s2", 1, "Node", "n2"))
        cluster.apply(hyper_node("top", 2, "HyperNode", "s0", "s2"))
        cluster.running("a/q0", "a/q1")
        assert places(cluster, "q0", "q1") == {"n0", "n2"}
