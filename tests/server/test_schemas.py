"""Objects against their schema: in which words they are refused, what is dropped and filled in."""

from copy import deepcopy
from typing import Any

import pytest

from aliquot.dialects.core import schema
from aliquot.dialects.core.schema import QUANTITY_PATTERN
from aliquot.server.rules.causes import join_causes
from aliquot.server.schema.check import check, fill_defaults, prune, unknown


def found(shape: Any, value: Any) -> list[tuple[str, str, str]]:
    wrapped = schema.record({"spec": shape})
    given = deepcopy(value)
    causes = check(wrapped, {"spec": value})
    assert value == given
    return [(each.field, each.reason, each.message) for each in causes]


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (schema.text(), "a"),
        (schema.text(), ""),
        (schema.text(minLength=1, maxLength=2), "ab"),
        (schema.choice("a", "b"), "b"),
        (schema.whole(minimum=1, maximum=5), 1),
        (schema.whole(), 2**31 - 1),
        (schema.whole(), 3.0),
        (schema.long(), 2**63 - 1),
        ({"type": "number"}, 3),
        ({"type": "number", "multipleOf": 5}, 15),
        (schema.flag(), False),
        (schema.listed(schema.text()), []),
        (schema.mapped(schema.whole()), {"a": 1}),
        (schema.quantity(), 5),
        (schema.quantity(), "500m"),
        (schema.quantity(), "-1.5Gi"),
        (schema.quantity(), "1e3"),
        (schema.number_or_text(), "25%"),
        ({"type": "string", "nullable": True}, None),
        (schema.moment(), "2024-05-01T12:00:00Z"),
        (schema.moment(), "2024-05-01T12:00:00.123456+02:00"),
        (schema.anything(), {"a": [{"b": None}]}),
        ({}, "whatever"),
        ({"x-kubernetes-preserve-unknown-fields": True}, [1]),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 3),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": 1}),
        ({"not": {"required": ["a"]}}, {"b": 1}),
        (schema.text(pattern=r"\p{L}"), "what Python cannot read, it does not check"),
    ],
)
def test_what_is_fine(shape: Any, value: Any) -> None:
    assert found(shape, value) == []


TYPE, INVALID = "FieldValueTypeInvalid", "FieldValueInvalid"


@pytest.mark.parametrize(
    ("shape", "value", "field", "reason", "message"),
    [
        (
            schema.whole(),
            "3",
            "spec",
            TYPE,
            'Invalid value: "string": spec in body must be of type integer: "string"',
        ),
        (
            schema.whole(),
            3.5,
            "spec",
            TYPE,
            'Invalid value: "number": spec in body must be of type integer: "number"',
        ),
        (
            schema.whole(),
            True,
            "spec",
            TYPE,
            'Invalid value: "boolean": spec in body must be of type integer: "boolean"',
        ),
        (
            schema.text(),
            None,
            "spec",
            TYPE,
            'Invalid value: "null": spec in body must be of type string: "null"',
        ),
        (
            schema.quantity(),
            2.5,
            "spec",
            TYPE,
            'Invalid value: "number": spec in body must be of type integer,string: "number"',
        ),
        (
            schema.quantity(),
            "lots",
            "spec",
            INVALID,
            f"Invalid value: \"lots\": spec in body should match '{QUANTITY_PATTERN}'",
        ),
        (
            schema.quantity(),
            "1\n",
            "spec",
            INVALID,
            f"Invalid value: \"1\\n\": spec in body should match '{QUANTITY_PATTERN}'",
        ),
        (
            schema.whole(minimum=1),
            0,
            "spec",
            INVALID,
            "Invalid value: 0: spec in body should be greater than or equal to 1",
        ),
        (
            schema.whole(minimum=1, exclusiveMinimum=True),
            1,
            "spec",
            INVALID,
            "Invalid value: 1: spec in body should be greater than 1",
        ),
        (
            schema.whole(maximum=100),
            101,
            "spec",
            INVALID,
            "Invalid value: 101: spec in body should be less than or equal to 100",
        ),
        (
            schema.whole(),
            2**31,
            "spec",
            INVALID,
            "Invalid value: 2147483648: spec in body must be of type integer with format int32",
        ),
        (
            schema.choice("Open", "Closed"),
            "Ajar",
            "spec",
            "FieldValueNotSupported",
            'Unsupported value: "Ajar": supported values: "Open", "Closed"',
        ),
        (
            schema.text(minLength=2),
            "a",
            "spec",
            INVALID,
            'Invalid value: "a": spec in body should be at least 2 chars long',
        ),
        (
            schema.text(maxLength=2),
            "abc",
            "spec",
            "FieldValueTooLong",
            "Too long: may not be more than 2 bytes",
        ),
        (
            schema.record({"a": schema.text()}, "a"),
            {},
            "spec.a",
            "FieldValueRequired",
            "Required value",
        ),
        (
            schema.listed(schema.record({"a": schema.whole()})),
            [{}, {"a": "x"}],
            "spec[1].a",
            TYPE,
            'Invalid value: "string": spec[1].a in body must be of type integer: "string"',
        ),
        (
            schema.mapped(schema.quantity()),
            {"nvidia.com/gpu": []},
            "spec.nvidia.com/gpu",
            TYPE,
            'Invalid value: "array": spec.nvidia.com/gpu in body must be of type '
            'integer,string: "array"',
        ),
        (
            schema.listed(schema.text(), maxItems=1),
            ["a", "b"],
            "spec",
            "FieldValueTooMany",
            "Too many: 2: must have at most 1 items",
        ),
        (
            schema.listed(schema.text(), minItems=1),
            [],
            "spec",
            INVALID,
            "Invalid value: 0: spec in body should have at least 1 items",
        ),
        (
            schema.listed(schema.text(), **{"x-kubernetes-list-type": "set"}),
            ["a", "b", "a", "a"],
            "spec[2]",
            "FieldValueDuplicate",
            'Duplicate value: "a"',
        ),
        (
            schema.keyed(schema.record({"name": schema.text()}), "name"),
            [{"name": "a"}, {"name": "b"}, {"name": "a"}],
            "spec[2]",
            "FieldValueDuplicate",
            'Duplicate value: {"name":"a"}',
        ),
        (
            schema.moment(),
            "yesterday",
            "spec",
            INVALID,
            'Invalid value: "yesterday": spec in body must be of type date-time: "yesterday"',
        ),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": 1, "b": 1},
            "spec",
            INVALID,
            'Invalid value: {"a":1,"b":1}: spec in body must validate one and only one schema '
            "(oneOf)",
        ),
        (
            {"type": "object", "minProperties": 1},
            {},
            "spec",
            INVALID,
            "Invalid value: 0: spec in body should have at least 1 properties",
        ),
    ],
)
def test_what_is_not(shape: Any, value: Any, field: str, reason: str, message: str) -> None:
    assert found(shape, value) == [(field, reason, message)]


