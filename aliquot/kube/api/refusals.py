"""Refusals: an answer with an error status, as an `ApiError`.

An API server sends a Status object, as an answer or as an event of a watch. A proxy, or a server
that is just starting, may send any other text: then the error has the HTTP code and that text.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from aliquot.dialects.core.objects import Wire
from aliquot.errors import ApiError


class Status(Wire):
    """A `Status` object of the API, as far as errors need it."""

    kind: str | None = None
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: dict[str, Any] | None = None

    def error(self, code: int, retry_after: float | None = None) -> ApiError:
        """The `ApiError`; code and delay in the object go before those of the HTTP answer."""
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


def refusal(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The `ApiError` for an answer with an error status; names of headers are in small letters."""
    retry_after = _seconds(headers.get("retry-after"))
    try:
        status = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = Status()
    if status.kind != "Status":
        status = Status(message=" ".join(body.decode(errors="replace").split()))
    return status.error(code, retry_after)


def _seconds(text: str | None) -> float | None:
    """Retry-After in seconds; its date form, which no API server sends, is ignored."""
    return float(text) if text and text.isascii() and text.isdecimal() else None


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "no reason given"
