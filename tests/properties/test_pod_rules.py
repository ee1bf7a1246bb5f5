"""Rules about other pods: no pod starts where they forbid it, none waits where they allow it.

Random small clusters of pods with anti-affinity, affinity, spread and host ports, at several
priorities, so that pods are preempted; judged by an oracle that looks at each pod by itself.
"""

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from aliquot.engine import (
    AffinityTerm,
    Bind,
    Engine,
    Evict,
    HostPort,
    Node,
    NodeSet,
    Pod,
    PodGone,
    PodRules,
    PodSelector,
    PodSet,
    Reason,
    Requirement,
    Shape,
    SpreadConstraint,
    binds_and_evictions,
)
from tests.properties.rule_oracle import may_start

_ZONE, _HOST = "zone", "host"
_SELECTORS = st.builds(
    PodSelector,
    st.sampled_from([("x",), ("y",), ("x", "y")]),
    st.sampled_from([None, None, ()]),
    st.sampled_from(
        [(), (Requirement("app", "In", ("a",)),), (Requirement("app", "In", ("a", "b")),)]
    ),
)
_TERMS = st.lists(
    st.builds(AffinityTerm, _SELECTORS, st.sampled_from([_ZONE, _HOST])), max_size=1
).map(tuple)
_SPREADS = st.lists(
    st.builds(
        SpreadConstraint,
        _SELECTORS,
        st.sampled_from([_ZONE, _HOST]),
        st.integers(1, 2),
        st.integers(1, 3),
        counts_itself=st.booleans(),
    ),
    max_size=2,
    unique_by=lambda each: each.topology_key,
).map(tuple)
_PORTS = st.sampled_from(
    [(), (), (HostPort(80),), (HostPort(80, "TCP", "10.0.0.1"),), (HostPort(80, "UDP"),)]
)
_KINDS = st.builds(PodRules, _TERMS, _TERMS, st.just(()), _SPREADS, _PORTS)


@st.composite
def _nodes(draw: st.DrawFn) -> list[Node]:
    zones = draw(st.lists(st.sampled_from(["1", "2", "3", None]), min_size=2, max_size=5))
    room = st.integers(1, 3)
    return [
        Node(
            f"n{i}",
            (("cpu", draw(room)), ("pods", 9)),
            ((_HOST, f"n{i}"), *(((_ZONE, zone),) if zone else ())),
        )
        for i, zone in enumerate(zones)
    ]


@st.composite
def _pods(draw: st.DrawFn) -> list[Pod]:
    rules = draw(st.lists(_KINDS, min_size=1, max_size=3))
    found = []
    for i in range(draw(st.integers(2, 8))):
        pod = Pod(
            *(f"u{i}", draw(st.sampled_from("xy")), f"p{i}", Shape((("cpu", 1), ("pods", 1)))),
            priority=draw(st.sampled_from([0, 0, 5, 9])),
            created=i,
            labels=(("app", draw(st.sampled_from("abc"))),),
            rules=draw(st.sampled_from(rules)),
        )
        found.append(pod)
    return found


