"""The victim set: the cheapest set of eviction units that meets every need.

A need is an amount that must come free (room on the node, right in the quotas); a limit is what may
be taken from an account at most. Sets are compared as kube-scheduler compares them: fewest
violations of disruption budgets, then the lowest highest priority, then the lowest sum of
priorities (offset, so that one pod more is always worse), fewest, youngest. Youngest is the pod
that started last, as there; of pods that started together, the one created last. The search is
exact while it ends within its steps; beyond that it keeps the best set found. Either way no pod is
in the set that could be spared.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from aliquot.engine.model.importance import Natural
from aliquot.engine.model.pod import Pod

PRIORITY_OFFSET = 2**31
"""Priorities are int32: with this added none is negative, so a larger set never has a lower sum."""
_MOST_STEPS = 4_000
"""Steps of the exact search once it has a set: at 10 to 30 us each, it ends within some 0.1 s."""
_MOST_STEPS_WITHOUT_SET = 20_000
"""Steps while no set is found, some 0.5 s: more, because giving up leaves the claim waiting."""
_MOST_UNITS_SEARCHED = 64
"""Up to so many useful units are searched exactly. Of more, a complete search is beyond its steps,
so the greedy set is pruned and taken, if there is one."""
_MOST_UNITS_DEEP = 200
"""The search recurses once a unit: this stays well within Python's limit of 1,000 frames."""

Amounts = dict[object, int]
Age = tuple[int, int]
"""When a pod was started, then created: larger is younger."""


class PricedUnit(NamedTuple):
    """An eviction unit, with its importance, what its eviction frees, and what it draws on.

    `priority` and `age` are those of its most important pod; `total` is the sum of the pods'
    priorities, each offset; `budgets` are the disruption budgets of each pod. Where the policy has
    an order of eviction of its own, the levels of it stand for priorities.
    """

    uids: tuple[str, ...]
    priority: int
    age: Age
    name: Natural
    frees: Amounts
    draws: Amounts
    budgets: tuple[tuple[str, ...], ...]
    total: int

    def drawing(self, more: Amounts) -> "PricedUnit":
        """The same unit, where its eviction draws on these as well."""
        return self._replace(draws=self.draws | more)


def price(
    pods: Sequence[Pod],
    name: Natural,
    frees: Amounts,
    draws: Amounts,
    budgets: tuple[tuple[str, ...], ...],
    importance: Sequence[int] = (),
) -> PricedUnit:
    """These pods as a unit; the `importance` of each is its priority unless it is given."""
    importance = importance or [pod.priority for pod in pods]
    highest = max(importance)
    of_highest = (pod for pod, each in zip(pods, importance, strict=True) if each == highest)
    age = min((pod.started, pod.created) for pod in of_highest)
    total = sum(each + PRIORITY_OFFSET for each in importance)
    uids = tuple(pod.uid for pod in pods)
    return PricedUnit(uids, highest, age, name, frees, draws, budgets, total)


Cost = tuple[int, int, int, int, Age]
"""Violations, highest priority, sum of priorities, pods; and the oldest one's age, negated."""


@dataclass(slots=True)
class Requirements:
    """What must come free, what may be taken, and what disruption budgets allow."""

    needs: Amounts
    limits: Amounts
    budgets: dict[str, int] = field(default_factory=dict)
    soft: Set[object] = frozenset()
    """Limits that the last victim may exceed; the one with the largest draw counts as the last."""


class _Allowance(NamedTuple):
    """What may still be taken, and the largest draw so far on each soft limit."""

    limits: Amounts
    soft: Set[object]
    largest: Amounts

    def allows(self, unit: PricedUnit) -> bool:
        """May this unit be evicted as well?"""
        for key, amount in unit.draws.items():
            left = self.limits.get(key)
            if left is None:
                continue
            if key in self.soft:
                left += max(amount, self.largest.get(key, 0)) - 1
            if left < amount:
                return False
        return True

    def less(self, unit: PricedUnit) -> "_Allowance":
        """What is left once the unit is evicted."""
        drawn = {key: amount for key, amount in unit.draws.items() if key in self.limits}
        if not drawn:
            return self
        limits = self.limits | {key: self.limits[key] - amount for key, amount in drawn.items()}
        largest = {
            key: max(amount, self.largest.get(key, 0))
            for key, amount in drawn.items()
            if key in self.soft
        }
        return _Allowance(limits, self.soft, self.largest | largest)


