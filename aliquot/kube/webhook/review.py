"""AdmissionReviews: what an API server asks, and how it is answered.

Only what is judged by is read of a question. What is no AdmissionReview is refused as a whole: an
API server never sends such a thing, so there is nothing to guess.
"""

import base64
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from aliquot.errors import InputError
from aliquot.json import Body

_VERSION = "admission.k8s.io/v1"
_LONGEST_WARNING = 256
_MOST_WARNINGS = 3072
_MOST_CHARACTERS = 4096
_REASONS = {403: "Forbidden", 422: "Invalid"}

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
class Asked:
    """One write that somebody wants to make."""

    uid: str
    operation: Operation
    group: str
    kind: str
    namespace: str
    name: str
    new: Body | None = None
    """As it would be; None if it is to go."""
    old: Body | None = None
    """As it is; None if it is to come."""
    user: str = ""
    part: str = ""
    """`status`, say; empty if it is about the whole object."""

    @property
    def changes_nothing_of_note(self) -> bool:
        """Are spec, labels and annotations what they were?"""
        if self.new is None or self.old is None:
            return False
        return _of_note(self.new) == _of_note(self.old)

    @property
    def is_leaving(self) -> bool:
        """Is the object being deleted already, and waits for its finalizers only?"""
        return self.new is not None and bool(_metadata(self.new).get("deletionTimestamp"))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a write may be made, and what there is to say about it."""

    refusal: str = ""
    """Why not; empty if it may."""
    code: int = 403
    """422 for what makes no sense by itself, 403 for what breaks a rule."""
    warnings: tuple[str, ...] = ()
    patch: list[Body] = field(default_factory=list)
    """What is to be filled in."""


ALLOWED = Verdict()

_decode = msgspec.json.Decoder(_Review).decode


def read(content: bytes) -> Asked:
    """The question of an AdmissionReview."""
    try:
        review = _decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError("AdmissionReview", "", f"cannot be read: {error}") from None
    if (review.api_version, review.kind) != (_VERSION, "AdmissionReview"):
        problem = f"expected an AdmissionReview of {_VERSION}"
        raise InputError("AdmissionReview", "", f"{problem}, got {review.kind[:60]!r}")
    request = review.request
    return Asked(
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


def answer(asked: Asked, verdict: Verdict) -> bytes:
    """The AdmissionReview that says what became of it."""
    response: Body = {"uid": asked.uid, "allowed": not verdict.refusal}
    if verdict.refusal:
        response["status"] = {
            "code": verdict.code,
            "reason": _REASONS[verdict.code],
            "message": _cut(verdict.refusal, _MOST_CHARACTERS),
        }
    if verdict.warnings:
        response["warnings"] = _fitting(verdict.warnings)
    if verdict.patch and not verdict.refusal:
        patch = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
        response |= {"patchType": "JSONPatch", "patch": patch}
    body = {"apiVersion": _VERSION, "kind": "AdmissionReview", "response": response}
    return msgspec.json.encode(body)


def _fitting(warnings: tuple[str, ...]) -> list[str]:
    """As many as API servers pass on, each no longer than they like."""
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
    """All that anybody but the API server itself decides, apart from the status."""
    metadata = _metadata(body)
    apart = {"metadata", "status", "apiVersion", "kind"}
    rest = {key: value for key, value in body.items() if key not in apart}
    return rest, metadata.get("labels") or {}, metadata.get("annotations") or {}


def _metadata(body: Body) -> Body:
    found = body.get("metadata")
    return found if isinstance(found, dict) else {}
