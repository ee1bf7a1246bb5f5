"""Long traces cost what they are long, and one that is too long is refused at once."""

from collections import Counter
from typing import Any

import pytest

import aliquot
from aliquot.dialects import daemon_sets
from aliquot.dialects.core import nodes
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.simulation import cron_jobs
from aliquot.simulation.world import World
from aliquot.validation import capacity
from tests.build.manifests import job, node, timeline, workload

NODE = node(cpu=64)


def every_minute(name: str = "often", **spec: Any) -> Body:
    """A CronJob that is due every minute; its Jobs run for half of one."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {
            "name": name,
            "namespace": "a",
            "annotations": {"sim.aliquot.dev/duration": "30s"},
        },
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"spec": job(f"a/{name}")["spec"]},
            **spec,
        },
    }


def gone(at: str) -> Body:
    """The CronJob is deleted then."""
    return timeline({"at": at, "delete": [{"kind": "CronJob", "namespace": "a", "name": "often"}]})


def test_a_schedule_that_is_due_too_often_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(World, "start", None)  # nothing is simulated
    wanted = "about 5,256,000 times until 3650d.* takes 100,000: use a shorter --until"
    with pytest.raises(InputError, match=wanted):
        aliquot.simulate([NODE, every_minute()], until="3650d")


def test_schedules_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cron_jobs, "_MOST_DUE", 100)
    both = [NODE, every_minute(), every_minute("rarely", schedule="0 * * * *")]
    aliquot.simulate(both, until="98m")
    with pytest.raises(InputError, match="CronJobs were due 100 times by 100m"):
        aliquot.simulate(both, until="3h")
    with pytest.raises(InputError, match=r"a/often.*CronJobs are due about 1,464 times until 1d"):
        aliquot.simulate(both, until="1d")


def test_a_schedule_that_ends_early_may_be_simulated_for_long() -> None:
    result = aliquot.simulate([NODE, every_minute(), gone("3m30s")], until="3650d")
    assert [each["at"] for each in result["bindings"]] == [60, 120, 180]
    suspended = every_minute(suspend=True)
    assert aliquot.simulate([NODE, suspended], until="3650d")["bindings"] == []


def test_a_schedule_that_ends_too_late_is_refused_in_the_middle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cron_jobs, "_MOST_DUE", 5)
    with pytest.raises(InputError, match="CronJobs were due 5 times by 6m"):
        aliquot.simulate([NODE, every_minute(), gone("10m")], until="3650d")


def test_a_job_costs_the_same_however_many_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    monkeypatch.setattr(World, "_is_active", _counting(World._is_active, calls))
    result = aliquot.simulate([NODE, every_minute()], until="1h")
    assert len(result["bindings"]) == 60
    assert sum(calls.values()) <= 60


def test_a_job_that_may_not_run_beside_another_waits_for_it() -> None:
    slow = every_minute(concurrencyPolicy="Forbid")
    slow["metadata"]["annotations"]["sim.aliquot.dev/duration"] = "90s"
    result = aliquot.simulate([NODE, slow], until="8m")
    assert [each["at"] for each in result["bindings"]] == [60, 150, 240, 330, 420]


def test_a_node_is_read_as_often_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    for module, name in ((nodes, "node"), (daemon_sets, "read_node"), (capacity, "node")):
        monkeypatch.setattr(module, name, _counting(getattr(module, name), calls))
    for number in (10, 40):
        calls.clear()
        steps = [{"at": f"{at}s", "apply": [node(f"n{at}", cpu=8)]} for at in range(number)]
        daemons = [workload("DaemonSet", f"a/{name}", {"cpu": 1}) for name in "de"]
        result = aliquot.simulate([*daemons, timeline(*steps)])
        assert len(result["bindings"]) == 2 * number
        assert sum(calls.values()) <= 6 * number


def _counting(function: Any, calls: Counter[str]) -> Any:
    def counted(*arguments: Any, **more: Any) -> Any:
        calls[function.__name__] += 1
        return function(*arguments, **more)

    return counted
