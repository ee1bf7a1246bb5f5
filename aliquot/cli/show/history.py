"""The decisions of a cluster or of a run, a line each, in their order."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from aliquot.cli.drawing.grid import Cell, elapsed, indented, table

_STYLES = {"started": "green", "evicted": "red", "nominated": "cyan", "waits": "yellow"}
_WORDS = {"started": "starts"}
Result = dict[str, Any]


def drawn(result: Result, width: int) -> RenderableType:
    """The table."""
    if not result["decisions"]:
        return indented(Text("no decisions"))
    rows: list[list[Cell]] = [
        [
            _time(each["at"]),
            Text(_WORDS.get(each["what"], each["what"]), style=_STYLES.get(each["what"], "")),
            each["pod"],
            each["node"] or "",
            f"{each['reason']}: {each['message']}" if each["reason"] else each["message"],
        ]
        for each in result["decisions"]
    ]
    return Group(table(width, ("at", "", "pod", "node", "why"), rows, right=("at",)))


def _time(at: Any) -> str:
    return str(at) if isinstance(at, str) else elapsed(at)
