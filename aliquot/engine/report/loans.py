"""Who borrows from whom: what quotas use above their min is lent by those that have idle min.

Nothing is booked between two quotas, so this attributes: the largest borrower has from the largest
lender first, so that loans are few and add up on both sides to the last unit. What is borrowed
beyond all idle min is free capacity of the cluster, which no quota lends. Quotas with children lend
and borrow by them.
"""

from collections.abc import Iterable, Iterator

from aliquot.engine.model.summaries import Figures, Loan, QuotaSummary


def loans(summaries: Iterable[QuotaSummary]) -> Iterator[Loan]:
    """Every loan, by resource, the largest borrowers first."""
    known = {each.name: each for each in summaries}
    parents = {each.parent for each in known.values()}
    leaves = [each for name, each in known.items() if name not in parents]
    for resource in sorted({name for each in leaves for name in each.borrowed}):
        lenders = _by_size({each.name: each.idle.get(resource, 0) for each in leaves})
        borrowers = _by_size({each.name: each.borrowed.get(resource, 0) for each in leaves})
        for lender, borrower, amount in _matched(lenders, borrowers):
            yield Loan(lender, borrower, resource, amount)


def _by_size(amounts: Figures) -> list[tuple[str, int]]:
    """Those that are not 0, the largest first, ties by name."""
    found = [(name, amount) for name, amount in amounts.items() if amount > 0]
    return sorted(found, key=lambda each: (-each[1], each[0]))


def _matched(
    lenders: list[tuple[str, int]], borrowers: list[tuple[str, int]]
) -> Iterator[tuple[str, str, int]]:
    """Lender, borrower and amount, until nothing more is lent or borrowed."""
    waiting = iter(lenders)
    lender, idle = next(waiting, ("", 0))
    for borrower, wanted in borrowers:
        while wanted and idle:
            amount = min(wanted, idle)
            yield lender, borrower, amount
            wanted, idle = wanted - amount, idle - amount
            if not idle:
                lender, idle = next(waiting, ("", 0))
