"""Text to documents: YAML or JSON, several in one file, lists unpacked.

Every document keeps its place (file and number), so that whatever is wrong with it can be named.
Plain data only: no tags that build objects, timestamps stay text, and a document that aliases
itself into something huge is refused rather than unfolded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from aliquot.errors import InputError

Body = dict[str, Any]
_MOST_VALUES = 5_000_000
_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Document:
    """One object as it was written, and where."""

    place: str
    body: Body
    source: str = ""
    """The file it was read from, if it was."""


class _Loader(yaml.CSafeLoader):
    """Safe YAML in which timestamps are text and a key may stand only once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:str":
                if key.value in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"key {key.value!r} stands twice", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def parse(text: str, source: str) -> Iterator[Document]:
    """All documents of a text, with `kind: List` unpacked; empty ones are left out."""
    try:
        bodies = list(yaml.load_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}" if mark is not None else ""
        raise InputError(source, line, f"not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise InputError(source, "", f"not YAML: {problem}") from None
    except RecursionError:
        raise InputError(source, "", "nested too deeply") from None
    for number, body in enumerate(bodies, start=1):
        place = source if len(bodies) == 1 else f"{source}, document {number}"
        if body is not None:
            _check_size(body, place)
            yield from unpack(body, place, source)


def unpack(body: object, place: str, source: str = "") -> Iterator[Document]:
    """A body as a document, or as several if it is a list of objects."""
    if not isinstance(body, dict):
        raise InputError(place, "", f"expected an object with kind and metadata, got {_name(body)}")
    kind = body.get("kind")
    if not isinstance(kind, str) or not kind:
        raise InputError(place, "kind", "is missing" if kind is None else "must be a word")
    items = body.get("items")
    if not kind.endswith("List") or items is None:
        yield Document(place, body, source)
        return
    if not isinstance(items, list):
        raise InputError(place, "items", f"expected a list, got {_name(items)}")
    of_kind = {} if kind == "List" else {"kind": kind[:-4], "apiVersion": body.get("apiVersion")}
    for index, item in enumerate(items):
        inner = {**of_kind, **item} if isinstance(item, dict) else item
        yield from unpack(inner, f"{place}, items[{index}]", source)


def _check_size(body: object, place: str) -> None:
    """Refuse what aliases make endless, enormous or bottomless, without unfolding it."""
    sizes: dict[int, int] = {}

    def size(value: object, depth: int) -> int:
        if not isinstance(value, dict | list):
            return 1
        known = sizes.get(id(value))
        if known == 0 or depth > _DEEPEST:
            raise InputError(place, "", "nested too deeply, or inside itself")
        if known is None:
            sizes[id(value)] = 0
            inner = value.values() if isinstance(value, dict) else value
            known = sizes[id(value)] = 1 + sum(size(each, depth + 1) for each in inner)
        return known

    if size(body, 0) > _MOST_VALUES:
        raise InputError(place, "", f"unfolds to more than {_MOST_VALUES} values")


def _name(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)