def test_every_problem_is_told_at_once() -> None:
    shape = schema.record({"a": schema.whole(), "b": schema.text()}, "c")
    causes = check(shape, {"a": "x", "b": 1})
    assert [each.field for each in causes] == ["c", "a", "b"]
    assert join_causes(causes).startswith("[c: Required value, a: Invalid value")
    assert join_causes(causes[:1]) == "c: Required value"


def test_an_object_is_an_object() -> None:
    (cause,) = check(schema.record({}), [])
    assert cause.message == 'Invalid value: "array": body must be of type object: "array"'


SHAPE = schema.record(
    {
        "spec": schema.record(
            {
                "a": schema.text(default="x"),
                "list": schema.listed(schema.record({"n": schema.whole(default=1)})),
                "map": schema.mapped(schema.record({"n": schema.whole()})),
                "open": schema.open_ended(
                    schema.record(
                        {"known": schema.record({"n": schema.whole()})},
                    )
                ),
                "inner": schema.record({"b": schema.flag(default=True)}, default={}),
                "none": {"type": "string", "nullable": True},
            }
        )
    }
)


def test_pruning_drops_what_is_unknown_and_says_so() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": "a", "anything": 1},
        "spec": {
            "a": "b",
            "typo": 1,
            "list": [{"n": 1, "m": 2}],
            "map": {"k": {"n": 1, "m": 2}},
            "open": {"free": {"x": 1}, "known": {"n": 1, "m": 2}},
            "none": None,
        },
        "extra": {},
    }
    given = deepcopy(body)
    assert prune(SHAPE, body) == {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": "a"},
        "spec": {
            "a": "b",
            "list": [{"n": 1}],
            "map": {"k": {"n": 1}},
            "open": {"free": {"x": 1}, "known": {"n": 1}},
            "none": None,
        },
    }
    assert unknown(SHAPE, body) == [
        "spec.typo",
        "spec.list[0].m",
        "spec.map.k.m",
        "spec.open.known.m",
        "extra",
        "metadata.anything",
    ]
    assert body == given


def test_an_object_without_known_fields_loses_all_of_them() -> None:
    assert prune(schema.record({"spec": {"type": "object"}}), {"spec": {"a": 1}}) == {"spec": {}}


def test_an_embedded_object_keeps_its_metadata() -> None:
    shape = schema.record({"spec": schema.record({})})
    template = {**shape, "x-kubernetes-embedded-resource": True}
    body = {"template": {"metadata": {"labels": {}}, "spec": {}, "x": 1}}
    kept = prune(schema.record({"template": template}), body)
    assert kept == {"template": {"metadata": {"labels": {}}, "spec": {}}}


def test_defaults_fill_what_is_absent_at_every_depth() -> None:
    body: Any = {"spec": {"list": [{}, {"n": 2}]}}
    given = deepcopy(body)
    filled = fill_defaults(SHAPE, body)
    assert filled == {"spec": {"list": [{"n": 1}, {"n": 2}], "a": "x", "inner": {"b": True}}}
    assert body == given


def test_defaults_do_not_make_up_objects_without_one_of_their_own() -> None:
    assert fill_defaults(SHAPE, {}) == {}


def test_a_default_is_not_shared_between_objects() -> None:
    one, other = (fill_defaults(SHAPE, {"spec": {}}) for _ in range(2))
    one["spec"]["inner"]["b"] = False
    assert other["spec"]["inner"]["b"] is True


def test_a_null_that_may_not_be_is_as_good_as_absent() -> None:
    filled = fill_defaults(SHAPE, {"spec": {"a": None, "none": None, "map": None}})
    assert filled["spec"] == {"a": "x", "none": None, "inner": {"b": True}}
