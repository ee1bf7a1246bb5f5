"""What the brakes tell people: one event each, a counter, a gauge, a line of the probe."""

from typing import cast

from aliquot.engine import Engine, Event, EvictionKnobs, EvictionsPaused, Knobs, PodGone, PodSet
from aliquot.kube.control.brake_report import BrakeReport
from aliquot.kube.execution.events import Events, InvolvedObject
from aliquot.kube.intake.eviction_pause import ANNOTATION, PauseSwitch
from aliquot.kube.observe.health import Health
from aliquot.kube.observe.metrics import Metrics
from tests.build import values

SECOND = 10**9
ABOUT = InvolvedObject("coordination.k8s.io/v1", "Lease", "home", "scheduler")


class Told:
    """In place of events: keeps what is recorded."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def record(self, about: InvolvedObject, kind: str, reason: str, message: str) -> None:
        assert about == ABOUT
        self.reasons.append(reason)


class Replica:
    """An engine whose guarantees are lent, and what is said of its brake."""

    def __init__(self) -> None:
        self.engine = Engine("capacity", Knobs(eviction=EvictionKnobs(max_per_minute=1)))
        self.told, self.metrics, self.health = Told(), Metrics(), Health()
        self.switch = PauseSwitch("home", self.engine.apply)
        rest = (cast("Events", self.told), self.metrics, self.health, ABOUT)
        self.report = BrakeReport(lambda: self.engine, self.switch, *rest)
        events: tuple[Event, ...] = (
            values.node_set("n", 3),
            values.quota_set("owner", 3),
            values.quota_set("lent"),
            *(values.pod_set(f"l{number}", 1, "lent", node="n") for number in range(3)),
            *(values.pod_set(f"o{number}", 1, "owner") for number in range(3)),
        )
        for event in events:
            self.engine.apply(event)

    def decide(self, second: int) -> None:
        """A cycle; victims leave, and are not gone."""
        decisions = self.engine.cycle(second * SECOND)
        self.report.decided(decisions)
        self.report.refresh(second * SECOND)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)

    @property
    def line(self) -> str:
        (found,) = [each for each in self.health.ready() if each.name == "evictions"]
        assert found.ok
        return found.message


def test_the_brake_is_told_of_once_until_it_was_free_again() -> None:
    replica = Replica()
    for second in (1, 2, 3, 61, 62):
        replica.decide(second)
    assert replica.told.reasons == ["EvictionsBraked"]
    assert replica.value("aliquot_evictions_held_back_total", brake="rate") == 2
    assert replica.value("aliquot_evictions_last_minute") == 1
    assert replica.line == "not paused"
    for uid in ("o0", "o1", "o2", *replica.engine._state.leaving):
        replica.engine.apply(PodGone(uid))
    replica.decide(200)
    assert replica.value("aliquot_evictions_last_minute") == 0
    for number in (7, 8):
        replica.engine.apply(PodSet(values.pod(f"l{number}", 1, "lent", node="n")))
        replica.engine.apply(PodSet(values.pod(f"o{number}", 1, "owner")))
    replica.decide(201)
    replica.decide(202)
    assert replica.told.reasons == ["EvictionsBraked"] * 2


def test_a_pause_is_told_of_when_it_begins_and_ends() -> None:
    replica = Replica()
    value = '{"by":"alice","until":"1970-01-01T00:01:40Z"}'
    replica.switch.put("home", {"metadata": {"annotations": {ANNOTATION: value}}})
    assert replica.engine._brake.pause == EvictionsPaused("by alice", 100 * SECOND)
    replica.decide(1)
    replica.decide(2)
    assert replica.told.reasons == ["EvictionsPaused"]
    assert replica.value("aliquot_evictions_paused") == 1
    assert replica.value("aliquot_evictions_held_back_total", brake="pause") == 3
    assert replica.line == "paused by alice until 1970-01-01T00:01:40Z"
    replica.decide(100)
    assert "EvictionsResumed" in replica.told.reasons
    assert replica.value("aliquot_evictions_paused") == 0
    assert replica.line == "not paused"
