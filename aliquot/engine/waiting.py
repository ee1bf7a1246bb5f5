"""The claims that wait: in which order they are tried, and when one is tried again.

Claims of one kind (see `Claim.kind`) stand in one lane, the most important first. If its head is
refused, so is everybody behind it, and the lane as a whole is parked on what the refusal watches:
room in a quota, or on the nodes. It comes back when that has changed, and meanwhile blocks nobody.
So a full cluster with very many waiting pods costs a few lanes, not a pass over all pods.
"""

import heapq
from collections.abc import Iterable, Iterator

from aliquot.engine.claim import Claim
from aliquot.engine.order import Key
from aliquot.engine.reasons import Refusal, Watch


class Lane:
    """Claims of one kind, in order of importance, and why they wait if they do."""

    def __init__(self, kind: tuple[object, ...]) -> None:
        self.kind = kind
        self.claims: dict[str, Claim] = {}
        self.refusal: Refusal | None = None
        self.due: Key | None = None
        """The head with which the lane stands in the queue of this cycle, if it does."""
        self._told: tuple[object, ...] = ()
        self._untold: list[Claim] = []
        self._heap: list[tuple[Key, str]] = []

    def add(self, claim: Claim) -> None:
        """Join the lane."""
        self.claims[claim.uid] = claim
        heapq.heappush(self._heap, (claim.key, claim.uid))
        self._untold.append(claim)

    def tell(self, refusal: Refusal) -> list[Claim]:
        """The claims that do not know this reason yet: newcomers, or all if it is a new one."""
        news = (refusal.reason, refusal.quota, refusal.resource)
        told = self._untold if news == self._told else list(self.claims.values())
        self._told, self._untold = news, []
        return [claim for claim in told if claim.uid in self.claims]

    @property
    def head(self) -> Claim | None:
        """The most important claim; claims that have left are skipped."""
        while self._heap:
            key, uid = self._heap[0]
            claim = self.claims.get(uid)
            if claim is not None and claim.key is key:
                return claim
            heapq.heappop(self._heap)
        return None


class Waiting:
    """All lanes: those to be tried in this cycle, and those parked until something changes."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[object, ...], Lane] = {}
        self._of: dict[str, Lane] = {}
        self._due: list[tuple[Key, int, Lane]] = []
        self._parked: dict[Watch, dict[Lane, None]] = {}
        self._pushed = 0

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, uid: str) -> bool:
        return uid in self._of

    def claim(self, uid: str) -> Claim:
        """The waiting claim of this uid."""
        return self._of[uid].claims[uid]

    def claims(self) -> Iterator[Claim]:
        """All waiting claims."""
        return (lane.claims[uid] for uid, lane in self._of.items())

    def add(self, claim: Claim) -> None:
        """Let a claim wait; its lane is tried in the next cycle."""
        self.remove(claim.uid)
        kind = claim.kind
        lane = self._lanes.get(kind)
        if lane is None:
            lane = self._lanes[kind] = Lane(kind)
        lane.add(claim)
        self._of[claim.uid] = lane
        self.wake([lane])

    def remove(self, uid: str) -> Claim | None:
        """Take a claim out: it starts, or is no longer there."""
        lane = self._of.pop(uid, None)
        if lane is None:
            return None
        claim = lane.claims.pop(uid)
        if not lane.claims:
            self._unpark(lane)
            del self._lanes[lane.kind]
        return claim

    def next(self) -> tuple[Lane, Claim] | None:
        """The most important claim still to be tried, and its lane."""
        while self._due:
            key, _, lane = self._due[0]
            if lane.due is key:
                head = lane.head
                if head is not None and head.key is key:
                    return lane, head
                lane.due = None
                self.wake([lane])
            heapq.heappop(self._due)
        return None

    def start(self, claim: Claim) -> None:
        """The head of the lane to be tried next has started; the one behind it is due."""
        lane = self._of.pop(claim.uid)
        del lane.claims[claim.uid]
        head = lane.head
        if head is None:
            del self._lanes[lane.kind]
            lane.due = None
        else:
            lane.due = head.key
            self._pushed += 1
            heapq.heapreplace(self._due, (head.key, self._pushed, lane))

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
            if head is not None and head.key is not lane.due:
                self._unpark(lane)
                lane.due = head.key
                self._pushed += 1
                heapq.heappush(self._due, (head.key, self._pushed, lane))

    def _unpark(self, lane: Lane) -> None:
        if lane.refusal is not None:
            for watch in lane.refusal.watch:
                del self._parked[watch][lane]
            lane.refusal = None
