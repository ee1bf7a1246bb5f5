"""Disruption budgets: which of them an eviction counts against, and what each still allows.

Evictions decided here are counted until the next event about the budget, so that two decisions in
a row do not both spend the same allowance.
"""

from aliquot.engine.model.pod import Budget, Pod
from aliquot.engine.model.selector import requirement_matches


class Budgets:
    """All disruption budgets."""

    def __init__(self) -> None:
        self._budgets: dict[str, dict[str, Budget]] = {}
        self._spent: dict[str, int] = {}

    def __bool__(self) -> bool:
        return any(self._budgets.values())

    def set(self, budget: Budget) -> None:
        """Add or replace a budget; evictions counted so far are part of what it says now."""
        self._budgets.setdefault(budget.namespace, {})[budget.path] = budget
        self._spent.pop(budget.path, None)

    def remove(self, path: str) -> None:
        """Remove a budget."""
        self._budgets.get(path.partition("/")[0], {}).pop(path, None)
        self._spent.pop(path, None)

    def exhausted_in(self) -> list[str]:
        """The namespaces in which a budget allows no more evictions."""
        return [
            namespace
            for namespace, budgets in self._budgets.items()
            if any(self.left(path) == 0 for path in budgets)
        ]

    def on(self, pod: Pod) -> tuple[str, ...]:
        """The budgets that evicting this pod counts against."""
        budgets = self._budgets.get(pod.namespace)
        if not budgets or not pod.labels:
            return ()
        labels = dict(pod.labels)
        return tuple(
            path
            for path, budget in budgets.items()
            if pod.name not in budget.disrupted
            and budget.selector
            and all(requirement_matches(each, labels) for each in budget.selector)
        )

    def refusing(self, pod: Pod) -> list[str]:
        """The budgets that do not allow the eviction of this pod, which is decided and counted."""
        return [
            path
            for path in self.on(pod)
            if self._find(path).allowed < max(self._spent.get(path, 0), 1)
        ]

    def left(self, path: str) -> int:
        """How many more evictions the budget allows."""
        return max(self._find(path).allowed - self._spent.get(path, 0), 0)

    def _find(self, path: str) -> Budget:
        return self._budgets[path.partition("/")[0]][path]

    def spend(self, pod: Pod) -> None:
        """Count the eviction of a pod."""
        for path in self.on(pod):
            self._spent[path] = self._spent.get(path, 0) + 1
