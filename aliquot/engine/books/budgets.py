"""Disruption budgets: which of them an eviction counts against, and what each still allows.

Evictions decided here are counted until the next event about the budget, so that two decisions in
a row do not both spend the same allowance.

Any number of budgets may select the same pods, so nothing here looks at budgets one by one for each
pod. Pods with equal labels are selected alike: budgets are matched with them once, by an index of
their labels. And of budgets that select the same pods only the one that allows least counts. So the
labels of all pods must be known, before any of them is looked at: two budgets select the same pods
until a pod comes that only one of them selects.
"""

from collections.abc import Callable, Collection

from aliquot.engine.model.label_index import MOST_LABEL_SETS, LabelIndex, Labels
from aliquot.engine.model.pod import Budget, Pod

_MOST_COUNTED = 8
"""Kinds of budgets that count for a pod, those that allow least. The eviction API refuses every pod
with more than one budget; beyond this, a pod only costs time."""


class _Entry:
    """A budget, and the evictions counted against it."""

    def __init__(self, budget: Budget, number: int) -> None:
        self.budget = budget
        self.number = number
        """Its place in the order in which budgets were first set."""
        self.spent = 0

    @property
    def left(self) -> int:
        """How many more evictions it allows; below zero if it was broken."""
        return self.budget.allowed - self.spent

    @property
    def key(self) -> tuple[int, int, int]:
        """The sort key: what allows least comes first."""
        return self.left, self.budget.allowed, self.number


_Kind = tuple[int, frozenset[str]]
"""Budgets of one kind select the same pods."""


class _Namespace:
    """The budgets of a namespace, by what they select."""

    def __init__(self) -> None:
        self.entries: dict[str, _Entry] = {}
        self._index: LabelIndex[_Entry] = LabelIndex()
        self._most_remembered = MOST_LABEL_SETS
        self._version = -1
        """The version of the index for which the following holds."""
        self._tightest: dict[_Kind, _Entry] = {}
        self._on: dict[Labels, tuple[_Entry, ...]] = {}
        self._cut: dict[Labels, None] = {}
        """The labels with more kinds of budgets than count, none of them exhausted so far."""
        self._exhausted: bool | None = None

    def note(self, labels: Labels, pods: Callable[[], Collection[Pod]]) -> None:
        """There is a pod with these labels; `pods` are all of the namespace."""
        self._index.matching(labels)
        if self._index.remembered > self._most_remembered:
            self._index.forget_labels()
            for pod in pods():
                self._index.matching(pod.labels)
            self._most_remembered = max(MOST_LABEL_SETS, 2 * self._index.remembered)

    def set(self, budget: Budget, number: int) -> None:
        """Add or replace a budget."""
        entry = self.entries.get(budget.path)
        if entry is None:
            entry = self.entries[budget.path] = _Entry(budget, number)
            self._index.add(entry, budget.selector)
        elif entry.budget.selector != budget.selector:
            self._index.add(entry, budget.selector)
        entry.budget, entry.spent = budget, 0
        self._version = -1

    def remove(self, path: str) -> None:
        """Remove a budget, if it is here."""
        if path in self.entries:
            self._index.remove(self.entries.pop(path))

    def spend(self, pod: Pod) -> None:
        """Count the eviction of a pod against all budgets that select it."""
        exhausted = []
        for entry in self._index.matching(pod.labels):
            if pod.name not in entry.budget.disrupted:
                entry.spent += 1
                if entry.left == 0:
                    exhausted.append(entry)
        self._exhausted = None  # but of one kind, the same budget allows least
        for labels in list(self._cut) if exhausted else ():
            matching = self._index.matching(labels)
            first = next((entry for entry in exhausted if entry in matching), None)
            if first is not None:
                self._on[labels] = (first, *self._on[labels][: _MOST_COUNTED - 1])
                del self._cut[labels]

    def refund(self, pod: Pod) -> None:
        """The pod whose eviction was counted is not evicted after all."""
        for entry in self._index.matching(pod.labels):
            if pod.name not in entry.budget.disrupted and entry.spent:
                entry.spent -= 1
        self._version = -1

    def on(self, labels: Labels) -> tuple[_Entry, ...]:
        """The budgets that select these labels: of those of one kind, the one that allows least."""
        matching = self._index.matching(labels)
        self._refresh()
        found = self._on.get(labels)
        if found is None:
            counting = self._tightest_of(matching)
            if len(counting) > _MOST_COUNTED:
                counting = sorted(counting, key=lambda one: one.key)[:_MOST_COUNTED]
                if counting[0].left > 0:
                    self._cut[labels] = None
            found = self._on[labels] = tuple(sorted(counting, key=lambda one: one.number))
        return found

    def _tightest_of(self, matching: Collection[_Entry]) -> list[_Entry]:
        """Of these budgets, which select the same pods, the one of each kind that allows least."""
        if len(matching) > len(self._tightest):
            return [entry for entry in self._tightest.values() if entry in matching]
        return [self._tightest[kind] for kind in dict.fromkeys(map(self._kind, matching))]

    @property
    def exhausted(self) -> bool:
        """Does any of the budgets allow no more evictions?"""
        self._refresh()
        if self._exhausted is None:
            self._exhausted = any(each.left <= 0 for each in self._tightest.values())
        return self._exhausted

    def _kind(self, entry: _Entry) -> _Kind:
        return self._index.signature(entry), entry.budget.disrupted

    def _refresh(self) -> None:
        """Find the budget of each kind that allows least, if anything has changed."""
        if self._version == self._index.version:
            return
        self._on.clear()
        self._cut.clear()
        self._tightest, self._exhausted = {}, None
        for entry in sorted(self.entries.values(), key=lambda each: each.key):
            self._tightest.setdefault(self._kind(entry), entry)
        self._version = self._index.version


