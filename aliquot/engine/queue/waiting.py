"""The waiting claims: in which order they are tried, and when they are tried again.

Claims of one kind (see `Claim.kind`) are in one lane, the most important first. If its head is
refused, so are all behind it, and the lane as a whole is parked on what the refusal watches: usage
of a quota, or free capacity. It is woken when that has changed, and meanwhile blocks no other lane.
So a full cluster with very many pending pods costs a few lanes, not a pass over all pods.
"""

from collections.abc import Container, Iterable, Iterator

from aliquot.engine.books.repeat_guard import fingerprint
from aliquot.engine.model.reasons import Reason, Refusal, Watch
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import ClaimQueue, Path, Position, Turn, TurnQueue
from aliquot.engine.queue.lane import Lane


class Waiting:
    """All lanes: those to be tried in this cycle, and those parked until something changes."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[object, ...], Lane] = {}
        self._of: dict[str, tuple[Lane, Claim]] = {}
        """By the uid of each pending pod, its lane and claim."""
        self._queue = ClaimQueue()
        self._path: Path | None = None
        self._parked: dict[Watch, dict[Lane, None]] = {}
        self._put_off: dict[Lane, None] = {}
        self.changes = 0
        """How often claims were added, or removed without being started."""
        self.fingerprint = 0
        """The fingerprint of all pending pods; see `repeat_guard`."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._of

    def claim(self, uid: str) -> Claim:
        """The waiting claim that this pod belongs to."""
        return self._of[uid][1]

    def lane(self, uid: str) -> Lane | None:
        """The lane of this pod's claim, if it waits: claims of one lane are refused alike."""
        found = self._of.get(uid)
        return found[0] if found is not None else None

    def __len__(self) -> int:
        return len(self._of)

    def kinds(self) -> Iterator[tuple[Claim, int]]:
        """The most important claim of each kind, and how many there are of that kind."""
        for lane in self._lanes.values():
            head = lane.head
            if head is not None:
                yield head, len(lane.claims)

    def verdicts(self) -> Iterator[tuple[Claim, int, Reason | None]]:
        """The same, and why each kind was refused; None for those that are tried next."""
        for lane in self._lanes.values():
            head = lane.head
            if head is not None:
                reason = lane.refusal.reason if lane.refusal is not None else None
                yield head, len(lane.claims), reason

    def refused(self, reasons: Container[Reason]) -> ClaimQueue:
        """The lanes that are refused for one of these reasons, in a queue of their own."""
        queue = self._queue.empty_copy()
        for lane in self._lanes.values():
            if lane.refusal is not None and lane.refusal.reason in reasons:
                head = lane.head
                if head is not None:
                    queue.push(lane, head)
        return queue

    def refused_claims(self, reasons: Container[Reason]) -> Iterator[Claim]:
        """The claims that are refused for one of these reasons."""
        for lane in self._lanes.values():
            if lane.refusal is not None and lane.refusal.reason in reasons:
                yield from lane.claims.values()

    def in_turn(self, claims: Iterable[Claim]) -> Iterator[Claim]:
        """These claims in the order in which they would be tried, though they do not wait here.

        What is booked for one before the next is asked for counts in that order.
        """
        queue = self._queue.empty_copy()
        for claim in claims:
            queue.push(Lane(()), claim)
        while (first := queue.first()) is not None:
            yield first[1]
            queue.drop()

    def claims(self) -> Iterator[Claim]:
        """All waiting claims."""
        return (claim for uid, (_, claim) in self._of.items() if uid == claim.uid)

    def add(self, claim: Claim) -> None:
        """Add a claim, in place of any other of its pods; its lane is tried in the next cycle."""
        self.changes += 1
        for pod in claim.members:
            if pod.uid in self._of:
                self.remove(pod.uid)
        kind = claim.kind
        if self._path is not None:
            kind = (*self._path(claim), *kind)
        lane = self._lanes.get(kind)
        if lane is None:
            lane = self._lanes[kind] = Lane(kind)
        lane.add(claim)
        claim.fingerprint = fingerprint(*claim.members)
        self.fingerprint += claim.fingerprint
        for pod in claim.members:
            self._of[pod.uid] = (lane, claim)
        self.wake([lane])

    def remove(self, uid: str) -> None:
        """Remove the claim of a pod, if it has one: the pod is gone, or bound."""
        if uid in self._of:
            self.changes += 1
            lane, claim = self._of[uid]
            self._forget(lane, claim)
            if not lane.claims:
                self._close(lane)

    def take_turns(self, path: Path, turn: Turn) -> None:
        """Let groups take turns; to be called before any claim is added."""
        self._path = path
        self._queue = TurnQueue(path, turn, lambda lane, claim: lane.due is claim)

    def reorder(self) -> None:
        """Turns have changed: order the lanes of this cycle again."""
        self._queue.reorder()

    def position(self, claim: Claim) -> Position:
        """The claim's place in the order of trials, as it is now."""
        return self._queue.position(claim)

    def next(self) -> tuple[Lane, Claim] | None:
        """The claim to be tried next, and its lane."""
        while (first := self._queue.first()) is not None:
            lane, claim = first
            if lane.due is claim and lane.head is claim:
                return first
            self._queue.drop()
            if lane.due is claim:
                lane.due = None
                self.wake([lane])
        return None

    def start(self, lane: Lane, claim: Claim) -> None:
        """The claim that was next has started; the one behind it in its lane is due."""
        self._forget(lane, claim)
        lane.due = lane.head
        if lane.due is None:
            self._close(lane)
        else:
            self._queue.replace(lane, lane.due)

    def park(self, lane: Lane, refusal: Refusal) -> None:
        """Park a lane until what the refusal watches has changed."""
        lane.due = None
        lane.refusal = refusal
        for watch in refusal.watch:
            self._parked.setdefault(watch, {})[lane] = None

    def put_off(self, lane: Lane) -> None:
        """Leave a lane for the next cycle: this one has no effort left for it."""
        lane.due = None
        self._put_off[lane] = None

    def resume(self) -> None:
        """Let the lanes that were put off be tried in this cycle."""
        lanes, self._put_off = self._put_off, {}
        self.wake(lanes)

    @property
    def unfinished(self) -> bool:
        """Are lanes left that are due, or were put off?"""
        return bool(self._put_off) or self.next() is not None

    def untried(self) -> Iterator[Claim]:
        """The first claim of each lane that is due, or was put off."""
        for lane in self._lanes.values():
            head = lane.head
            if head is not None and (lane.due is not None or lane in self._put_off):
                yield head

    def parked(self, watch: Watch) -> list[Lane]:
        """The lanes that are parked on this."""
        return list(self._parked.get(watch, ()))

    def wake(self, lanes: Iterable[Lane]) -> None:
        """Put these lanes into the queue of this cycle, each with its head."""
        for lane in lanes:
            head = lane.head
            if head is not None and head is not lane.due:
                self._unpark(lane)
                lane.due = head
                self._queue.push(lane, head)

    def wake_claim(self, uid: str) -> None:
        """Let the claim of this pod be tried in this cycle."""
        self.wake([self._of[uid][0]])

    def _forget(self, lane: Lane, claim: Claim) -> None:
        lane.drop(claim)
        self.fingerprint -= claim.fingerprint
        for pod in claim.members if claim.others else claim.pods:
            del self._of[pod.uid]

    def _close(self, lane: Lane) -> None:
        self._unpark(lane)
        lane.due = None
        del self._lanes[lane.kind]

    def _unpark(self, lane: Lane) -> None:
        if lane.refusal is not None:
            for watch in lane.refusal.watch:
                self._parked[watch].pop(lane, None)
            lane.refusal = None
