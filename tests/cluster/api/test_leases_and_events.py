"""Leases, which many write at once, and events, which have two faces."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cluster.api.objects import lease, path, path_of
from tests.cluster.api.wire import Body, Wire


def test_times_of_a_lease_are_exact(api: Wire, ns: str) -> None:
    body = lease(ns, "l", renewTime="2026-01-02T03:04:05.678900Z", leaseDurationSeconds=15)
    assert api.made(body)["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-01-02T03:04:05.678900Z",
    }


def test_a_lease_is_renewed(api: Wire, ns: str) -> None:
    held = api.made(lease(ns, "l", renewTime="2026-01-02T03:04:05.000000Z"))
    for second in range(3):
        held["spec"]["renewTime"] = f"2026-01-02T03:05:0{second}.000000Z"
        held = api.put(path_of(held), held).done()
    assert api.again(held)["spec"]["renewTime"] == "2026-01-02T03:05:02.000000Z"


def test_one_of_many_gets_the_lease(api: Wire, ns: str) -> None:
    free = api.made(lease(ns, "l"))

    def claim(who: int) -> int:
        body = {**free, "spec": {"holderIdentity": f"c{who}"}}
        return api.put(path_of(free), body).code

    with ThreadPoolExecutor(8) as pool:
        codes = sorted(pool.map(claim, range(8)))
    assert codes == [200] + [409] * 7


def test_no_change_is_lost_among_many(api: Wire, ns: str) -> None:
    api.made(lease(ns, "l", leaseTransitions=0))

    def step(_: int) -> None:
        while True:
            now = api.get(path("Lease", ns, "l")).done()
            now["spec"]["leaseTransitions"] += 1
            if api.put(path_of(now), now).code == 200:
                return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(step, range(20)))
    assert api.get(path("Lease", ns, "l")).done()["spec"]["leaseTransitions"] == 20


def test_a_lease_is_checked(api: Wire, ns: str) -> None:
    answer = api.create(lease(ns, "l", leaseDurationSeconds=0))
    status = answer.refused(422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "spec.leaseDurationSeconds"


def _old(ns: str, name: str, **fields: Any) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": ns},
        "involvedObject": {"kind": "Pod", "namespace": ns, "name": "p", "apiVersion": "v1"},
        "reason": "Scheduled",
        "message": "assigned",
        "type": "Normal",
        "source": {"component": "suite"},
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "count": 1,
        **fields,
    }


def _new(ns: str, name: str, **fields: Any) -> Body:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": ns},
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "regarding": {"kind": "Pod", "namespace": ns, "name": "p", "apiVersion": "v1"},
        "reason": "Evicted",
        "note": "asked to go",
        "type": "Warning",
        "action": "Evicting",
        "reportingController": "suite.aliquot.dev/suite",
        "reportingInstance": "suite-1",
        **fields,
    }


def test_an_old_event_is_a_new_one_too(api: Wire, ns: str) -> None:
    made = api.made(_old(ns, "e"))
    seen = api.get(f"/apis/events.k8s.io/v1/namespaces/{ns}/events/e").done()
    assert (seen["apiVersion"], seen["kind"]) == ("events.k8s.io/v1", "Event")
    assert seen["regarding"] == made["involvedObject"]
    assert seen["note"] == "assigned"
    assert seen["deprecatedSource"] == {"component": "suite"}
    assert seen["deprecatedCount"] == 1
    assert seen["metadata"]["uid"] == made["metadata"]["uid"]


def test_a_new_event_is_an_old_one_too(api: Wire, ns: str) -> None:
    api.made(_new(ns, "e"))
    seen = api.get(path("Event", ns, "e")).done()
    assert (seen["involvedObject"]["name"], seen["message"]) == ("p", "asked to go")
    assert seen["reportingComponent"] == "suite.aliquot.dev/suite"
    assert seen["eventTime"] == "2026-01-02T03:04:05.000006Z"


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("involvedObject.name=p", ["a"]),
        ("involvedObject.kind=Pod,reason=Other", ["b"]),
        ("type=Warning", ["b"]),
        ("involvedObject.uid=", ["a", "b"]),
    ],
)
def test_events_are_chosen(api: Wire, ns: str, selector: str, names: list[str]) -> None:
    api.made(_old(ns, "a"))
    other = {"kind": "Pod", "namespace": ns, "name": "q"}
    api.made(_old(ns, "b", involvedObject=other, reason="Other", type="Warning"))
    listed = api.get(path("Event", ns), fieldSelector=selector).done()["items"]
    assert [event["metadata"]["name"] for event in listed] == names


def test_an_event_is_counted_up(api: Wire, ns: str) -> None:
    made = api.made(_old(ns, "e"))
    change = {"count": 2, "lastTimestamp": "2026-01-02T03:05:05Z"}
    done = api.patch(path_of(made), change, "strategic").done()
    assert (done["count"], done["firstTimestamp"]) == (2, "2026-01-02T03:04:05Z")


def test_an_event_belongs_to_the_namespace_of_its_object(api: Wire, ns: str) -> None:
    other = {"kind": "Pod", "namespace": "elsewhere", "name": "p"}
    status = api.create(_old(ns, "e", involvedObject=other)).refused(422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "involvedObject.namespace"


def test_a_new_event_must_say_who_and_what(api: Wire, ns: str) -> None:
    body = _new(ns, "e", reportingController="", action="")
    causes = api.create(body).refused(422, "Invalid")["details"]["causes"]
    assert {"reportingController", "action"} <= {cause["field"] for cause in causes}


def test_events_are_watched_by_both_names(api: Wire, ns: str) -> None:
    where = f"/apis/events.k8s.io/v1/namespaces/{ns}/events"
    version = api.get(where).done()["metadata"]["resourceVersion"]
    with api.watch(where, resourceVersion=version) as stream:
        api.made(_old(ns, "e"))
        event = stream.next()
    assert event["object"]["apiVersion"] == "events.k8s.io/v1"
    assert event["object"]["note"] == "assigned"
