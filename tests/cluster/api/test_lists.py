"""Lists: what selectors choose, how chunks hold together, which version is answered."""

import pytest

from tests.cluster.api.objects import binding, config_map, node, path, path_of, pod, thing, widget
from tests.cluster.api.wire import Body, Wire
from tests.cluster.conftest import Unique


def _names(listed: Body) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


@pytest.fixture
def labelled(api: Wire, ns: str) -> str:
    """A namespace with four pods of various labels."""
    for name, labels in {
        "a": {"tier": "web", "zone": "1"},
        "b": {"tier": "web", "zone": "2"},
        "c": {"tier": "db"},
        "d": {},
    }.items():
        api.made(pod(ns, name, labels=labels))
    return ns


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("tier=web", "ab"),
        ("tier==web", "ab"),
        ("tier!=web", "cd"),
        ("tier in (web, db)", "abc"),
        ("tier notin (web)", "cd"),
        ("tier", "abc"),
        ("!tier", "d"),
        ("tier=web,zone=2", "b"),
        ("tier=web,zone notin (2)", "a"),
        ("zone>1", "b"),
        ("zone<2", "a"),
        ("tier=none", ""),
        ("tier=", ""),
        ("", "abcd"),
    ],
)
def test_labels(api: Wire, labelled: str, selector: str, found: str) -> None:
    listed = api.get(path("Pod", labelled), labelSelector=selector).done()
    assert "".join(_names(listed)) == found


@pytest.mark.parametrize("selector", ["tier in web", "a=b=c", "!", "a in ()x", "-a=b"])
def test_bad_labels(api: Wire, ns: str, selector: str) -> None:
    api.get(path("Pod", ns), labelSelector=selector).refused(400, "BadRequest")


@pytest.fixture
def placed(api: Wire, ns: str) -> str:
    """A namespace with a pod on a node, a pod that runs there, and one that waits."""
    for name in ("idle", "run", "wait"):
        api.made(pod(ns, name, schedulerName="s2" if name == "wait" else "s1"))
    for name in ("idle", "run"):
        api.post(path("Pod", ns, name, "binding"), binding(name, "n1")).done(201)
    api.patch(path("Pod", ns, "run", "status"), {"status": {"phase": "Running"}}).done()
    return ns


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("metadata.name=run", ["run"]),
        ("metadata.name!=run", ["idle", "wait"]),
        ("spec.nodeName=n1", ["idle", "run"]),
        ("spec.nodeName=", ["wait"]),
        ("spec.nodeName!=", ["idle", "run"]),
        ("status.phase=Running", ["run"]),
        ("status.phase!=Running,status.phase!=Failed", ["idle", "wait"]),
        ("spec.schedulerName=s2", ["wait"]),
        ("spec.nodeName=n1,status.phase=Pending", ["idle"]),
        ("spec.restartPolicy=Always", ["idle", "run", "wait"]),
        ("metadata.namespace=other", []),
    ],
)
def test_fields(api: Wire, placed: str, selector: str, found: list[str]) -> None:
    assert _names(api.get(path("Pod", placed), fieldSelector=selector).done()) == found


def test_fields_and_labels_together(api: Wire, labelled: str) -> None:
    listed = api.get(
        path("Pod", labelled), labelSelector="tier=web", fieldSelector="metadata.name!=a"
    )
    assert _names(listed.done()) == ["b"]


def test_fields_of_other_kinds(api: Wire, ns: str, unique: Unique) -> None:
    name = unique("node")
    api.made(node(name, spec={"unschedulable": True}))
    assert name in _names(api.get("/api/v1/nodes", fieldSelector="spec.unschedulable=true").done())
    where = path("Namespace")
    assert ns in _names(api.get(where, fieldSelector="status.phase=Active").done())
    api.made(config_map(ns, "a"))
    api.made(config_map(ns, "b"))
    assert _names(api.get(path("ConfigMap", ns), fieldSelector="metadata.name=b").done()) == ["b"]
    api.made(widget(ns, "w"))
    assert _names(api.get(path("Widget", ns), fieldSelector="metadata.name=w").done()) == ["w"]


@pytest.mark.parametrize(
    ("kind", "field"),
    [("Pod", "spec.hostname"), ("ConfigMap", "data.key"), ("Widget", "spec.size"), ("Pod", "x")],
)
def test_fields_that_are_not_for_choosing(api: Wire, ns: str, kind: str, field: str) -> None:
    answer = api.get(path(kind, ns), fieldSelector=f"{field}=1")
    said = answer.refused(400, "BadRequest")["message"]
    assert "field label not supported" in said or "is not a known field selector" in said


def test_all_namespaces(api: Wire, unique: Unique) -> None:
    label = unique("label")
    names = [unique("ns") for _ in range(2)]
    for name in names:
        api.made(thing("Namespace", "", name))
        api.made(config_map(name, "one", labels={"of": label}))
    listed = api.get(path("ConfigMap"), labelSelector=f"of={label}").done()
    assert sorted(item["metadata"]["namespace"] for item in listed["items"]) == sorted(names)


def test_nothing_is_an_empty_list(api: Wire, ns: str) -> None:
    assert api.get(path("ConfigMap", ns)).done()["items"] == []


@pytest.fixture
def five(api: Wire, ns: str) -> str:
    """A namespace with five config maps, made in no order."""
    for name in "dbaec":
        api.made(config_map(ns, name))
    return ns


