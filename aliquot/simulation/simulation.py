"""A simulation: a cluster in virtual time, driven by the engine.

At each moment, pods whose time is over end, then objects change. Then the engine's cycle runs and
its decisions are carried out at once, until it decides nothing more. Then time jumps to the next
moment at which anything can happen.
"""

from dataclasses import dataclass

from aliquot.dialects.core.times import seconds, timestamp
from aliquot.dialects.policy import special_quotas
from aliquot.dialects.tensor_fusion.conditions import Conditions
from aliquot.engine import Bind, Engine, Evict, Knobs, binds_and_evictions
from aliquot.errors import EndlessError
from aliquot.simulation.world import World
from aliquot.validation.inputs import Inputs

_MOST_EVICTIONS = 1_000
"""Evictions at one moment beyond this and twenty for each pod are taken for an endless loop; the
engine's repeat guard ends one far earlier."""


@dataclass(frozen=True, slots=True)
class Executed:
    """A decision that was carried out, and when."""

    at: int
    decision: Bind | Evict


class Simulation:
    """One simulation: call `run`, then read the world, the history and the engine."""

    def __init__(self, inputs: Inputs, policy: str, knobs: Knobs | None = None) -> None:
        self.engine = Engine(policy, knobs)
        special = special_quotas(policy)
        self.world = World(self.engine.apply, inputs.cards, _timestamps(inputs), special)
        self.history: list[Executed] = []
        self.conditions = Conditions()
        self.now = 0
        self._changes = list(reversed(inputs.changes))

    def run(self, until: int | None = None) -> None:
        """Run up to and including `until`; without it, until nothing more can happen."""
        while (moment := self._next_moment()) is not None and (until is None or moment <= until):
            happened = self.world.end_due(moment)
            while self._changes and self._changes[-1].at <= moment:
                self.world.change(self._changes.pop())
                happened = True
            if self._decide(moment) or happened:
                self.now = moment
                if self.world.mirror.gpu_quotas.sent or self.conditions.noted:
                    self.conditions.note(self.engine.gpu_quotas(), moment)
        if until is not None:
            self.now = until

    def _next_moment(self) -> int | None:
        moments = [self._changes[-1].at if self._changes else None]
        moments += [self.world.next_end(), self.engine.next_deadline()]
        return min((moment for moment in moments if moment is not None), default=None)

    def _decide(self, now: int) -> bool:
        """Run cycles and carry out decisions until there are none; were there any?"""
        decided = False
        evictions = 0
        while True:
            self.world.mirror.refresh_budgets()
            done = list(binds_and_evictions(self.engine.cycle(now)))
            if not done:
                return decided
            decided = True
            for decision in done:
                self.history.append(Executed(now, decision))
                if isinstance(decision, Bind):
                    self.world.start(decision.pod.uid, decision.node, decision.devices, now)
                else:
                    evictions += 1
                    self.world.end(decision.pod.uid, "Evicted", now)
            if evictions > _MOST_EVICTIONS + 20 * self.engine.pod_count():
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


def _timestamps(inputs: Inputs) -> list[int]:
    found = (
        timestamp(each.metadata.creation_timestamp, each.place, "metadata.creationTimestamp")
        for each in inputs.manifests()
    )
    return [moment for moment in found if moment is not None]
