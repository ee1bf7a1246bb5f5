"""The moment that a question is asked of: the cluster as the scheduler meets it.

What the objects say is in the engine's books, and nothing is decided yet: pods run or wait as they
are. Of manifests with a timeline or with arrivals it is the moment of the last of them, with what
was decided before carried out. A change is tried on a copy of it (`copies`).

On a large cluster the scheduler's next cycle is over as well: what runs there is settled, as a
rule, and each question would otherwise decide everything once more.
"""

from functools import cached_property

from aliquot.dialects.core.findings import Finding
from aliquot.engine import Engine, Evict, EvictionsPaused
from aliquot.kube.intake.eviction_pause import pause_of
from aliquot.mirror.pod_record import PodRecord
from aliquot.mirror.store import Change
from aliquot.questions.sources.source import Source
from aliquot.validation import history

_KINDS_WITH_RULES = {"ElasticQuota", "CompositeElasticQuota", "Queue", "GPUResourceQuota"}
MANY_PODS = 2_000
"""Up to here, a copy of the moment decides everything anew in some ten milliseconds."""

_CYCLES = 3
"""Bounded cycles of a large cluster that a question waits for: each takes some 20 ms."""


class Moment:
    """A cluster at one moment, before the scheduler decides anything."""

    def __init__(self, source: Source, settled: bool = True) -> None:
        self.source = source
        self.inputs = source.inputs()
        self.simulation = source.simulation(self.inputs)
        self.simulation.feed()
        pause = _pause(source)
        if pause is not None:
            self.engine.apply(pause)
        self.is_large = self.engine.pod_count() > MANY_PODS
        """Is it too large to decide everything for each change that is tried?"""
        if self.is_large and settled:
            self.settle()

    def settle(self) -> bool:
        """Decide as the scheduler does next; was there anything?

        On a large cluster its cycles are bounded: one that has much to decide would keep a question
        waiting for minutes, while the pod that is asked about can be judged at once.
        """
        if self.is_large:
            return self.simulation.settle_within(_CYCLES)
        return self.simulation.settle()

    @property
    def engine(self) -> Engine:
        """The engine with the books of this moment."""
        return self.simulation.engine

    @property
    def policy(self) -> str:
        """The policy in force."""
        return self.simulation.engine.policy

    def pod(self, path: str) -> PodRecord | None:
        """The pod of this path, if there is or was one."""
        return self.simulation.world.record_of(path)

    @cached_property
    def _state(self) -> history.State:
        mirror = self.simulation.world.mirror
        return history.initial_state(
            mirror.store.objects, mirror.quota_index, self.inputs.cards, self.inputs.special
        )

    def prepare(self) -> None:
        """Work out once what every copy needs."""
        _ = self._wrong

    @cached_property
    def _wrong(self) -> set[tuple[str, str, str]]:
        """What is wrong with the quotas as they are: no change is to blame for that."""
        objects = self.simulation.world.mirror.store.objects.values()
        quotas = tuple(each for each in objects if each.kind in _KINDS_WITH_RULES)
        return {_key(each) for each in self._errors(Change(self.simulation.now, quotas))}

    def refuses(self, change: Change) -> bool:
        """Would a server refuse the change? Asked in a copy."""
        return self.first_error(change) is not None

    def first_error(self, change: Change) -> Finding | None:
        """What a server would refuse the change for, if it would; asked in a copy.

        Only what the change makes wrong counts.
        """
        found = (each for each in self._errors(change) if _key(each) not in self._wrong)
        return next(found, None)

    def _errors(self, change: Change) -> list[Finding]:
        self._state.apply_change(change)
        found = history.check_state(self._state)
        return [each for each in found if each.severity == "error"]

    def evictions(self, since: int = 0) -> list[Evict]:
        """The evictions that were carried out, without the first `since` decisions."""
        done = self.simulation.history[since:]
        return [each.decision for each in done if isinstance(each.decision, Evict)]


def _pause(source: Source) -> EvictionsPaused | None:
    """The pause of evictions that holds on a cluster; virtual time begins when it was read."""
    for each in source.documents if source.taken is not None else ():
        if each.body.get("kind") == "Namespace" and each.body["metadata"]["name"] == source.home:
            found, taken = pause_of(each.body), source.taken
            if found is not None and taken is not None and not found.is_over(taken):
                ends = found.ends_at
                return EvictionsPaused(found.words, None if ends is None else ends - taken)
    return None


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.object, finding.field, finding.problem
