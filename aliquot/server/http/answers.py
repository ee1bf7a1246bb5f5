"""Answers: JSON, with a code."""

from typing import Any

import msgspec
import yaml
from aiohttp import web

_YAML = "application/yaml"
_encode = msgspec.json.Encoder().encode


def answer(body: Any, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer in JSON."""
    content = body if isinstance(body, bytes) else _encode(body)
    return web.Response(body=content, status=code, content_type="application/json", headers=headers)


def wants_yaml(accept: str) -> bool:
    """Is YAML what a client asks for first?"""
    return accept.partition(",")[0].partition(";")[0].strip() == _YAML


def as_yaml(found: web.Response) -> web.Response:
    """The same answer in YAML."""
    assert isinstance(found.body, bytes)
    text = yaml.dump(msgspec.json.decode(found.body), Dumper=yaml.CSafeDumper, sort_keys=False)
    return web.Response(text=text, status=found.status, content_type=_YAML)
