"""Every error Aliquot raises on purpose, in one small tree.

A message says what was refused, by which rule, with the numbers, and, where known, what would help.
The commands turn an `AliquotError` into one line on stderr and exit code 2; any other exception
that reaches them is a defect of Aliquot.
"""

from typing import Any

_MOST_CHARACTERS = 400
"""How much of a quoted text a message keeps: about five lines of a terminal."""


class AliquotError(Exception):
    """Base of all errors that a caller may expect and handle."""


class QuantityError(AliquotError):
    """A text that is not a Kubernetes quantity."""


class InputError(AliquotError):
    """Bad input: names the place (file and document), the field, and what is wrong with it."""

    def __init__(self, place: str, field: str, problem: str) -> None:
        self.place = place
        self.field = shortened(field)
        self.problem = shortened(problem)
        super().__init__(": ".join(part for part in (place, self.field, self.problem) if part))


class ArgumentError(AliquotError, ValueError):
    """A call of the library with an argument that makes no sense; nothing was changed by it."""


class SelectorError(AliquotError):
    """A label or field selector that cannot be read, or names a field that is not selectable."""


class PatchError(AliquotError):
    """A patch that cannot be read, or, as PatchMisfitError, cannot be applied."""


class PatchMisfitError(PatchError):
    """A patch that is valid, but cannot be applied to this object."""


class UnsupportedPatchError(AliquotError):
    """A patch type that this kind of object does not support."""


class EndlessError(AliquotError):
    """A simulation in which pods preempt each other without end, at one moment of virtual time."""


class TreeError(AliquotError):
    """An invalid quota tree: an unknown parent, a cycle."""


class LedgerError(AliquotError):
    """A booking that contradicts one already in the ledger."""


class RefusalError(AliquotError):
    """A request that is refused: a Status with code, reason and details."""

    def __init__(
        self, code: int, reason: str, message: str, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def status(self) -> dict[str, Any]:
        """The Status object of the answer."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details:
            body["details"] = self.details
        return {**body, "code": self.code}


class ApiError(AliquotError):
    """A request that the API server refused, with the Status of its answer."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.code = code
        self.reason = reason
        self.message = shortened(message)
        self.details = details or {}
        self.retry_after = retry_after
        """The Retry-After of the answer, in seconds."""
        super().__init__(
            f"{code} {reason}: {self.message}" if reason else f"{code}: {self.message}"
        )


class UnreachableError(AliquotError):
    """A request without an answer: no connection, a broken one, or a timeout."""

    def __init__(self, message: str, *, sent: bool) -> None:
        self.sent = sent
        """Whether the request was sent, so that the server may have carried it out."""
        super().__init__(shortened(message))


class ProcessError(AliquotError):
    """A child process that did not become ready, or ended while it was needed."""


def shortened(text: str) -> str:
    """The text, cut: messages quote input, which may have megabytes."""
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
