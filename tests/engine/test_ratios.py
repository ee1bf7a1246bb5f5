"""Ratios as users read them."""

from fractions import Fraction
from random import Random

import pytest

from aliquot.engine.model.ratio import above, number, percent
from aliquot.engine.policies import usage
from aliquot.engine.policies.shares import dominant_ratio
from tests.engine.world import World


@pytest.mark.parametrize(
    ("ratio", "digits", "shown"),
    [
        (Fraction(1, 3), 1, "33.3"),
        (Fraction(1, 3), 2, "33.33"),
        (Fraction(2, 3), 1, "66.7"),
        (0.125, 1, "12.5"),
        (0.333333, 1, "33.3"),
        (1, 1, "100.0"),
        (Fraction(5, 4), 2, "125.00"),
        (Fraction(0), 2, "0.00"),
        (Fraction(-5, 100), 2, "0.00"),
        (Fraction(1, 1000), 2, "0.10"),
        (Fraction(1105, 10000), 1, "11.0"),  # half to even, as is
        (0.1105, 1, "11.0"),  # the number that JSON shows of it
    ],
)
def test_percent(ratio: Fraction | float, digits: int, shown: str) -> None:
    assert percent(ratio, digits) == shown


def test_a_number_has_six_digits() -> None:
    assert number(Fraction(1, 3)) == 0.333333
    assert number(Fraction(2, 3)) == 0.666667
    assert number(Fraction(1, 10_000_000)) == 0


@pytest.mark.parametrize(
    ("used", "bound", "threshold", "is_above"),
    [
        (80, 100, 80, False),
        (81, 100, 80, True),
        (100, 100, 100, False),
        (101, 100, 100, True),
        (0, 0, 80, False),
        (1, 0, 80, True),
        (1, 3, 33, True),
    ],
)
def test_above(used: int, bound: int, threshold: int, is_above: bool) -> None:
    assert above(used, bound, threshold) == is_above


def test_a_table_and_json_show_one_share() -> None:
    shares = [Fraction(part, 97) for part in range(98)]
    assert [percent(number(each)) for each in shares] == [percent(each) for each in shares]


@pytest.mark.parametrize("seed", range(30))
def test_the_largest_share_is_found_by_cross_multiplication(seed: int) -> None:
    rng = Random(seed)
    world = World("queues")
    for name in ("cpu", "memory", "fpga"):
        if rng.random() < 0.8:
            world.node(f"n-{name}", ((name, rng.choice((7, 8, 2**60 - 1))),))
    for queue in ("a", "b"):
        world.quota(queue, default_weight=rng.randint(1, 3))
        asks = {name: rng.choice((0, 1, 3, 2**59)) for name in ("cpu", "memory", "fpga")}
        used = tuple((name, n) for name, n in sorted(asks.items()) if n)
        world.pod(queue, "p", used, node=rng.choice((f"n-{next(iter(asks))}", "gone")))
    world.engine.cycle()
    state, shares = world.state, world.engine._policy.gates._shares.book  # type: ignore[attr-defined]
    for queue in ("a", "b"):
        slot = state.tree.slots[queue]
        of_each = [
            usage.ratio(shares.taken(row, slot), shares.amounts.get(row, slot))
            for row in shares.rows
            if shares.taken(row, slot)
        ]
        assert dominant_ratio(shares, slot) == max(of_each, default=0)
        drf = world.engine._policy.turns._drf  # type: ignore[union-attr]
        sums = drf.of_namespace(queue, queue)
        share = drf.share(sums)
        assert drf.namespace_turn(queue, queue) == usage.ratio(share.numerator, share.denominator)
