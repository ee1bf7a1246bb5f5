"""The packing benchmark on servers so small that every rule's choice can be worked out by hand."""

import pytest

from aliquot.bench.packing import packing, rules
from aliquot.bench.packing.workload import CARD, Workload, asked_parts, made_up
from aliquot.engine import (
    Device,
    DeviceSet,
    Event,
    GpuAmount,
    GpuAsk,
    Knobs,
    Node,
    NodeSet,
    Pod,
    Shape,
)

MIB = 2**20


def workload(*servers: tuple[int, int], pods: tuple[Pod, ...] = ()) -> Workload:
    """Servers with so many cpus and cards."""
    events: list[Event] = []
    for number, (cpu, cards) in enumerate(servers):
        has = ("cpu", 1000 * cpu), ("memory", 2**40), ("pods", 110)
        events.append(NodeSet(Node(f"n-{number}", has)))
        for i in range(cards):
            device = Device(f"n-{number}/{i}", f"n-{number}", GpuAmount(0, CARD * MIB), index=i)
            events.append(DeviceSet(device))
    return Workload(tuple(events), pods)


def pod(name: str, part: int, cpu: int = 1, cards: int = 1) -> Pod:
    asks = ("cpu", 1000 * cpu), ("memory", 1), ("pods", 1)
    amount = GpuAmount(0, part * MIB)
    gpu = GpuAsk(whole=True, count=cards) if part == CARD else GpuAsk(amount, amount)
    return Pod(name, "team", name, Shape(asks, gpu=gpu))


@pytest.mark.parametrize(
    ("rule", "starts"),
    [("best fit", True), ("worst fit", False), ("dot product", True), ("FGD", True)],
)
def test_a_rule_keeps_a_card_whole_or_does_not(rule: str, starts: bool) -> None:
    """Two parts, then a whole card, on two cards."""
    pods = pod("a", 500), pod("b", 500), pod("c", CARD)
    share = rules.packed(workload((64, 2), pods=pods), pods, rule, 1)
    assert share == (100 if starts else 50)


def test_fragments_are_what_the_paper_counts() -> None:
    """All cards for a pod that does not fit; of one that fits, those with too little for it."""
    pods = pod("a", 500), pod("b", 800), pod("c", CARD, cpu=4, cards=2)
    fgd = rules.Fgd(pods)
    servers = rules.Servers(workload((8, 2), (2, 2), (8, 2), pods=pods))
    servers.cards[:, 2] = 600, 300
    found = fgd.fragments(servers.left[0], servers.cards).tolist()
    assert found == [0, 2000, (300) + (900) + (900)]


def test_every_rule_and_placement_packs_the_same_draw() -> None:
    figures = packing.measure(packing.Settings(seeds=1), lambda words: None)
    shares = {each.what.split(" (")[0]: each.value for each in figures if each.unit == "%"}
    assert len(shares) == 9
    assert all(50 < share <= 100 for share in shares.values())
    assert shares["cards in use, leastFragmentation"] > shares["cards in use, random"]


def test_a_draw_is_that_of_its_seed() -> None:
    made = made_up()
    first, again, other = (list(made.draw(seed, 1.3)) for seed in (1, 1, 2))
    assert first == again != other
    most = 1.3 * CARD * sum(made.cards.values())
    parts = [asked_parts(each.shape) for each in first]
    assert sum(parts) >= most > sum(parts[:-1])


def test_nothing_is_over_committed() -> None:
    made = made_up()
    share, _ = packing.packed(made, list(made.draw(3, 1.3)), Knobs())
    assert share <= 100
