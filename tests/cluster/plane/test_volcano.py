"""Volcano, told with real objects: queues, weights of namespaces, and gangs."""

from collections import Counter

from aliquot.json import Body
from tests.build.manifests import (
    GPU,
    annotated,
    limited_pod,
    pod_group,
    queue,
    ready_node,
    resource_quota,
)
from tests.cluster.plane.cluster import Cluster

GROUP = "PodGroup.scheduling.volcano.sh"
WEIGHT = "volcano.sh/namespace.weight"


def member(path: str, queue: str, gpu: int = 0, cpu: int = 0, group: str = "") -> Body:
    """A pod of a queue, and of a gang if one is named."""
    said = {"queue": queue, **({"group": group} if group else {})}
    return annotated(limited_pod(path, {"gpu": gpu, "cpu": cpu}, schedulerName="volcano"), **said)


def shares(cluster: Cluster, wanted: dict[str, int]) -> None:
    """Wait until so many pods of each namespace run."""

    def problem() -> object:
        bound = (each for each in cluster.all("Pod") if each["spec"].get("nodeName"))
        found = Counter(each["metadata"]["namespace"] for each in bound)
        return None if found == wanted else found or "nobody runs"

    cluster.until(problem)


def test_queues_and_their_namespaces_share_by_weight(cluster: Cluster) -> None:
    """The design's second table."""
    cluster.nodes(2, cpu=8)
    weights = {"ns1": 3, "ns2": 1, "ns3": 2, "ns4": 6}
    asks = {"ns1": ("q1", 5), "ns2": ("q1", 10), "ns3": ("q2", 10), "ns4": ("q2", 2)}
    cluster.apply(
        queue("q1", weight=1),
        queue("q2", weight=3),
        *(resource_quota(f"{space}/quota", **{WEIGHT: str(w)}) for space, w in weights.items()),
        *(
            member(f"{space}/p{n}", name, cpu=1)
            for space, (name, number) in asks.items()
            for n in range(number)
        ),
    )
    with cluster.scheduler():
        shares(cluster, {"ns1": 3, "ns2": 1, "ns3": 10, "ns4": 2})
        cluster.shows("Queue", "q1", {"status": {"allocated": {"cpu": "4"}, "state": "Open"}})
        cluster.shows("Queue", "q2", {"status": {"allocated": {"cpu": "12"}}})
        cluster.pending("ns2/p9", "QueueOverDeserved", "q1")
        cluster.shows("Queue", "default", {"status": {"state": "Open"}})
        assert cluster.evictions() == []


def test_a_gang_starts_whole_or_not_at_all(cluster: Cluster) -> None:
    cluster.nodes(2, gpu=3)
    cluster.apply(
        queue("q"),
        pod_group("a/g", minMember=3, queue="q"),
        *(member(f"a/g{n}", "q", 2, group="g") for n in (1, 2)),
        member("a/single", "q", 1),
    )
    with cluster.scheduler():
        cluster.running("a/single")
        cluster.pending("a/g1", "GangIncomplete")
        cluster.shows(GROUP, "a/g", {"status": {"phase": "Inqueue", "running": 0}})
        condition(cluster, "a/g", "Unschedulable", "NotEnoughTasks")
        cluster.finish("a/single")
        cluster.apply(member("a/g3", "q", 2, group="g"))
        cluster.pending("a/g1", "Unschedulable")
        condition(cluster, "a/g", "Unschedulable", "NotEnoughResources")
        cluster.waiting("a/g1", "a/g2", "a/g3")
        cluster.apply(ready_node("node-3", gpu=3))
        cluster.running("a/g1", "a/g2", "a/g3")
        cluster.shows(GROUP, "a/g", {"status": {"phase": "Running", "running": 3}})
        condition(cluster, "a/g", "Scheduled")
        cluster.shows("Queue", "q", {"status": {"allocated": {GPU: "6"}, "running": 1}})
        cluster.finish("a/g1", "a/g2", "a/g3")
        done = {"phase": "Completed", "running": 0, "succeeded": 3}
        cluster.shows(GROUP, "a/g", {"status": done})
        cluster.shows("Queue", "q", {"status": {"running": 0, "completed": 1}})


def test_a_queue_takes_back_what_it_deserves(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=4)
    cluster.apply(queue("q1", weight=1), queue("q2", weight=1))
    cluster.apply(*(member(f"a/a{n}", "q1", 1) for n in (1, 2, 3, 4)))
    with cluster.scheduler():
        shares(cluster, {"a": 4})
        cluster.apply(*(member(f"b/b{n}", "q2", 1) for n in (1, 2, 3)))
        shares(cluster, {"a": 2, "b": 2})
        victims = cluster.evictions(2)
        assert len(victims) == 2
        cluster.told("Pod", victims[0], "Preempted", "QueueReclaimed")
        cluster.shows("Queue", "q1", {"status": {"allocated": {GPU: "2"}}})
        cluster.pending("b/b3", "QueueOverDeserved")
        assert cluster.evictions() == victims


def test_a_gang_of_the_scheduler_plugins(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=2)
    plugins = "scheduling.x-k8s.io"
    cluster.apply(
        pod_group("a/g", f"{plugins}/v1alpha1", minMember=2),
        *(annotated(limited_pod(f"a/g{n}", 1), group="g") for n in (1,)),
    )
    with cluster.scheduler():
        cluster.pending("a/g1", "GangIncomplete")
        cluster.apply(annotated(limited_pod("a/g2", 1), group="g"))
        cluster.running("a/g1", "a/g2")
        cluster.shows(f"PodGroup.{plugins}", "a/g", {"status": {"phase": "Running", "running": 2}})


def test_a_closed_queue_starts_nobody(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=4)
    cluster.apply(queue("q1"), queue("q2"), member("a/a1", "q1", 1))
    with cluster.scheduler():
        cluster.running("a/a1")
        cluster.apply(member("a/large", "q1", 5))
        cluster.pending("a/large", "Unschedulable")
        cluster.patch("Queue", "q1", {"status": {"state": "Closed"}}, "status")
        cluster.pending("a/large", "QueueClosed", "q1")  # so the new state is known
        cluster.apply(member("b/b1", "q2", 1), member("a/a2", "q1", 1))
        cluster.pending("a/a2", "QueueClosed", "q1")
        cluster.running("b/b1")
        cluster.untouched("a/a1")
        cluster.patch("Queue", "q1", {"status": {"state": "Open"}}, "status")
        cluster.running("a/a2")


def condition(cluster: Cluster, name: str, type: str, reason: str | None = None) -> None:
    """Wait until a group has just this condition."""

    def problem() -> object:
        found = (cluster.get(GROUP, name).get("status") or {}).get("conditions") or []
        said = [(each["type"], each.get("reason")) for each in found]
        good = [each[0] for each in said] == [type] and reason in (None, said[0][1])
        return None if good else f"{name}: {found}"

    cluster.until(problem)
