"""The claims that wait: in which order they are tried, and when one is tried again.

Claims of one kind (see `Claim.kind`) stand in one lane, the most important first. If its head is
refused, so is everybody behind it, and the lane as a whole is parked on what the refusal watches:
room in a quota, or on the nodes. It comes back when that has changed, and meanwhile blocks nobody.
So a full cluster with very many waiting pods costs a few lanes, not a pass over all pods.
"""

import heapq
from bisect import insort
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from aliquot.engine.circles import mark
from aliquot.engine.claim import Claim
from aliquot.engine.order import Natural
from aliquot.engine.reasons import Reason, Refusal, Watch


class Lane:
    """Claims of one kind, in order of importance, and why they wait if they do."""

    def __init__(self, kind: tuple[object, ...]) -> None:
        self.kind = kind
        self.claims: dict[str, Claim] = {}
        self.refusal: Refusal | None = None
        self.due: Claim | None = None
        """The head with which the lane stands in the queue of this cycle, if it does."""
        self._told: tuple[object, ...] = ()
        self._untold: list[Claim] = []
        self._queue: list[Claim] = []
        self._gone = 0

    def add(self, claim: Claim) -> None:
        """Join the lane."""
        self.claims[claim.uid] = claim
        self._untold.append(claim)
        queue = self._queue
        if not queue or queue[-1].key < claim.key:
            queue.append(claim)
        else:
            insort(queue, claim, lo=self._gone, key=lambda each: each.key)

    def tell(self, refusal: Refusal) -> list[Claim]:
        """The claims that do not know this reason yet: newcomers, or all if it is a new one."""
        news = (refusal.reason, refusal.quota, refusal.resource)
        told = self._untold if news == self._told else list(self.claims.values())
        self._told, self._untold = news, []
        return [claim for claim in told if self.claims.get(claim.uid) is claim]

    @property
    def head(self) -> Claim | None:
        """The most important claim; claims that have left are skipped."""
        queue, claims = self._queue, self.claims
        while self._gone < len(queue):
            claim = queue[self._gone]
            if claims.get(claim.uid) is claim:
                return claim
            self._gone += 1
        queue.clear()
        self._gone = 0
        return None


Turn = tuple[Any, int, int, Natural, int, Lane, Claim]
"""A place in the queue: what the policy puts first, the claim's key, then as they came."""


class Waiting:
    """All lanes: those to be tried in this cycle, and those parked until something changes."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[object, ...], Lane] = {}
        self._of: dict[str, tuple[Lane, Claim]] = {}
        """By the uid of each pod that waits, its lane and claim."""
        self._due: list[Turn] = []
        self._parked: dict[Watch, dict[Lane, None]] = {}
        self._pushed = 0
        self.turn: Callable[[Claim], Any] | None = None
        """What comes before importance in the order of claims, if a policy says so."""
        self.changes = 0
        """How often claims have come, or gone without being started."""
        self.mark = 0
        """The mark of all pods that wait; see `circles`."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._of

    def claim(self, uid: str) -> Claim:
        """The waiting claim that this pod belongs to."""
        return self._of[uid][1]

    def __len__(self) -> int:
        return len(self._of)

    def kinds(self) -> Iterator[tuple[Claim, int]]:
        """One claim of each kind, and how many there are of it."""
        for lane in self._lanes.values():
            head = lane.head
            if head is not None:
                yield head, len(lane.claims)

    def refused(self, reasons: Container[Reason]) -> list[Lane]:
        """The lanes that wait for one of these reasons, the most important first."""
        heads = [
            (self._place(head), lane)
            for lane in self._lanes.values()
            if lane.refusal is not None and lane.refusal.reason in reasons
            for head in (lane.head,)
            if head is not None
        ]
        return [lane for _, lane in sorted(heads, key=lambda pair: pair[0])]

    def claims(self) -> Iterator[Claim]:
        """All waiting claims."""
        return (claim for uid, (_, claim) in self._of.items() if uid == claim.uid)

    def add(self, claim: Claim) -> None:
        """Let a claim wait; its lane is tried in the next cycle."""
        self.changes += 1
        for uid in claim.uids():
            self.remove(uid)
        kind = claim.kind
        lane = self._lanes.get(kind)
        if lane is None:
            lane = self._lanes[kind] = Lane(kind)
        lane.add(claim)
        self.mark += mark(*claim.pods)
        for uid in claim.uids():
            self._of[uid] = (lane, claim)
        self.wake([lane])

    def remove(self, uid: str) -> None:
        """Take a pod's claim out: it is no longer there, or was started by somebody else."""
        if uid in self._of:
            self.changes += 1
            lane, claim = self._of[uid]
            self._forget(lane, claim)
            if not lane.claims:
                self._close(lane)

    def line_up(self) -> None:
        """Put those who are due in line anew: a policy's turns have changed."""
        if self.turn is not None:
            due = [(lane, claim) for *_, lane, claim in self._due if lane.due is claim]
            self._due = [self._turn(lane, claim) for lane, claim in due]
            heapq.heapify(self._due)

    def next(self) -> tuple[Lane, Claim] | None:
        """The most important claim still to be tried, and its lane."""
        while self._due:
            turn, *_, lane, claim = self._due[0]
            if lane.due is claim:
                if lane.head is claim:
                    if self.turn is None or self.turn(claim) <= turn:
                        return lane, claim
                    heapq.heapreplace(self._due, self._turn(lane, claim))
                    continue  # others have got less since it was put in line
                lane.due = None
                self.wake([lane])
            heapq.heappop(self._due)
        return None

    def start(self, lane: Lane, claim: Claim) -> None:
        """The claim that was next has started; the one behind it is due in its turn."""
        self._forget(lane, claim)
        lane.due = lane.head
        if lane.due is None:
            self._close(lane)
        else:
            heapq.heapreplace(self._due, self._turn(lane, lane.due))

    def park(self, lane: Lane, refusal: Refusal) -> None:
        """Let a lane wait for what the refusal watches."""
        lane.due = None
        lane.refusal = refusal
        for watch in refusal.watch:
            self._parked.setdefault(watch, {})[lane] = None

    def parked(self, watch: Watch) -> list[Lane]:
        """The lanes that wait for this."""
        return list(self._parked.get(watch, ()))

    def wake(self, lanes: Iterable[Lane]) -> None:
        """Try these lanes in this cycle, each in the turn of its head."""
        for lane in lanes:
            head = lane.head
            if head is not None and head is not lane.due:
                self._unpark(lane)
                lane.due = head
                heapq.heappush(self._due, self._turn(lane, head))

    def _turn(self, lane: Lane, claim: Claim) -> Turn:
        """A place in the queue: the claim's key, laid flat because flat tuples compare faster."""
        self._pushed += 1
        return (*self._place(claim), self._pushed, lane, claim)

    def _place(self, claim: Claim) -> tuple[Any, int, int, Natural]:
        return (0 if self.turn is None else self.turn(claim), *claim.key)

    def _forget(self, lane: Lane, claim: Claim) -> None:
        del lane.claims[claim.uid]
        self.mark -= mark(*claim.pods)
        for uid in claim.uids():
            del self._of[uid]

    def _close(self, lane: Lane) -> None:
        self._unpark(lane)
        lane.due = None
        del self._lanes[lane.kind]

    def _unpark(self, lane: Lane) -> None:
        if lane.refusal is not None:
            for watch in lane.refusal.watch:
                del self._parked[watch][lane]
            lane.refusal = None
