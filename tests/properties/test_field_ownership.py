"""Field ownership, for any object: the sets, the quick ways beside the full one, and applying."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aliquot.server.kinds.built_in import BUILT_IN
from aliquot.server.kinds.kind import Kind, of_definition
from aliquot.server.ownership import ownership
from aliquot.server.ownership.comparison import compare, owned_fields
from aliquot.server.ownership.creation import created
from aliquot.server.ownership.field_set import (
    covers,
    difference,
    intersection,
    meet,
    paths,
    union,
)
from aliquot.server.ownership.merge import merge
from aliquot.server.ownership.writer import Writer
from aliquot.server.schema.structure import of_kind

_TEXT = {"type": "string"}
_ITEM = {"type": "object", "properties": {"k": _TEXT, "v": _TEXT, "w": {"type": "integer"}}}
_SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": _TEXT,
        "atomic": {"type": "array", "items": _TEXT},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
        "items": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": _ITEM,
        },
        "split": {"type": "object", "additionalProperties": _ITEM},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
_DEFINITION = {
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {
                "name": "v1",
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC}}},
            }
        ],
    }
}
(THING,) = of_definition(_DEFINITION)
(POD,) = (kind for kind in BUILT_IN if kind.unique_name == "Pod")

words = st.sampled_from(["a", "b", "c"])
items = st.lists(
    st.fixed_dictionaries({"k": words}, optional={"v": words, "w": st.integers(0, 2)}),
    max_size=3,
    unique_by=lambda each: each["k"],
)
anything = st.recursive(
    words | st.integers(0, 2),
    lambda inner: st.dictionaries(words, inner, max_size=2) | st.lists(inner, max_size=2),
    max_leaves=4,
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "text": words,
        "atomic": st.lists(words, max_size=2),
        "set": st.lists(words, max_size=3, unique=True),
        "items": items,
        "split": st.dictionaries(words, st.fixed_dictionaries({}, optional={"v": words})),
        "open": st.dictionaries(words, anything, max_size=2),
    },
)
things = st.builds(
    lambda spec, labels: {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "x", **({"labels": labels} if labels else {})},
        "spec": spec,
    },
    specs,
    st.dictionaries(words, words, max_size=2),
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": words},
        optional={
            "image": words,
            "tty": st.booleans(),
            "args": st.lists(words, max_size=2),
            "env": st.lists(
                st.fixed_dictionaries({"name": words}, optional={"value": words | st.just("")}),
                max_size=3,
            ),
            "ports": st.lists(st.fixed_dictionaries({"containerPort": st.integers(1, 3)})),
            "resources": st.dictionaries(
                st.sampled_from(["limits", "requests"]), st.dictionaries(words, words, max_size=2)
            ),
        },
    ),
    max_size=3,
)
pods = st.builds(
    lambda own, labels, selector: {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "labels": labels},
        "spec": {"containers": own, "nodeSelector": selector},
    },
    containers,
    st.dictionaries(words, words, max_size=2),
    st.dictionaries(words, words, max_size=2),
)


def writer(kind: Kind, manager: str) -> Writer:
    return Writer(manager, kind, "", "2024-05-01T12:00:00Z")


def fields_of(thing: dict[str, Any]) -> dict[str, Any]:
    return owned_fields(of_kind("", "", THING.schema), thing)


@given(things, things)
def test_sets_are_sets_of_paths(one: dict[str, Any], other: dict[str, Any]) -> None:
    a, b = fields_of(one), fields_of(other)
    first, second = set(paths(a)), set(paths(b))
    assert set(paths(union(a, b))) == first | second
    assert set(paths(difference(a, b))) == first - second
    assert set(paths(intersection(a, b))) == first & second
    assert covers(a, b) == (second <= first)
    assert meet(a, b) == bool(first & second)


@given(things | pods)
def test_the_text_of_a_new_object_says_what_a_comparison_says(body: dict[str, Any]) -> None:
    kind = POD if body["kind"] == "Pod" else THING
    structure = of_kind(kind.api_version, kind.name, kind.schema)
    wanted, removed = compare(structure, {}, body)
    assert removed == {}
    assert json.loads(created(structure, body) or "{}") == wanted


@given(pods, pods)
def test_a_comparison_is_empty_for_equal_objects_only(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    structure = of_kind(POD.api_version, POD.name, None)
    assert compare(structure, one, one) == ({}, {})
    changed, removed = compare(structure, one, other)
    forth = set(paths(changed)) | set(paths(removed))
    changed, removed = compare(structure, other, one)
    assert forth == set(paths(changed)) | set(paths(removed))


@given(things, things, things)
def test_every_field_of_an_update_has_one_owner(
    first: dict[str, Any], second: dict[str, Any], third: dict[str, Any]
) -> None:
    entries = None
    old = None
    for manager, body in zip(("a", "b", "a"), (first, second, third), strict=True):
        if old is None:
            made = ownership.created(writer(THING, manager), body)
            entries = json.loads(bytes(made)) if made is not None else []
        else:
            entries = ownership.updated(writer(THING, manager), old, body, entries, None)
        old = body
    found = [set(paths(each["fieldsV1"])) for each in entries or ()]
    assert sum(map(len, found)) == len(set().union(*found))


@given(things, things)
def test_what_is_applied_is_there_and_applying_it_again_changes_nothing(
    live: dict[str, Any], config: dict[str, Any]
) -> None:
    first = ownership.applied(writer(THING, "one"), None, live, False)
    now = ownership.applied(writer(THING, "two"), first, config, True)
    structure = of_kind("", "", THING.schema)
    assert merge(structure, now, config) == now
    again = ownership.applied(writer(THING, "two"), now, config, False)
    assert again == now


@given(things, things)
def test_what_a_manager_alone_applied_is_all_that_stays(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    made = ownership.applied(writer(THING, "one"), None, first, False)
    now = ownership.applied(writer(THING, "one"), made, second, False)
    now["spec"] = now.get("spec") or {}
    for name in ("text", "atomic"):
        assert now["spec"].get(name) == second["spec"].get(name)
    for name in ("set", "items"):
        assert (now["spec"].get(name) or []) == (second["spec"].get(name) or [])
    labels = second["metadata"].get("labels") or {}
    assert (now["metadata"].get("labels") or {}) == labels
