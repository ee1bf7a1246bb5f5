"""Whether an applied configuration has the structure of its kind, in kube-apiserver's words.

A configuration claims fields, so that one with a field that the kind does not have, or a list with
two items of the same key, is refused before anything else is looked at.
"""

import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from aliquot.errors import RefusalError
from aliquot.json import Body, go_text
from aliquot.server.ownership.field_set import item_element, written
from aliquot.server.schema.structure import ANY, Structure

_TYPES = {"string": str, "numeric": int | float, "boolean": bool}


def check(structure: Structure, config: Body) -> None:
    """Refuse a configuration that does not have this structure."""
    problems = list(_problems(structure, config, ""))
    if not problems:
        return
    if len(problems) > 1:
        problems = ["errors:", *(f"  {each}" for each in problems)]
    group, _, version = config["apiVersion"].rpartition("/")
    found = config.get("metadata")
    metadata = found if isinstance(found, dict) else {}
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    about = f"{name}; {group}/{version}, Kind={config['kind']}"
    message = f"failed to create typed patch object ({about}): {chr(10).join(problems)}"
    raise RefusalError(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)


def _problems(structure: Structure, value: Any, path: str) -> Iterator[str]:
    if value is None or structure.sort == "any":
        return
    if structure.sort == "scalar":
        yield from _scalar_problems(structure, value, path)
    elif structure.sort == "record":
        if not isinstance(value, dict):
            yield f"{path}: expected map, got &{{{go_text(value)}}}"
            return
        for name, each in value.items():
            inner = structure.of(name)
            if inner is None:
                yield f"{path}.{name}: field not declared in schema"
            else:
                yield from _problems(inner, each, f"{path}.{name}")
    elif not isinstance(value, list):
        yield f"{path}: expected list, got &{{{go_text(value)}}}"
    else:
        yield from _list_problems(structure, value, path)


def _scalar_problems(structure: Structure, value: Any, path: str) -> Iterator[str]:
    wanted = _TYPES.get(structure.scalar, str | int | float | bool)
    fits = isinstance(value, wanted)
    if isinstance(value, bool) and structure.scalar == "numeric":
        fits = False
    if not fits:
        shown = json.dumps(value) if not isinstance(value, dict | list) else go_text(value)
        expected = structure.scalar or "scalar"
        yield f"{path}: expected {expected}, got &value.valueUnstructured{{Value:{shown}}}"


def _list_problems(structure: Structure, value: list[Any], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, each in enumerate(value):
        if structure.atomic:
            yield from _problems(structure.items or ANY, each, f"{path}[{index}]")
            continue
        element = item_element(structure, each)
        if element is None:
            yield f"{path}: element {index}: {_unidentified(structure, each)}"
        elif element in seen:
            yield f"{path}: duplicate entries for key {written(element)}"
        else:
            seen.add(element)
            yield from _problems(structure.items or ANY, each, path + written(element))


def _unidentified(structure: Structure, item: Any) -> str:
    if not structure.keys:
        what = "a map type" if isinstance(item, dict) else "an explicit null"
        return f"associative list without keys has an element that's {what}"
    if item is None:
        return "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    keys = " ".join(f'"{key}"' for key in structure.keys)
    return (
        f"associative list with keys has an element that omits all key fields [{keys}] "
        "(and doesn't have default values for any key fields)"
    )