def test_lists_are_in_order_of_names(api: Wire, five: str) -> None:
    assert _names(api.get(path("ConfigMap", five)).done()) == list("abcde")


def test_chunks(api: Wire, five: str) -> None:
    where = path("ConfigMap", five)
    first = api.get(where, limit=2).done()
    assert _names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    second = api.get(where, limit=2, **{"continue": first["metadata"]["continue"]}).done()
    assert _names(second) == ["c", "d"]
    assert second["metadata"]["remainingItemCount"] == 1
    third = api.get(where, limit=2, **{"continue": second["metadata"]["continue"]}).done()
    assert _names(third) == ["e"]
    assert not third["metadata"].get("continue")
    assert "remainingItemCount" not in third["metadata"]
    versions = {chunk["metadata"]["resourceVersion"] for chunk in (first, second, third)}
    assert len(versions) == 1


def test_chunks_show_one_moment(api: Wire, five: str) -> None:
    where = path("ConfigMap", five)
    first = api.get(where, limit=2).done()
    api.made(config_map(five, "bb"))
    api.delete(path("ConfigMap", five, "d")).done()
    api.patch(path("ConfigMap", five, "e"), {"data": {"key": "later"}}).done()
    rest = api.get(where, **{"continue": first["metadata"]["continue"]}).done()
    assert _names(rest) == ["c", "d", "e"]
    assert rest["items"][2]["data"] == {"key": "value"}
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_chunks_of_a_selection(api: Wire, ns: str) -> None:
    for number in range(6):
        api.made(pod(ns, f"p{number}", labels={"even": str(number % 2 == 0)}))
    first = api.get(path("Pod", ns), labelSelector="even=True", limit=2).done()
    assert _names(first) == ["p0", "p2"]
    assert "remainingItemCount" not in first["metadata"]
    rest = api.get(
        path("Pod", ns), labelSelector="even=True", **{"continue": first["metadata"]["continue"]}
    ).done()
    assert _names(rest) == ["p4"]


def test_a_limit_that_is_enough(api: Wire, five: str) -> None:
    meta = api.get(path("ConfigMap", five), limit=5).done()["metadata"]
    assert not meta.get("continue")
    assert "remainingItemCount" not in meta


def test_chunks_of_custom_kinds(api: Wire, ns: str) -> None:
    for name in "abc":
        api.made(widget(ns, name))
    first = api.get(path("Widget", ns), limit=2).done()
    rest = api.get(path("Widget", ns), **{"continue": first["metadata"]["continue"]}).done()
    assert _names(first) + _names(rest) == ["a", "b", "c"]


def test_a_token_that_is_none(api: Wire, ns: str) -> None:
    api.get(path("Pod", ns), limit=1, **{"continue": "nonsense"}).refused(400, "BadRequest")


def test_a_token_and_a_version(api: Wire, five: str) -> None:
    first = api.get(path("ConfigMap", five), limit=2).done()["metadata"]
    answer = api.get(
        path("ConfigMap", five),
        resourceVersion=first["resourceVersion"],
        **{"continue": first["continue"]},
    )
    assert answer.code in (400, 422)
    assert "not allowed when using continue" in answer.body["message"]


def test_any_version_will_do(api: Wire, five: str) -> None:
    assert _names(api.get(path("ConfigMap", five), resourceVersion="0").done())
    assert api.get(path("ConfigMap", five, "a"), resourceVersion="0").done()


def test_not_older_than(api: Wire, five: str) -> None:
    version = api.made(config_map(five, "f"))["metadata"]["resourceVersion"]
    for match in (None, "NotOlderThan"):
        listed = api.get(
            path("ConfigMap", five), resourceVersion=version, resourceVersionMatch=match
        ).done()
        assert _names(listed) == list("abcdef")
        assert int(listed["metadata"]["resourceVersion"]) >= int(version)


def test_exactly_this_version(api: Wire, five: str) -> None:
    version = api.get(path("ConfigMap", five)).done()["metadata"]["resourceVersion"]
    api.made(config_map(five, "f"))
    api.delete(path("ConfigMap", five, "a")).done()
    exact = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    listed = api.get(path("ConfigMap", five), **exact).done()
    assert _names(listed) == list("abcde")
    assert listed["metadata"]["resourceVersion"] == version


def test_a_version_of_the_future(api: Wire, five: str) -> None:
    version = int(api.get(path("ConfigMap", five)).done()["metadata"]["resourceVersion"])
    status = api.get(path("ConfigMap", five), resourceVersion=version + 10**6).refused(
        504, "Timeout"
    )
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert status["message"].startswith("Timeout: Too large resource version")


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
        {"resourceVersion": "5", "resourceVersionMatch": "Roughly"},
        {"sendInitialEvents": "true"},
    ],
)
def test_a_match_that_makes_no_sense(api: Wire, ns: str, query: dict[str, str]) -> None:
    api.get(path("ConfigMap", ns), **query).refused(422, "Invalid")


def test_a_version_that_is_none(api: Wire, ns: str) -> None:
    api.get(path("ConfigMap", ns), resourceVersion="soon").refused(400, "BadRequest")


def test_a_list_goes_on_as_a_watch(api: Wire, five: str) -> None:
    version = api.get(path("ConfigMap", five)).done()["metadata"]["resourceVersion"]
    api.delete(path_of(config_map(five, "c"))).done()
    with api.watch(path("ConfigMap", five), resourceVersion=version) as stream:
        assert stream.next()["type"] == "DELETED"
