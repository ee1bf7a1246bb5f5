"""`leastFragmentation`: what placements cost is what the rules say when written plainly.

The engine looks tables up, for all nodes at once; here each node, card and typical request is
looked at by itself. An engine that is told how things are scores nodes as one that has lived on.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind
from aliquot.engine.model.events import DeviceSet, NodeSet, PodGone, PodSet
from aliquot.engine.model.gpu import WHOLE_GPU, Device, GpuAmount, GpuAsk
from aliquot.engine.model.knobs import DevicePlacement, GpuKnobs, Knobs
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.placement.fragmentation import rests
from aliquot.engine.placement.fragmentation.usable import Request, Rest, UsableCards
from tests.build.engines import books
from tests.campaign import examples
from tests.properties.test_gpus import Gpus

MIB = 2**20
VRAM = 1_000
PLACEMENT = Knobs(gpu=GpuKnobs("leastFragmentation"))

parts = st.builds(
    lambda vram, n: GpuAsk(GpuAmount(0, vram), count=n),
    st.sampled_from((160, 190, 320, 470, 500, 810)),
    st.sampled_from((1, 1, 1, 2)),
)
wholes = st.builds(
    lambda n: GpuAsk(request_part=GpuAmount(WHOLE_GPU, WHOLE_GPU), whole=True, count=n),
    st.integers(1, 3),
)
shapes = st.builds(
    lambda cpu, memory, gpu: Shape((("cpu", cpu), ("memory", memory * MIB), ("pods", 1)), gpu=gpu),
    st.sampled_from((500, 1_000, 4_000, 8_000)),
    st.sampled_from((100, 1_000, 2_500)),
    parts | wholes | st.none(),
)
sizes = st.tuples(st.integers(4, 24), st.integers(1, 8), st.integers(0, 4))
clusters = st.lists(sizes | st.just((8, 4, 2)), min_size=1, max_size=4)
"""Of each node: thousands of milli-cpus, of MiB, and cards. Some nodes are alike."""
steps = st.lists(st.tuples(shapes, st.booleans()), min_size=1, max_size=14)
"""Pods that come, and whether one that runs ends after that."""


def cluster(nodes: list[tuple[int, int, int]]) -> list[NodeSet | DeviceSet]:
    events: list[NodeSet | DeviceSet] = []
    for number, (cpu, memory, cards) in enumerate(nodes):
        has = ("cpu", 1_000 * cpu), ("memory", 1_000 * memory * MIB), ("pods", 20)
        events.append(NodeSet(Node(f"n-{number}", has)))
        events += [
            DeviceSet(Device(f"n-{number}/{i}", f"n-{number}", GpuAmount(0, VRAM), index=i))
            for i in range(cards)
        ]
    return events


def lived(
    nodes: list[tuple[int, int, int]], pods: list[tuple[Shape, bool]]
) -> tuple[Engine, dict[str, Pod]]:
    """An engine to which pods came one by one, and its pods as the cluster knows them."""
    engine, known = Engine("capacity", PLACEMENT), dict[str, Pod]()
    for event in cluster(nodes):
        engine.apply(event)
    for number, (shape, ends) in enumerate(pods):
        pod = Pod(f"p-{number}", "team", f"p-{number}", shape, created=number)
        known[pod.uid] = pod
        engine.apply(PodSet(pod))
        for decision in engine.cycle(number):
            if isinstance(decision, Bind):
                bound = replace(decision.pod, node=decision.node, devices=decision.devices)
                known[bound.uid] = bound
                engine.apply(PodSet(bound))
        running = [uid for uid, each in known.items() if each.node is not None]
        if ends and running:
            del known[running[0]]
            engine.apply(PodGone(running[0]))
    return engine, known


class Plain:
    """The rules, for one node at a time."""

    def __init__(self, nodes: list[tuple[int, int, int]], pods: dict[str, Pod]) -> None:
        self.pods = pods
        counts: dict[Shape, int] = {}
        for pod in pods.values():
            if pod.shape.gpu is not None:
                counts[pod.shape] = counts.get(pod.shape, 0) + 1
        self.weights = {shape: 2 ** (count.bit_length() - 1) for shape, count in counts.items()}
        self.total = sum(self.weights.values())
        self.nodes = {f"n-{i}": each for i, each in enumerate(nodes)}

    def rest(self, name: str) -> tuple[int, int, list[int]]:
        cpu, memory, cards = self.nodes[name]
        left, supply = [VRAM] * cards, [1_000 * cpu, 1_000 * memory]
        for pod in self.pods.values():
            if pod.node == name:
                supply = [has - asks for has, asks in zip(supply, asked(pod.shape), strict=True)]
                for device in pod.devices:
                    left[int(device.split("/")[1])] -= per_card(pod.shape)
        return supply[0], supply[1], left

    def unusable(self, rest: tuple[int, int, list[int]]) -> Fraction:
        """Of what is left, in cards: what typical pods cannot use, and what lacks supply."""
        cpu, memory, cards = rest
        found = Fraction(0)
        for shape, weight in self.weights.items():
            fits = all(has >= asks for has, asks in zip((cpu, memory), asked(shape), strict=True))
            gpu = shape.gpu
            assert gpu is not None
            if gpu.whole:
                usable = VRAM * cards.count(VRAM) if cards.count(VRAM) >= gpu.count else 0
            else:
                usable = sum(each for each in cards if each >= per_card(shape))
            found += Fraction(weight * (sum(cards) - (usable if fits else 0)), self.total * VRAM)
        return found + self.shortage(rest)

    def shortage(self, rest: tuple[int, int, list[int]]) -> Fraction:
        """Twice what is left, halved for each sixth of the usual supply that there is."""
        *supply, cards = rest
        if not sum(cards):
            return Fraction(0)
        demand = sum(
            weight * per_card(shape) * shape.gpu.count
            for shape, weight in self.weights.items()
            if shape.gpu is not None
        )
        halvings = Fraction(30)
        for i, has in enumerate(supply):
            asks = sum(weight * asked(shape)[i] for shape, weight in self.weights.items())
            if asks:
                halvings = min(halvings, Fraction(6 * max(has, 0) * demand, sum(cards) * asks))
        whole = int(halvings)
        part = (1 - (halvings - whole) / 2) / Fraction(2) ** whole
        return 2 * Fraction(sum(cards), VRAM) * part

    def cost(self, shape: Shape, name: str) -> Fraction | None:
        """What the best placement of such a pod on a node costs; None if it does not fit."""
        cpu, memory, cards = rest = self.rest(name)
        asks = asked(shape)
        if cpu < asks[0] or memory < asks[1]:
            return None
        after = cpu - asks[0], memory - asks[1]
        if shape.gpu is None:
            return self.unusable((*after, cards)) - self.unusable(rest)
        if shape.gpu.whole:
            idle = [i for i, each in enumerate(cards) if each == VRAM]
            if len(idle) < shape.gpu.count:
                return None
            left = [0 if i in idle[: shape.gpu.count] else each for i, each in enumerate(cards)]
            return self.unusable((*after, left)) - self.unusable(rest)
        takes = per_card(shape)
        costs = [
            self.unusable((*after, [*cards[:i], each - takes, *cards[i + 1 :]]))
            for i, each in enumerate(cards)
            if each >= takes
        ]
        return min(costs) - self.unusable(rest) if costs else None


def asked(shape: Shape) -> tuple[int, int]:
    requests = dict(shape.requests)
    return requests["cpu"], requests["memory"] // MIB


def per_card(shape: Shape) -> int:
    assert shape.gpu is not None
    return VRAM if shape.gpu.whole else shape.gpu.request.vram


def costs(engine: Engine, shape: Shape) -> dict[str, int]:
    """By node, the points that the engine gives such a pod where it fits."""
    state = books(engine)
    judge, scores = state.placement.fragmentation, state.placement.scores
    assert judge is not None
    column = scores.of(state.placement.shape_ask(shape))
    names = {name: state.nodes.slots[name] for name in state.nodes.known}
    points = judge.points(shape, np.arange(len(state.nodes.slots)))
    return {name: int(points[slot]) for name, slot in names.items() if column[slot] >= 0}


@pytest.fixture(params=[0, 10**9], ids=["once for each rest", "node by node"])
def few(request: pytest.FixtureRequest) -> Iterator[None]:
    """Up to how many nodes are not looked through for equal rests."""
    before, rests._FEW = rests._FEW, request.param
    yield
    rests._FEW = before


@pytest.mark.usefixtures("few")
@given(clusters, steps, shapes)
@settings(max_examples=examples(150), deadline=None)
def test_costs_are_what_the_rules_say(
    nodes: list[tuple[int, int, int]], pods: list[tuple[Shape, bool]], shape: Shape
) -> None:
    if shape.gpu is not None and shape.gpu.count > 1 and not shape.gpu.whole:
        shape = replace(shape, gpu=replace(shape.gpu, count=1))
    engine, known = lived(nodes, pods)
    plain = Plain(nodes, known)
    if not plain.total:
        return
    expected = {name: plain.cost(shape, name) for name in plain.nodes}
    found = costs(engine, shape)
    assert found.keys() == {name for name, cost in expected.items() if cost is not None}
    for name, points in found.items():
        cost = expected[name]
        assert cost is not None
        if cards := nodes[int(name[2:])][2]:
            steps = min(max(cost * 512, Fraction(-8191)), Fraction(8191))
            rounded = 2 + Fraction(cards, 2)  # twice, and 1,024ths of a halving for each card
            assert abs(8191 - points - steps) <= rounded, (name, float(cost))
        else:
            assert points == 8191


@given(clusters, steps, shapes)
@settings(max_examples=examples(100), deadline=None)
def test_an_engine_made_anew_scores_alike(
    nodes: list[tuple[int, int, int]], pods: list[tuple[Shape, bool]], shape: Shape
) -> None:
    engine, known = lived(nodes, pods)
    fresh = Engine("capacity", PLACEMENT)
    for event in reversed(cluster(nodes)):
        fresh.apply(event)
    for pod in reversed(known.values()):
        fresh.apply(PodSet(pod))
    assert costs(engine, shape) == costs(fresh, shape)
    ends = [
        books(each).placement.pick(books(each).placement.shape_ask(shape))
        for each in (engine, fresh)
    ]
    assert ends[0] == ends[1]


def test_a_table_counts_what_each_request_could_use() -> None:
    half = Request(3, (1_000, 0), 500_000, 1, whole=False)
    pair = Request(1, (2_000, 0), WHOLE_GPU, 2, whole=True)
    kind = UsableCards([half, pair], 4)
    broken = np.array([[600_000, 400_000]])
    rest = Rest(
        np.array([[9_000_000] * 2, [9_000_000] * 2]), broken, kind.levels(broken), np.array([1, 2])
    )
    # The pair cannot use the 600 thousandths, nor a single idle card; neither can use the 400; two
    # idle cards are of use to both.
    assert kind.unusable(rest).tolist() == [600_000 + 1_000_000, 4 * 400_000]


class LeastFragmentedGpus(Gpus):
    """Nothing leaks, and nothing is handed out twice, where placements are judged by their rest."""

    placement: DevicePlacement = "leastFragmentation"


LeastFragmentedGpus.TestCase.settings = settings(
    max_examples=examples(30), stateful_step_count=40, deadline=None
)
TestLeastFragmentedGpus = LeastFragmentedGpus.TestCase
