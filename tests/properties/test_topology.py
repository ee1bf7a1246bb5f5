"""Gangs that must be near each other are in one domain at every step, and start if one holds them.

The oracles count by hand: what each node has free, divided by what a pod asks for, added up by
domain. Victims are compared with the fewest that any domain would have to give.
"""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aliquot.engine import GangSet, NodeSet, Pod, PodGone, Topology
from tests.build import values
from tests.campaign import examples
from tests.engine.world import World

GPU, RACK, BLOCK = "nvidia.com/gpu", "example.com/rack", "example.com/block"
_BIG = 4
_RACKS = st.lists(st.lists(st.integers(1, _BIG), min_size=1, max_size=3), min_size=1, max_size=4)
_RACK, _BLOCK = Topology((RACK,)), Topology((RACK, BLOCK))
_SOFT = Topology((RACK, BLOCK), required=False)
_STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("gang"),
            st.integers(1, 4),
            st.integers(1, 3),
            st.sampled_from((_RACK, _BLOCK, _SOFT, None)),
            st.integers(0, 2),
        ),
        st.tuples(st.just("pod"), st.integers(1, _BIG), st.integers(0, 2)),
        st.tuples(st.just("lose"), st.integers(0, 50)),
        st.tuples(st.just("replace"), st.integers(0, 50)),
        st.tuples(st.just("more"), st.integers(0, 50)),
    ),
    min_size=1,
    max_size=10,
)


class Racks(World):
    """A world of racks, two of them in each block, whose nodes are of different sizes."""

    def __init__(self, sizes: list[list[int]]) -> None:
        super().__init__()
        self.has: dict[str, int] = {}
        self.labels: dict[str, dict[str, str]] = {}
        self.asks: dict[str, tuple[int, Topology | None, int]] = {}
        self.made = 0
        for rack, nodes in enumerate(sizes):
            for place, size in enumerate(nodes):
                name = f"r{rack}-{place}"
                labels = {RACK: f"r{rack}", BLOCK: f"b{rack // 2}"}
                self.has[name], self.labels[name] = size, labels
                self.node(name, ((GPU, size),), labels=tuple(sorted(labels.items())))

    def running(self, gang: str | None = None) -> list[Pod]:
        return [
            pod
            for pod in self.state.pods.values()
            if pod.node is not None and (gang is None or pod.gang == gang)
        ]

    def waiting(self) -> list[Pod]:
        return [pod for pod in self.state.pods.values() if pod.node is None]

    def add(self, gang: str, priority: int) -> None:
        self.made += 1
        asks = self.asks[gang][0]
        self.pod("a", f"p{self.made}", ((GPU, asks),), gang=gang, priority=priority)

    def free(self, node: str) -> int:
        return self.has[node] - sum(
            dict(pod.shape.requests)[GPU] for pod in self.running() if pod.node == node
        )

    def domains(self, topology: Topology, gang: str) -> Iterable[list[str]]:
        """The domains of the widest level that is allowed, in which the gang may be."""
        level = topology.levels[-1]
        for value in sorted({labels[level] for labels in self.labels.values()}):
            inside = [name for name in self.has if self.labels[name][level] == value]
            if all(pod.node in inside for pod in self.running(gang)):
                yield inside

    def play(self, step: tuple[object, ...]) -> None:
        """Do one thing; what is decided comes true, pod by pod."""
        match step:
            case ("gang", int(pods), int(asks), topology, int(priority)):
                assert topology is None or isinstance(topology, Topology)
                self.made += 1
                gang = f"a/g{self.made}"
                self.asks[gang] = asks, topology, pods
                self.apply(GangSet(replace(values.gang(gang, pods), topology=topology)))
                for _ in range(pods):
                    self.add(gang, priority)
            case ("pod", int(asks), int(priority)):
                self.made += 1
                self.pod("a", f"p{self.made}", ((GPU, asks),), priority=priority)
            case ("lose" | "replace", int(which)) if found := self.running():
                pod = found[which % len(found)]
                self.apply(PodGone(pod.uid))
                if step[0] == "replace" and pod.gang is not None:
                    self.add(pod.gang, pod.priority)
            case ("more", int(which)) if self.asks:
                gang = sorted(self.asks)[which % len(self.asks)]
                self.add(gang, 0)

    def check_near(self) -> None:
        """No gang that must be in one domain is in several."""
        for gang, (_, topology, _) in self.asks.items():
            if topology is not None and topology.required:
                nodes = [str(pod.node) for pod in self.running(gang)]
                assert len({self.labels[node][topology.levels[-1]] for node in nodes}) <= 1, gang