class _Cluster:
    """Carries out what an engine decides, and judges every start."""

    def __init__(self, nodes: list[Node]) -> None:
        self.engine = Engine("capacity")
        self.nodes = {node.name: node for node in nodes}
        self.placed: dict[str, tuple[Pod, Node]] = {}
        self.waiting: dict[str, Pod] = {}
        self.evicted = 0
        for node in nodes:
            self.engine.apply(NodeSet(node))

    def come(self, pod: Pod) -> None:
        self.waiting[pod.uid] = pod
        self.engine.apply(PodSet(pod))

    def settle(self) -> None:
        """Cycle until nothing more is decided; a victim is gone at once, and does not return."""
        for _ in range(50):
            decided = list(binds_and_evictions(self.engine.cycle()))
            if not decided:
                return
            for each in decided:
                self._carry_out(each)
        raise AssertionError("no rest")

    def _carry_out(self, each: Bind | Evict) -> None:
        uid = each.pod.uid
        if isinstance(each, Evict):
            self.evicted += 1
            del self.placed[uid]
            self.engine.apply(PodGone(uid))
            return
        node = self.nodes[each.node]
        assert self._admits(self.waiting[uid], node), f"{uid} may not start on {node.name}"
        bound = replace(self.waiting.pop(uid), node=node.name)
        self.placed[uid] = bound, node
        self.engine.apply(PodSet(bound))

    def _admits(self, pod: Pod, node: Node) -> bool:
        return may_start(pod, node, self.nodes.values(), self.placed)

    def open_nodes(self, pod: Pod) -> Iterator[str]:
        """The nodes with room on which the rules would let a pod start."""
        for node in self.nodes.values():
            taken = sum(at == node for _, at in self.placed.values())
            if taken < dict(node.allocatable)["cpu"] and self._admits(pod, node):
                yield node.name

    def check(self) -> None:
        """At rest no pod waits that could start, and the engine names the nodes that refuse it."""
        for uid, pod in self.waiting.items():
            found = list(self.open_nodes(pod))
            refusal = self.engine.why(uid)
            assert not found, f"{uid} could start on {found}: {refusal}"
            assert refusal is not None
            assert refusal.reason in (Reason.NO_NODE_FITS, Reason.WAITING_FOR_VICTIMS)
            assert set(self.engine.node_refusals(uid)) == set(self.nodes)


@given(nodes=_nodes(), pods=_pods())
def test_pods_start_where_rules_allow_it_and_nowhere_else(
    nodes: list[Node], pods: list[Pod]
) -> None:
    cluster = _Cluster(nodes)
    for pod in pods:
        cluster.come(replace(pod, priority=0))
    cluster.settle()
    assert cluster.evicted == 0
    cluster.check()


@given(nodes=_nodes(), pods=_pods(), gone=st.lists(st.integers(0, 7), max_size=3))
def test_what_comes_and_goes_is_seen_by_those_that_wait(
    nodes: list[Node], pods: list[Pod], gone: list[int]
) -> None:
    cluster = _Cluster(nodes)
    for pod in pods:
        cluster.come(replace(pod, priority=0))
        cluster.settle()
    for number in gone:
        uid = f"u{number}"
        if uid in cluster.placed:
            del cluster.placed[uid]
            cluster.engine.apply(PodGone(uid))
            cluster.settle()
    cluster.check()


@given(nodes=_nodes(), pods=_pods())
def test_victims_make_room_by_rules(nodes: list[Node], pods: list[Pod]) -> None:
    cluster = _Cluster(nodes)
    for pod in pods:
        cluster.come(pod)
        cluster.settle()
    cluster.check()


def test_the_first_rule_is_also_about_pods_that_wait_already() -> None:
    engine, own = Engine("capacity"), PodSelector(("x",), None, (Requirement("app", "In", ("a",)),))
    engine.apply(NodeSet(Node("n", (("cpu", 1), ("pods", 9)), ((_HOST, "n"),))))
    large, small = (Shape((("cpu", cpu), ("pods", 1))) for cpu in (2, 1))
    engine.apply(PodSet(Pod("late", "x", "late", large, labels=(("app", "a"),))))
    engine.cycle()
    rules = PodRules(anti_affinity=(AffinityTerm(own, _HOST),))
    engine.apply(PodSet(Pod("first", "x", "first", small, rules=rules)))
    assert [each.pod.uid for each in binds_and_evictions(engine.cycle())] == ["first"]
    engine.apply(NodeSet(Node("n", (("cpu", 9), ("pods", 9)), ((_HOST, "n"),))))
    assert list(binds_and_evictions(engine.cycle())) == []


@given(nodes=_nodes(), pods=_pods(), data=st.data())
def test_a_label_that_changes_counts_at_once(
    nodes: list[Node], pods: list[Pod], data: st.DataObject
) -> None:
    cluster = _Cluster(nodes)
    for pod in pods:
        cluster.come(replace(pod, priority=0))
        cluster.settle()
    for uid in sorted(cluster.placed):
        labels = (("app", data.draw(st.sampled_from("abc"))),)
        pod, node = cluster.placed[uid]
        cluster.placed[uid] = replace(pod, labels=labels), node
        cluster.engine.apply(PodSet(cluster.placed[uid][0]))
    cluster.settle()
    cluster.check()
