"""Protobuf as kubectl sends it, decoded into the same plain data as JSON.

Only decoding is needed, since responses may always be JSON. `messages.json` has the names and types
of the numbered fields. Empty text and zero are left out where JSON leaves them out.
"""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.http.refusals import bad_request, unsupported

_MAGIC = b"k8s\x00"
_DEEPEST = 100
"""The most levels of nesting, as for JSON (`http.bodies`)."""
Field = tuple[str, str, str]


@cache
def _table() -> tuple[dict[str, str], dict[str, dict[int, Field]]]:
    read = json.loads((files(__package__) / "messages.json").read_text())
    messages = {
        name: {int(number): (field[0], field[1], field[2]) for number, field in fields.items()}
        for name, fields in read["messages"].items()
    }
    return read["roots"], messages


def messages() -> dict[str, dict[int, Field]]:
    """The fields of every message, by number."""
    return _table()[1]


def root(api_version: str, kind: str) -> str | None:
    """The name of the message of a kind; None if it is not in the table."""
    roots, _ = _table()
    return roots.get(f"{api_version} {kind}") or roots.get(kind)


def from_protobuf(content: bytes) -> Body:
    """An object from its envelope, which names apiVersion and kind."""
    if not content.startswith(_MAGIC):
        raise bad_request("the object provided is not protobuf as Kubernetes has it")
    try:
        envelope = dict(_split(content[len(_MAGIC) :]))
        about = {number: str(value, "utf-8") for number, value in _split(envelope.get(1, b""))}
        api_version, kind = about.get(1, ""), about.get(2, "")
        message = root(api_version, kind)
        if message is None:
            raise unsupported(f"{api_version} {kind} is not understood as protobuf; send JSON")
        read = _message(message, envelope.get(2, b""), 0)
        return {"apiVersion": api_version, "kind": kind, **read}
    except RefusalError:
        raise
    except (IndexError, ValueError, TypeError, OverflowError) as error:
        raise bad_request(f"the object provided is unrecognized: {error}") from None


def _message(name: str, content: bytes, depth: int) -> Body:
    if depth > _DEEPEST:
        raise bad_request(f"the object provided is nested deeper than {_DEEPEST} levels")
    fields = messages()[name]
    body: Body = {}
    for number, value in _split(content):
        if number not in fields:
            continue
        field, kind, how = fields[number]
        if how == "map":
            key, item = _pair(kind, value, depth)
            body.setdefault(field, {})[key] = item
        elif how == "repeated":
            body.setdefault(field, []).append(_value(kind, value, depth))
        elif how == "inline":
            body.update(_value(kind, value, depth))
        else:
            read = _value(kind, value, depth)
            if how == "pointer" or read not in ("", 0, None, False):
                body[field] = read
    return body


def _pair(kind: str, content: bytes, depth: int) -> tuple[str, Any]:
    parts = dict(_split(content))
    return str(parts.get(1, b""), "utf-8"), _value(kind, parts.get(2, b""), depth)


def _value(kind: str, value: Any, depth: int) -> Any:
    match kind:
        case "string":
            return str(value, "utf-8")
        case "bytes":
            return base64.b64encode(value).decode()
        case "bool":
            return bool(value)
        case "int32" | "int64":
            return value - 2**64 if value >= 2**63 else value
        case "Quantity":
            return str(dict(_split(value)).get(1, b""), "utf-8")
        case "IntOrString":
            parts = dict(_split(value))
            text = str(parts.get(3, b""), "utf-8")
            return text if parts.get(1) else _value("int64", parts.get(2, 0), depth)
        case "Time" | "MicroTime":
            return _time(kind, value)
        case "RawExtension" | "FieldsV1":
            return json.loads(dict(_split(value)).get(1, b"null"))
    return _message(kind, value, depth + 1)


def _time(kind: str, content: bytes) -> str | None:
    parts = dict(_split(content))
    if 1 not in parts:
        return None
    moment = datetime.fromtimestamp(_value("int64", parts[1], 0), UTC)
    if kind == "Time":
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{parts.get(2, 0) // 1000:06d}Z"


def _split(content: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message by number: bytes, or an integer."""
    at = 0
    while at < len(content):
        key, at = _integer(content, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _integer(content, at)
            yield number, value
        elif wire == 2:
            length, at = _integer(content, at)
            if at + length > len(content):
                raise ValueError("it ends too early")
            yield number, content[at : at + length]
            at += length
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
            yield number, int.from_bytes(content[at : at + length], "little")
            at += length
        else:
            raise ValueError(f"a field of an unknown sort ({wire})")


def _integer(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2**64 - 1), at
        shift += 7
        if shift > 63:
            raise ValueError("an integer that does not end")
