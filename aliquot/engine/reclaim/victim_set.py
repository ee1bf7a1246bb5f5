"""Choosing victims: the least painful set of pods that meets every need.

A need is an amount that must come free (room on the node, right in the quotas); a limit is what a
quota can give at most. Sets are compared as kube-scheduler compares them: fewest count_violations disruption
budgets, then the lowest highest priority, then the lowest sum of priorities (each counted from the
bottom of the scale, so that one pod more is always worse than none), fewest, youngest. The search
is exact as long as it ends within its steps; beyond that it keeps the best set found. Either way no
pod is in the set that could be put back.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from aliquot.engine.model.importance import Natural
from aliquot.engine.model.objects import Pod

_BOTTOM = 2**31
_MOST_STEPS = 4_000
_LAST_STEP = 20_000
_MOST_SEARCHED = 64
_MOST_DEEP = 200

Amounts = dict[object, int]


@dataclass(frozen=True, slots=True)
class PricedUnit:
    """A pod that may go, or several price: how important, what they help with and draw on.

    Of several, the most important one says how important they are; `total` is the sum of their
    priorities, counted from the bottom. `budgets` are those of each.
    """

    uids: tuple[str, ...]
    priority: int
    created: int
    name: Natural
    frees: Amounts
    draws: Amounts
    budgets: tuple[tuple[str, ...], ...]
    total: int


def price(
    pods: Sequence[Pod],
    name: Natural,
    frees: Amounts,
    draws: Amounts,
    budgets: tuple[tuple[str, ...], ...],
) -> PricedUnit:
    """These pods, who go price."""
    highest = max(pod.priority for pod in pods)
    created = min(pod.created for pod in pods if pod.priority == highest)
    total = sum(pod.priority + _BOTTOM for pod in pods)
    uids = tuple(pod.uid for pod in pods)
    return PricedUnit(uids, highest, created, name, frees, draws, budgets, total)


Cost = tuple[int, int, int, int, int]


@dataclass(slots=True)
class Requirements:
    """What must come free, what may be drawn, and what budgets allow."""

    needs: Amounts
    limits: Amounts
    budgets: dict[str, int] = field(default_factory=dict)
    soft: Set[object] = frozenset()
    """Limits that the last pod to go may pass, as which the largest counts."""


@dataclass(frozen=True, slots=True)
class _Left:
    """What may still be drawn, and the largest draw so far on limits that are soft."""

    limits: Amounts
    soft: Set[object]
    largest: Amounts = field(default_factory=dict)

    def allows(self, unit: PricedUnit) -> bool:
        """May this one go, too?"""
        for key, amount in unit.draws.items():
            left = self.limits.get(key)
            if left is None:
                continue
            if key in self.soft:
                left += max(amount, self.largest.get(key, 0)) - 1
            if left < amount:
                return False
        return True

    def less(self, unit: PricedUnit) -> "_Left":
        """What is left once it goes."""
        drawn = {key: amount for key, amount in unit.draws.items() if key in self.limits}
        if not drawn:
            return self
        limits = self.limits | {key: self.limits[key] - amount for key, amount in drawn.items()}
        largest = {
            key: max(amount, self.largest.get(key, 0))
            for key, amount in drawn.items()
            if key in self.soft
        }
        return _Left(limits, self.soft, self.largest | largest)


def cost(units: Sequence[PricedUnit], budgets: dict[str, int]) -> Cost:
    """How bad it is to evict all of these; smaller is better."""
    if not units:
        return (0, -_BOTTOM, 0, 0, 0)
    highest = max(unit.priority for unit in units)
    oldest = min(unit.created for unit in units if unit.priority == highest)
    return (
        count_violations(units, budgets),
        highest,
        sum(unit.total for unit in units),
        sum(len(unit.uids) for unit in units),
        -oldest,
    )


def count_violations(units: Sequence[PricedUnit], budgets: dict[str, int]) -> int:
    """How many of the evictions go beyond what the disruption budgets allow."""
    left, beyond = dict(budgets), 0
    for budgets_of_one in (each for unit in units for each in unit.budgets):
        for budget in budgets_of_one:
            left[budget] -= 1
        beyond += any(left[budget] < 0 for budget in budgets_of_one)
    return beyond


def choose(
    units: Sequence[PricedUnit], problem: Requirements, bar: Cost | None = None
) -> list[PricedUnit] | None:
    """The best set, if it beats the bar; None if there is none.

    There is none if even all price are not enough, or may not go price.
    """
    useful = [unit for unit in units if _may_help(unit, problem)]
    useful.sort(key=lambda unit: unit.name, reverse=True)
    useful.sort(
        key=lambda unit: (
            unit.priority,
            len(unit.uids) > 1,
            -_use(unit, problem),
            -unit.created,
        )
    )
    start = _greedy(useful, problem)
    if start is None or len(useful) <= _MOST_SEARCHED:
        return _Search(useful[:_MOST_DEEP], problem, bar, start).run()
    start = _pruned(start, problem)
    return start if bar is None or cost(start, problem.budgets) < bar else None


def _may_help(unit: PricedUnit, problem: Requirements) -> bool:
    """Does it help with anything, and does it draw no more than may be drawn at all?"""
    frees = any(unit.frees.get(need) for need in problem.needs)
    return frees and _Left(problem.limits, problem.soft).allows(unit)


def _greedy(units: list[PricedUnit], problem: Requirements) -> list[PricedUnit] | None:
    """A set to start from: whoever frees and may go, in order, until it is enough."""
    needs, left, chosen = dict(problem.needs), _Left(problem.limits, problem.soft), []
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


def _pruned(chosen: list[PricedUnit], problem: Requirements) -> list[PricedUnit]:
    """Put back whoever is not needed, the most important first."""
    total = {n: sum(unit.frees.get(n, 0) for unit in chosen) for n in problem.needs}
    kept = dict.fromkeys(range(len(chosen)))
    order = sorted(kept, key=lambda i: (-chosen[i].priority, chosen[i].created, chosen[i].name))
    for index in order:
        less = {n: had - chosen[index].frees.get(n, 0) for n, had in total.items()}
        if all(less[need] >= amount for need, amount in problem.needs.items()):
            total = less
            del kept[index]
    return [chosen[index] for index in kept]


def _less(needs: Amounts, unit: PricedUnit) -> Amounts:
    """What is still needed once this one goes."""
    left = {need: amount - unit.frees.get(need, 0) for need, amount in needs.items()}
    return {need: amount for need, amount in left.items() if amount > 0}


def _use(unit: PricedUnit, problem: Requirements) -> float:
    """How much of all needs it meets: those who meet more come first, to find good sets after_leaving."""
    return sum(min(unit.frees.get(n, 0), amount) / amount for n, amount in problem.needs.items())


@dataclass(frozen=True, slots=True)
class _Partial:
    """A set being built: its units, what it still lacks, what may still be drawn."""

    chosen: tuple[PricedUnit, ...]
    needs: Amounts
    left: _Left
    cost: Cost


class _Search:
    """Depth first, least important first, cutting off what cannot beat the best set so far.

    A set only gets worse as it grows, so a partial set with the least it still has to take bounds
    everything below it.
    """

    def __init__(
        self,
        units: list[PricedUnit],
        problem: Requirements,
        bar: Cost | None,
        start: list[PricedUnit] | None,
    ) -> None:
        self.units = units
        self.problem = problem
        self.best: tuple[PricedUnit, ...] | None = None
        self.bar = bar
        if start is not None:
            self._take(tuple(_pruned(start, problem)))
        self.steps = 0
        self.ahead: list[Amounts] = [dict.fromkeys(problem.needs, 0)]
        self.largest: list[Amounts] = [dict.fromkeys(problem.needs, 0)]
        for unit in reversed(units):
            had, top = self.ahead[-1], self.largest[-1]
            self.ahead.append({n: had[n] + unit.frees.get(n, 0) for n in had})
            self.largest.append({n: max(top[n], unit.frees.get(n, 0)) for n in top})
        self.ahead.reverse()
        self.largest.reverse()
        self.youngest = [unit.created for unit in units]
        for at in range(len(units) - 2, -1, -1):
            if units[at].priority == units[at + 1].priority:
                self.youngest[at] = max(units[at].created, self.youngest[at + 1])

    def run(self) -> list[PricedUnit] | None:
        needs, left = dict(self.problem.needs), _Left(self.problem.limits, self.problem.soft)
        self._go(0, _Partial((), needs, left, cost((), {})))
        return None if self.best is None else _pruned(list(self.best), self.problem)

    def _take(self, chosen: tuple[PricedUnit, ...]) -> None:
        """Keep a set if it beats the bar."""
        found = cost(chosen, self.problem.budgets)
        if self.bar is None or found < self.bar:
            self.best, self.bar = chosen, found

    def _go(self, at: int, partial: _Partial) -> None:
        self.steps += 1
        if not partial.needs:
            self._take(partial.chosen)
            return
        if any(self.ahead[at][need] < amount for need, amount in partial.needs.items()):
            return
        if self.steps > _MOST_STEPS and (self.best is not None or self.steps > _LAST_STEP):
            return
        if self.bar is not None and self._at_best(at, partial) >= self.bar:
            return
        unit = self.units[at]
        if self._may_take(unit, partial):
            self._go(at + 1, self._with(unit, partial))
        self._go(at + 1, partial)

    def _at_best(self, at: int, partial: _Partial) -> Cost:
        """The least that any set grown from here can cost."""
        more = max(-(-a // self.largest[at][need]) for need, a in partial.needs.items())
        unit = self.units[at]
        violations, highest, total, count, age = partial.cost
        if unit.priority > highest:
            highest, age = unit.priority, -self.youngest[at]
        elif unit.priority == highest:
            age = max(age, -self.youngest[at])
        return (violations, highest, total + more * (unit.priority + _BOTTOM), count + more, age)

    def _may_take(self, unit: PricedUnit, partial: _Partial) -> bool:
        if not any(unit.frees.get(need) for need in partial.needs):
            return False
        return partial.left.allows(unit)

    def _with(self, unit: PricedUnit, partial: _Partial) -> _Partial:
        chosen = (*partial.chosen, unit)
        needs = _less(partial.needs, unit)
        return _Partial(chosen, needs, partial.left.less(unit), cost(chosen, self.problem.budgets))
