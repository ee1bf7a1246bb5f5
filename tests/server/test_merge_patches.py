"""JSON patches and merge patches: the RFCs' own examples, and what is refused."""

from copy import deepcopy
from typing import Any

import pytest

from aliquot.errors import PatchError, PatchMisfitError
from aliquot.server.patch.merge import json_patch, merge_patch


@pytest.mark.parametrize(
    ("body", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({"a": "b"}, {"a": {"b": None}}, {"a": {}}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": 1}, {}, {"a": 1}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
        ({"a": [{"b": None}]}, {"c": [{"d": None}]}, {"a": [{"b": None}], "c": [{"d": None}]}),
    ],
)
def test_merge_patch(body: Any, patch: Any, result: Any) -> None:
    given = deepcopy((body, patch))
    assert merge_patch(body, patch) == result
    assert (body, patch) == given


def test_a_merge_patch_keeps_the_order_of_fields() -> None:
    merged = merge_patch({"kind": "Pod", "spec": 1, "status": 2}, {"spec": 3, "extra": 4})
    assert list(merged) == ["kind", "spec", "status", "extra"]


@pytest.mark.parametrize("patch", [None, [], "text", 1])
def test_a_merge_patch_is_an_object(patch: Any) -> None:
    with pytest.raises(PatchError, match="must be an object"):
        merge_patch({}, patch)


def test_what_a_patch_gives_shares_nothing_with_what_it_got() -> None:
    body: Any = {"metadata": {"labels": {"a": "b"}}}
    patch: Any = {"spec": {"list": [{}]}}
    merged = merge_patch(body, patch)
    merged["metadata"]["labels"]["a"] = "c"
    merged["spec"]["list"][0]["x"] = 1
    steps: Any = [{"op": "add", "path": "/spec", "value": {"x": []}}]
    patched = json_patch(body, steps)
    patched["spec"]["x"].append(1)
    patched["metadata"]["labels"]["a"] = "d"
    assert body == {"metadata": {"labels": {"a": "b"}}}
    assert patch == {"spec": {"list": [{}]}}
    assert steps[0]["value"] == {"x": []}


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def verify(path: str, value: Any) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}


def remove(path: str) -> dict[str, Any]:
    return {"op": "remove", "path": path}


def move(origin: str, path: str) -> dict[str, Any]:
    return {"op": "move", "from": origin, "path": path}


def copy(origin: str, path: str) -> dict[str, Any]:
    return {"op": "copy", "from": origin, "path": path}


@pytest.mark.parametrize(
    ("body", "steps", "result"),
    [
        ({"foo": "bar"}, [add("/baz", "qux")], {"baz": "qux", "foo": "bar"}),
        ({"foo": [1, 3]}, [add("/foo/1", 2)], {"foo": [1, 2, 3]}),
        ({"foo": [1]}, [add("/foo/1", 2)], {"foo": [1, 2]}),
        ({"foo": [1]}, [add("/foo/-", [2])], {"foo": [1, [2]]}),
        ({"foo": 1}, [add("/foo", None)], {"foo": None}),
        ({"foo": 1}, [add("", {"bar": 2})], {"bar": 2}),
        ({"foo": 1}, [add("/", 2)], {"foo": 1, "": 2}),
        ({"baz": 1, "foo": 2}, [remove("/baz")], {"foo": 2}),
        ({"foo": [1, 2, 3]}, [remove("/foo/1")], {"foo": [1, 3]}),
        ({"foo": {"bar": 1}}, [replace("/foo/bar", 2)], {"foo": {"bar": 2}}),
        ({"foo": [1, 2]}, [replace("/foo/0", 3)], {"foo": [3, 2]}),
        ({"foo": 1}, [replace("", {"a": 1})], {"a": 1}),
        ({"a": {"x": 1, "y": 2}, "b": {}}, [move("/a/x", "/b/z")], {"a": {"y": 2}, "b": {"z": 1}}),
        ({"a": [1, 2, 3]}, [move("/a/0", "/a/2")], {"a": [2, 3, 1]}),
        ({"a": 1}, [move("/a", "/a")], {"a": 1}),
        ({"a": {"b": 1}}, [copy("/a", "/c"), add("/c/b", 2)], {"a": {"b": 1}, "c": {"b": 2}}),
        ({"a": 1}, [verify("/a", 1), add("/b", 2)], {"a": 1, "b": 2}),
        ({"a": 1}, [verify("/a", 1.0)], {"a": 1}),
        ({"a": {"b": [1, {"c": None}]}}, [verify("/a", {"b": [1, {"c": None}]})], None),
        ({"a": 1}, [verify("/b", None)], {"a": 1}),
        ({"a/b": {"m~n": 1}}, [replace("/a~1b/m~0n", 2)], {"a/b": {"m~n": 2}}),
        ({"~1": 1}, [remove("/~01")], {}),
        ({}, [], {}),
    ],
)
def test_json_patch(body: Any, steps: Any, result: Any) -> None:
    given = deepcopy((body, steps))
    assert json_patch(body, steps) == (body if result is None else result)
    assert (body, steps) == given


