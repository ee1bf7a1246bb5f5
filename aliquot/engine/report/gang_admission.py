"""Which gangs without all of their pods are Inqueue: those whose `minResources` could start.

Volcano's controllers make the pods of a gang once it is Inqueue. So a gang must be let in as soon
as it could start, on idle capacity too; and no more gangs than could start together, so what gangs
that are Inqueue ask for counts as used for those after them, in the order of the policy. A gang
that has no pods after `holdFor` is Pending again, behind the others: its controller may be gone.
Nothing is held for such a gang: pods that exist may use what it waits for.
"""

from collections.abc import Container, Iterator
from dataclasses import replace

from aliquot.engine.books.gangs import booking_name
from aliquot.engine.books.ledger import Booking, Stage
from aliquot.engine.model.gang import Gang
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.reasons import NO_ROOM, Reason, Refusal
from aliquot.engine.queue.claim import Claim
from aliquot.engine.trial import OVER_SHARE, Trial

_WAITS_FOR_ROOM = (*NO_ROOM, Reason.WAITING_FOR_VICTIMS)
_COUNTED = "; what gangs that are Inqueue ask for counts as used"

Verdicts = dict[str, Refusal | None]
"""Why each gang without all of its pods is Pending; None for those that are Inqueue."""


class GangAdmission:
    """The gangs that lack pods, and since when those that are Inqueue are so."""

    def __init__(self, trial: Trial, hold_for: int) -> None:
        self._trial = trial
        self._state = trial.state
        self._hold_for = hold_for
        self._changed = trial.state.changes.gangs.cursor()
        self._outside = trial.state.changes.outside.cursor(deciding=True)
        self._lacking: dict[str, None] = {}
        """The gangs that lacked pods when they last changed."""
        self._since: dict[str, int] = {}
        """When a gang became Inqueue, or was last seen with a pod since."""
        self._behind: dict[str, set[str]] = {}
        """Behind which gangs a gang came for want of pods, the first to come behind first. Those
        that are Inqueue since, or no longer lack pods, are out of it."""
        self._timed_out: set[str] = set()
        """Gangs that came behind the others since anything changed from outside. They have no
        deadline: gangs that never get pods would take turns for ever."""
        self._any_pending = False

    def update(self, now: int) -> None:
        """Put gangs without pods behind the others after `holdFor`, and let in those that may."""
        if self._outside.read():
            self._timed_out.clear()
        self.note_changes()
        self._put_behind(now)
        verdicts = self.verdicts() if self._lacking else {}
        inqueue = [name for name, refusal in verdicts.items() if refusal is None]
        self._since = {name: self._since.get(name, now) for name in inqueue}
        pending = verdicts.keys() - self._since.keys()
        self._behind = {
            name: before
            for name, others in self._behind.items()
            if name in pending and (before := others & pending)
        }
        self._any_pending = bool(pending)

    def note_changes(self) -> None:
        """Look again at the gangs that have changed: do they lack pods?"""
        self._lacking = dict.fromkeys(sorted(self._now_lacking()))
        self._changed.read()

    def _put_behind(self, now: int) -> None:
        """Put the gangs behind the others that are Inqueue for `holdFor` and have no pods."""
        members = self._state.gangs.members
        self._since = {
            name: now if members.get(name) else since for name, since in self._since.items()
        }
        late = [
            name
            for name, since in sorted(self._since.items(), key=lambda pair: (pair[1], pair[0]))
            if since + self._hold_for <= now and not members.get(name)
        ]
        for name in late:
            del self._since[name]
        for name in late:
            self._behind[name] = self._lacking.keys() - {name, *self._since, *late}
            self._timed_out.add(name)

    def deadline(self) -> int | None:
        """When a gang without pods is to make place for another one."""
        if not self._any_pending:
            return None
        moments = (
            since + self._hold_for
            for name, since in self._since.items()
            if name not in self._timed_out and not self._state.gangs.members.get(name)
        )
        return min(moments, default=None)

    def verdicts(self) -> Verdicts:
        """Which gangs that lack pods are Inqueue as the books are now, and why the others wait."""
        lacking = self._now_lacking()
        found: Verdicts = {}
        refusals: dict[object, Refusal] = {}
        with self._state.speculating(asking=True):
            for claim in self._in_order(lacking):
                kind = claim.quota, claim.pods[0].quota, claim.charge(None), claim.preemptible
                refusal = refusals.get(kind) or self._refusal(claim, bool(found))
                if refusal is None:
                    self._count_as_used(claim)
                else:  # what is used only grows, so all of its kind are refused from here on
                    refusals[kind] = refusal
                if claim.gang in lacking:
                    found[str(claim.gang)] = refusal
        return found

    def _now_lacking(self) -> dict[str, Gang]:
        """The gangs that lack pods, by name."""
        known, names = self._state.gangs.known, {*self._lacking, *self._changed.unread()}
        return {name: known[name] for name in names if name in known and self._lacks_pods(name)}

    def _lacks_pods(self, name: str) -> bool:
        """Does no pod of the gang run, and do some of those that it needs not exist?"""
        state, gang = self._state, self._state.gangs.known[name]
        members = state.gangs.members.get(name, ())
        placed = any(state.ledger.entries[uid].stage >= Stage.ASSUMED for uid in members)
        done = sum(number for _, number in gang.done)
        lacks = len(members) + done < gang.min_member
        return lacks and not placed and done + gang.failed < gang.min_member

    def _in_order(self, lacking: dict[str, Gang]) -> Iterator[Claim]:
        """The claims of gangs that are to be let in: those that are Inqueue, then in turn.

        At last those that came behind the others. Gangs that have all of their pods and wait for
        room are Inqueue too.
        """
        claims = {name: self._claim(lacking[name]) for name in sorted(lacking)}
        complete = self._complete_gangs(lacking)
        inqueue = sorted(self._since.items(), key=lambda pair: (pair[1], pair[0]))
        first = [claims.pop(name) for name, _ in inqueue if name in claims]
        last = [claims.pop(name) for name in self._behind if name in claims]
        yield from first
        yield from self._state.waiting.in_turn([*complete.values(), *claims.values()])
        yield from last

    def _complete_gangs(self, lacking: Container[str]) -> dict[str, Claim]:
        """The claims of the cores of gangs that have all of their pods, and wait for room.

        A claim whose quota was deleted is made anew in the next cycle.
        """
        known, found = self._state.gangs.known, dict[str, Claim]()
        for claim in self._state.waiting.refused_claims(_WAITS_FOR_ROOM):
            name, quotas = claim.gang, {each.quota for each in claim.parts or (claim,)} - {None}
            stale = not quotas <= self._state.tree.quotas.keys()
            is_core = not (claim.missing or claim.surplus or stale)
            if name in known and name not in lacking and is_core:
                found.setdefault(str(name), claim)
        return found

    def _claim(self, gang: Gang) -> Claim:
        """The claim of all that a gang needs, as one pod that is not there, on whatever nodes."""
        namespace, _, name = gang.name.partition("/")
        pod = Pod(
            booking_name(gang),
            namespace,
            name,
            Shape(gang.min_resources),
            priority=gang.priority or 0,
            created=gang.created,
            quota=gang.quota,
            preemptible=gang.preemptible,
            gang=gang.name,
        )
        return self._state.claims.of((pod,), missing=gang.min_member)

    def _refusal(self, claim: Claim, counted: bool) -> Refusal | None:
        """Why the quotas would not let it start, on idle capacity either."""
        refusal = self._trial.fit.check_gates(claim)
        if refusal is None or refusal.reason not in OVER_SHARE:
            return refusal
        if self._trial.fit.check_gates(claim, idle=True) is None:
            return None
        return replace(refusal, message=refusal.message + _COUNTED) if counted else refusal

    def _count_as_used(self, claim: Claim) -> None:
        """Book what a gang asks for, until all are judged."""
        name = booking_name(self._state.gangs.known[str(claim.gang)])
        namespace = claim.pods[0].namespace
        booking = Booking(claim.quota, claim.charge(None), namespace=namespace, gang=claim.gang)
        self._state.ledger.assume(name, booking)
