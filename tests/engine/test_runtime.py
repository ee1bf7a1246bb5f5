"""Runtime by worked figures: the designs' own, and the corners of their rules."""

from dataclasses import dataclass, field

import pytest

from aliquot.engine.columns import Columns, Resources, Slots
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.sharing.runtime import RuntimeTree
from aliquot.errors import TreeError

Row = tuple[int, ...]


@dataclass(frozen=True)
class Q:
    """A quota: amounts by resource, in order; None where it does not name any."""

    min: Row = ()
    max: Row | None = None
    ask: Row = ()
    under: str = ""
    weight: Row | None = None
    lend: bool = True
    scale: bool = True


@dataclass
class Cluster:
    """Quotas by name, over numbered resources."""

    totals: Row
    quotas: dict[str, Q]
    slots: Slots = field(default_factory=Slots)

    def __post_init__(self) -> None:
        resources = Resources()
        for number in range(len(self.totals)):
            resources.row(f"example.com/r{number}")
        self.tree = RuntimeTree(resources, self.slots, self.slots.take(""))
        for row, total in enumerate(self.totals):
            self.tree.total(row, total)
        for name, quota in self.quotas.items():
            self.put(name, quota)
        self.tree.refresh()

    def put(self, name: str, quota: Q) -> None:
        slot, parent = self.slots.take(name), self.slots[quota.under]
        low, high, weight = (
            tuple(enumerate(amounts or ())) for amounts in (quota.min, quota.max, quota.weight)
        )
        self.tree.set(slot, parent, name, low, high, weight, quota.lend, quota.scale)
        for row, amount in enumerate(quota.ask):
            self.tree.ask(slot, row, amount)

    def read(self, columns: Columns, name: str) -> Row:
        return tuple(columns.get(row, self.slots[name]) for row in range(len(self.totals)))

    def runtimes(self) -> dict[str, Row]:
        return {name: self.read(self.tree.runtime, name) for name in self.quotas}

    def requests(self) -> dict[str, Row]:
        return {name: self.read(self.tree.request, name) for name in self.quotas}


# Siblings in one resource: total, then per quota (weight, request, min) and its runtime.
FLAT = {
    "min first, then weight, and what is given back is shared again": (
        100,
        {"a": (40, 5, 10), "b": (60, 20, 15), "c": (50, 40, 20), "d": (80, 70, 15)},
        {"a": 5, "b": 20, "c": 35, "d": 40},
    ),
    "no weight, no more than min": (
        100,
        {"a": (40, 5, 10), "b": (60, 20, 15), "c": (50, 40, 20), "d": (0, 70, 15)},
        {"a": 5, "b": 20, "c": 40, "d": 15},
    ),
    "an idle min is lent": (100, {"a": (1, 0, 60), "b": (1, 90, 50)}, {"a": 0, "b": 90}),
    "and comes back as it is asked for": (
        100,
        {"a": (1, 30, 60), "b": (1, 90, 50)},
        {"a": 30, "b": 70},
    ),
    "equal weights, equal rest": (120, {"a": (1, 80, 50), "b": (1, 100, 50)}, {"a": 60, "b": 60}),
    "equal rest on top of unequal mins": (
        50,
        {"a": (40, 30, 10), "b": (40, 30, 0)},
        {"a": 30, "b": 20},
    ),
    "six beyond two mins": (96, {"a": (96, 96, 50), "b": (96, 96, 40)}, {"a": 53, "b": 43}),
    "two alike": (50, {"a": (40, 35, 10), "b": (40, 35, 10)}, {"a": 25, "b": 25}),
    "all of its min": (50, {"a": (40, 40, 40), "b": (40, 40, 5)}, {"a": 40, "b": 10}),
    "20 to share by 40 and 70": (80, {"a": (40, 40, 20), "b": (70, 70, 40)}, {"a": 27, "b": 53}),
    "one asks": (100, {"a": (100, 100, 50), "b": (100, 0, 50)}, {"a": 100, "b": 0}),
    "both ask": (100, {"a": (100, 100, 50), "b": (100, 100, 50)}, {"a": 50, "b": 50}),
    "exact beyond 64 bits": (
        200 * 2**30,
        dict.fromkeys("abc", (1000 * 2**30, 200 * 2**30, 71582788266)),
        {"a": 71582788267, "b": 71582788267, "c": 71582788266},
    ),
    "exact with the largest weights": (
        7,
        {"a": (LIMIT, 7, 0), "b": (LIMIT - 1, 7, 0), "c": (LIMIT, 7, 0)},
        {"a": 3, "b": 2, "c": 2},
    ),
}


