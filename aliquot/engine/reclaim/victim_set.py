"""Choosing victims: the least painful set of pods that meets every need.

A need is an amount that must come free (room on the node, right in the quotas); a limit is what a
quota can give at most. Sets are compared as kube-scheduler compares them: fewest broken disruption
budgets, then the lowest highest priority, then the lowest sum of priorities (each counted from the
bottom of the scale, so that one pod more is always worse than none), fewest, youngest. The search
is exact as long as it ends within its steps; beyond that it keeps the best set found. Either way no
pod is in the set that could be put back.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from aliquot.engine.model.importance import Natural
from aliquot.engine.model.pod import Pod

_BOTTOM = 2**31
_MOST_STEPS = 4_000
_LAST_STEP = 20_000
_MOST_SEARCHED = 64
_MOST_DEEP = 200

Amounts = dict[object, int]


@dataclass(frozen=True, slots=True)
class Item:
    """A pod that may go, or several together: how important, what they help with and draw on.

    Of several, the most important one says how important they are; `total` is the sum of their
    priorities, counted from the bottom. `budgets` are those of each.
    """

    uids: tuple[str, ...]
    priority: int
    created: int
    name: Natural
    helps: Amounts
    draws: Amounts
    budgets: tuple[tuple[str, ...], ...]
    total: int


def together(
    pods: Sequence[Pod],
    name: Natural,
    helps: Amounts,
    draws: Amounts,
    budgets: tuple[tuple[str, ...], ...],
) -> Item:
    """These pods, who go together."""
    highest = max(pod.priority for pod in pods)
    created = min(pod.created for pod in pods if pod.priority == highest)
    total = sum(pod.priority + _BOTTOM for pod in pods)
    uids = tuple(pod.uid for pod in pods)
    return Item(uids, highest, created, name, helps, draws, budgets, total)


Cost = tuple[int, int, int, int, int]


@dataclass(slots=True)
class Problem:
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

    def allows(self, item: Item) -> bool:
        """May this one go, too?"""
        for key, amount in item.draws.items():
            left = self.limits.get(key)
            if left is None:
                continue
            if key in self.soft:
                left += max(amount, self.largest.get(key, 0)) - 1
            if left < amount:
                return False
        return True

    def less(self, item: Item) -> "_Left":
        """What is left once it goes."""
        drawn = {key: amount for key, amount in item.draws.items() if key in self.limits}
        if not drawn:
            return self
        limits = self.limits | {key: self.limits[key] - amount for key, amount in drawn.items()}
        largest = {
            key: max(amount, self.largest.get(key, 0))
            for key, amount in drawn.items()
            if key in self.soft
        }
        return _Left(limits, self.soft, self.largest | largest)


def cost(items: Sequence[Item], budgets: dict[str, int]) -> Cost:
    """How bad it is to evict all of these; smaller is better."""
    if not items:
        return (0, -_BOTTOM, 0, 0, 0)
    highest = max(item.priority for item in items)
    oldest = min(item.created for item in items if item.priority == highest)
    return (
        broken(items, budgets),
        highest,
        sum(item.total for item in items),
        sum(len(item.uids) for item in items),
        -oldest,
    )


def broken(items: Sequence[Item], budgets: dict[str, int]) -> int:
    """How many of the evictions go beyond what the disruption budgets allow."""
    left, beyond = dict(budgets), 0
    for budgets_of_one in (each for item in items for each in item.budgets):
        for budget in budgets_of_one:
            left[budget] -= 1
        beyond += any(left[budget] < 0 for budget in budgets_of_one)
    return beyond


def choose(items: Sequence[Item], problem: Problem, bar: Cost | None = None) -> list[Item] | None:
    """The best set, if it beats the bar; None if there is none.

    There is none if even all together are not enough, or may not go together.
    """
    useful = [item for item in items if _may_help(item, problem)]
    useful.sort(key=lambda item: item.name, reverse=True)
    useful.sort(
        key=lambda item: (
            item.priority,
            len(item.uids) > 1,
            -_use(item, problem),
            -item.created,
        )
    )
    start = _greedy(useful, problem)
    if start is None or len(useful) <= _MOST_SEARCHED:
        return _Search(useful[:_MOST_DEEP], problem, bar, start).run()
    start = _pruned(start, problem)
    return start if bar is None or cost(start, problem.budgets) < bar else None


def _may_help(item: Item, problem: Problem) -> bool:
    """Does it help with anything, and does it draw no more than may be drawn at all?"""
    helps = any(item.helps.get(need) for need in problem.needs)
    return helps and _Left(problem.limits, problem.soft).allows(item)


def _greedy(items: list[Item], problem: Problem) -> list[Item] | None:
    """A set to start from: whoever helps and may go, in order, until it is enough."""
    needs, left, chosen = dict(problem.needs), _Left(problem.limits, problem.soft), []
    for item in items:
        if not needs:
            break
        helps = any(item.helps.get(need) for need in needs)
        if helps and left.allows(item):
            chosen.append(item)
            needs = {
                n: a - item.helps.get(n, 0) for n, a in needs.items() if a > item.helps.get(n, 0)
            }
            left = left.less(item)
    return None if needs else chosen


def _pruned(chosen: list[Item], problem: Problem) -> list[Item]:
    """Put back whoever is not needed, the most important first."""
    total = {n: sum(item.helps.get(n, 0) for item in chosen) for n in problem.needs}
    kept = dict.fromkeys(range(len(chosen)))
    order = sorted(kept, key=lambda i: (-chosen[i].priority, chosen[i].created, chosen[i].name))
    for index in order:
        less = {n: had - chosen[index].helps.get(n, 0) for n, had in total.items()}
        if all(less[need] >= amount for need, amount in problem.needs.items()):
            total = less
            del kept[index]
    return [chosen[index] for index in kept]


def _less(needs: Amounts, item: Item) -> Amounts:
    """What is still needed once this one goes."""
    left = {need: amount - item.helps.get(need, 0) for need, amount in needs.items()}
    return {need: amount for need, amount in left.items() if amount > 0}


def _use(item: Item, problem: Problem) -> float:
    """How much of all needs it meets: those who meet more come first, to find good sets soon."""
    return sum(min(item.helps.get(n, 0), amount) / amount for n, amount in problem.needs.items())


@dataclass(frozen=True, slots=True)
class _Partial:
    """A set being built: its items, what it still lacks, what may still be drawn."""

    chosen: tuple[Item, ...]
    needs: Amounts
    left: _Left
    cost: Cost


class _Search:
    """Depth first, least important first, cutting off what cannot beat the best set so far.

    A set only gets worse as it grows, so a partial set with the least it still has to take bounds
    everything below it.
    """

    def __init__(
        self, items: list[Item], problem: Problem, bar: Cost | None, start: list[Item] | None
    ) -> None:
        self.items = items
        self.problem = problem
        self.best: tuple[Item, ...] | None = None
        self.bar = bar
        if start is not None:
            self._take(tuple(_pruned(start, problem)))
        self.steps = 0
        self.ahead: list[Amounts] = [dict.fromkeys(problem.needs, 0)]
        self.largest: list[Amounts] = [dict.fromkeys(problem.needs, 0)]
        for item in reversed(items):
            had, top = self.ahead[-1], self.largest[-1]
            self.ahead.append({n: had[n] + item.helps.get(n, 0) for n in had})
            self.largest.append({n: max(top[n], item.helps.get(n, 0)) for n in top})
        self.ahead.reverse()
        self.largest.reverse()
        self.youngest = [item.created for item in items]
        for at in range(len(items) - 2, -1, -1):
            if items[at].priority == items[at + 1].priority:
                self.youngest[at] = max(items[at].created, self.youngest[at + 1])

    def run(self) -> list[Item] | None:
        needs, left = dict(self.problem.needs), _Left(self.problem.limits, self.problem.soft)
        self._go(0, _Partial((), needs, left, cost((), {})))
        return None if self.best is None else _pruned(list(self.best), self.problem)

    def _take(self, chosen: tuple[Item, ...]) -> None:
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
        item = self.items[at]
        if self._may_take(item, partial):
            self._go(at + 1, self._with(item, partial))
        self._go(at + 1, partial)

    def _at_best(self, at: int, partial: _Partial) -> Cost:
        """The least that any set grown from here can cost."""
        more = max(-(-a // self.largest[at][need]) for need, a in partial.needs.items())
        item = self.items[at]
        broken, highest, total, count, age = partial.cost
        if item.priority > highest:
            highest, age = item.priority, -self.youngest[at]
        elif item.priority == highest:
            age = max(age, -self.youngest[at])
        return (broken, highest, total + more * (item.priority + _BOTTOM), count + more, age)

    def _may_take(self, item: Item, partial: _Partial) -> bool:
        if not any(item.helps.get(need) for need in partial.needs):
            return False
        return partial.left.allows(item)

    def _with(self, item: Item, partial: _Partial) -> _Partial:
        chosen = (*partial.chosen, item)
        needs = _less(partial.needs, item)
        return _Partial(chosen, needs, partial.left.less(item), cost(chosen, self.problem.budgets))
