"""Answers: JSON, with a code."""

from typing import Any

import msgspec
from aiohttp import web

_encode = msgspec.json.Encoder().encode


def answer(body: Any, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer in JSON."""
    content = body if isinstance(body, bytes) else _encode(body)
    return web.Response(body=content, status=code, content_type="application/json", headers=headers)