def cost(units: Sequence[PricedUnit], budgets: dict[str, int]) -> Cost:
    """The cost of evicting all of these; smaller is better."""
    if not units:
        return (0, -PRIORITY_OFFSET, 0, 0, (0, 0))
    highest = max(unit.priority for unit in units)
    oldest = min(unit.age for unit in units if unit.priority == highest)
    return (
        count_violations(units, budgets),
        highest,
        sum(unit.total for unit in units),
        sum(len(unit.uids) for unit in units),
        _negated(oldest),
    )


def _negated(age: Age) -> Age:
    """An age that sorts the younger first."""
    return (-age[0], -age[1])


def count_violations(units: Sequence[PricedUnit], budgets: dict[str, int]) -> int:
    """How many of the evictions violate a disruption budget."""
    left, beyond = dict(budgets), 0
    for budgets_of_one in (each for unit in units for each in unit.budgets):
        for budget in budgets_of_one:
            left[budget] -= 1
        beyond += any(left[budget] < 0 for budget in budgets_of_one)
    return beyond


def choose(
    units: Sequence[PricedUnit], requirements: Requirements, bound: Cost | None = None
) -> list[PricedUnit] | None:
    """The best set, if its cost is below the bound; None if there is none.

    There is none if even all units are not enough, or may not all be evicted.
    """
    usefulness = _Usefulness(requirements)
    order = [
        (unit.priority, len(unit.uids) > 1, -much, _negated(unit.age), unit)
        for unit in sorted(units, key=lambda unit: unit.name, reverse=True)
        if (much := usefulness.of(unit))
    ]
    order.sort(key=itemgetter(0, 1, 2, 3))
    useful = [unit for *_, unit in order]
    start = _greedy(useful, requirements)
    if start is not None and len(start) == len(useful) and _all_needed(start, requirements):
        return start if bound is None or cost(start, requirements.budgets) < bound else None
    if start is None or len(useful) <= _MOST_UNITS_SEARCHED:
        return _Search(useful[:_MOST_UNITS_DEEP], requirements, bound, start).run()
    start = _pruned(start, requirements)
    return start if bound is None or cost(start, requirements.budgets) < bound else None


class _Usefulness:
    """How much of all needs a unit meets: 0 if it may not be evicted at all.

    Units that free and draw the same share these amounts (see `prices`), and the answer.
    """

    def __init__(self, requirements: Requirements) -> None:
        self._requirements = requirements
        self._allowance = _Allowance(requirements.limits, requirements.soft, {})
        self._of: dict[tuple[int, int], float] = {}

    def of(self, unit: PricedUnit) -> float:
        """More of it comes first, to find good sets early."""
        amounts = id(unit.frees), id(unit.draws)
        found = self._of.get(amounts)
        if found is None:
            found = self._of[amounts] = self._work_out(unit)
        return found

    def _work_out(self, unit: PricedUnit) -> float:
        if not self._allowance.allows(unit):
            return 0
        needs = self._requirements.needs
        return sum(min(unit.frees.get(n, 0), amount) / amount for n, amount in needs.items())


def _greedy(units: list[PricedUnit], requirements: Requirements) -> list[PricedUnit] | None:
    """A set to start from: in order, each unit that frees a need and may be evicted."""
    needs, left, chosen = (
        dict(requirements.needs),
        _Allowance(requirements.limits, requirements.soft, {}),
        [],
    )
    for unit in units:
        if not needs:
            break
        frees = any(unit.frees.get(need) for need in needs)
        if frees and left.allows(unit):
            chosen.append(unit)
            needs = {
                n: a - unit.frees.get(n, 0) for n, a in needs.items() if a > unit.frees.get(n, 0)
            }
            left = left.less(unit)
    return None if needs else chosen


def _all_needed(units: list[PricedUnit], requirements: Requirements) -> bool:
    """Is there a need that each of these is needed for? Then there is no other set."""
    for need, amount in requirements.needs.items():
        frees = [unit.frees.get(need, 0) for unit in units]
        if frees and sum(frees) - min(frees) < amount:
            return True
    return False


def _pruned(chosen: list[PricedUnit], requirements: Requirements) -> list[PricedUnit]:
    """Spare the units that are not needed, the most important first."""
    total = {n: sum(unit.frees.get(n, 0) for unit in chosen) for n in requirements.needs}
    kept = dict.fromkeys(range(len(chosen)))
    order = sorted(kept, key=lambda i: (-chosen[i].priority, chosen[i].age, chosen[i].name))
    for index in order:
        less = {n: had - chosen[index].frees.get(n, 0) for n, had in total.items()}
        if all(less[need] >= amount for need, amount in requirements.needs.items()):
            total = less
            del kept[index]
    return [chosen[index] for index in kept]