@pytest.mark.parametrize("case", FLAT.values(), ids=FLAT)
def test_siblings(case: tuple[int, dict[str, tuple[int, int, int]], dict[str, int]]) -> None:
    total, siblings, expected = case
    quotas = {
        # Another resource has some weight too, so that zero in this one means zero.
        name: Q(min=(low,), ask=(ask,), weight=(weight, 1))
        for name, (weight, ask, low) in siblings.items()
    }
    found = Cluster((total, 0), quotas).runtimes()
    assert {name: runtime for name, (runtime, _) in found.items()} == expected


def test_mins_that_do_not_scale_are_kept_beyond_the_total() -> None:
    quotas = {name: Q((8,), ask=(20,), weight=(1,), scale=False) for name in "ab"}
    assert Cluster((10,), quotas).runtimes() == {"a": (8,), "b": (8,)}


def test_without_any_weight_the_rest_stays_where_it_is() -> None:
    quotas = {name: Q((10,), ask=(50,), weight=(0, 1)) for name in "ab"}
    assert Cluster((100, 0), quotas).runtimes() == {"a": (10, 0), "b": (10, 0)}


def test_a_weight_of_zero_everywhere_is_none_given() -> None:
    quotas = {"a": Q(max=(60,), ask=(50,), weight=(0,)), "b": Q(max=(40,), ask=(50,))}
    assert Cluster((50,), quotas).runtimes() == {"a": (30,), "b": (20,)}


def test_the_default_weight_is_max_else_min_else_one() -> None:
    quotas = {"a": Q(max=(6,), ask=(99,)), "b": Q(min=(3,), ask=(99,)), "c": Q(ask=(99,))}
    assert Cluster((13,), quotas).runtimes() == {"a": (6,), "b": (6,), "c": (1,)}


def test_who_does_not_lend_keeps_all_of_min() -> None:
    quotas = {
        "a": Q((60,), (96,), ask=(120,)),
        "b": Q((40,), (96,), ask=(10,), lend=False),
    }
    assert Cluster((100,), quotas).runtimes() == {"a": (60,), "b": (40,)}


