"""Tables (meta.k8s.io/v1): the representation that `kubectl get` asks for.

Kubernetes' own kinds have the columns of kubectl, custom kinds those of their definition. Every row
carries the metadata of its object.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from aliquot.json import Body, type_name
from aliquot.server.kinds.kind import is_kubernetes_kind
from aliquot.server.rendering import json_paths
from aliquot.server.rendering.columns import COLUMNS, CREATED
from aliquot.server.rendering.durations import since
from aliquot.server.rendering.pod_columns import pod_conditions
from aliquot.server.rendering.stored_columns import STORED_COLUMNS

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def table(
    kind: str, objects: Iterable[Body], now: datetime, columns: list[Body] | None = None
) -> Body:
    """A meta.k8s.io/v1 Table; `columns` are a custom kind's additionalPrinterColumns."""
    if columns is None and is_kubernetes_kind(kind):
        shown = COLUMNS.get(kind) or STORED_COLUMNS.get(kind, CREATED)
        heads, cells = shown.wire(), shown.cells
    else:
        printed = columns or [_AGE]
        heads, cells = _heads(printed), _cells(printed)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": heads,
        "rows": [_row(kind, each, cells(each, now)) for each in objects],
    }


def _row(kind: str, body: Body, cells: list[Any]) -> Body:
    partial = {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": body.get("metadata") or {},
    }
    conditions = pod_conditions(body) if kind == "Pod" else []
    row: Body = {"cells": cells, "object": partial}
    return {**row, "conditions": conditions} if conditions else row


def _heads(columns: list[Body]) -> list[Body]:
    name = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
    return [name, *(_head(each) for each in columns)]


def _head(column: Body) -> Body:
    path = f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
    return {
        "name": column["name"],
        "type": column["type"],
        "format": column.get("format") or "",
        "description": column.get("description") or path,
        "priority": column.get("priority") or 0,
    }


def _cells(columns: list[Body]) -> Callable[[Body, datetime], list[Any]]:
    def cells(body: Body, now: datetime) -> list[Any]:
        found = [_cell(each, body, now) for each in columns]
        return [(body.get("metadata") or {}).get("name"), *found]

    return cells


def _cell(column: Body, body: Body, now: datetime) -> Any:
    """The value of a cell; None if it has not the type of its column."""
    found = json_paths.find(column["jsonPath"], body)
    if not found or found[0] is None:
        return None
    value = found[0]
    match column["type"]:
        case "string":
            return json_paths.text(value)
        case "date":
            return since(value, now) if isinstance(value, str) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "integer" | "number" if type_name(value) in ("integer", "number"):
            return int(value) if column["type"] == "integer" else value
    return None
