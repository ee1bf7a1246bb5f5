"""Metadata: what the server writes into it, what it lets nobody change, and what it counts.

Nothing here looks into a spec or a status; those have rules of their own.
"""

import random
import string
import uuid
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import msgspec

from aliquot.dialects.core.documents import Body
from aliquot.errors import RefusalError
from aliquot.server.http.refusals import bad_request, conflict, invalid
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules.causes import invalid as invalid_value

_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_MOST_BEFORE = 58
_WITHOUT_SPEC = frozenset({"metadata", "status", "apiVersion", "kind"})


class _Owner(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None
    owner_references: list[_Owner] | None = None
    self_link: str | None = None


def timestamp(moment: datetime | None = None) -> str:
    """A time as objects have it."""
    return (moment or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def well_formed(body: Any, kind: Kind) -> Body:
    """An object of this kind, with metadata that can be relied upon."""
    if not isinstance(body, dict):
        raise bad_request(f"an object of kind {kind.name} is expected")
    _check_kind(body, kind)
    metadata = body.get("metadata")
    if metadata is None:
        metadata = body["metadata"] = {}
    try:
        msgspec.convert(metadata, _Metadata)
    except msgspec.ValidationError as error:
        raise bad_request(
            f"{kind.name} in version {kind.version!r} cannot be handled as a {kind.name}: "
            f"metadata: {error}"
        ) from None
    for key in [key for key, value in metadata.items() if value is None or value in ({}, [])]:
        del metadata[key]
    metadata.pop("managedFields", None)
    metadata.pop("selfLink", None)
    return body


def _check_kind(body: Body, kind: Kind) -> None:
    """Is it an object of this kind? Kubernetes' own need not say so."""
    if kind.definition is not None and not (body.get("apiVersion") and body.get("kind")):
        raise bad_request("Object 'Kind' or 'apiVersion' is missing")
    body.setdefault("apiVersion", kind.api_version)
    body.setdefault("kind", kind.name)
    said = (body["apiVersion"], body["kind"])
    if said == (kind.api_version, kind.name):
        return
    if kind.definition is not None and isinstance(said[1], str) and said[0] == kind.api_version:
        cause = invalid_value("kind", said[1], f"must be {kind.name}")
        raise invalid(kind, str((body.get("metadata") or {}).get("name", "")), [cause])
    raise bad_request(
        f'{str(said[1])[:100]} in version "{str(said[0])[:100]}" cannot be handled as a '
        f"{kind.name}: the kind or version does not match the one of the path"
    )


def born(kind: Kind, namespace: str, body: Body) -> None:
    """Write into a new object what makes it one."""
    metadata = body["metadata"]
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    place(kind, namespace, metadata)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generated(metadata["generateName"])
    for key in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(key, None)
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = timestamp()
    if kind.generation:
        metadata["generation"] = 1


def generated(prefix: str) -> str:
    """A name that begins like this, and that nobody else is likely to have."""
    return prefix[:_MOST_BEFORE] + "".join(random.choices(_LETTERS, k=5))


def place(kind: Kind, namespace: str, metadata: Body) -> None:
    """Put it where the request says; what says otherwise is refused."""
    if not kind.namespaced:
        if metadata.get("namespace"):
            raise bad_request(
                "the namespace of the provided object does not match the namespace "
                "sent on the request"
            )
        return
    if metadata.get("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = namespace


def carried_over(kind: Kind, old: Body, new: Body) -> None:
    """Write into a changed object what does not change; refuse what belongs to another one."""
    was, metadata = old["metadata"], new["metadata"]
    name = was["name"]
    if metadata.setdefault("name", name) != name:
        raise bad_request(
            f"the name of the object ({metadata['name'][:253]}) does not match the name on the URL "
            f"({name})"
        )
    place(kind, was.get("namespace", ""), metadata)
    _same_object(kind, was, metadata)
    for key in _KEPT:
        metadata.pop(key, None)
        if key in was:
            metadata[key] = was[key]
    metadata["resourceVersion"] = was["resourceVersion"]
    metadata.pop("generation", None)
    if "generation" in was:
        metadata["generation"] = was["generation"]


def _same_object(kind: Kind, was: Body, metadata: Body) -> None:
    said = metadata.get("uid", was["uid"])
    if said != was["uid"]:
        why = f"Precondition failed: UID in precondition: {said}, UID in object meta: {was['uid']}"
        raise conflict(kind, was["name"], why)
    if metadata.get("resourceVersion", was["resourceVersion"]) != was["resourceVersion"]:
        _check_version(metadata["resourceVersion"])
        raise conflict(kind, was["name"])


def _check_version(written: str) -> None:
    if not set(written) <= set(string.digits):
        raise RefusalError(
            HTTPStatus.BAD_REQUEST, "BadRequest", f"invalid resource version: {written[:50]!r}"
        )


def counted(kind: Kind, old: Body, new: Body) -> None:
    """Count a change of what is wanted, if it is one."""
    if not kind.generation:
        return
    apart = (
        _WITHOUT_SPEC
        if kind.has_status or kind.definition is None
        else (_WITHOUT_SPEC - {"status"})
    )
    keys = (old.keys() | new.keys()) - apart
    if any(old.get(key) != new.get(key) for key in keys):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def dying(body: Body, grace: int) -> None:
    """Write into an object that it is to go, within so many seconds."""
    metadata = body["metadata"]
    metadata["deletionTimestamp"] = timestamp(datetime.now(UTC) + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if "generation" in metadata:
        metadata["generation"] += 1