TREES = {
    "requests go up limited by max, runtime comes down": (
        (100,),
        {
            "A": Q((20,), (100,)),
            "B": Q((80,), (100,)),
            "A-1": Q((10,), (10,), (100,), "A"),
            "A-2": Q((10,), (10,), (100,), "A"),
            "B-1": Q((20,), (40,), (100,), "B"),
            "B-2": Q((40,), (70,), (100,), "B"),
        },
        {"A": (20,), "B": (110,), "A-1": (100,)},
        {"A": (20,), "B": (80,), "A-1": (10,), "A-2": (10,), "B-1": (27,), "B-2": (53,)},
    ),
    "a request is its own; the parent sees it up to max": (
        (96, 160),
        {
            "top": Q((50, 80), (96, 160)),
            "mid": Q((50, 80), (96, 160), (), "top"),
            "low": Q((50, 80), (64, 128), (96, 130), "mid"),
        },
        {"low": (96, 130), "mid": (64, 128)},
        {"low": (64, 128)},
    ),
    "below min": (
        (96, 160),
        {
            "top": Q((80, 80), (96, 160)),
            "mid": Q((50, 80), (60, 80), (), "top"),
            "low": Q((20, 40), (30, 60), (10, 30), "mid"),
        },
        {},
        {"low": (10, 30), "mid": (10, 30), "top": (10, 30)},
    ),
    "above min": (
        (96, 160),
        {
            "top": Q((80, 80), (96, 160)),
            "mid": Q((50, 80), (60, 80), (), "top"),
            "low": Q((20, 40), (30, 60), (25, 45), "mid"),
        },
        {"mid": (25, 45), "top": (25, 45)},
        {"low": (25, 45)},
    ),
    "above max": (
        (96, 160),
        {
            "top": Q((80, 80), (96, 160)),
            "mid": Q((50, 80), (60, 80), (), "top"),
            "low": Q((20, 40), (30, 60), (55, 75), "mid"),
        },
        {"mid": (30, 60), "top": (30, 60)},
        {"low": (30, 60)},
    ),
    "a child's max may exceed its parent's, which still binds": (
        (350, 1800),
        {
            "top": Q((176, 756), (300, 1024)),
            "low": Q((100, 512), (500, 2048), (400, 1500), "top"),
        },
        {"top": (400, 1500), "low": (400, 1500)},
        {"low": (300, 1024)},
    ),
    "so does the total": (
        (300, 8000),
        {
            "top": Q((100, 100), (600, 4096)),
            "low": Q((100, 100), (500, 2048), (1050, 8192), "top"),
        },
        {"top": (500, 2048), "low": (1050, 8192)},
        {"top": (300, 2048), "low": (300, 2048)},
    ),
    "nobody lends": (
        (100,),
        {
            "top": Q((60,), (96,), lend=False),
            "one": Q((20,), (96,), (60,), "top", lend=False),
            "two": Q((20,), (96,), (), "top", lend=False),
        },
        {"top": (80,)},
        {"top": (80,), "one": (60,), "two": (20,)},
    ),
    "a child that does not lend asks through a parent that does": (
        (100,),
        {
            "top": Q((60,), (96,)),
            "one": Q((20,), (96,), (), "top", lend=False),
            "two": Q((20,), (96,), (), "top"),
        },
        {},
        {"top": (20,), "one": (20,), "two": (0,)},
    ),
    "and lends nothing when it asks for more": (
        (100,),
        {
            "top": Q((60,), (96,)),
            "one": Q((20,), (96,), (60,), "top", lend=False),
            "two": Q((20,), (96,), (), "top"),
        },
        {},
        {"top": (60,), "one": (60,), "two": (0,)},
    ),
}


@pytest.mark.parametrize("case", TREES.values(), ids=TREES)
def test_trees(case: tuple[Row, dict[str, Q], dict[str, Row], dict[str, Row]]) -> None:
    totals, quotas, requests, runtimes = case
    cluster = Cluster(totals, quotas)
    assert cluster.requests() | requests == cluster.requests()
    assert cluster.runtimes() | runtimes == cluster.runtimes()


def test_a_quota_that_moves_takes_its_request_along() -> None:
    wide, half = ((100, 160), (96, 160)), ((50, 80), (96, 160))
    quotas = {
        "1": Q(*wide),
        "2": Q(*wide),
        "1-a": Q(*half, (), "1"),
        "2-a": Q(*half, (20, 40), "2"),
        "x": Q(*half, (60, 100), "1-a"),
    }
    cluster = Cluster((96, 160), quotas)
    before = cluster.runtimes()
    assert (before["1"], before["2"], before["x"]) == ((60, 100), (20, 40), (60, 100))
    cluster.put("x", Q(*half, (60, 100), "2"))
    cluster.tree.refresh()
    expected = {"1": (0, 0), "2": (80, 140), "1-a": (0, 0), "2-a": (20, 40), "x": (60, 100)}
    assert cluster.runtimes() == expected
    assert cluster.requests() == expected


