"""AdmissionReviews: reading an API server's request, and writing the answer.

Only the fields that verdicts need are read. A body that is not an AdmissionReview is refused: no
API server sends one.
"""

import base64
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal

import msgspec

from aliquot.errors import InputError
from aliquot.json import DEEPEST, Body, too_deep

_VERSION = "admission.k8s.io/v1"
_LONGEST_WARNING = 256
"""Characters: API servers cut longer warnings."""
_MOST_WARNINGS = 3072
"""Characters of all warnings: API servers drop those beyond 4096, of all webhooks together."""
_LONGEST_REFUSAL = 4096
"""Characters: more than a person reads in a terminal."""
_REASONS = {HTTPStatus.FORBIDDEN: "Forbidden", HTTPStatus.UNPROCESSABLE_ENTITY: "Invalid"}

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class _Kind(msgspec.Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class _User(msgspec.Struct):
    username: str = ""


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    kind: _Kind
    operation: Operation
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    user_info: _User = msgspec.field(default_factory=_User)
    object: Body | None = None
    old_object: Body | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Request


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A write that an API server asks about."""

    uid: str
    operation: Operation
    group: str
    kind: str
    namespace: str
    name: str
    new: Body | None = None
    """The object after the write; None for a deletion."""
    old: Body | None = None
    """The object before the write; None for a creation."""
    user: str = ""
    part: str = ""
    """The subresource, such as `status`; empty for the object itself."""

    @property
    def changes_nothing_of_note(self) -> bool:
        """Are spec, labels and annotations unchanged?"""
        if self.new is None or self.old is None:
            return False
        return _of_note(self.new) == _of_note(self.old)

    @property
    def is_leaving(self) -> bool:
        """Is the object being deleted, and only waits for its finalizers?"""
        return self.new is not None and bool(_metadata(self.new).get("deletionTimestamp"))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a write is allowed, with warnings and defaults."""

    refusal: str = ""
    """Why it is refused; empty if it is allowed."""
    code: HTTPStatus = HTTPStatus.FORBIDDEN
    """422 for an object that is invalid by itself, 403 for one that breaks a rule."""
    warnings: tuple[str, ...] = ()
    patch: list[Body] = field(default_factory=list)
    """The JSON Patch that fills in defaults."""


ALLOWED = Verdict()

_decode = msgspec.json.Decoder(_Review).decode


def read(content: bytes) -> AdmissionRequest:
    """The request in an AdmissionReview."""
    try:
        review = _decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError("AdmissionReview", "", f"cannot be read: {error}") from None
    if (review.api_version, review.kind) != (_VERSION, "AdmissionReview"):
        problem = f"expected an AdmissionReview of {_VERSION}"
        raise InputError("AdmissionReview", "", f"{problem}, got {review.kind[:60]!r}")
    request = review.request
    if too_deep([request.object, request.old_object]):
        raise InputError("AdmissionReview", "", f"an object is nested more than {DEEPEST} deep")
    _check_kind(request, "object", request.object)
    _check_kind(request, "oldObject", request.old_object)
    return AdmissionRequest(
        uid=request.uid,
        operation=request.operation,
        group=request.kind.group,
        kind=request.kind.kind,
        namespace=request.namespace,
        name=request.name,
        new=request.object,
        old=request.old_object,
        user=request.user_info.username,
        part=request.sub_resource,
    )


def _check_kind(request: _Request, field: str, body: Body | None) -> None:
    """Refuse an object of another kind than the request is about: rules would misread it."""
    if body is None:
        return
    version, kind, wanted = body.get("apiVersion"), body.get("kind"), request.kind
    where = f"request.{field}"
    for key, value in (("kind", kind), ("apiVersion", version)):
        if not isinstance(value, str) or not value:
            problem = f"Object '{key}' is missing" if not value else f"{key} must be text"
            raise InputError("AdmissionReview", where, problem)
    group = str(version).rpartition("/")[0]
    if (group, kind) != (wanted.group, wanted.kind):
        problem = f"is a {kind} of {version}, but the request is about a {wanted.kind}"
        raise InputError("AdmissionReview", where, f"{problem} of {wanted.group or 'v1'}"[:300])


def answer(request: AdmissionRequest, verdict: Verdict) -> bytes:
    """The AdmissionReview that answers a request."""
    response: Body = {"uid": request.uid, "allowed": not verdict.refusal}
    if verdict.refusal:
        response["status"] = {
            "code": verdict.code,
            "reason": _REASONS[verdict.code],
            "message": _cut(verdict.refusal, _LONGEST_REFUSAL),
        }
    if verdict.warnings:
        response["warnings"] = _fitting(verdict.warnings)
    if verdict.patch and not verdict.refusal:
        patch = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
        response |= {"patchType": "JSONPatch", "patch": patch}
    body = {"apiVersion": _VERSION, "kind": "AdmissionReview", "response": response}
    return msgspec.json.encode(body)


def _fitting(warnings: tuple[str, ...]) -> list[str]:
    """As many warnings as API servers pass on, each cut to their limit."""
    fitting: list[str] = []
    for each in dict.fromkeys(_cut(warning, _LONGEST_WARNING) for warning in warnings):
        if sum(map(len, fitting)) + len(each) > _MOST_WARNINGS:
            break
        fitting.append(each)
    return fitting


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _of_note(body: Body) -> tuple[Any, ...]:
    """All of an object but its status and what the API server itself sets."""
    metadata = _metadata(body)
    apart = {"metadata", "status", "apiVersion", "kind"}
    rest = {key: value for key, value in body.items() if key not in apart}
    return rest, metadata.get("labels") or {}, metadata.get("annotations") or {}


def _metadata(body: Body) -> Body:
    found = body.get("metadata")
    return found if isinstance(found, dict) else {}
