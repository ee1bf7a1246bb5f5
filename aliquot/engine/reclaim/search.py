"""The victim search: who must go so that a claim can start.

*Room* (a node that holds the pod) and *right* (quotas that allow it) are separate needs, so victims
may sit on other nodes than the one the claim will start on. Which pods may go at all is the
policy's word, given as ranks, best first; which of them do go is a matter of `cover`. Pods that
are on their way out already count as gone, so nobody is evicted twice for the same claim. A plan
is checked as a whole before it is believed: the claim would start, and nobody could be put back.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from aliquot.engine.books.ledger import Entry
from aliquot.engine.columns import Slots
from aliquot.engine.model.objects import Pod
from aliquot.engine.model.reasons import Reason
from aliquot.engine.placement.best_node import Ask
from aliquot.engine.policies.eligible import (
    Account,
    Eligible,
    Mask,
    Right,
    Rights,
    gang_account,
    kept_account,
    namespace_account,
)
from aliquot.engine.queue.claim import Claim
from aliquot.engine.reclaim.candidates import LAST_NODES, Candidates
from aliquot.engine.reclaim.device_fit import DeviceRoom, Option
from aliquot.engine.reclaim.eviction_units import EvictionUnit, EvictionUnits
from aliquot.engine.reclaim.victim_set import Cost, PricedUnit, Requirements, choose, cost, price
from aliquot.engine.state import State

_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that goes, by which rule, in words."""

    pod: Pod
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Where each pod of the claim will start, and who goes for it."""

    nodes: tuple[str, ...]
    devices: tuple[Option, ...]
    victims: tuple[Victim, ...]
    rank: int
    cost: Cost

    @property
    def key(self) -> tuple[int, Cost, tuple[str, ...]]:
        """Of several plans, the one with the smallest is the best."""
        return self.rank, self.cost, self.nodes


def search(
    state: State,
    claim: Claim,
    rights: Rights,
    ranks: Iterable[Sequence[Eligible]],
    classes: list[str] | None = None,
) -> Plan | None:
    """The best plan of the first rank of ranks that has one, on nodes of these classes."""
    if not state.leaving and not len(state.running):
        return None
    nobody = Eligible(np.zeros_like(state.running.node, dtype=bool), Reason.PREEMPTED, lambda _: "")
    for rank, several in enumerate(_after([nobody] if state.leaving else [], ranks)):
        attempts = (_Attempt(state, claim, rights, eligible, classes) for eligible in several)
        found = [plan for attempt in attempts if (plan := attempt.plan(rank)) is not None]
        if found:
            return min(found, key=lambda plan: plan.key)
    return None


def _after(
    nobody: Sequence[Eligible], ranks: Iterable[Sequence[Eligible]]
) -> Iterator[Sequence[Eligible]]:
    """First see whether the claim only has to wait for those who are leaving anyway."""
    yield nobody
    for rank in ranks:
        yield [eligible for eligible in rank if eligible.evictable.any()]


@dataclass(slots=True)
class _Choice:
    """What has been settled so far: a node for each of the first pods, and the pods that go."""

    nodes: list[int] = field(default_factory=list)
    devices: list[Option] = field(default_factory=list)
    units: list[PricedUnit] = field(default_factory=list)


class _Attempt:
    """One claim against one eligible. A gang is settled pod by pod, then checked as a whole."""

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
        self.rights = _larger(needed, eligible.rights)
        self.eligible = eligible
        self.eviction_units = EvictionUnits(state)
        self.gpus = DeviceRoom(state, claim)
        self.candidates = Candidates(state, eligible, self.gpus, classes)
        self.limits: dict[object, int] = dict(eligible.limits.items())
        self._accounts = {account for account, _ in (*eligible.limits, *self.rights)}
        self._narrow = any(not isinstance(account, int) for account in self._accounts)
        self._made: dict[tuple[tuple[str, ...], int], PricedUnit] = {}

    def plan(self, rank: int) -> Plan | None:
        """The best plan."""
        choice = _Choice()
        for ask in self.claim.asks:
            rights = self.rights if not choice.nodes else {}
            found = self._place(ask, rights)
            if found is None:
                return None
            node, devices, units = found
            self._note(ask, node, devices, units)
            choice.nodes.append(node)
            choice.devices.append(devices)
            choice.units += units
        choice.units = sorted(self._pruned(choice), key=self._soft_draw)
        victims = tuple(self._victim(uid) for unit in choice.units for uid in unit.uids)
        nodes = tuple(self._name(slot) for slot in choice.nodes)
        total = cost(choice.units, self._budgets(choice.units))
        return Plan(nodes, tuple(choice.devices), victims, rank, total)

    def _place(self, ask: Ask, rights: Rights) -> tuple[int, Option, list[PricedUnit]] | None:
        """The best node, devices of it, and victims for one pod.

        It looks ever wider until there is a set; one that breaks a budget is only the last resort.
        """
        best: tuple[Cost, int, Option, list[PricedUnit]] | None = None
        candidates = self.candidates
        first = not candidates.planned
        for evictable, most, looked_at in candidates.widening():
            if best is not None and looked_at == LAST_NODES:
                break
            nodes = candidates.nodes(ask, rights, evictable, looked_at)
            going = _Masked(self.state.running.slots, evictable)
            elsewhere = self._elsewhere(going, rights, most) if nodes else []
            for slot, option in self._options(ask, nodes, going):
                needs = self._needs(ask, slot, rights) | self.gpus.needs(ask, option, first)
                units = self._units_for(slot, going, elsewhere, needs)
                budgets = self._budgets(units)
                limits = self.limits | self.eviction_units.limits
                problem = Requirements(needs, limits, budgets, self.eligible.soft)
                chosen = choose(units, problem, None if best is None else best[0])
                if chosen is not None:
                    best = (cost(chosen, budgets), slot, option, chosen)
            if best is not None and best[0][0] == 0:
                break
        return None if best is None else best[1:]

    def _options(
        self, ask: Ask, nodes: list[int], going: "_Masked"
    ) -> Iterator[tuple[int, Option]]:
        """The nodes, with the devices of each that would do."""
        for slot in nodes:
            here = self.state.ledger.by_node.get(slot, {}) if ask.gpu is not None else {}
            uids = [uid for uid in here if uid in going]
            for option in self.gpus.options(ask, self._name(slot), uids):
                yield slot, option

    def _note(self, ask: Ask, node: int, devices: Option, units: list[PricedUnit]) -> None:
        """What is settled is no longer there for the next pod of the claim."""
        entries, planned = self.state.ledger.entries, self.candidates.planned
        self.gpus.note(ask, devices, [uid for unit in units for uid in unit.uids])
        for row, amount in ask.room:
            planned[row, node] = planned.get((row, node), 0) + amount
        for unit in units:
            self.eviction_units.let_go(unit.uids)
            for uid in unit.uids:
                self.candidates.evictable[self.state.running.slots[uid]] = False
                entry = entries[uid]
                for row, amount in entry.booking.room:
                    planned[row, entry.node] = planned.get((row, entry.node), 0) - amount
            for limits in (self.limits, self.eviction_units.limits):
                limits.update(
                    {key: limits[key] - n for key, n in unit.draws.items() if key in limits}
                )

    def _needs(self, ask: Ask, node: int, rights: Rights) -> dict[object, int]:
        needs: dict[object, int] = dict(rights.items())
        for row, amount in ask.room:
            short = amount - int(self.candidates.free(row)[node])
            if short > 0:
                needs["room", row] = short
        return needs

    def _elsewhere(self, going: "_Masked", rights: Rights, most: int) -> list[PricedUnit]:
        """Of the pods that would give right, wherever they run, the least important ones."""
        if not rights and not self.gpus.rights:
            return []
        running, frees = self.state.running, np.zeros_like(going.mask)
        for right in rights:
            frees |= self.candidates.charged_pods(right) & (running.charge.data[right.row] > 0)
        if self.gpus.rights:
            namespace = self.state.in_namespace(self.claim.pods[0].namespace)
            frees[[running.slots[uid] for uid in namespace if uid in running.slots]] = True
        least = running.least_important(going.mask & frees, most)
        return self._priced_units(least, going, _NOWHERE)

    def _units_for(
        self, node: int, going: "_Masked", elsewhere: list[PricedUnit], needs: dict[object, int]
    ) -> list[PricedUnit]:
        """The pods on the node, and those elsewhere unless the former give all the right, too."""
        entries = self.state.ledger.entries
        here = np.flatnonzero(going.mask & (self.state.running.node == node))
        units = self._priced_units(here.tolist(), going, node)
        along = all(_room_frees_right(right, needs, units) for right in self.rights)
        if along and not self.gpus.rights:
            return units
        return units + [
            unit for unit in elsewhere if all(entries[uid].node != node for uid in unit.uids)
        ]

    def _priced_units(self, slots: Sequence[int], going: "_Masked", node: int) -> list[PricedUnit]:
        """How these pods could go: one by one, or with their gang."""
        names = self.state.running.slots.names
        uids = [str(names[slot]) for slot in slots]
        return [
            self._priced(eviction_unit, node)
            for eviction_unit in self.eviction_units.of(uids, going)
        ]

    def _priced(self, eviction_unit: EvictionUnit, node: int) -> PricedUnit:
        found = self._made.get((eviction_unit.uids, node))
        if found is not None:
            return (
                replace(found, draws=found.draws | eviction_unit.draws)
                if eviction_unit.draws
                else found
            )
        frees: dict[object, int] = {}
        draws: dict[object, int] = {}
        for uid in eviction_unit.uids:
            entry = self.state.ledger.entries[uid]
            accounts: tuple[Account, ...] = _accounts(entry) if self._narrow else entry.path
            for row, amount in entry.booking.charge:
                for account in accounts:
                    if account in self._accounts:
                        _add(frees, self.rights, (account, row), amount)
                        _add(draws, self.limits, (account, row), amount)
            for row, amount in entry.booking.room if entry.node == node else ():
                frees["room", row] = frees.get(("room", row), 0) + amount
            for key, amount in self.gpus.frees(entry):
                frees[key] = frees.get(key, 0) + amount
        pods = [self.state.pods[uid] for uid in eviction_unit.uids]
        budgets = tuple(self.state.budgets.on(pod) for pod in pods)
        name = self.state.running.name(eviction_unit.uids[0])
        made = self._made[eviction_unit.uids, node] = price(pods, name, frees, draws, budgets)
        return replace(made, draws=draws | eviction_unit.draws) if eviction_unit.draws else made

    def _budgets(self, units: Sequence[PricedUnit]) -> dict[str, int]:
        paths = {path for unit in units for each in unit.budgets for path in each}
        return {path: self.state.budgets.left(path) for path in sorted(paths)}

    def _pruned(self, choice: _Choice) -> list[PricedUnit]:
        """Put back whoever is not needed after all, the most important first."""
        kept = choice.units
        assert self._is_feasible(choice, kept), "a plan must let its claim start"
        key = self.state.running.key
        for unit in sorted(kept, key=lambda each: min(map(key, each.uids))):
            others = [each for each in kept if each is not unit]
            going = [uid for each in others for uid in each.uids]
            if self.eviction_units.evictable(going) and self._is_feasible(choice, others):
                kept = others
        return kept

    def _soft_draw(self, unit: PricedUnit) -> int:
        """Whoever takes its quota beyond a soft limit is the last to go."""
        return max((unit.draws.get(key, 0) for key in self.eligible.soft), default=0)

    def _is_feasible(self, choice: _Choice, units: list[PricedUnit]) -> bool:
        """Once these have gone, is there right for the claim, and room on its nodes and devices?"""
        going = [uid for unit in units for uid in unit.uids]
        if not self.gpus.is_feasible(self.claim.asks, choice.devices, going):
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
            int(self.state.placement.free_soon(row, self.state.leaving.room)[node]) + more >= 0
            for (row, node), more in balance.items()
        )

    def _victim(self, uid: str) -> Victim:
        pod = self.state.pods[uid]
        outside = self.state.tree.home(pod) is None
        reason = Reason.PREEMPTED if outside else self.eligible.reason
        return Victim(pod, reason, self.eligible.explain(pod))

    def _name(self, slot: int) -> str:
        return self.state.nodes.slots.names[slot] or ""


class _Masked:
    """The pods of a mask, by uid."""

    def __init__(self, slots: Slots, mask: Mask) -> None:
        self._slots = slots
        self.mask = mask

    def __contains__(self, uid: object) -> bool:
        return isinstance(uid, str) and uid in self._slots and bool(self.mask[self._slots[uid]])


def _accounts(entry: Entry) -> tuple[Account, ...]:
    """All accounts that a pod counts in."""
    booking = entry.booking
    return (
        *entry.path,
        *map(kept_account, entry.path),
        namespace_account(booking.quota, booking.namespace),
        gang_account(booking.gang),
    )


def _add(sums: dict[object, int], to: Container[object], key: object, amount: int) -> None:
    """Add up what counts."""
    if key in to:
        sums[key] = sums.get(key, 0) + amount


def _larger(rights: Rights, others: Rights) -> Rights:
    return {**rights, **{right: max(rights.get(right, 0), n) for right, n in others.items()}}


def _room_frees_right(right: Right, needs: dict[object, int], units: list[PricedUnit]) -> bool:
    """Whoever makes the room that is needed gives back this right as well."""
    room = ("room", right.row)
    return needs.get(room, 0) >= needs.get(right, 0) and all(
        unit.frees.get(right, 0) >= unit.frees[room] for unit in units if room in unit.frees
    )
