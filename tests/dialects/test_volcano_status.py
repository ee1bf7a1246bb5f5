"""What is written into queues, groups and Jobs of Volcano."""

from typing import Any

import pytest

from aliquot.dialects.volcano import status as volcano_status
from aliquot.engine.model.gang import Gang
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.model.summaries import GangSummary
from aliquot.json import Body
from tests.build.manifests import gang_job, pod_group, queue, task
from tests.dialects.manifests import read

PLUGINS = "scheduling.x-k8s.io/v1alpha1"
GANG = Gang("a/g", 2, done=(("master", 1), ("worker", 3)), failed=2)


def status_of_group(body: Body, summary: GangSummary) -> Body:
    status: Body = volcano_status.group(read(body), GANG, summary)["status"]
    return status


def status_of_job(body: Body, **phases: int) -> Body:
    status: Body = volcano_status.job(read(body), phases)["status"]
    return status


def test_a_queue_counts_its_gangs() -> None:
    gangs = [GangSummary("a/g", "Running", 2, 2), GangSummary("a/h", "Inqueue", 2, 0)]
    counters = {"pending": 0, "inqueue": 1, "running": 1, "unknown": 0, "completed": 0}
    body = volcano_status.queue(read(queue("q")), {"cpu": 1500, "memory": 0}, gangs)
    assert body["status"] == {"state": "Open", "allocated": {"cpu": "1500m"}, **counters}
    closed = volcano_status.queue(read(queue("q", state="Closing")), {}, [])
    assert closed["status"]["state"] == "Closing"


def test_a_group_that_runs_counts_its_pods() -> None:
    assert status_of_group(pod_group("a/g"), GangSummary("a/g", "Running", 2, 3)) == {
        "phase": "Running",
        "conditions": [
            {
                "type": "Scheduled",
                "status": "True",
                "reason": "enough pods of the gang have started",
            }
        ],
        "running": 3,
        "succeeded": 4,
        "failed": 2,
    }


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        (Reason.GANG_INCOMPLETE, "NotEnoughTasks"),
        (Reason.QUEUE_OVER_DESERVED, "NotEnoughResources"),
    ],
)
def test_a_group_that_waits_says_why(reason: Reason, word: str) -> None:
    body = pod_group("a/g")
    other = {"type": "Other", "status": "True"}
    body["status"] = {"conditions": [other, {"type": "Scheduled", "status": "True"}]}
    summary = GangSummary("a/g", "Inqueue", 2, 0, Refusal(reason, "the numbers"))
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "reason": word,
        "message": "the numbers",
    }
    assert status_of_group(body, summary)["conditions"] == [other, condition]


@pytest.mark.parametrize(
    ("phase", "word"),
    [
        ("Pending", "Pending"),
        ("Inqueue", "Scheduling"),
        ("Running", "Running"),
        ("Unknown", "Unknown"),
        ("Completed", "Finished"),
    ],
)
def test_groups_of_the_scheduler_plugins_have_their_own_phases(phase: Any, word: str) -> None:
    found = status_of_group(pod_group("a/g", PLUGINS), GangSummary("a/g", phase, 2, 1))
    assert found == {"phase": word, "scheduled": 1, "running": 1, "succeeded": 4, "failed": 2}


def test_a_gang_that_loses_pods_of_its_core_is_not_scheduled() -> None:
    """One of its two pods is being deleted: it runs until that is gone, and nothing is said."""
    gang, summary = Gang("a/g", 2), GangSummary("a/g", "Running", 2, 2, leaving=1)
    status = volcano_status.group(read(pod_group("a/g")), gang, summary)["status"]
    assert (status["phase"], status["conditions"]) == ("Running", [])
    plugins = volcano_status.group(read(pod_group("a/g", PLUGINS)), gang, summary)["status"]
    assert (plugins["scheduled"], plugins["running"]) == (1, 2)
    enough = GangSummary("a/g", "Running", 2, 3, leaving=1)
    status = volcano_status.group(read(pod_group("a/g")), gang, enough)["status"]
    assert [each["type"] for each in status["conditions"]] == ["Scheduled"]


def test_the_phase_of_a_job_follows_its_pods() -> None:
    job = gang_job("a/j", task("master", 1), task("worker", 2), minAvailable=2)
    assert status_of_job(job, Pending=2, Running=1, Evicted=4) == {
        "state": {"phase": "Pending"},
        "minAvailable": 2,
        "pending": 2,
        "running": 1,
        "succeeded": 0,
    }
    assert status_of_job(job, Running=1, Succeeded=1, Pending=1)["state"] == {"phase": "Running"}
    assert status_of_job(job, Succeeded=3)["state"] == {"phase": "Completed"}


def test_a_job_has_failed_when_all_have_ended_and_too_few_of_them_well() -> None:
    job = gang_job("a/j", task("master", 1), task("worker", 2), minAvailable=2)
    enough = status_of_job(job, Succeeded=2, Failed=1)
    assert (enough["state"], enough["failed"]) == ({"phase": "Completed"}, 1)
    assert status_of_job(job, Succeeded=1, Failed=2)["state"] == {"phase": "Failed"}
    for phase in ("Pending", "Running"):
        found = status_of_job(job, Succeeded=1, Failed=2, **{phase: 1})
        assert found["state"]["phase"] == phase
    told = {**job, "status": {"failed": 2}}
    assert status_of_job(told, Succeeded=1)["failed"] == 0


def test_a_job_without_pods_is_not_done() -> None:
    assert status_of_job(gang_job("a/j", task("x", 0)))["state"] == {"phase": "Pending"}
