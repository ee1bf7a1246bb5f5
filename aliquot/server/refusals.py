"""Refusals: what the server says no with, in the words and codes of Kubernetes.

Clients decide by `reason` and `code`, people read the message; both are as an API server has them.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from aliquot.errors import AliquotError
from aliquot.server.kind import Kind

_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class HasCause(Protocol):
    """A field, what is wrong with it by the book, and in words."""

    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def field(self) -> str: ...


class Refusal(AliquotError):
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


def success(kind: Kind, name: str, uid: str) -> dict[str, Any]:
    """The Status of something that was done and has left nothing to show."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**_details(kind, name), "uid": uid},
    }


def not_found(kind: Kind, name: str) -> Refusal:
    """There is no such object."""
    message = f'{kind.resource} "{name}" not found'
    return Refusal(404, "NotFound", message, _details(kind, name))


def no_such_path() -> Refusal:
    """There is nothing at all there."""
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(kind: Kind, name: str) -> Refusal:
    """There is one already."""
    message = f'{kind.resource} "{name}" already exists'
    return Refusal(409, "AlreadyExists", message, _details(kind, name))


def conflict(kind: Kind, name: str, why: str = _MODIFIED) -> Refusal:
    """Somebody else was faster."""
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return Refusal(409, "Conflict", message, _details(kind, name))


def invalid(kind: Kind, name: str, causes: Sequence[HasCause]) -> Refusal:
    """The object is not as it must be; every field that is wrong is named."""
    said = [f"{cause.field}: {cause.message}" for cause in causes]
    message = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    details = {"name": name, "group": kind.group, "kind": kind.name}
    details["causes"] = [  # type: ignore[assignment]
        {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes
    ]
    full = f"{kind.name}{'.' + kind.group if kind.group else ''}"
    return Refusal(422, "Invalid", f'{full} "{name}" is invalid: {message}', _without_empty(details))


def forbidden(kind: Kind, name: str, why: str, causes: list[dict[str, str]] | None = None) -> Refusal:
    """Some rule of admission says no."""
    details = _details(kind, name) | ({"causes": causes} if causes else {})
    return Refusal(403, "Forbidden", f'{kind.resource} "{name}" is forbidden: {why}', details)


def bad_request(message: str) -> Refusal:
    """The request cannot be understood."""
    return Refusal(400, "BadRequest", message)


def expired(message: str) -> Refusal:
    """What is asked for is too long ago: list anew."""
    return Refusal(410, "Expired", message)


def method_not_allowed() -> Refusal:
    """There is such a thing, but it cannot be done to it."""
    message = "the server does not allow this method on the requested resource"
    return Refusal(405, "MethodNotAllowed", message, {})


def unsupported(message: str) -> Refusal:
    """A body in a form that is not understood here."""
    return Refusal(415, "UnsupportedMediaType", message, {})


def unauthorized() -> Refusal:
    """No token, or the wrong one."""
    return Refusal(401, "Unauthorized", "Unauthorized")


def internal(message: str) -> Refusal:
    """A defect of ours, or of a webhook."""
    return Refusal(500, "InternalError", f"Internal error occurred: {message}")


def _details(kind: Kind, name: str) -> dict[str, Any]:
    return _without_empty({"name": name, "group": kind.group, "kind": kind.plural})


def _without_empty(details: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in details.items() if value}
