r"""JSONPaths, as far as printer columns use them.

Fields (`.spec.min`, `.labels.example\.com/team`, `['a.b']`), indexes (`[0]`, `[-1]`, `[*]`) and
filters (`[?(@.type=="Ready")]`). An invalid path finds nothing: a column must never make a list
fail.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from aliquot.json import same

Move = Callable[[Any], Iterator[Any]]

_PART = re.compile(
    r"\.(?P<star>\*)"
    r"|\.(?P<field>(?:\\.|[^.\[\]\\])+)"
    r"|\[(?P<every>\*)\]"
    r"|\[(?P<index>-?[0-9]{1,9})\]"
    r"|\[(?P<quote>['\"])(?P<quoted>(?:\\.|(?!(?P=quote)).)*)(?P=quote)\]"
    r"|\[\?\(\s*@\.(?P<key>[^=!<>\s]+)\s*(?P<sign>==|!=)\s*(?P<value>[^)]+?)\s*\)\]"
)


def find(path: str, body: Any) -> list[Any]:
    """All values at a path, in order."""
    found = [body]
    moves = _moves(path)
    if moves is None:
        return []
    for move in moves:
        found = [each for value in found for each in move(value)]
    return found


def text(value: Any) -> str:
    """A value as the text of a cell; objects and lists as JSON."""
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


@lru_cache(maxsize=1024)
def _moves(path: str) -> tuple[Move, ...] | None:
    path = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if path and path[0] not in ".[":
        path = f".{path}"
    moves, at = [], 0
    while at < len(path):
        part = _PART.match(path, at)
        if part is None:
            return None
        moves.append(_move(part))
        at = part.end()
    return tuple(moves)


def _move(part: re.Match[str]) -> Move:
    if part["star"] or part["every"]:
        return _everything
    if part["index"]:
        return _place(int(part["index"]))
    if part["key"]:
        return _filter(part["key"], part["sign"] == "==", part["value"])
    name = part["field"] if part["field"] is not None else part["quoted"]
    return _field(re.sub(r"\\(.)", r"\1", name))


def _field(name: str) -> Move:
    def move(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return move


def _place(index: int) -> Move:
    def move(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return move


def _everything(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _filter(key: str, equal: bool, wanted: str) -> Move:
    literal, words = _literal(wanted), key.split(".")

    def move(value: Any) -> Iterator[Any]:
        for each in value if isinstance(value, list) else ():
            found = each
            for word in words:
                found = found.get(word) if isinstance(found, dict) else None
            if same(found, literal) == equal:
                yield each

    return move


def _literal(wanted: str) -> Any:
    """Text in single or double quotes, a number, true or false."""
    if wanted[0] in "'\"" and wanted[-1] == wanted[0]:
        return wanted[1:-1]
    try:
        return json.loads(wanted)
    except ValueError:
        return wanted
