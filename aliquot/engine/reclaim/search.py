"""The victim search: which pods must be evicted so that a claim can start.

*Room* (a node that holds the pod) and *right* (quotas that allow it) are separate needs, so victims
may run on other nodes than the one the claim will start on. Which pods are eligible is decided by
the policy, in ranks, the best first; which of them become victims is decided by `victim_set`. Pods
that are leaving already count as gone, so no further pod is evicted for the same claim. A plan is
checked as a whole before it is returned: the claim would start, and no victim could be spared.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.bound_pods import BoundPods
from aliquot.engine.gpus.quotas import Exceeded
from aliquot.engine.model.gang import Topology
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason
from aliquot.engine.placement.ask import Ask
from aliquot.engine.placement.start_order import own_keys, start_order
from aliquot.engine.policies.eligible import Eligible, Mask, Right, Rights
from aliquot.engine.queue.claim import Claim
from aliquot.engine.reclaim.candidates import LAST_NODES, Candidates
from aliquot.engine.reclaim.cost_bound import CostBound
from aliquot.engine.reclaim.device_fit import DeviceRoom, Option
from aliquot.engine.reclaim.eviction_units import EvictionUnits
from aliquot.engine.reclaim.plan import Plan, Victim
from aliquot.engine.reclaim.prices import NO_NODE, Prices
from aliquot.engine.reclaim.regions import FEW_NODES, Regions
from aliquot.engine.reclaim.rule_fit import RuleRoom
from aliquot.engine.reclaim.victim_set import Cost, PricedUnit, Requirements, choose, cost
from aliquot.engine.state import State


def search(
    state: State,
    claim: Claim,
    rights: Rights,
    ranks: Iterable[Sequence[Eligible]],
    classes: list[str] | None = None,
) -> Plan | None:
    """The best plan of the first rank that has one, on nodes of these classes."""
    if not state.leaving and not len(state.bound_pods):
        return None
    order = start_order(state.placement.rule_sets, claim.pods, claim.asks)
    if order == sorted(order):
        return _search(state, claim, rights, ranks, classes)
    plan = _search(state, claim.in_order(order), rights, ranks, classes)
    return plan and plan.in_order([order.index(place) for place in range(len(order))])


def _search(
    state: State,
    claim: Claim,
    rights: Rights,
    ranks: Iterable[Sequence[Eligible]],
    classes: list[str] | None,
) -> Plan | None:
    """`search`, with the pods of the claim in the order in which they are given nodes."""
    no_victims = Eligible(
        np.zeros_like(state.bound_pods.node, dtype=bool), Reason.PREEMPTED, lambda _: ""
    )
    waits = [no_victims] if state.leaving and not rights else []  # only victims free rights
    for rank, several in enumerate(_with_leaving_first(waits, _preemptible_first(state, ranks))):
        found = [
            plan
            for eligible in several
            if (plan := _plan(state, claim, rights, eligible, classes, rank)) is not None
        ]
        if found:
            return min(found, key=lambda plan: plan.key)
    return None


def _plan(
    state: State,
    claim: Claim,
    rights: Rights,
    eligible: Eligible,
    classes: list[str] | None,
    rank: int,
) -> Plan | None:
    """The best plan with victims of a group; in one domain, if the claim asks for that.

    So are pods that must be near their own kind, if the domain of the first one does not do.

    If nearness is only preferred, no pod goes for its sake.
    """
    if claim.topology is None:
        plan = _Attempt(state, claim, rights, eligible, classes).plan(rank)
        if plan is not None or claim.size == 1:
            return plan
        keys = own_keys(state.placement.rule_sets, claim.asks)
        if not keys:
            return None
        return _plan_in_domain(state, claim, Topology(keys), rights, eligible, classes, rank)
    near = _plan_in_domain(state, claim, claim.topology, rights, eligible, classes, rank)
    if claim.topology.required:
        return near
    anywhere = _Attempt(state, claim, rights, eligible, classes).plan(rank)
    if near is None or anywhere is None:
        return near or anywhere
    return near if near.cost <= anywhere.cost else anywhere


def _plan_in_domain(
    state: State,
    claim: Claim,
    topology: Topology,
    rights: Rights,
    eligible: Eligible,
    classes: list[str] | None,
    rank: int,
) -> Plan | None:
    """The best plan whose room is in one domain, and if possible its victims as well.

    Victims elsewhere, which free right, or go with a gang, only if no other set works.
    """
    regions = Regions(state, claim, topology, eligible, classes)
    levels = regions.by_level()
    for only_inside in (True, False):
        for domains in levels:
            found: list[Plan] = []
            searched = 0
            for domain in domains:
                if found and searched > FEW_NODES:
                    break
                nodes, pods = regions.region(*domain)
                searched += int(nodes.sum())
                inside = pods if only_inside else eligible.evictable
                here = replace(
                    eligible,
                    evictable=inside,
                    nodes=nodes if eligible.nodes is None else nodes & eligible.nodes,
                )
                plan = _Attempt(state, claim, rights, here, classes).plan(rank)
                if plan is not None:
                    found.append(plan)
            if found:
                return min(found, key=lambda plan: plan.key)
    return None


def _with_leaving_first(
    no_victims: Sequence[Eligible], ranks: Iterable[Sequence[Eligible]]
) -> Iterator[Sequence[Eligible]]:
    """The ranks, after one without victims: perhaps the claim need only wait for leaving pods."""
    yield no_victims
    for rank in ranks:
        yield [eligible for eligible in rank if eligible.evictable.any()]


def _preemptible_first(
    state: State, ranks: Iterable[Sequence[Eligible]]
) -> Iterator[Sequence[Eligible]]:
    """Each rank twice: first without the pods that are not preemptible, then the groups with some.

    Such pods are eligible above their bound (see `policies.shields`), but go only where no set of
    preemptible ones works. Where there are none, the second rank is empty, so that the numbers of
    ranks do not depend on it.
    """
    preemptible = state.bound_pods.preemptible
    lasting = ~preemptible if state.not_preemptible else np.zeros_like(preemptible)
    for rank in ranks:
        some = [group for group in rank if (group.evictable & lasting).any()]
        if some:
            yield [replace(group, evictable=group.evictable & preemptible) for group in rank]
        else:
            yield rank
        yield some


_PREEMPTIONS = (Reason.PREEMPTED, Reason.PREEMPTED_IN_QUOTA, Reason.QUEUE_PREEMPTED)
"""By priority, or by shares inside a queue: the reasons for which pods of a GPU quota go that its
bounds are the cause of."""


@dataclass(slots=True)
class _Choice:
    """The plan so far: a node and devices for each of the first pods, and the units to evict."""

    nodes: list[int] = field(default_factory=list)
    devices: list[Option] = field(default_factory=list)
    units: list[PricedUnit] = field(default_factory=list)


class _Attempt:
    """One claim against one group of eligible pods; a gang pod by pod, then checked as a whole."""

    def __init__(
        self,
        state: State,
        claim: Claim,
        rights: Rights,
        eligible: Eligible,
        classes: list[str] | None,
    ) -> None:
        self.state = state
        self.claim = claim
        needed = {right: n for right, n in rights.items() if right not in eligible.waived}
        self.rights = _maximum(needed, eligible.rights)
        self.eligible = eligible
        self.eviction_units = EvictionUnits(state)
        self.gpus = DeviceRoom(state, claim)
        self.rules = RuleRoom(state, claim)
        self.candidates = Candidates(state, claim, eligible, self.gpus, self.rules, classes)
        self.limits: dict[object, int] = dict(eligible.limits.items())
        self._soon: dict[int, NDArray[np.int64]] = {}
        fits = self.gpus, self.rules
        self.prices = Prices(state, self.candidates, *fits, self.rights, eligible.limits)

    def plan(self, rank: int) -> Plan | None:
        """The best plan with victims of this group, if there is one."""
        choice = _Choice()
        for ask in self.claim.asks:
            rights = self.rights if not choice.nodes else {}
            found = self._place(ask, rights)
            if found is None:
                return None
            node, devices, units = found
            self._commit(ask, node, devices, units)
            choice.nodes.append(node)
            choice.devices.append(devices)
            choice.units += units
        if not self._rules_hold(choice, choice.units):
            return None
        choice.units = sorted(self._pruned(choice), key=self._soft_draw)
        left = self._budgets(choice.units)
        victims = tuple(self._victim(uid, left) for unit in choice.units for uid in unit.uids)
        nodes = tuple(self._name(slot) for slot in choice.nodes)
        total = cost(choice.units, self._budgets(choice.units))
        return Plan(nodes, tuple(choice.devices), victims, rank, total, self.eligible.waived)

    def _place(self, ask: Ask, rights: Rights) -> tuple[int, Option, list[PricedUnit]] | None:
        """The best node, devices of it, and victims for one pod.

        The candidates widen until there is a set that violates no disruption budget; one that
        does is the last resort.
        """
        best: tuple[Cost, int, Option, list[PricedUnit]] | None = None
        candidates = self.candidates
        first = not candidates.has_plan
        self.rules.begin(ask)
        for mask, most, looked_at in candidates.widening():
            if best is not None and looked_at == LAST_NODES:
                break
            nodes = candidates.nodes(ask, rights, mask, looked_at)
            evictable = _MaskedPods(self.state.bound_pods, mask)
            elsewhere = cache(partial(self._elsewhere, evictable, rights, most))
            for slot, option in self._options(ask, nodes, evictable):
                if best is not None and not self._may_cost_less(ask, slot, evictable, best[0]):
                    continue
                needs = self._needs(ask, slot, rights) | self.gpus.needs(ask, option, first)
                needs |= self.rules.needs(slot)
                units = self._units_for(slot, evictable, elsewhere, needs)
                budgets = self._budgets(units)
                limits = self.limits | self.eviction_units.limits | self.rules.limits(slot)
                requirements = Requirements(needs, limits, budgets, self.eligible.soft)
                chosen = choose(units, requirements, None if best is None else best[0])
                if chosen is not None and self._admits(slot, chosen):
                    best = (cost(chosen, budgets), slot, option, chosen)
            if best is not None and best[0][0] == 0:
                break
        return None if best is None else best[1:]

    def _admits(self, node: int, chosen: list[PricedUnit]) -> bool:
        """Do rules let the pod start on a node once these are evicted?"""
        return self.rules.admits(node, [uid for unit in chosen for uid in unit.uids])

    def _rules_hold(self, choice: _Choice, units: list[PricedUnit]) -> bool:
        """Do rules let the whole claim start once these are evicted?"""
        victims = [uid for unit in units for uid in unit.uids]
        return self.rules.holds(choice.nodes, choice.devices, victims)

    def _options(
        self, ask: Ask, nodes: list[int], evictable: "_MaskedPods"
    ) -> Iterator[tuple[int, Option]]:
        """The nodes, each with every set of devices that the pod could get there."""
        for slot in nodes:
            here = self.state.ledger.by_node.get(slot, {}) if ask.gpu is not None else {}
            uids = [uid for uid in here if uid in evictable]
            for option in self.gpus.options(ask, self._name(slot), uids):
                yield slot, option

    def _commit(self, ask: Ask, node: int, devices: Option, units: list[PricedUnit]) -> None:
        """Take the node, devices and victims of one pod out of what the next pods may use."""
        entries, plan = self.state.ledger.entries, self.candidates.plan
        victims = [uid for unit in units for uid in unit.uids]
        self.gpus.commit(ask, devices, victims)
        self.rules.commit(node, devices, victims)
        for row, amount in ask.room:
            plan(row, node, amount)
        for unit in units:
            self.eviction_units.mark_evicted(unit.uids)
            for uid in unit.uids:
                self.candidates.evictable[self.state.bound_pods.slots[uid]] = False
                entry = entries[uid]
                for row, amount in entry.booking.room:
                    plan(row, entry.node, -amount)
            for limits in (self.limits, self.eviction_units.limits):
                limits.update(
                    {key: limits[key] - n for key, n in unit.draws.items() if key in limits}
                )

    def _may_cost_less(self, ask: Ask, node: int, evictable: "_MaskedPods", most: Cost) -> bool:
        """Could a set on this node cost less, as far as the room there tells?"""
        shortages = self._shortages(ask, node)
        if not shortages:
            return True
        bound = CostBound(
            self.state.bound_pods, self.candidates.importance, self.candidates.protected
        )
        least = bound.least(evictable.on(node), shortages)
        return least is not None and least < most

    def _shortages(self, ask: Ask, node: int) -> dict[int, int]:
        """How much room the node is short of for the pod, by row."""
        short = {row: amount - int(self.candidates.free(row)[node]) for row, amount in ask.room}
        return {row: amount for row, amount in short.items() if amount > 0}

    def _needs(self, ask: Ask, node: int, rights: Rights) -> dict[object, int]:
        needs: dict[object, int] = dict(rights.items())
        for row, amount in self._shortages(ask, node).items():
            needs["room", row] = amount
        return needs

    def _elsewhere(self, evictable: "_MaskedPods", rights: Rights, most: int) -> list[PricedUnit]:
        """The least important of the pods that would free right, on any node."""
        if not rights and not self.gpus.rights:
            return []
        running, frees = self.state.bound_pods, np.zeros_like(evictable.mask)
        for right in rights:
            frees |= self.candidates.charged_pods(right) & (running.charge.data[right.row] > 0)
        if self.gpus.rights:
            namespace = self.state.in_namespace(self.claim.pods[0].namespace)
            frees[[running.slots[uid] for uid in namespace if uid in running.slots]] = True
        least = self.candidates.least_important(evictable.mask & frees, most)
        return self._priced_units(least, evictable, NO_NODE)

    def _units_for(
        self,
        node: int,
        evictable: "_MaskedPods",
        elsewhere: Callable[[], list[PricedUnit]],
        needs: dict[object, int],
    ) -> list[PricedUnit]:
        """The units on the node, and those elsewhere unless freed room frees all right as well."""
        entries = self.state.ledger.entries
        here = evictable.on(node).tolist()
        if self.rules.matters:
            here = sorted({*here, *self.rules.in_the_way(node, evictable.mask)})
        units = self._priced_units(here, evictable, node)
        enough = all(_room_frees_right(right, needs, units) for right in self.rights)
        if enough and not self.gpus.rights:
            return units
        own = {uid for unit in units for uid in unit.uids}
        others = [unit for unit in elsewhere() if own.isdisjoint(unit.uids)]
        if self.rules.matters:
            others = [self.prices.anew(unit, node) for unit in others]
        return units + [
            unit for unit in others if all(entries[uid].node != node for uid in unit.uids)
        ]

    def _priced_units(
        self, slots: Sequence[int], evictable: "_MaskedPods", node: int
    ) -> list[PricedUnit]:
        """The units in which these pods could be evicted: alone, or with their gang."""
        names = self.state.bound_pods.slots.names
        uids = [str(names[slot]) for slot in slots]
        return [
            self.prices.of(eviction_unit, node)
            for eviction_unit in self.eviction_units.of(uids, evictable)
        ]

    def _budgets(self, units: Sequence[PricedUnit]) -> dict[str, int]:
        paths = {path for unit in units for each in unit.budgets for path in each}
        return {path: self.state.budgets.left(path) for path in sorted(paths)}

    def _pruned(self, choice: _Choice) -> list[PricedUnit]:
        """Spare the units that are not needed after all, the most important first."""
        kept = choice.units
        assert self._is_feasible(choice, kept), "a plan must let its claim start"
        key, slots, order = (
            self.state.bound_pods.key,
            self.state.bound_pods.slots,
            self.eligible.order,
        )
        by_importance = sorted(kept, key=lambda each: min(map(key, each.uids)))
        if order is not None:
            places = order.places
            by_importance.sort(key=lambda each: -max(int(places[slots[uid]]) for uid in each.uids))
        for unit in by_importance:
            others = [each for each in kept if each is not unit]
            victims = [uid for each in others for uid in each.uids]
            if self.eviction_units.may_evict(victims) and self._is_feasible(choice, others):
                kept = others
        return kept

    def _soft_draw(self, unit: PricedUnit) -> int:
        """The sort key of evictions: a unit that exceeds a soft limit comes last."""
        return max((unit.draws.get(key, 0) for key in self.eligible.soft), default=0)

    def _is_feasible(self, choice: _Choice, units: list[PricedUnit]) -> bool:
        """Do these evictions free right for the claim, and room on its nodes and devices?"""
        victims = [uid for unit in units for uid in unit.uids]
        if not self.gpus.is_feasible(self.claim.asks, choice.devices, victims):
            return False
        if not self._rules_hold(choice, units):
            return False
        entries = self.state.ledger.entries
        for right, amount in self.rights.items():
            if sum(unit.frees.get(right, 0) for unit in units) < amount:
                return False
        balance: dict[tuple[int, int], int] = {}
        for ask, node in zip(self.claim.asks, choice.nodes, strict=True):
            for row, amount in ask.room:
                balance[row, node] = balance.get((row, node), 0) - amount
        for unit in units:
            for entry in (entries[uid] for uid in unit.uids):
                for row, amount in entry.booking.room:
                    if (row, entry.node) in balance:
                        balance[row, entry.node] += amount
        return all(
            int(self._free_soon(row)[node]) + more >= 0 for (row, node), more in balance.items()
        )

    def _free_soon(self, row: int) -> NDArray[np.int64]:
        """What nodes have free of a resource once leaving pods are gone: a search changes none."""
        found = self._soon.get(row)
        if found is None:
            found = self.state.placement.free_soon(row, self.state.leaving.room)
            self._soon[row] = found
        return found

    def _victim(self, uid: str, left: dict[str, int]) -> Victim:
        """The victim with its message; `left` is what budgets allow before it, and then after."""
        pod = self.state.pods[uid]
        reason = self.eligible.reason
        if self.state.tree.quota_of(pod) is None and reason is not Reason.BACKFILL_OVERDUE:
            reason = Reason.PREEMPTED
        message = self.eligible.explain(pod)
        for path in self.state.budgets.on(pod):
            left[path] -= 1
            if left[path] < 0:
                message += f"; chosen although disruption budget {path} allowed no eviction"
        if reason in _PREEMPTIONS:
            freed = self.gpus.freed_bound(self.state.ledger.entries[uid])
            if freed is not None:
                words = self._gpu_quota_words(*freed)
                return Victim(pod, Reason.PREEMPTED_IN_GPU_QUOTA, message + words)
        return Victim(pod, reason, message)

    def _gpu_quota_words(self, exceeded: Exceeded, freed: int) -> str:
        """The bound of the GPU quota for which a pod goes, and what it frees there."""
        quota = self.state.gpu_quotas.known[exceeded.namespace]
        part = f"{text(exceeded.unit, freed)} of it by this pod"
        return f"; GPU quota {quota.namespace}/{quota.name}: {exceeded.numbers}, {part}"

    def _name(self, slot: int) -> str:
        return self.state.nodes.slots.names[slot] or ""


class _MaskedPods:
    """The pods of a mask, by uid."""

    def __init__(self, pods: BoundPods, mask: Mask) -> None:
        self._pods = pods
        self.mask = mask
        self._on: dict[int, NDArray[np.int64]] = {}

    def __contains__(self, uid: object) -> bool:
        slots = self._pods.slots
        return isinstance(uid, str) and uid in slots and bool(self.mask[slots[uid]])

    def on(self, node: int) -> NDArray[np.int64]:
        """The slots of those on a node."""
        found = self._on.get(node)
        if found is None:
            here = self._pods.on_node(node)
            found = self._on[node] = here[self.mask[here]]
        return found


def _maximum(rights: Rights, others: Rights) -> Rights:
    return {**rights, **{right: max(rights.get(right, 0), n) for right, n in others.items()}}


def _room_frees_right(right: Right, needs: dict[object, int], units: list[PricedUnit]) -> bool:
    """Do the units that free the needed room also free this right?"""
    room = ("room", right.row)
    return needs.get(room, 0) >= needs.get(right, 0) and all(
        unit.frees.get(right, 0) >= unit.frees[room] for unit in units if room in unit.frees
    )