def _remaining(needs: Amounts, unit: PricedUnit) -> Amounts:
    """What is still needed once this unit is evicted."""
    left = {need: amount - unit.frees.get(need, 0) for need, amount in needs.items()}
    return {need: amount for need, amount in left.items() if amount > 0}


class _Partial(NamedTuple):
    """A set being built: its units, what it still needs, what may still be taken."""

    chosen: tuple[PricedUnit, ...]
    needs: Amounts
    left: _Allowance
    cost: Cost


class _Search:
    """Branch and bound: depth first, the least important units first.

    A set only costs more as it grows, so the cost of a partial set, plus the least that it still
    needs, is a lower bound of every set grown from it.
    """

    def __init__(
        self,
        units: list[PricedUnit],
        requirements: Requirements,
        bound: Cost | None,
        start: list[PricedUnit] | None,
    ) -> None:
        self.units = units
        self.requirements = requirements
        self.best: tuple[PricedUnit, ...] | None = None
        self.bound = bound
        if start is not None:
            self._keep_if_better(tuple(_pruned(start, requirements)))
        self.steps = 0
        self.ahead: dict[object, list[int]] = {}
        """Of each need, what the units from each place on free of it."""
        self.largest: dict[object, list[int]] = {}
        """The most that one of these frees of it."""
        for need in requirements.needs:
            frees = [unit.frees.get(need, 0) for unit in reversed(units)]
            self.ahead[need] = [*accumulate(frees, initial=0)][::-1]
            self.largest[need] = [*accumulate(frees, max, initial=0)][::-1]
        self.youngest = [unit.age for unit in units]
        for at in range(len(units) - 2, -1, -1):
            if units[at].priority == units[at + 1].priority:
                self.youngest[at] = max(units[at].age, self.youngest[at + 1])

    def run(self) -> list[PricedUnit] | None:
        """The best set, if there is one below the bound."""
        needs, left = (
            dict(self.requirements.needs),
            _Allowance(self.requirements.limits, self.requirements.soft, {}),
        )
        self._branch(0, _Partial((), needs, left, cost((), {})))
        return None if self.best is None else _pruned(list(self.best), self.requirements)

    def _keep_if_better(self, chosen: tuple[PricedUnit, ...]) -> None:
        """Keep a set if its cost is below the bound."""
        found = cost(chosen, self.requirements.budgets)
        if self.bound is None or found < self.bound:
            self.best, self.bound = chosen, found

    def _branch(self, at: int, partial: _Partial) -> None:
        """Try all sets that grow from the partial one by units from this place on."""
        self.steps += 1
        if not partial.needs:
            self._keep_if_better(partial.chosen)
            return
        if any(self.ahead[need][at] < amount for need, amount in partial.needs.items()):
            return
        if self.steps > _MOST_STEPS and (
            self.best is not None or self.steps > _MOST_STEPS_WITHOUT_SET
        ):
            return
        if self.bound is not None and self._lower_bound(at, partial) >= self.bound:
            return
        unit = self.units[at]
        if self._may_take(unit, partial):
            self._branch(at + 1, self._with(unit, partial))
        self._branch(at + 1, partial)

    def _lower_bound(self, at: int, partial: _Partial) -> Cost:
        """The least cost of any set grown from here."""
        more = max(-(-a // self.largest[need][at]) for need, a in partial.needs.items())
        unit = self.units[at]
        violations, highest, total, count, age = partial.cost
        if unit.priority > highest:
            highest, age = unit.priority, _negated(self.youngest[at])
        elif unit.priority == highest:
            age = max(age, _negated(self.youngest[at]))
        return (
            violations,
            highest,
            total + more * (unit.priority + PRIORITY_OFFSET),
            count + more,
            age,
        )

    def _may_take(self, unit: PricedUnit, partial: _Partial) -> bool:
        if not any(unit.frees.get(need) for need in partial.needs):
            return False
        return partial.left.allows(unit)

    def _with(self, unit: PricedUnit, partial: _Partial) -> _Partial:
        chosen = (*partial.chosen, unit)
        needs = _remaining(partial.needs, unit)
        return _Partial(
            chosen, needs, partial.left.less(unit), cost(chosen, self.requirements.budgets)
        )
