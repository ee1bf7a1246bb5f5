"""Quotas as the page shows them: the tree, namespaces in queues, GPU quotas, and loans.

Every function yields rows by key. Amounts are whole numbers; the page writes them as quantities. A
key begins with the namespace that a user must be allowed to see (`access.Rights`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from aliquot.dashboard.occupancy import Occupancy
from aliquot.engine import GpuQuota, GpuQuotaSummary, Loan, QueueSummary, QuotaSummary, quantity

Row = tuple[str, dict[str, Any]]
_FIGURES = ("requests.tflops", "requests.vram", "limits.tflops", "limits.vram", "workers")


class QuotaRows:
    """Every quota with its figures; `shared`: does its policy give it a share of its own?

    A row of a quota that is as it was is not encoded anew: of a thousand, few change at once.
    """

    def __init__(self, occupancy: Occupancy, shared: bool) -> None:
        self._occupancy = occupancy
        self._shared = shared
        self._known: dict[str, tuple[object, msgspec.Raw]] = {}

    def rows(
        self, summaries: Iterable[QuotaSummary], loans: Iterable[Loan]
    ) -> Iterator[tuple[str, msgspec.Raw]]:
        """The rows by name."""
        running, waiting = self._occupancy.running_of, self._occupancy.waiting_of
        lent: dict[str, Counter[str]] = {}
        for loan in loans:
            lent.setdefault(loan.lender, Counter())[loan.resource] += loan.amount
        known: dict[str, tuple[object, msgspec.Raw]] = {}
        for each in summaries:
            name = each.name
            figures = each, lent.get(name, Counter()), running[name], waiting[name]
            before = self._known.get(name)
            if before is None or before[0] != figures:
                before = figures, msgspec.Raw(msgspec.json.encode(self._row(*figures)))
            known[name] = before
            yield name, before[1]
        self._known = known

    def _row(
        self, summary: QuotaSummary, lent: Mapping[str, int], running: int, waiting: int
    ) -> dict[str, Any]:
        return {
            "index": self._occupancy.owner(summary.name) - 1,
            "parent": summary.parent,
            "tree": summary.tree,
            "min": summary.min,
            "inForce": summary.scaled_min,
            "max": {name: top for name, top in summary.max.items() if top < quantity.LIMIT},
            "used": summary.used,
            "request": summary.request,
            "runtime": summary.runtime if self._shared else None,
            "borrowed": summary.borrowed,
            "lent": lent,
            "running": running,
            "waiting": waiting,
        }


def loan_rows(loans: Iterable[Loan]) -> Iterator[Row]:
    """Who borrows from whom."""
    for each in loans:
        yield (
            f"{each.resource}>{each.lender}>{each.borrower}",
            {
                "from": each.lender,
                "to": each.borrower,
                "resource": each.resource,
                "amount": each.amount,
            },
        )


def namespace_rows(queues: Iterable[QueueSummary]) -> Iterator[Row]:
    """The namespaces in each queue: their weight, and their part of the cluster."""
    for queue in queues:
        for namespace, figures in sorted(queue.namespaces.items()):
            yield (
                f"{namespace}/ in {queue.name}",
                {
                    "namespace": namespace,
                    "queue": queue.name,
                    "weight": figures.weight,
                    "share": round(float(figures.share), 4),
                    "used": figures.used,
                },
            )


def gpu_quota_rows(
    summaries: Iterable[GpuQuotaSummary], known: Mapping[str, GpuQuota]
) -> Iterator[Row]:
    """GPU quotas with their totals, and the conditions that are not as they should be."""
    for each in summaries:
        quota = known.get(each.namespace)
        if quota is None:
            continue
        used = (*each.requests, *each.limits, each.workers)
        most = (*quota.requests, *quota.limits, quota.workers)
        yield (
            f"{each.namespace}/{each.name}",
            {
                "figures": {
                    name: [amount, top]
                    for name, amount, top in zip(_FIGURES, used, most, strict=True)
                    if amount or top is not None
                },
                "threshold": quota.threshold,
                "problems": [
                    {"type": found.type, "message": found.message}
                    for found in each.conditions
                    if found.status == (found.type != "Ready")
                ],
            },
        )


def team_rows(owners: Mapping[str, int]) -> Iterator[Row]:
    """Namespaces whose pods run without a quota: cells name them as they name quotas."""
    for name, index in owners.items():
        if name.endswith("/"):
            yield name, {"index": index}
