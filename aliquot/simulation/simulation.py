"""A simulation: a cluster in virtual time, driven by the engine.

At each moment, pods whose time is over end, then objects change. Then the engine's cycle runs and
its decisions are carried out at once, until it decides nothing more. Then time jumps to the next
moment at which anything can happen.

It ends on every input. Changes are as many as are given, and pods that end by themselves are as
many as there are, since their owners do not replace them. Between two of these, evictions are
limited, and so are moments at which the engine wants to look again and then decides nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from aliquot.dialects.core.times import seconds
from aliquot.dialects.policy import special_quotas
from aliquot.dialects.tensor_fusion.conditions import Conditions
from aliquot.engine import Bind, Engine, Event, Evict, Knobs, Reason, binds_and_evictions
from aliquot.errors import EndlessError
from aliquot.mirror.pod_list import PodList
from aliquot.mirror.store import Change
from aliquot.simulation.ages import Ages
from aliquot.simulation.storage import Storage
from aliquot.simulation.world import World
from aliquot.validation.inputs import Inputs

_MOST_EVICTIONS = 1_000
"""Evictions beyond this and twenty for each pod, while nothing else happens, are taken for an
endless loop; the engine's repeat guard ends one far earlier."""
_MOST_IDLE_MOMENTS = 64
"""Moments beyond this and four for each pod, at which the engine decides nothing, are the last: a
claim waits for the end of a hold, of a reservation and of its victims' `minRuntime`, each once."""


@dataclass(frozen=True, slots=True)
class Executed:
    """A decision that was carried out, and when."""

    at: int
    decision: Bind | Evict


