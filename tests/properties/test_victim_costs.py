"""What spares the search for victims work must not change what it finds.

The bound by which nodes are passed over is never above the cost of the set that would be chosen
there; and amounts that units of one kind share are those of each of them by itself.
"""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aliquot.engine.model.pod import Pod
from aliquot.engine.model.reasons import Reason
from aliquot.engine.policies.eligible import Eligible, Right, namespace_account
from aliquot.engine.reclaim.candidates import Candidates
from aliquot.engine.reclaim.cost_bound import CostBound
from aliquot.engine.reclaim.device_fit import DeviceRoom
from aliquot.engine.reclaim.eviction_units import EvictionUnit
from aliquot.engine.reclaim.prices import NO_NODE, Prices
from aliquot.engine.reclaim.rule_fit import RuleRoom
from aliquot.engine.reclaim.victim_set import PricedUnit, Requirements, choose, cost, price
from tests.build.values import amounts
from tests.campaign import examples
from tests.engine.world import World

TEAMS, NODES, BUDGETS = ("a", "b"), ("m", "n"), ("x/none", "x/one", "x/two")


def crowd(data: st.DataObject, nodes: tuple[str, ...]) -> tuple[World, list[Pod]]:
    """Up to eight pods, some of them alike, of two quotas."""
    world = World()
    for node in nodes:
        world.node(node, amounts(cpu=99, gpu=99))
    for team in TEAMS:
        world.quota(team, amounts(cpu=99, gpu=99))
    few = st.integers(0, 2)
    pods = [
        world.pod(
            data.draw(st.sampled_from(TEAMS)),
            f"p-{number}",
            amounts(cpu=data.draw(few), gpu=data.draw(few)),
            node=data.draw(st.sampled_from(nodes)),
            priority=data.draw(few),
            created=data.draw(few),
            started=data.draw(few),
        )
        for number in range(data.draw(st.integers(1, 8)))
    ]
    return world, pods


@settings(deadline=None, max_examples=examples(600))
@given(st.data())
def test_the_bound_of_a_node_is_never_above_what_its_victims_cost(data: st.DataObject) -> None:
    world, pods = crowd(data, ("n",))
    running, names = world.state.bound_pods, world.state.resources.names
    rows = [names.index(name) for name in ("cpu", "nvidia.com/gpu") if name in names]
    left = {path: number for number, path in enumerate(BUDGETS)}
    by_pod = {
        pod.uid: tuple(sorted(data.draw(st.sets(st.sampled_from(BUDGETS), max_size=2))))
        for pod in pods
    }
    importance = np.array(running.priority)
    if data.draw(st.booleans()):  # as of a policy with an order of eviction of its own
        importance[:] = data.draw(
            st.lists(st.integers(0, 3), min_size=len(importance), max_size=len(importance))
        )
    protected = np.zeros(len(importance), dtype=bool)
    for pod in pods:
        protected[running.slots[pod.uid]] = any(left[path] == 0 for path in by_pod[pod.uid])
    together = [data.draw(st.integers(0, len(pods))) for _ in pods]
    units: list[PricedUnit] = []
    for number in sorted(set(together)):
        group = [pod for pod, each in zip(pods, together, strict=True) if each == number]
        slots = [running.slots[pod.uid] for pod in group]
        frees: dict[object, int] = {
            ("room", row): sum(int(running.room.data[row, slot]) for slot in slots) for row in rows
        }
        draws: dict[object, int] = {"limited": data.draw(st.integers(0, 2))}
        budgets = tuple(by_pod[pod.uid] for pod in group)
        levels = [int(importance[slot]) for slot in slots]
        units.append(price(group, running.name(group[0].uid), frees, draws, budgets, levels))
    total = {row: int(running.room.data[row].sum()) for row in rows}
    shortages = {row: data.draw(st.integers(1, most)) for row, most in total.items() if most}
    needs: dict[object, int] = {("room", row): amount for row, amount in shortages.items()}
    limits: dict[object, int] = {"limited": data.draw(st.integers(0, 9))}
    chosen = choose(units, Requirements(needs, limits, left))
    here = np.array([running.slots[pod.uid] for pod in pods], dtype=np.int64)
    least = CostBound(running, importance, protected).least(here, shortages)
    assume(chosen is not None)
    assert chosen is not None
    assert least is not None
    assert least <= cost(chosen, left)


