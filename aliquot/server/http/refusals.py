"""Refusals: code, reason and message of every Status, as kube-apiserver has them.

Clients act on `reason` and `code`, people read the message: it is Kubernetes' where it has one.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from aliquot.errors import RefusalError
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules.causes import Cause, join_causes

_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_SUCCESS: dict[str, Any] = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
}


def success(kind: Kind, name: str, uid: str) -> dict[str, Any]:
    """The Status of a deletion that left no object to show."""
    return {**_SUCCESS, "details": {**_details(kind, name), "uid": uid}}


def created() -> dict[str, Any]:
    """The Status of a Binding or an Eviction that was carried out."""
    return {**_SUCCESS, "code": HTTPStatus.CREATED}


def not_found(kind: Kind, name: str) -> RefusalError:
    """The object does not exist."""
    message = f'{kind.resource} "{name}" not found'
    return RefusalError(HTTPStatus.NOT_FOUND, "NotFound", message, _details(kind, name))


def no_such_path() -> RefusalError:
    """The path does not exist."""
    return RefusalError(
        HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource", {}
    )


def already_exists(kind: Kind, name: str) -> RefusalError:
    """The object exists already."""
    message = f'{kind.resource} "{name}" already exists'
    return RefusalError(HTTPStatus.CONFLICT, "AlreadyExists", message, _details(kind, name))


def conflict(kind: Kind, name: str, why: str = _MODIFIED) -> RefusalError:
    """The object was changed by another write, or is not the one that was meant."""
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return RefusalError(HTTPStatus.CONFLICT, "Conflict", message, _details(kind, name))


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> RefusalError:
    """The object is invalid; every cause is listed."""
    details = {
        "name": name,
        "group": kind.group,
        "kind": kind.name,
        "causes": [cause.wire() for cause in causes],
    }
    full = f"{kind.name}.{kind.group}" if kind.group else kind.name
    message = f'{full} "{name}" is invalid: {join_causes(causes)}'
    return RefusalError(
        HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, _without_empty(details)
    )


def forbidden(
    kind: Kind, name: str, why: str, causes: list[dict[str, str]] | None = None
) -> RefusalError:
    """Admission refuses the request."""
    details = _details(kind, name) | ({"causes": causes} if causes else {})
    return RefusalError(
        HTTPStatus.FORBIDDEN, "Forbidden", f'{kind.resource} "{name}" is forbidden: {why}', details
    )


def bad_request(message: str) -> RefusalError:
    """The request cannot be decoded, or contradicts itself."""
    return RefusalError(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def invalid_option(what: str, field: str, message: str) -> RefusalError:
    """An option of the request is invalid."""
    cause = Cause(field, "FieldValueInvalid", message)
    details = {"kind": what, "causes": [cause.wire()]}
    return RefusalError(
        HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", f'{what} "" is invalid: {cause}', details
    )


def invalid_options(what: str, cause: Cause) -> RefusalError:
    """The options of a write are invalid, in the form that kube-apiserver has for them."""
    group = "meta.k8s.io"
    details = {"group": group, "kind": what, "causes": [cause.wire()]}
    message = f'{what}.{group} "" is invalid: {cause}'
    return RefusalError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def expired(message: str) -> RefusalError:
    """The version or continue token is too old: the client lists anew."""
    return RefusalError(HTTPStatus.GONE, "Expired", message)


def method_not_allowed() -> RefusalError:
    """The path exists, but not with this method."""
    message = "the server does not allow this method on the requested resource"
    return RefusalError(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", message, {})


def unsupported(message: str) -> RefusalError:
    """The media type of the body is not supported."""
    return RefusalError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message, {})


def unauthorized() -> RefusalError:
    """The token is missing or wrong."""
    return RefusalError(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")


def internal(message: str) -> RefusalError:
    """An error of the server, or of a webhook."""
    return RefusalError(
        HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", f"Internal error occurred: {message}"
    )


def _details(kind: Kind, name: str) -> dict[str, Any]:
    return _without_empty({"name": name, "group": kind.group, "kind": kind.plural})


def _without_empty(details: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in details.items() if value}
