"""Refusals: what the server says when it says no, as an error.

Most come as a Status, in a response or in the middle of a watch. A proxy, or a server that is just
starting, may say anything else: then the code and the beginning of the text must do.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from aliquot.dialects.core.objects import Wire
from aliquot.errors import ApiError


class Status(Wire):
    """The API's own word on how a request went."""

    kind: str | None = None
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: dict[str, Any] | None = None

    def error(self, code: int, retry_after: float | None = None) -> ApiError:
        """The refusal it is; what stands in it counts before what came with it."""
        details = self.details or {}
        wait = details.get("retryAfterSeconds")
        if isinstance(wait, int) and wait > 0:
            retry_after = max(wait, retry_after or 0)
        return ApiError(
            self.code or code,
            self.reason or "",
            self.message or _phrase(code),
            details=details,
            retry_after=retry_after,
        )


_decode = msgspec.json.Decoder(Status).decode


def refusal(code: int, headers: Mapping[str, str], said: bytes) -> ApiError:
    """The error that a response is."""
    retry_after = _seconds(headers.get("Retry-After"))
    try:
        status = _decode(said)
    except msgspec.DecodeError:
        status = Status()
    if status.kind != "Status":
        status = Status(message=" ".join(said.decode(errors="replace").split()))
    return status.error(code, retry_after)


def _seconds(text: str | None) -> float | None:
    """Retry-After in seconds; dates, which no API server sends, do not count."""
    return float(text) if text and text.isascii() and text.isdecimal() else None


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "no reason given"
