"""The bodies of HTTP: requests are read within limits, responses are written as JSON or YAML.

A request body is JSON, YAML or protobuf. Its size, depth and time are limited, so that one client
cannot exhaust the memory of the server or hold a connection open for ever.
"""

from contextlib import suppress
from http import HTTPStatus
from typing import Any

import msgspec
import yaml
from aiohttp import web

from aliquot.errors import RefusalError
from aliquot.json import DEEPEST, too_deep
from aliquot.listener import BodyError, Limits, read_body
from aliquot.server.http.refusals import bad_request, unsupported
from aliquot.server.schema.protobuf import from_protobuf

LIMITS = Limits()
"""Of the API server: a body is as large as kube-apiserver lets it be."""
MOST_BYTES = LIMITS.body_bytes
_REASONS = {
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.REQUEST_TIMEOUT: "Timeout",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "RequestEntityTooLarge",
}
_JSON = ("application/json", "application/octet-stream", "")
_YAML = "application/yaml"
_YAMLS = (_YAML, "text/yaml", "application/x-yaml")
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_NO_JSON = (msgspec.DecodeError, UnicodeDecodeError)
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


async def read(request: web.BaseRequest) -> bytes:
    """The bytes of a body; refused if it is too large or takes too long."""
    try:
        return await read_body(request, LIMITS)
    except BodyError as error:
        raise RefusalError(error.code, _REASONS[error.code], str(error)) from None


def media_type(request: web.BaseRequest) -> str:
    """The media type of a body, without its parameters."""
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


async def decoded(request: web.BaseRequest) -> Any:
    """The body of a request as plain data; None if there is none."""
    content = await read(request)
    if not content:
        return None
    form = media_type(request)
    if form in _JSON:
        return from_json(content)
    if form in _YAMLS:
        return from_yaml(content)
    if form == _PROTOBUF:
        return from_protobuf(content)
    raise unsupported(
        f"the body of the request was in an unknown format ({form[:100]}) - "
        "accepted media types include: application/json, application/yaml"
    )


_OPENING = (
    *(yaml.BlockSequenceStartToken, yaml.BlockMappingStartToken),
    *(yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken),
)
_CLOSING = (yaml.BlockEndToken, yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)


def from_json(content: bytes) -> Any:
    """Plain data from JSON."""
    try:
        return _from_json(content)
    except _NO_JSON as error:
        raise bad_request(f"the object provided is unrecognized: {error}") from None


def _from_json(content: bytes) -> Any:
    try:
        value = _decode(content)
    except RecursionError:
        raise _too_deep() from None
    if content.count(b"{") + content.count(b"[") > DEEPEST and too_deep(value):
        raise _too_deep()
    return value


def from_yaml(content: bytes) -> Any:
    """Plain data from YAML: one document, no aliases, since they could expand without bound.

    Most of it is JSON, which is YAML, too: that is read as such, for YAML takes 50 times as long.
    """
    if content[:1] == b"{":
        with suppress(*_NO_JSON):
            return _from_json(content)
    try:
        _check_tokens(content)
        value = yaml.load(content, yaml.CSafeLoader)
        return from_json(msgspec.json.encode(value))
    except (yaml.YAMLError, UnicodeDecodeError, TypeError, ValueError) as error:
        problem = " ".join(str(error).split())[:200]
        raise bad_request(f"the object provided is unrecognized: {problem}") from None
    except RecursionError:
        raise _too_deep() from None


def _check_tokens(content: bytes) -> None:
    """Refuse aliases, and what is nested so deep that loading it, which recurses in C, crashes."""
    depth = 0
    for token in yaml.scan(content, yaml.CSafeLoader):
        if isinstance(token, yaml.AliasToken):
            raise bad_request("YAML aliases are not accepted here")
        if isinstance(token, _OPENING):
            depth += 1
            if depth > DEEPEST:
                raise _too_deep()
        elif isinstance(token, _CLOSING):
            depth -= 1


def json_response(
    body: Any, code: int = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> web.Response:
    """A response in JSON; bytes are JSON already."""
    content = body if isinstance(body, bytes) else _encode(body)
    return web.Response(body=content, status=code, content_type="application/json", headers=headers)


def wants_yaml(accept: str) -> bool:
    """Is YAML the first media type of an Accept header?"""
    return accept.partition(",")[0].partition(";")[0].strip() == _YAML


def as_yaml(response: web.Response) -> web.Response:
    """The same response in YAML."""
    assert isinstance(response.body, bytes)
    content = msgspec.json.decode(response.body)
    text = yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False)
    return web.Response(text=text, status=response.status, content_type=_YAML)


def _too_deep() -> RefusalError:
    return bad_request(f"the object provided is nested deeper than {DEEPEST} levels")
