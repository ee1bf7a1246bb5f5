"""What gangs request before all of their pods exist: `minResources`, less what their pods request.

It is booked in the ledger as a waiting request of its own, so that shares count the whole gang from
the start. Booked anew for the gangs in the change log, after every event.
"""

from aliquot.engine.books.changes import Changes
from aliquot.engine.books.gangs import Gangs, booking_name
from aliquot.engine.books.ledger import Booking, Ledger
from aliquot.engine.books.quota_tree import QuotaTree
from aliquot.engine.columns import Resources
from aliquot.engine.model.gang import Gang


class GangRequests:
    """Keeps the requests of gangs up to date in the ledger."""

    def __init__(
        self, resources: Resources, tree: QuotaTree, ledger: Ledger, gangs: Gangs, changes: Changes
    ) -> None:
        self._resources = resources
        self._tree = tree
        self._ledger = ledger
        self._gangs = gangs
        self._changed = changes.gangs.cursor()

    def quota_of(self, gang: Gang) -> str | None:
        """The quota of a gang."""
        return self._tree.membership.of(gang.quota, gang.name.partition("/")[0])

    def refresh(self) -> None:
        """Book what the gangs that have changed request beyond their existing pods."""
        for name in dict.fromkeys(self._changed.read()) if self._changed else ():
            gang = self._gangs.known.get(name)
            if gang is not None and (gang.min_resources or self._gangs.requests(gang)):
                self._book(gang)

    def _book(self, gang: Gang) -> None:
        members = self._gangs.members.get(gang.name, {})
        booked, home = booking_name(gang), self.quota_of(gang)
        lacks: dict[int, int] = {}
        closed = home is not None and self._tree.closed(home)
        if not closed and self._gangs.lacks_pods(gang):
            lacks = dict(self._resources.vector(gang.min_resources))
            for uid in members:
                for row, amount in self._ledger.entries[uid].booking.charge:
                    lacks[row] = lacks.get(row, 0) - amount
        charge = tuple((row, amount) for row, amount in sorted(lacks.items()) if amount > 0)
        if charge:
            self._gangs.requesting[booked] = gang
            self._ledger.wait(booked, Booking(home, charge))
        elif self._gangs.requesting.pop(booked, None) is not None:
            self._ledger.release(booked)
