"""The feed of a shadow: its engine follows the cluster, whatever the shadow has decided.

A decision of the shadow is never carried out. It stays in the books for a while, so that the next
decisions count it, as they would; then it is taken back, and the pod that it was for is kept from
the engine for a while, longer each time, as after a refused binding. So a pod that the present
scheduler leaves waiting costs a decision in minutes, and holds nothing in between.

A present scheduler may bind a pod before the shadow has decided, or has seen that room came free.
So the fact that a waiting pod is bound is kept back until the next cycle is over: every pod gets an
opinion that was formed without it.
"""

from collections.abc import Callable, Iterable

from aliquot.engine import (
    SECOND,
    Bind,
    Decision,
    Engine,
    Event,
    Evict,
    Nominate,
    Pod,
    PodGone,
    PodSet,
    Reason,
)
from aliquot.kube.exchange.write_results import BindRefused
from aliquot.kube.intake.feed import Feed

PATIENCE = 10 * SECOND
"""How long a decision stays in the books: far longer than a scheduler takes to bind a pod."""
_LATEST = 5 * SECOND
"""How long a fact waits for an opinion: longer than the longest cycle."""
_PROBLEM = "the present scheduler has not done so"


class ShadowFeed(Feed):
    """Applies what the cluster shows; takes back what the shadow decided and was not done."""

    def __init__(
        self,
        wake: Callable[[], None],
        clock: Callable[[], int],
        has_opinion: Callable[[str], bool],
        started: Callable[[Pod], None],
        gone: Callable[[str], None],
    ) -> None:
        super().__init__(wake)
        self._clock = clock
        self._has_opinion = has_opinion
        self._started = started
        self._gone = gone
        self._facts: dict[str, tuple[PodSet, int]] = {}
        """Bound pods that wait in the engine, as the cluster shows them, and since when, by uid."""
        self._assumed: dict[str, tuple[Pod, int]] = {}
        """Pods that the shadow would bind, or evict others for, and since when, by uid."""
        self._victims: dict[str, tuple[str, int]] = {}
        """Pods that the shadow would evict: for which pod, and since when, by uid."""

    def disconnect(self) -> None:
        """Drop the engine, and all that was decided by it."""
        super().disconnect()
        self._facts.clear()
        self._assumed.clear()
        self._victims.clear()

    @property
    def due(self) -> int | None:
        """When a decision is taken back, or at once where a fact waits for a cycle."""
        if self._facts:
            return self._clock()
        first = [next(iter(each.values()))[1] for each in (self._assumed, self._victims) if each]
        return min(first) + PATIENCE if first else None

    def decided(self, decisions: Iterable[Decision], now: int) -> None:
        """A cycle is over: remember what must be taken back, and apply the facts that waited."""
        for each in decisions:
            match each:
                case Bind(pod):
                    self._assumed.setdefault(pod.uid, (pod, now))
                case Nominate(pods, _, victims) if victims:
                    for pod in pods:
                        self._assumed.setdefault(pod.uid, (pod, now))
                    for victim in victims:
                        self._victims.setdefault(victim.pod.uid, (pods[0].uid, now))
                case Evict(pod, _, reason) if reason is not Reason.NODE_LOST:
                    self._victims.setdefault(pod.uid, ("", now))
        self.note_lost(decisions)
        for uid, (fact, since) in list(self._facts.items()):
            if self._has_opinion(uid) or now - since >= _LATEST:
                del self._facts[uid]
                self._apply_late(fact)

    def take_back(self, now: int) -> None:
        """Take back the decisions that have been in the books for long enough."""
        for uid, (pod, since) in list(self._assumed.items()):
            if now - since < PATIENCE:
                break
            del self._assumed[uid]
            self.report(BindRefused(pod, _PROBLEM))
        late = {uid for uid, (_, since) in self._victims.items() if now - since >= PATIENCE}
        self._restore(late)

    def _apply_late(self, fact: PodSet) -> None:
        if self._engine is not None and not self.failed:
            try:
                self._apply_bound(self._engine, fact)
            except Exception:
                self._fail()

    def _send(self, engine: Engine, event: Event) -> None:
        if isinstance(event, PodSet) and event.pod.node is not None:
            uid = event.pod.uid
            if engine.waiting_pod(uid) is not None:
                self._facts[uid] = event, self._facts.get(uid, (event, self._clock()))[1]
            else:
                self._apply_bound(engine, event)
            return
        super()._send(engine, event)
        if isinstance(event, PodGone):
            self._facts.pop(event.uid, None)
            self._victims.pop(event.uid, None)
            self._settle_claim(event.uid)
            self._gone(event.uid)

    def _apply_bound(self, engine: Engine, event: PodSet) -> None:
        """A pod runs in the cluster: compare, and book it where it is."""
        self._started(event.pod)
        super()._send(engine, event)
        self._settle_claim(event.pod.uid)

    def _settle_claim(self, uid: str) -> None:
        """A pod is started or gone: nothing is assumed for it, no pod makes way for it."""
        if self._assumed.pop(uid, None) is not None:
            self._restore({victim for victim, (whom, _) in self._victims.items() if whom == uid})

    def _restore(self, victims: set[str]) -> None:
        """Let pods run on in the books that were not evicted in the cluster."""
        for uid in sorted(victims):
            del self._victims[uid]
            record = self._records.get(uid)
            if self._engine is not None and record is not None and not record.pod.terminating:
                self._keep(self._engine, uid)