def test_the_bound_of_pods_that_are_alike_is_what_they_cost() -> None:
    """A bound that were lower would look at every node; `search` passes over equal ones."""
    world = World()
    world.node("n", amounts(gpu=9))
    world.quota("a", amounts(gpu=9))
    pods = [world.pod("a", f"p-{n}", amounts(gpu=1), node="n", started=n) for n in range(5)]
    running = world.state.bound_pods
    row = world.state.resources.names.index("nvidia.com/gpu")
    units = [price([pod], running.name(pod.uid), {("room", row): 1}, {}, ((),)) for pod in pods]
    chosen = choose(units, Requirements({("room", row): 3}, {}))
    here = np.array([running.slots[pod.uid] for pod in pods], dtype=np.int64)
    assert chosen is not None
    assert sorted(unit.uids[0] for unit in chosen) == ["a/p-2", "a/p-3", "a/p-4"]
    assert CostBound(running, running.priority, None).least(here, {row: 3}) == cost(chosen, {})


@settings(deadline=None, max_examples=examples(200))
@given(st.data())
def test_amounts_that_units_share_are_those_of_each_by_itself(data: st.DataObject) -> None:
    world, pods = crowd(data, NODES)
    state = world.state
    waiting = world.pod("a", "claimant", amounts(cpu=1, gpu=1))
    claim, tree = state.waiting.claim(waiting.uid), state.tree
    rows = [row for row, _ in claim.charge(None)]
    slots = [tree.slots[team] for team in TEAMS]
    accounts = [*slots, *(namespace_account(team, team) for team in TEAMS)]
    limited = data.draw(st.sets(st.sampled_from(accounts)))
    needed = data.draw(st.sets(st.sampled_from(slots)))
    eligible = Eligible(
        state.bound_pods.node >= 0,
        Reason.PREEMPTED,
        lambda _: "",
        limits={(account, row): 9 for account in limited for row in rows},
    )
    rights = {Right(slot, row): 1 for slot in needed for row in rows}
    rooms = DeviceRoom(state, claim), RuleRoom(state, claim)
    candidates = Candidates(state, claim, eligible, *rooms, None)

    def prices() -> Prices:
        return Prices(state, candidates, *rooms, rights, eligible.limits)

    units = [EvictionUnit((pod.uid,), {}) for pod in pods]
    units.append(EvictionUnit(tuple(pod.uid for pod in pods), {"surplus": 1}))
    shared = prices()
    for node in (NO_NODE, *(state.nodes.slots[name] for name in NODES)):
        for unit in units:
            found = shared.of(unit, node)
            assert found == prices().of(unit, node)
            freed = {key: n for key, n in found.frees.items() if key in rights or n}
            assert freed == expected_frees(world, unit, node, rights)
            assert found == shared.of(unit, node)


def expected_frees(
    world: World, unit: EvictionUnit, node: int, rights: dict[Right, int]
) -> dict[object, int]:
    """What the ledger says: charges in the accounts that are needed, and room on the node."""
    found: dict[object, int] = {}
    for entry in (world.state.ledger.entries[uid] for uid in unit.uids):
        charged = [
            (Right(slot, row), amount)
            for row, amount in entry.booking.charge
            for slot in entry.path
            if isinstance(slot, int) and Right(slot, row) in rights
        ]
        room = [(("room", row), n) for row, n in entry.booking.room if entry.node == node]
        for key, amount in (*charged, *room):
            found[key] = found.get(key, 0) + amount
    return found