def test_a_branch_moves_as_a_whole_and_parents_may_have_pods_of_their_own() -> None:
    quotas = {
        "1": Q((80,), (100,)),
        "2": Q((60,), (100,)),
        "11": Q((30,), (50,), (20,), "1"),
        "21": Q((40,), (50,), (), "2"),
        "111": Q((20,), (50,), (15,), "11"),
        "211": Q((15,), (50,), (), "21"),
    }
    cluster = Cluster((200,), quotas)
    assert cluster.runtimes()["1"] == (35,)
    cluster.put("11", Q((30,), (50,), (20,), "2"))
    cluster.tree.refresh()
    assert (cluster.runtimes()["1"], cluster.runtimes()["2"]) == ((0,), (35,))
    cluster.put("111", Q((20,), (50,), (15,), "21"))
    cluster.tree.refresh()
    expected = {"1": (0,), "2": (35,), "11": (20,), "21": (15,), "111": (15,), "211": (0,)}
    assert cluster.runtimes() == expected


def test_a_parent_at_its_max_shares_anew_with_a_child_that_moves_in() -> None:
    quotas = {"A": Q(max=(10,)), "B": Q(max=(10,)), "b": Q(ask=(10,), under="B")}
    cluster = Cluster((20,), {**quotas, "a": Q(ask=(6,), under="A")})
    assert cluster.runtimes() == {"A": (6,), "B": (10,), "a": (6,), "b": (10,)}
    cluster.put("a", Q(ask=(6,), under="B"))
    cluster.tree.refresh()
    assert cluster.runtimes() == {"A": (0,), "B": (10,), "a": (5,), "b": (5,)}


def test_what_nobody_supplies_nobody_has() -> None:
    cluster = Cluster((96, 160, 0), {"a": Q((60, 90, 0), (64, 100, 100), (120, 290, 80))})
    assert cluster.runtimes() == {"a": (64, 100, 0)}
    for row, total in enumerate((192, 320, 100)):
        cluster.tree.total(row, total)
    assert cluster.tree.refresh() == [cluster.slots["a"]]
    assert cluster.runtimes() == {"a": (64, 100, 80)}


@pytest.mark.parametrize(("total", "mins"), [(200, 50), (100, 25), (50, 0), (0, 0)])
def test_mins_shrink_in_proportion_after_those_that_do_not(total: int, mins: int) -> None:
    quotas = {"1": Q((50,), scale=False), "2": Q((50,)), "3": Q((50,))}
    cluster = Cluster((total,), quotas)
    found = [cluster.read(cluster.tree.scaled_min, name) for name in quotas]
    assert found == [(50,), (mins,), (mins,)]


def test_what_scaling_rounds_away_is_shared() -> None:
    cluster = Cluster((200_000,), {name: Q((96_000,), ask=(96_000,)) for name in "abc"})
    assert [cluster.read(cluster.tree.scaled_min, name) for name in "abc"] == [(66_666,)] * 3
    assert cluster.runtimes() == {"a": (66_667,), "b": (66_667,), "c": (66_666,)}


def test_a_resource_may_come_later() -> None:
    resources, slots = Resources(), Slots()
    tree = RuntimeTree(resources, slots, slots.take(""))
    for name in ("b", "a"):
        tree.set(slots.take(name), slots[""], name)
    cpu = resources.row("cpu")
    tree.total(cpu, 3)
    for name in ("a", "b"):
        tree.ask(slots[name], cpu, 9)
    tree.refresh()
    assert [tree.runtime.get(cpu, slots[name]) for name in ("a", "b")] == [2, 1]
    tree.set(slots.take("c"), slots[""], "c", weight=((cpu, 2_000),))
    tree.ask(slots["c"], cpu, 9)
    tree.total(cpu, 8)
    tree.refresh()
    assert [tree.runtime.get(cpu, slots[name]) for name in ("a", "b", "c")] == [2, 2, 4]


def test_impossible_trees_are_refused() -> None:
    cluster = Cluster((1,), {"a": Q(), "b": Q(under="a")})
    with pytest.raises(TreeError, match="its own child"):
        cluster.put("a", Q(under="b"))
    with pytest.raises(TreeError, match="its own child"):
        cluster.put("a", Q(under="a"))
    with pytest.raises(TreeError, match="still has children"):
        cluster.tree.remove(cluster.slots["a"])
    with pytest.raises(TreeError, match="no parent in slot 99"):
        cluster.tree.set(cluster.slots.take("c"), 99, "c")
