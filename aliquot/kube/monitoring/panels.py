"""Panels of a Grafana dashboard: what Grafana wants of each kind, and where they stand.

The source of data is a variable of the dashboard, so that one file serves any installation.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from aliquot.json import Body

Kind = Literal["stat", "timeseries", "table"]
SOURCE: Body = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH = 24
"""Columns of Grafana's grid."""
_HEIGHTS: dict[str, int] = {"stat": 4, "timeseries": 8, "table": 9}


@dataclass(frozen=True, slots=True)
class Query:
    """An expression, and what its series are called: `{{quota}}` is the value of that label."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; `columns` of a table name the labels and values in their order."""

    title: str
    description: str
    queries: Sequence[Query]
    kind: Kind = "timeseries"
    unit: str = "short"
    width: int = 8
    stacked: bool = False
    bad_from: float | None = None
    """From where on a single figure is red."""
    columns: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A heading, and the panels below it."""

    title: str
    panels: Sequence[Panel]
    collapsed: bool = False


def laid_out(rows: Iterable[Row]) -> list[Body]:
    """Every row and panel as Grafana wants it, from left to right and from top to bottom."""
    found: list[Body] = []
    top = 0
    for row in rows:
        place = {"h": 1, "w": _WIDTH, "x": 0, "y": top}
        heading: Body = {"type": "row", "title": row.title, "collapsed": row.collapsed}
        panels, bottom = _placed(row.panels, top + 1)
        found.append({**heading, "gridPos": place, "panels": panels if row.collapsed else []})
        if not row.collapsed:
            found += panels
        top = top + 1 if row.collapsed else bottom
    for number, panel in enumerate(_each(found), 1):
        panel["id"] = number
    return found


def _each(panels: Iterable[Body]) -> Iterator[Body]:
    for panel in panels:
        yield panel
        yield from panel.get("panels", ())


def _placed(panels: Iterable[Panel], top: int) -> tuple[list[Body], int]:
    """The panels, and the first line below them."""
    found, left, bottom = [], 0, top
    for panel in panels:
        if left + panel.width > _WIDTH:
            left, top = 0, bottom
        height = _HEIGHTS[panel.kind]
        place = {"h": height, "w": panel.width, "x": left, "y": top}
        found.append({**_body(panel), "gridPos": place})
        left, bottom = left + panel.width, max(bottom, top + height)
    return found, bottom


def _body(panel: Panel) -> Body:
    instant = panel.kind != "timeseries"
    targets = [
        {
            "refId": chr(ord("A") + number),
            "datasource": SOURCE,
            "expr": query.expression,
            **({"legendFormat": query.legend} if query.legend else {}),
            **({"instant": True, "range": False} if instant else {}),
            **({"format": "table"} if panel.kind == "table" else {}),
        }
        for number, query in enumerate(panel.queries)
    ]
    made = {"stat": _stat, "timeseries": _timeseries, "table": _table}[panel.kind](panel)
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "targets": targets,
        **made,
    }


def _stat(panel: Panel) -> Body:
    steps: list[Body] = [{"color": "text", "value": None}]
    if panel.bad_from is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.bad_from}]
    return {
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}},
            "overrides": [],
        },
        "options": {
            "colorMode": "value",
            "graphMode": "none",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        },
    }


def _timeseries(panel: Panel) -> Body:
    stacking = {"group": "A", "mode": "normal" if panel.stacked else "none"}
    custom: Body = {
        "fillOpacity": 40 if panel.stacked else 0,
        "lineWidth": 1,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": stacking,
    }
    return {
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "custom": custom},
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def _table(panel: Panel) -> Body:
    """Several queries become one table: a row for each set of labels, a column for each query."""
    names = dict(panel.columns)
    return {
        "fieldConfig": {"defaults": {"unit": panel.unit, "decimals": 1}, "overrides": []},
        "options": {"showHeader": True, "cellHeight": "sm"},
        "transformations": [
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {
                    "excludeByName": {"Time": True},
                    "indexByName": {name: place for place, name in enumerate(names)},
                    "renameByName": names,
                },
            },
        ],
    }