@pytest.mark.parametrize(
    ("body", "steps", "words"),
    [
        ({}, [remove("/a")], "/a is not there"),
        ({}, [replace("/a", 1)], "/a is not there"),
        ({}, [add("/a/b", 1)], "/a is not there"),
        ({"a": 1}, [add("/a/b", 1)], "/a is 1, and holds nothing"),
        ({"a": None}, [add("/a/b", 1)], "/a is null, and holds nothing"),
        ({"a": [1]}, [add("/a/2", 1)], "/a/2: the list has 2 places"),
        ({"a": [1]}, [remove("/a/1")], "/a/1: the list has 1 places"),
        ({"a": [1]}, [remove("/a/-")], "'-' is not an index of a list"),
        ({"a": [1]}, [remove("/a/01")], "'01' is not an index of a list"),
        ({"a": [1]}, [remove("/a/-1")], "'-1' is not an index of a list"),
        ({"a": [1]}, [remove("/a/" + "9" * 5000)], "the list has 1 places"),
        ({"a": 1}, [verify("/a", 2)], "testing path /a failed: it is 1"),
        ({"a": 1}, [verify("/a", True)], "testing path /a failed"),
        ({"a": 1}, [verify("/a", "1")], "testing path /a failed"),
        ({"a": [1, 2]}, [verify("/a", [2, 1])], "testing path /a failed: it is a list"),
        ({}, [verify("/a", 2)], "/a is not there"),
        ({}, [copy("/a", "/b")], "/a is not there"),
        ({}, [move("/a", "/b")], "/a is not there"),
        ({"a/b": 1}, [verify("/a~1b", 2)], "testing path /a~1b failed"),
        ({"a": 1}, [remove("")], "the patch leaves null instead of an object"),
        ({"a": 1}, [replace("", [])], "the patch leaves a list instead of an object"),
    ],
)
def test_json_patches_that_do_not_fit(body: Any, steps: Any, words: str) -> None:
    given = deepcopy(body)
    with pytest.raises(PatchMisfitError) as caught:
        json_patch(body, steps)
    assert words in str(caught.value)
    assert body == given


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ({}, "must be a list of operations, not an object"),
        (None, "must be a list of operations, not null"),
        ([1], "an operation must be an object, not 1"),
        ([{"path": "/a"}], "an operation has no op"),
        ([{"op": "merge", "path": "/a"}], "Unexpected kind: merge"),
        ([{"op": "remove"}], "the operation remove has no path"),
        ([{"op": "remove", "path": 3}], "the operation remove has no path"),
        ([{"op": "add", "path": "/a"}], "the operation add '/a' has no value"),
        ([{"op": "move", "path": "/a"}], "the operation move has no from"),
        ([remove("a")], "path 'a' does not begin with /"),
        ([move("/a", "/a/b")], "/a cannot move into itself, to /a/b"),
        ([remove("/a")] * 10_001, "maximum operations in a JSON patch is 10000, got 10001"),
    ],
)
def test_json_patches_that_cannot_be_read(steps: Any, words: str) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch({"a": {}}, steps)
    assert words in str(caught.value)
    assert not isinstance(caught.value, PatchMisfitError)


def test_a_later_step_that_fails_leaves_nothing_half_done() -> None:
    body = {"a": {"b": 1}}
    with pytest.raises(PatchMisfitError):
        json_patch(body, [replace("/a/b", 2), remove("/c")])
    assert body == {"a": {"b": 1}}