class Budgets:
    """All disruption budgets; `pods` tells all pods of a namespace."""

    def __init__(self, pods: Callable[[str], Collection[Pod]]) -> None:
        self._pods = pods
        self._namespaces: dict[str, _Namespace] = {}
        self._numbered = 0

    def __bool__(self) -> bool:
        return bool(self._namespaces)

    def set(self, budget: Budget) -> None:
        """Add or replace a budget; evictions counted so far are part of what it says now."""
        self._numbered += 1
        found = self._namespaces.get(budget.namespace)
        if found is None:
            found = self._namespaces[budget.namespace] = _Namespace()
            for pod in self._pods(budget.namespace):
                self.note(pod)
        found.set(budget, self._numbered)

    def note(self, pod: Pod) -> None:
        """A pod has come or changed."""
        found = self._namespaces.get(pod.namespace)
        if found is not None:
            found.note(pod.labels, lambda: self._pods(pod.namespace))

    def remove(self, path: str) -> None:
        """Remove a budget."""
        namespace = path.partition("/")[0]
        found = self._namespaces.get(namespace)
        if found is not None:
            found.remove(path)
            if not found.entries:
                del self._namespaces[namespace]

    def exhausted_in(self) -> list[str]:
        """The namespaces in which a budget allows no more evictions."""
        return [name for name, found in self._namespaces.items() if found.exhausted]

    def exhausted(self, pod: Pod) -> bool:
        """Does a budget of this pod allow no more evictions?"""
        return any(entry.left <= 0 for entry in self._on(pod))

    def on(self, pod: Pod) -> tuple[str, ...]:
        """The budgets that evicting this pod counts against.

        Of budgets that select the same pods, the one that allows least stands for all.
        """
        return tuple(entry.budget.path for entry in self._on(pod))

    def _on(self, pod: Pod) -> list[_Entry]:
        found = self._namespaces.get(pod.namespace)
        if found is None or not pod.labels:
            return []
        return [each for each in found.on(pod.labels) if pod.name not in each.budget.disrupted]

    def refusing(self, pod: Pod) -> list[str]:
        """The budgets that do not allow the eviction of this pod, which is decided and counted."""
        return [
            entry.budget.path
            for entry in self._on(pod)
            if entry.budget.allowed < max(entry.spent, 1)
        ]

    def left(self, path: str) -> int:
        """How many more evictions the budget allows."""
        return max(self._namespaces[path.partition("/")[0]].entries[path].left, 0)

    def spend(self, pod: Pod) -> None:
        """Count the eviction of a pod."""
        found = self._namespaces.get(pod.namespace)
        if found is not None and pod.labels:
            found.spend(pod)

    def refund(self, pod: Pod) -> None:
        """Do not count the eviction of a pod any longer: it is not evicted after all."""
        found = self._namespaces.get(pod.namespace)
        if found is not None and pod.labels:
            found.refund(pod)
