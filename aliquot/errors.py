"""Every error Aliquot raises on purpose, in one small tree.

A message says what was refused, by which rule, with the numbers, and where that is known, what
would help. The commands turn an `AliquotError` into one line on stderr and exit code 2; anything
else that escapes is a defect of ours.
"""

from typing import Any

_MOST_CHARACTERS = 400


class AliquotError(Exception):
    """Base of all errors that a caller may expect and handle."""


class QuantityError(AliquotError):
    """A text that is not a Kubernetes quantity."""


class InputError(AliquotError):
    """Bad input: names the place (file and document), the field, and what is wrong with it."""

    def __init__(self, place: str, field: str, problem: str) -> None:
        self.place = place
        self.field = _short(field)
        self.problem = _short(problem)
        super().__init__(": ".join(part for part in (place, self.field, self.problem) if part))


class SelectorError(AliquotError):
    """A label or field selector that cannot be read, or that asks for what is not there."""


class PatchError(AliquotError):
    """A patch that cannot be used; by itself, because it cannot be read."""


class PatchMisfitError(PatchError):
    """A patch that makes sense, but not for the object that it is for."""


class UnsupportedPatchError(AliquotError):
    """A way of patching that the kind of object does not have."""


class EndlessError(AliquotError):
    """A simulation in which pods keep taking each other's place, without time passing."""


class TreeError(AliquotError):
    """A quota tree that cannot be: an unknown parent, a cycle."""


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
        """The Status object that says so."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details:
            body["details"] = self.details
        return {**body, "code": self.code}


class ApiError(AliquotError):
    """A request that the API server answered with a refusal, and what the answer says."""

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
        self.message = _short(message)
        self.details = details or {}
        self.retry_after = retry_after
        """After how many seconds the server would like to be asked again."""
        super().__init__(
            f"{code} {reason}: {self.message}" if reason else f"{code}: {self.message}"
        )


class UnreachableError(AliquotError):
    """A request without an answer: no connection, one that broke, or no patience left."""

    def __init__(self, message: str, *, sent: bool) -> None:
        self.sent = sent
        """Whether the server may have carried it out all the same."""
        super().__init__(_short(message))


class ProcessError(AliquotError):
    """A process that we started did not come up, or ended while it was needed."""


def _short(text: str) -> str:
    """A message quotes the input, which may go on for megabytes."""
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