class Simulation:
    """One simulation: call `run`, then read the world, the history and the engine."""

    def __init__(
        self,
        inputs: Inputs,
        policy: str,
        knobs: Knobs | None = None,
        make_engine: Callable[[str, Knobs | None], Engine] = Engine,
    ) -> None:
        self.engine = make_engine(policy, knobs)
        self.listeners: list[Callable[[Event], None]] = []
        """Called with each event once the engine has it."""
        ages, special = Ages(inputs.manifests(), inputs.moment), special_quotas(policy)
        knobs = knobs or Knobs()
        rules = (
            *(knobs.system_namespaces, knobs.eviction.max_grace),
            *(knobs.placement.default_constraints, knobs.placement.topology),
        )
        self._events = PodList(self.engine, self._tell)
        self.world = World(self._events.apply, inputs.cards, ages, special, *rules)
        self._storage = Storage(self.world)
        self.history: list[Executed] = []
        self.conditions = Conditions()
        self.moment = inputs.moment
        """When the objects of the input were read, as the world's clocks have it."""
        self.now = 0
        self.passed: Callable[[int], None] = lambda moment: None
        """Called with each moment, so that progress can be shown."""
        self._changes = list(reversed(inputs.changes))
        self._coming: Iterator[Change] = iter(())
        self._evictions = 0
        """How many, since an object changed or a pod ended by itself."""
        self._idle_moments = 0
        """How many, since anything happened."""

    def run(self, until: int | None = None) -> None:
        """Run up to and including `until`; without it, until nothing more can happen."""
        self.world.cron_jobs.once = until is None
        unchecked = until is not None
        while (moment := self._next_moment()) is not None and (until is None or moment <= until):
            self.passed(moment)
            happened = self._let_happen(moment)
            if until is not None and unchecked and not self._changes:
                self.world.cron_jobs.check_end(until)
                unchecked = False
            if self._decide(moment) or happened:
                self.now, self._idle_moments = moment, 0
                if self.world.mirror.gpu_quotas.sent or self.conditions.noted:
                    self.conditions.note(self.engine.gpu_quotas(), moment)
            else:
                self._idle_moments += 1
        if until is not None:
            self.now = until

    def _tell(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)

    def feed(self) -> None:
        """Play up to the last change of the input and let that happen; then nothing is decided.

        What is asked of this moment is asked of the cluster as the scheduler meets it.
        """
        last = self._changes[0].at if self._changes else 0
        while (moment := self._next_moment()) is not None and moment < last:
            self._let_happen(moment)
            self._decide(moment)
        if self._changes:
            self._let_happen(last)
        self.now = last

    def settle(self) -> bool:
        """Decide everything that can be decided at this moment; was there anything?"""
        return self._decide(self.now)

    def expect_changes(self, coming: Iterator[Change]) -> None:
        """Play on with these changes, in order of time, and without those of the input.

        A question knows nothing of what the input is yet to change. They are taken one by one, as
        time goes on.
        """
        self._changes.clear()
        self._coming = coming

    def play_until_started(self, uids: Iterable[str], most: int) -> dict[str, int]:
        """Play on until these pods have started, through at most so many moments; when each did.

        One that is gone before it started is left out, and so is one that never starts.
        """
        self.settle()
        waiting, started = dict.fromkeys(uids), dict[str, int]()
        for _ in range(most):
            for uid in [*waiting]:
                record = self.world.mirror.records[uid]
                if record.phase != "Pending":
                    del waiting[uid]
                    if record.phase == "Running":
                        started[uid] = self.now
            moment = self._next_moment() if waiting else None
            if moment is None:
                break
            happened = self._let_happen(moment)
            self.now = moment
            self._idle_moments = 0 if self._decide(moment) or happened else self._idle_moments + 1
        return started

    def settle_within(self, most: int) -> bool:
        """Decide what can be decided now in so many bounded cycles; was there anything?"""
        decided = False
        for _ in range(most):
            done = self._cycle(self.now, bounded=True)
            decided |= done
            if not done and not self.engine.unfinished:
                break
        return decided

    def settle_for(self, uid: str, most: int) -> None:
        """Decide for a pod, and stop once it runs: with bounded cycles, at most so many of them.

        Where one cycle is enough for all claims, everything is decided, as in `settle`.
        """
        while True:
            done = self._cycle(self.now, bounded=True)
            if self.engine.unfinished:
                most -= 1
                if not most or self.engine.waiting_pod(uid) is None:
                    return
            elif not done:
                return

    def _next_moment(self) -> int | None:
        if not self._changes:
            self._changes += [each for each in (next(self._coming, None),) if each is not None]
        changes = self._changes[-1].at if self._changes else None
        expected = (changes, self.world.next_end(), self.world.cron_jobs.next())
        moments = [moment for moment in expected if moment is not None]
        if self._idle_moments <= _MOST_IDLE_MOMENTS + 4 * self.engine.pod_count():
            deadline = self.engine.next_deadline(at_rest=not moments)
            moments += [] if deadline is None else [deadline]
        return min(moments, default=None)

    def _let_happen(self, moment: int) -> bool:
        """End pods that are due and change objects; did anything happen?"""
        with self._events.gathering():
            return self._change_world(moment)

    def _change_world(self, moment: int) -> bool:
        ended = self.world.end_due(moment)
        changed = False
        while self._changes and self._changes[-1].at <= moment:
            self.world.change(self._changes.pop())
            changed = True
        for change in self.world.cron_jobs.changes(moment):
            self.world.change(change)
            changed = True
        if changed or not all(record.evicted for record in ended):
            self._evictions = 0
        return changed or bool(ended)

    def _decide(self, now: int) -> bool:
        """Run cycles and carry out decisions until there are none; were there any?"""
        decided = False
        while self._cycle(now):
            decided = True
        return decided

    def _cycle(self, now: int, bounded: bool = False) -> bool:
        """Run one cycle and carry out its decisions; were there any?"""
        self.world.mirror.refresh_budgets()
        self._storage.follow()
        done = list(binds_and_evictions(self.engine.cycle(now, bounded)))
        for decision in done:
            self.history.append(Executed(now, decision))
            if isinstance(decision, Bind):
                self._storage.bind(decision)
                self.world.start(decision.pod.uid, decision.node, decision.devices, now)
            else:
                self._evict(decision, now)
        return bool(done)

    def _evict(self, decision: Evict, now: int) -> None:
        """Evict a pod; if its node is gone, no kubelet lets it terminate."""
        self.world.evict(decision.pod.uid, now, at_once=decision.reason is Reason.NODE_LOST)
        self._evictions += 1
        if self._evictions > _MOST_EVICTIONS + 20 * self.engine.pod_count():
            raise EndlessError(_endless(self.history[-2:], now))


def _endless(last: list[Executed], now: int) -> str:
    """The message that pods evict each other without end, with the last eviction."""
    pairs = (done.decision for done in last)
    names = [
        f"{evict.claimant.path} evicts {evict.pod.path}"
        for evict in pairs
        if isinstance(evict, Evict) and evict.claimant is not None
    ]
    example = f", such as {names[-1]}" if names else ""
    return (
        f"at {seconds(now)}s pods keep evicting each other without end{example}: "
        "the guarantees of their quotas cannot all be kept at once"
    )