@settings(max_examples=examples(400))
@given(_RACKS, _STEPS)
def test_a_hard_topology_never_spans_domains_and_a_gang_starts_where_one_holds_it(
    sizes: list[list[int]], steps: list[tuple[object, ...]]
) -> None:
    world = Racks(sizes)
    for step in steps:
        world.play(step)
        world.run()
        world.check_near()
        waiting: dict[str, list[Pod]] = {}
        for pod in world.waiting():
            if pod.gang is not None:
                waiting.setdefault(pod.gang, []).append(pod)
        for gang, pods in waiting.items():
            asks, topology, members = world.asks[gang]
            wants = max(members - len(world.running(gang)), 1)
            if topology is None or not topology.required or len(pods) < wants:
                continue
            for inside in world.domains(topology, gang):
                holds = sum(max(world.free(node), 0) // asks for node in inside)
                assert holds < wants, f"{gang} waits, and {inside} holds {holds} of {wants}"


@settings(max_examples=examples(400))
@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.data(),
    st.integers(1, 3),
)
def test_no_more_pods_go_than_in_the_domain_that_gives_the_fewest(
    sizes: list[int], data: st.DataObject, pods: int
) -> None:
    world = Racks([[_BIG] * size for size in sizes])
    held: dict[str, list[int]] = {}
    for node in world.has:
        held[node] = data.draw(st.lists(st.integers(1, 2), max_size=2), node)
        for number, asks in enumerate(held[node]):
            world.pod("a", f"on-{node}-{number}", ((GPU, asks),), node=node)
    assume(any(size >= pods for size in sizes))
    world.asks["a/g"] = _BIG, _RACK, pods
    world.apply(GangSet(replace(values.gang("a/g", pods), topology=_RACK)))
    for _ in range(pods):
        world.add("a/g", 10)
    started = world.run()
    world.check_near()
    racks = {world.labels[started[pod.path]][RACK] for pod in world.running("a/g")}
    assert len(racks) == 1
    by_rack: dict[str, list[int]] = {}
    for node, there in held.items():
        by_rack.setdefault(world.labels[node][RACK], []).append(len(there))
    fewest = min(sum(sorted(each)[:pods]) for each in by_rack.values() if len(each) >= pods)
    assert len(world.evictions) == fewest
    assert all(world.labels[str(each.pod.node)][RACK] in racks for each in world.evictions)


@settings(max_examples=examples(200))
@given(_RACKS, _STEPS)
def test_victims_for_a_gang_are_in_its_domain_and_none_could_be_spared(
    sizes: list[list[int]], steps: list[tuple[object, ...]]
) -> None:
    world = Racks(sizes)
    for step in steps:
        world.play(step)
        world.run()
    world.evicted()
    before = {pod.uid: pod for pod in world.running()}
    world.play(("gang", 2, 2, _RACK, 9))
    gang = f"a/g{world.made - 2}"
    world.run()
    world.check_near()
    used = {world.labels[str(pod.node)][RACK] for pod in world.running(gang)}
    victims = [each for each in world.evictions if each.claimant and each.claimant.gang == gang]
    for each in victims:
        whole = each.pod.gang is not None and before[each.pod.uid].gang == each.pod.gang
        assert whole or world.labels[str(each.pod.node)][RACK] in used


@settings(max_examples=examples(200))
@given(_RACKS, _STEPS)
def test_relabelled_nodes_and_late_demands_break_nothing(
    sizes: list[list[int]], steps: list[tuple[object, ...]]
) -> None:
    """Gangs that are apart already stay where they are; no pod is added to what is apart."""
    world = Racks(sizes)
    for number, step in enumerate(steps):
        world.play(step)
        world.run()
        name = sorted(world.has)[number % len(world.has)]
        world.labels[name] = {RACK: "r0", BLOCK: "b0"}
        labels = tuple(sorted(world.labels[name].items()))
        world.apply(NodeSet(values.node(name, ((GPU, world.has[name]),), pods=110, labels=labels)))
        spread = {
            gang: len(world.running(gang))
            for gang, (_, topology, _) in world.asks.items()
            if topology is not None
            and topology.required
            and len({world.labels[str(p.node)][topology.levels[-1]] for p in world.running(gang)})
            > 1
        }
        world.run()
        assert all(len(world.running(gang)) <= many for gang, many in spread.items())
