"""Nodes that come, go, and want nobody."""

from tests.build.manifests import GPU, limited_pod, quota, ready_node
from tests.cluster.plane.cluster import Cluster


def test_cordoned_and_tainted_nodes_get_nobody_new(cluster: Cluster) -> None:
    cluster.nodes(2, gpu=4)
    cluster.patch("Node", "node-1", {"spec": {"unschedulable": True}})
    taint = {"key": "kept", "value": "for", "effect": "NoSchedule"}
    cluster.patch("Node", "node-2", {"spec": {"taints": [taint]}})
    with cluster.scheduler():
        cluster.apply(limited_pod("team/p", 1))
        cluster.pending("team/p", "Unschedulable")
        tolerates = [{"key": "kept", "operator": "Exists"}]
        cluster.apply(limited_pod("team/tolerant", 1, tolerations=tolerates))
        cluster.running("team/tolerant", on="node-2")
        cluster.patch("Node", "node-1", {"spec": {"unschedulable": None}})
        cluster.running("team/p", on="node-1")
        here = {"kubernetes.io/hostname": "node-2"}
        cluster.apply(limited_pod("team/waits", 1, nodeSelector=here))
        cluster.pending("team/waits", "Unschedulable")
        cluster.patch("Node", "node-1", {"spec": {"unschedulable": True}})
        cluster.patch("Node", "node-2", {"spec": {"taints": None}})
        cluster.running("team/waits", on="node-2")  # so both changes are known
        cluster.apply(limited_pod("team/q", 1))
        cluster.running("team/q", on="node-2")
        cluster.untouched("team/p", "team/tolerant")


def test_a_node_that_goes_takes_its_room_along(cluster: Cluster) -> None:
    """Its pods are of no use, but are there until somebody deletes them, and count till then."""
    cluster.nodes(2, gpu=2)
    here = {"kubernetes.io/hostname": "node-1"}
    cluster.apply(
        quota("team", {"gpu": 4}, {"gpu": 4}),
        limited_pod("team/a", 2, nodeSelector=here),
        limited_pod("team/b", 2),
    )
    with cluster.scheduler():
        cluster.running("team/a", on="node-1")
        cluster.running("team/b", on="node-2")
        cluster.delete("Node", "node-1")
        cluster.apply(limited_pod("team/c", 2))
        cluster.waiting("team/c")
        cluster.delete("Pod", "team/a")
        cluster.pending("team/c", "Unschedulable")
        cluster.apply(ready_node("node-3", gpu=2))
        cluster.running("team/c", on="node-3")
        cluster.shows("ElasticQuota", "team/quota", {"status": {"used": {GPU: "4"}}})
        assert cluster.evictions() == []


def test_a_node_that_is_not_ready_gets_nobody(cluster: Cluster) -> None:
    down = ready_node("node-1", gpu=2)
    down["spec"] = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
    cluster.apply(down)
    with cluster.scheduler():
        cluster.apply(limited_pod("team/p", 1))
        cluster.pending("team/p", "Unschedulable")
        cluster.patch("Node", "node-1", {"spec": {"taints": None}})
        cluster.running("team/p")
