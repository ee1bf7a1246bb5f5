"""Functions that build OpenAPI v3 schemas, in the subset that Kubernetes calls structural.

The CustomResourceDefinitions here and the embedded API server's own kinds are both written with
them.
"""

from typing import Any

Schema = dict[str, Any]

QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


def text(description: str = "", **more: Any) -> Schema:
    """Text, perhaps of a pattern."""
    return _typed("string", description, more)


def choice(*words: str, description: str = "", **more: Any) -> Schema:
    """One of a few words."""
    return _typed("string", description, {"enum": list(words), **more})


def moment(description: str = "") -> Schema:
    """A time, such as `2024-05-01T12:00:00Z`."""
    return _typed("string", description, {"format": "date-time"})


def whole(description: str = "", **more: Any) -> Schema:
    """An int32, which `minimum` and `maximum` may narrow."""
    return _typed("integer", description, {"format": "int32", **more})


def long(description: str = "", **more: Any) -> Schema:
    """An int64."""
    return _typed("integer", description, {"format": "int64", **more})


def flag(description: str = "", **more: Any) -> Schema:
    """True or false."""
    return _typed("boolean", description, more)


def listed(items: Schema, description: str = "", **more: Any) -> Schema:
    """A list."""
    return _typed("array", description, {"items": items, **more})


def keyed(items: Schema, *keys: str, description: str = "", **more: Any) -> Schema:
    """A list of objects that are identified by some of their fields (a map list)."""
    kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return listed(items, description, **kind, **more)


def mapped(values: Schema, description: str = "", **more: Any) -> Schema:
    """A map from text to values of a schema."""
    return _typed("object", description, {"additionalProperties": values, **more})


def record(
    properties: dict[str, Schema], *required: str, description: str = "", **more: Any
) -> Schema:
    """An object with these fields, of which some are required."""
    needed = {"required": list(required)} if required else {}
    return _typed("object", description, {"properties": properties, **needed, **more})


def anything(description: str = "") -> Schema:
    """An object with any fields, all of which are kept."""
    return _typed("object", description, {"x-kubernetes-preserve-unknown-fields": True})


def open_ended(shape: Schema) -> Schema:
    """The same schema, but unknown fields are kept."""
    return {**shape, "x-kubernetes-preserve-unknown-fields": True}


def number_or_text(description: str = "", **more: Any) -> Schema:
    """A number or a text, such as `2` or `25%`."""
    either = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    }
    return ({"description": description} if description else {}) | either | more


def quantity(description: str = "") -> Schema:
    """An amount, such as `2`, `500m` or `10Gi`."""
    return number_or_text(description, pattern=QUANTITY_PATTERN)


def quantities(description: str = "") -> Schema:
    """Amounts by resource."""
    return mapped(quantity(), description)


def conditions() -> Schema:
    """The conditions of a status."""
    one = record(
        {
            "type": text("What it is about."),
            "status": text("True, False or Unknown."),
            "reason": text("Why, in one word."),
            "message": text("Why, in a sentence."),
            "lastTransitionTime": moment("Since when."),
            "observedGeneration": long("Of which version of the object."),
        },
        "type",
        "status",
    )
    return listed(open_ended(one), "What is true of it.")


def _typed(name: str, description: str, more: Schema) -> Schema:
    described = {"description": description} if description else {}
    return {**described, "type": name, **more}
