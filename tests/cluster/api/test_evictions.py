"""Eviction: a pod goes if no disruption budget is against it."""

from datetime import datetime, timedelta

import pytest

from tests.cluster.api.objects import binding, budget, eviction, path, path_of, pod
from tests.cluster.api.wire import Answer, Body, Wire


@pytest.fixture
def running(api: Wire, ns: str) -> list[Body]:
    """Two pods that run and are ready."""
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for name in ("a", "b"):
        api.made(pod(ns, name, labels={"app": "web"}))
        api.post(path("Pod", ns, name, "binding"), binding(name, "n1")).done(201)
        api.patch(path("Pod", ns, name, "status"), {"status": ready}, "strategic").done()
    return [api.get(path("Pod", ns, name)).done() for name in ("a", "b")]


def _evict(api: Wire, ns: str, name: str, **options: object) -> Answer:
    return api.post(path("Pod", ns, name, "eviction"), eviction(ns, name, **options))


def _budget(api: Wire, ns: str, name: str, minimum: int) -> Body:
    """A budget with the status that its controller would write for two ready pods."""
    made = api.made(budget(ns, name, minAvailable=minimum))
    status = {
        "observedGeneration": made["metadata"]["generation"],
        "disruptionsAllowed": 2 - minimum,
        "currentHealthy": 2,
        "desiredHealthy": minimum,
        "expectedPods": 2,
    }
    return api.patch(path_of(made) + "/status", {"status": status}).done()


@pytest.mark.usefixtures("running")
def test_without_a_budget(api: Wire, ns: str) -> None:
    said = _evict(api, ns, "a").done(201)
    assert (said["kind"], said["status"], said["code"]) == ("Status", "Success", 201)
    assert api.get(path("Pod", ns, "a")).done()["metadata"]["deletionGracePeriodSeconds"] == 30


@pytest.mark.usefixtures("running")
def test_with_options(api: Wire, ns: str) -> None:
    _evict(api, ns, "a", gracePeriodSeconds=0).done(201)
    api.get(path("Pod", ns, "a")).refused(404, "NotFound")


@pytest.mark.usefixtures("running")
def test_dry_run(api: Wire, ns: str) -> None:
    _evict(api, ns, "a", dryRun=["All"]).done(201)
    assert "deletionTimestamp" not in api.get(path("Pod", ns, "a")).done()["metadata"]


def test_only_the_pod_that_was_meant(api: Wire, ns: str, running: list[Body]) -> None:
    _evict(api, ns, "a", preconditions={"uid": "other"}).refused(409, "Conflict")
    _evict(api, ns, "a", preconditions={"uid": running[0]["metadata"]["uid"]}).done(201)


def test_a_pod_that_is_not_there(api: Wire, ns: str) -> None:
    status = _evict(api, ns, "nobody").refused(404, "NotFound")
    assert status["details"]["name"] == "nobody"


@pytest.mark.usefixtures("running")
def test_another_name_than_the_path(api: Wire, ns: str) -> None:
    answer = api.post(path("Pod", ns, "a", "eviction"), eviction(ns, "b"))
    answer.refused(400, "BadRequest")


@pytest.mark.usefixtures("running")
def test_a_budget_without_room(api: Wire, ns: str) -> None:
    _budget(api, ns, "tight", 2)
    status = _evict(api, ns, "a").refused(429, "TooManyRequests")
    assert status["message"] == (
        "Cannot evict pod as it would violate the pod's disruption budget."
    )
    (cause,) = status["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == (
        "The disruption budget tight needs 2 healthy pods and has 2 currently"
    )
    assert "deletionTimestamp" not in api.get(path("Pod", ns, "a")).done()["metadata"]


@pytest.mark.usefixtures("running")
def test_a_budget_with_room_for_one(api: Wire, ns: str) -> None:
    made = _budget(api, ns, "wide", 1)
    _evict(api, ns, "a").done(201)
    status = api.again(made)["status"]
    assert status["disruptionsAllowed"] == 0
    _evict(api, ns, "b").refused(429, "TooManyRequests")


@pytest.mark.usefixtures("running")
def test_a_budget_of_other_pods(api: Wire, ns: str) -> None:
    body = budget(ns, "others", minAvailable=1, selector={"matchLabels": {"app": "db"}})
    api.made(body)
    _evict(api, ns, "a").done(201)


@pytest.mark.usefixtures("running")
def test_two_budgets_are_one_too_many(api: Wire, ns: str) -> None:
    _budget(api, ns, "one", 1)
    _budget(api, ns, "two", 1)
    answer = _evict(api, ns, "a")
    assert answer.code == 500
    assert "more than one PodDisruptionBudget" in answer.body["message"]


def test_a_pod_that_waits_is_nobodys_disruption(api: Wire, ns: str) -> None:
    _budget(api, ns, "tight", 2)
    made = api.made(pod(ns, "waiting", labels={"app": "web"}))
    _evict(api, ns, "waiting").done(201)
    assert api.gone(made)


@pytest.mark.usefixtures("running")
def test_a_pod_that_has_ended_is_nobodys_disruption(api: Wire, ns: str) -> None:
    _budget(api, ns, "tight", 2)
    api.patch(path("Pod", ns, "a", "status"), {"status": {"phase": "Succeeded"}}).done()
    _evict(api, ns, "a").done(201)


@pytest.mark.needs_controller("the disruption controller counts a budget's healthy pods")
@pytest.mark.usefixtures("running")
def test_the_status_of_a_budget_is_kept(api: Wire, ns: str) -> None:
    body = budget(ns, "counted", minAvailable=1)
    api.made(body)
    _evict(api, ns, "a", gracePeriodSeconds=0).done(201)
    _evict(api, ns, "b").refused(429, "TooManyRequests")


def test_what_a_budget_may_say(api: Wire, ns: str) -> None:
    both = budget(ns, "both", minAvailable=1, maxUnavailable=1)
    api.create(both).refused(422, "Invalid")
    bad = budget(ns, "bad", minAvailable="half")
    api.create(bad).refused(422, "Invalid")
    assert api.made(budget(ns, "part", maxUnavailable="50%"))


@pytest.mark.usefixtures("running")
def test_a_grace_period_is_shortened_from_the_deletion(api: Wire, ns: str) -> None:
    where = path("Pod", ns, "a")
    api.delete(where, {"gracePeriodSeconds": 3000}).done()
    before = api.get(where).done()["metadata"]
    _evict(api, ns, "a", gracePeriodSeconds=1000).done(201)
    after = api.get(where).done()["metadata"]
    assert after["deletionGracePeriodSeconds"] == 1000
    moments = (datetime.fromisoformat(each["deletionTimestamp"]) for each in (before, after))
    first, second = moments
    assert first - second == timedelta(seconds=2000)
    _evict(api, ns, "a", gracePeriodSeconds=2000).done(201)
    assert api.get(where).done()["metadata"]["deletionTimestamp"] == after["deletionTimestamp"]
