"""What the shadow would have done with each pod, beside what the present scheduler did with it.

A pod that waits has an opinion: the shadow would start it, would evict others for it, or would let
it wait. The first opinion to start or to evict stays: with the shadow as scheduler, that is when it
would have happened. Once the pod is started, or gone, the two are compared and the opinion is
dropped: what is kept does not grow with time.
"""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from aliquot.engine import SECOND, Bind, Decision, Evict, Nominate, Pod, Reason, Wait

_MOST_LEFT = 10_000
"""Pods remembered that have left: those of minutes, while the pod that takes their place starts."""
_MOST_KEPT = 1000
"""Differences and evictions that a report lists, the last ones: a page that a person may read."""


class Verdict(StrEnum):
    """What came of the comparison for one pod."""

    AGREES = "agrees"
    OTHER_NODE = "otherNode"
    WOULD_WAIT = "wouldWait"
    WOULD_EVICT = "wouldEvict"
    NEVER_STARTED = "neverStarted"
    """The shadow would have started it; it was deleted before the present scheduler did."""


class Word(StrEnum):
    """What the shadow would do with a pod that waits."""

    START = "wouldStart"
    EVICT = "wouldEvict"
    WAIT = "wouldWait"


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the shadow would do with a pod, and since when."""

    pod: Pod
    word: Word
    at: int
    node: str | None = None
    reason: str = ""
    message: str = ""
    victims: tuple[Evict, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A pod that the shadow would have treated otherwise; times in nanoseconds."""

    at: int
    verdict: Verdict
    opinion: Opinion
    node: str | None
    """Where the present scheduler has started it."""

    @property
    def earlier(self) -> int:
        """How much earlier the shadow would have started it, in nanoseconds; 0: not earlier."""
        return 0 if self.opinion.word is Word.WAIT else max(self.at - self.opinion.at, 0)


@dataclass(slots=True)
class Tally:
    """The figures of all comparisons so far."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    waits: Counter[str] = field(default_factory=Counter)
    """Of the pods that the shadow would have let wait, the reasons."""
    earlier: int = 0
    """Pods that the shadow would have started at least a second earlier."""
    earlier_total: int = 0
    earlier_most: int = 0
    evictions: Counter[str] = field(default_factory=Counter)
    """Pods that the shadow would have evicted, by reason."""
    evicted: int = 0
    """Pods that were evicted in the cluster."""


class Comparison:
    """The opinions about pods that wait, and what came of those before."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.opinions: dict[str, Opinion] = {}
        """By the uid of each pod that waits."""
        self.differences: deque[Difference] = deque(maxlen=_MOST_KEPT)
        self.evictions: deque[tuple[int, Evict]] = deque(maxlen=_MOST_KEPT)
        self._evicted: set[str] = set()
        """The uids of pods that leave because they were evicted in the cluster."""
        self._left: dict[str, None] = {}
        """The uids of the last pods that were gone, or leave: the cluster may have evicted them."""
        self._would_evict: dict[str, None] = {}
        """The uids of running pods whose eviction is counted, while its claimant waits."""

    def decided(self, decisions: Iterable[Decision], now: int) -> None:
        """The shadow has decided this."""
        for each in decisions:
            match each:
                case Bind(pod, node):
                    self._form(Opinion(pod, Word.START, now, node))
                case Nominate(pods, nodes, victims):
                    self._note_evictions(victims, now)
                    for pod, node in zip(pods, nodes, strict=True):
                        if not victims:  # it starts as soon as those are gone that leave already
                            self._form(Opinion(pod, Word.START, now, node))
                            continue
                        why, told = victims[0].reason.value, victims[0].message
                        self._form(Opinion(pod, Word.EVICT, now, node, why, told, victims))
                case Wait(pod, refusal):
                    words = refusal.message
                    self._form(Opinion(pod, Word.WAIT, now, None, refusal.reason.value, words))
                case Evict() if each.reason is not Reason.NODE_LOST:
                    self._note_evictions((each,), now)

    def _form(self, opinion: Opinion) -> None:
        uid = opinion.pod.uid
        known = self.opinions.get(uid)
        if known is None or known.word is Word.WAIT:
            self.opinions[uid] = opinion

    def _note_evictions(self, victims: Iterable[Evict], now: int) -> None:
        """Count the eviction of a pod once, however often it is decided anew."""
        for each in victims:
            if each.pod.uid not in self._would_evict:
                self._would_evict[each.pod.uid] = None
                self.tally.evictions[each.reason.value] += 1
                self.evictions.append((now, each))

    def started(self, pod: Pod, now: int) -> Difference | None:
        """The present scheduler has started a pod; None if the shadow had no opinion about it."""
        opinion = self.opinions.pop(pod.uid, None)
        if opinion is None:
            return None
        verdict = self._verdict(opinion, pod.node)
        self._forget_victims(opinion)
        found = Difference(now, verdict, opinion, pod.node)
        self._count(found)
        if verdict is Verdict.WOULD_WAIT:
            self.tally.waits[opinion.reason] += 1
        if found.earlier >= SECOND:
            self.tally.earlier += 1
            self.tally.earlier_total += found.earlier
            self.tally.earlier_most = max(self.tally.earlier_most, found.earlier)
        return found

    def gone(self, uid: str, now: int) -> None:
        """A pod has ended, or was deleted."""
        self._evicted.discard(uid)
        if uid in self._would_evict:
            del self._would_evict[uid]
            self._note_left(uid)
        opinion = self.opinions.pop(uid, None)
        if opinion is not None:
            self._forget_victims(opinion)
        if opinion is not None and opinion.word is not Word.WAIT:
            self._count(Difference(now, Verdict.NEVER_STARTED, opinion, None))

    def _forget_victims(self, opinion: Opinion) -> None:
        """The claimant is settled: if its victims run on, they may be evicted for another."""
        for victim in opinion.victims:
            self._would_evict.pop(victim.pod.uid, None)

    def evicted(self, uid: str) -> None:
        """A pod leaves because it was evicted in the cluster: by its scheduler, or by another."""
        if uid not in self._evicted:
            self._evicted.add(uid)
            self.tally.evicted += 1
            self._note_left(uid)

    def _note_left(self, uid: str) -> None:
        self._left[uid] = None
        if len(self._left) > _MOST_LEFT:
            del self._left[next(iter(self._left))]

    def _count(self, found: Difference) -> None:
        self.tally.verdicts[found.verdict] += 1
        if found.verdict is not Verdict.AGREES or found.earlier >= SECOND:
            self.differences.append(found)

    def _verdict(self, opinion: Opinion, node: str | None) -> Verdict:
        """Where the same pods were evicted for it in the cluster, both have done the same."""
        if opinion.word is Word.WAIT:
            return Verdict.WOULD_WAIT
        if not all(victim.pod.uid in self._left for victim in opinion.victims):
            return Verdict.WOULD_EVICT
        return Verdict.AGREES if opinion.node == node else Verdict.OTHER_NODE
