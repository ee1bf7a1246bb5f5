"""What the brakes on evictions do, for people: events on the scheduler's Lease, metrics, a probe.

A pod that waits for an eviction is told so itself, by its condition and an event. Here the cluster
as a whole is: once when the brake begins to hold evictions back, and when they are paused and
resumed. Nothing here decides.
"""

from collections.abc import Callable, Iterable

from aliquot.engine import Decision, Engine, Reason, Wait
from aliquot.kube.execution.events import Events, InvolvedObject, Kind
from aliquot.kube.intake.eviction_pause import PauseSwitch
from aliquot.kube.observe.health import Health
from aliquot.kube.observe.metrics import Metrics

_CHECK = "evictions"
"""The line of /readyz?verbose; a pause makes no replica unready."""
_HELD_BACK = {Reason.EVICTION_BRAKE: "rate", Reason.EVICTIONS_PAUSED: "pause"}
"""The reasons of pods whose evictions are held back, and the label of the metric."""


class BrakeReport:
    """Follows the decisions of the leader, and the pause as every replica sees it."""

    def __init__(
        self,
        engine: Callable[[], Engine | None],
        switch: PauseSwitch,
        events: Events,
        metrics: Metrics,
        health: Health,
        about: InvolvedObject,
    ) -> None:
        self._engine = engine
        self._switch = switch
        self._events = events
        self._metrics = metrics
        self._health = health
        self._about = about
        self._braking = False
        """Was it said that the brake holds evictions back, and is it so since?"""
        self._paused: str | None = None
        """In which words it was last said that evictions are paused."""

    def decided(self, decisions: Iterable[Decision]) -> None:
        """A cycle is over: record what is new, on the object of the control plane."""
        engine = self._engine()
        if engine is None:
            return
        brake = engine.brake()
        held = [each.refusal for each in decisions if isinstance(each, Wait)]
        held = [each for each in held if each.reason in _HELD_BACK]
        for each in held:
            self._metrics.evictions_held_back.labels(_HELD_BACK[each.reason]).inc()
        self._metrics.evictions_last_minute.set(brake.made)
        self._say_paused(brake.paused)
        braked = next((each for each in held if each.reason is Reason.EVICTION_BRAKE), None)
        if braked is not None and not self._braking:
            self._braking = True
            self._record("Warning", "EvictionsBraked", braked.message)
        elif self._braking and not brake.made:
            self._braking = False  # a minute without evictions: no claim waits for the brake

    def _say_paused(self, paused: bool) -> None:
        pause = self._switch.pause
        words = pause.words if paused and pause is not None else None
        if words == self._paused:
            return
        self._paused = words
        if words is None:
            self._record("Normal", "EvictionsResumed", "pods are evicted again where needed")
        else:
            self._record("Warning", "EvictionsPaused", f"no pod is evicted: paused {words}")

    def _record(self, kind: Kind, reason: str, message: str) -> None:
        self._events.record(self._about, kind, reason, message)

    def refresh(self, now: int) -> None:
        """Set the gauge and the line of the probe; every replica does, leader or not."""
        pause = self._switch.active(now)
        self._metrics.evictions_paused.set(pause is not None)
        until = f" until {pause.until}" if pause is not None and pause.until else ""
        words = "not paused" if pause is None else f"paused {pause.words}{until}"
        self._health.note(_CHECK, words)
