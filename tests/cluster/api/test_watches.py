"""Watches: every change once and in order, from where one was, for as long as one asked."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.api.objects import binding, config_map, path, path_of, pod, widget
from tests.cluster.api.wire import Body, Wire

_END = "k8s.io/initial-events-end"


def _short(events: list[Body]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def _version(api: Wire, where: str) -> str:
    version: str = api.get(where).done()["metadata"]["resourceVersion"]
    return version


def test_what_is_there_comes_first(api: Wire, ns: str) -> None:
    for name in "ab":
        api.made(config_map(ns, name))
    for version in (None, "0"):
        made = [api.again(config_map(ns, name)) for name in "ab"]
        with api.watch(path("ConfigMap", ns), resourceVersion=version) as stream:
            events = stream.take(2)
            assert sorted(_short(events)) == [("ADDED", "a"), ("ADDED", "b")]
            found = {event["object"]["metadata"]["name"]: event["object"] for event in events}
            assert [found["a"], found["b"]] == made
            api.patch(path("ConfigMap", ns, "a"), {"data": {"key": str(version)}}).done()
            assert _short(stream.take(1)) == [("MODIFIED", "a")]


def test_changes_come_once_and_in_order(api: Wire, ns: str) -> None:
    where = path("ConfigMap", ns)
    with api.watch(where, resourceVersion=_version(api, where)) as stream:
        made = api.made(config_map(ns, "a"))
        changed = api.patch(path_of(made), {"data": {"key": "2"}}).done()
        api.made(config_map(ns, "b"))
        api.delete(path_of(made)).done()
        events = stream.take(4)
    assert _short(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert events[0]["object"] == made
    assert events[1]["object"] == changed
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    last = events[3]["object"]
    assert last["data"] == {"key": "2"}
    assert last["metadata"]["uid"] == made["metadata"]["uid"]


def test_a_watch_goes_on_where_another_ended(api: Wire, ns: str) -> None:
    where = path("ConfigMap", ns)
    version = _version(api, where)
    seen: list[tuple[str, str]] = []
    for number in range(10):
        api.made(config_map(ns, f"c{number}"))
    while len(seen) < 10:
        with api.watch(where, resourceVersion=version) as stream:
            events = stream.take(min(3, 10 - len(seen)))
        seen += _short(events)
        version = events[-1]["object"]["metadata"]["resourceVersion"]
    assert seen == [("ADDED", f"c{number}") for number in range(10)]


def test_a_change_of_nothing_is_not_seen(api: Wire, ns: str) -> None:
    made = api.made(config_map(ns, "a"))
    where = path("ConfigMap", ns)
    with api.watch(where, resourceVersion=made["metadata"]["resourceVersion"]) as stream:
        api.put(path_of(made), made).done()
        api.patch(path_of(made), {"data": {"key": "value"}}).done()
        api.made(config_map(ns, "fence"))
        assert _short(stream.take(1)) == [("ADDED", "fence")]


def test_other_namespaces_and_kinds_are_not_seen(api: Wire, ns: str) -> None:
    where = path("ConfigMap", ns)
    with api.watch(where, resourceVersion=_version(api, where)) as stream:
        api.made(config_map("default", f"of-{ns}"))
        api.made(pod(ns, "pod"))
        api.made(config_map(ns, "fence"))
        assert _short(stream.take(1)) == [("ADDED", "fence")]


def test_one_object_alone(api: Wire, ns: str) -> None:
    where = path("ConfigMap", ns)
    version = _version(api, where)
    with api.watch(where, resourceVersion=version, fieldSelector="metadata.name=b") as stream:
        for name in "abc":
            api.made(config_map(ns, name))
        api.delete(path("ConfigMap", ns, "b")).done()
        assert _short(stream.take(2)) == [("ADDED", "b"), ("DELETED", "b")]


def test_labels_let_objects_come_and_go(api: Wire, ns: str) -> None:
    where = path("ConfigMap", ns)
    made = api.made(config_map(ns, "a", labels={"in": "no"}))
    version = made["metadata"]["resourceVersion"]
    with api.watch(where, resourceVersion=version, labelSelector="in=yes") as stream:
        for value in ("yes", "yes", "no", "yes"):
            change = {"metadata": {"labels": {"in": value}}, "data": {"at": str(time.time())}}
            api.patch(path_of(made), change).done()
        api.delete(path_of(made)).done()
        events = stream.take(5)
    assert [e["type"] for e in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    gone = events[2]["object"]
    assert gone["metadata"]["labels"] == {"in": "yes"}, "as it was while it was chosen"
    assert gone["data"] == events[1]["object"]["data"]
    before, after = (int(events[n]["object"]["metadata"]["resourceVersion"]) for n in (1, 3))
    assert before < int(gone["metadata"]["resourceVersion"]) < after


def test_a_bound_pod_leaves_those_without_a_node(api: Wire, ns: str) -> None:
    where = path("Pod", ns)
    version = _version(api, where)
    with (
        api.watch(where, resourceVersion=version, fieldSelector="spec.nodeName=") as waiting,
        api.watch(where, resourceVersion=version, fieldSelector="spec.nodeName=n1") as placed,
    ):
        api.made(pod(ns, "a"))
        api.post(path("Pod", ns, "a", "binding"), binding("a", "n1")).done(201)
        assert _short(waiting.take(2)) == [("ADDED", "a"), ("DELETED", "a")]
        (event,) = placed.take(1)
        assert event["type"] == "ADDED"
        assert event["object"]["spec"]["nodeName"] == "n1"


def test_a_selection_begins_with_what_it_chooses(api: Wire, ns: str) -> None:
    api.made(config_map(ns, "a", labels={"in": "yes"}))
    api.made(config_map(ns, "b"))
    with api.watch(path("ConfigMap", ns), labelSelector="in=yes") as stream:
        api.made(config_map(ns, "c"))
        api.made(config_map(ns, "d", labels={"in": "yes"}))
        assert _short(stream.take(2)) == [("ADDED", "a"), ("ADDED", "d")]


def test_a_watch_ends_when_asked_to(api: Wire, ns: str) -> None:
    api.made(config_map(ns, "a"))
    began = time.monotonic()
    with api.watch(path("ConfigMap", ns), timeoutSeconds=1) as stream:
        assert _short(stream.rest()) == [("ADDED", "a")]
    assert 0.5 < time.monotonic() - began < 5


def test_bookmarks_tell_how_far_a_watch_has_come(api: Wire, ns: str) -> None:
    where = path("ConfigMap", ns)
    made = api.made(config_map(ns, "a"))
    version = int(made["metadata"]["resourceVersion"])
    query = {"resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": 4}
    with api.watch(where, **query) as stream:
        other = api.made(config_map("default", f"other-{ns}"))
        events = stream.rest()
    assert events
    assert {event["type"] for event in events} == {"BOOKMARK"}
    last = events[-1]["object"]
    assert (last["kind"], last["apiVersion"]) == ("ConfigMap", "v1")
    assert int(last["metadata"]["resourceVersion"]) >= int(other["metadata"]["resourceVersion"])
    assert "name" not in last["metadata"]
    with api.watch(where, resourceVersion=last["metadata"]["resourceVersion"]) as stream:
        api.made(config_map(ns, "b"))
        assert _short(stream.take(1)) == [("ADDED", "b")]


def test_nobody_gets_bookmarks_who_did_not_ask(api: Wire, ns: str) -> None:
    where = path("ConfigMap", ns)
    with api.watch(where, resourceVersion=_version(api, where), timeoutSeconds=3) as stream:
        assert stream.rest() == []


@pytest.mark.parametrize("kind", ["ConfigMap", "Widget"])
def test_a_watch_can_list_too(api: Wire, ns: str, kind: str) -> None:
    make = {"ConfigMap": config_map, "Widget": widget}[kind]
    made = {name: api.made(make(ns, name)) for name in "ab"}
    query = {
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    with api.watch(path(kind, ns), **query) as stream:
        events = stream.take(3)
        assert {e["object"]["metadata"]["name"]: e["object"] for e in events[:2]} == made
        assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
        end = events[2]["object"]
        assert end["metadata"]["annotations"] == {_END: "true"}
        newest = int(made["b"]["metadata"]["resourceVersion"])
        assert int(end["metadata"]["resourceVersion"]) >= newest
        api.delete(path(kind, ns, "a")).done()
        assert _short(stream.take(1)) == [("DELETED", "a")]


def test_a_watch_that_lists_nothing(api: Wire, ns: str) -> None:
    query = {
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
        "labelSelector": "in=yes",
    }
    api.made(config_map(ns, "a"))
    with api.watch(path("ConfigMap", ns), **query) as stream:
        assert stream.next()["object"]["metadata"]["annotations"] == {_END: "true"}


def test_a_watch_that_must_not_list(api: Wire, ns: str) -> None:
    made = api.made(config_map(ns, "a"))
    query = {
        "sendInitialEvents": "false",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
        "resourceVersion": made["metadata"]["resourceVersion"],
    }
    with api.watch(path("ConfigMap", ns), **query) as stream:
        api.made(config_map(ns, "b"))
        assert _short([e for e in stream.until("b") if e["type"] != "BOOKMARK"]) == [("ADDED", "b")]


def test_initial_events_need_a_match(api: Wire, ns: str) -> None:
    answer = api.get(path("ConfigMap", ns), watch="true", sendInitialEvents="true")
    answer.refused(422, "Invalid")


def test_watches_of_bad_selectors_are_refused(api: Wire, ns: str) -> None:
    answer = api.get(path("Pod", ns), watch="true", fieldSelector="spec.hostname=a")
    answer.refused(400, "BadRequest")


def test_custom_kinds_are_watched_alike(api: Wire, ns: str) -> None:
    where = path("Widget", ns)
    with api.watch(where, resourceVersion=_version(api, where)) as stream:
        made = api.made(widget(ns, "a"))
        api.patch(path_of(made) + "/status", {"status": {"phase": "Up"}}).done()
        api.delete(path_of(made)).done()
        events = stream.take(3)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[1]["object"]["status"] == {"phase": "Up"}


def test_a_pod_that_ends_gracefully_is_modified_then_deleted(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "a", nodeName="n1"))
    where = path("Pod", ns)
    with api.watch(where, resourceVersion=made["metadata"]["resourceVersion"]) as stream:
        api.delete(path_of(made)).done()
        api.delete(path_of(made), gracePeriodSeconds=0).done()
        events = stream.take(2)
        if events[-1]["type"] != "DELETED":  # the grace period may be seen to shrink
            events += stream.take(1)
    assert [event["type"] for event in events[:-1]] == ["MODIFIED"] * (len(events) - 1)
    assert events[0]["object"]["metadata"]["deletionGracePeriodSeconds"] == 30
    assert events[-1]["type"] == "DELETED"


def test_many_watch_at_once(api: Wire, ns: str) -> None:
    where = path("ConfigMap", ns)
    version = _version(api, where)
    streams = [api.watch(where, resourceVersion=version) for _ in range(20)]
    opened = [stream.__enter__() for stream in streams]
    try:
        api.made(config_map(ns, "a"))
        assert [_short(stream.take(1)) for stream in opened] == [[("ADDED", "a")]] * 20
    finally:
        for stream in streams:
            stream.__exit__(None, None, None)


def test_nothing_is_lost_while_many_write(api: Wire, ns: str) -> None:
    where = path("ConfigMap", ns)

    def write(writer: int) -> None:
        for number in range(20):
            made = api.made(config_map(ns, f"w{writer}-{number}"))
            if number % 2:
                api.delete(path_of(made)).done()

    with api.watch(where, resourceVersion=_version(api, where)) as stream:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        events = stream.take(4 * 30)
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    there = {name for kind, name in _short(events) if kind == "ADDED"}
    gone = {name for kind, name in _short(events) if kind == "DELETED"}
    listed = {item["metadata"]["name"] for item in api.get(where).done()["items"]}
    assert (len(there), len(gone)) == (80, 40)
    assert listed == there - gone
