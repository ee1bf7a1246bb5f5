"""Metadata: the fields that the server writes, those that no update changes, and the generation.

Nothing here reads a spec or a status, but to see whether it changed. What users may write into
metadata is the matter of `metadata_rules`.
"""

import random
import string
import time
import uuid
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import msgspec

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.http.refusals import bad_request, conflict, invalid
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules.causes import invalid as invalid_value

_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Fields that only the server writes."""
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names in Kubernetes: no vowels, so that they form no words."""
_SUFFIX = 5
"""Random characters of a generated name, as in Kubernetes."""
_LONGEST_PREFIX = 58
"""Characters of generateName that are used: with the suffix, 63, the longest DNS label."""
_WITHOUT_SPEC = frozenset({"metadata", "status", "apiVersion", "kind"})

Managers = list[Body] | msgspec.Raw | None
"""The entries of an object's managers, perhaps as JSON; None or empty if it has none."""


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
    """A time as objects write it; now unless one is given."""
    return _text_of_second(int(time.time())) if moment is None else _text(moment)


@lru_cache(maxsize=2)
def _text_of_second(second: int) -> str:
    """The text of a second, kept for the many writes within it."""
    return _text(datetime.fromtimestamp(second, UTC))


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def normalize(body: Any, kind: Kind) -> Body:
    """The object with metadata of the right types, without empty fields; refused otherwise."""
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
    metadata.pop("selfLink", None)
    return body


def take_managers(body: Any) -> Any:
    """The managedFields of a request, taken out of its object; None if it has none."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return metadata.pop("managedFields", None) if isinstance(metadata, dict) else None


def set_managers(body: Body, managers: Managers) -> None:
    """Write the entries of the managers into an object."""
    if managers:
        body["metadata"]["managedFields"] = managers


def read_managers(managers: Managers) -> list[Body]:
    """The entries of the managers, decoded."""
    if isinstance(managers, msgspec.Raw):
        return msgspec.json.decode(managers, type=list[Body])
    return managers or []


def same_but_times(were: Managers, are: Managers) -> bool:
    """Do the entries of two states differ in nothing but their times?"""
    one, other = read_managers(were), read_managers(are)
    return len(one) == len(other) and all(map(_same_but_time, one, other))


def _same_but_time(one: Body, other: Body) -> bool:
    return {**one, "time": None} == {**other, "time": None}


def check_new_identity(kind: Kind, body: Body, name: str) -> None:
    """Refuse to create by apply what has another name than the path, none, or a uid."""
    metadata = body["metadata"]
    if uid := metadata.get("uid"):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object"
        raise conflict(kind, name, f"{why} was found")
    metadata.pop("resourceVersion", None)
    given = metadata.get("name")
    if not given:
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: "
            "name must be provided"
        )
    _check_name(str(given), name)


def _check_name(given: str, name: str) -> None:
    if given != name:
        raise bad_request(
            f"the name of the object ({given[:253]}) does not match the name on the URL ({name})"
        )


def _check_kind(body: Body, kind: Kind) -> None:
    """Refuse an object of another kind; built-in kinds may leave apiVersion and kind out."""
    if kind.definition is not None and not (body.get("apiVersion") and body.get("kind")):
        raise bad_request("Object 'Kind' or 'apiVersion' is missing")
    body.setdefault("apiVersion", kind.api_version)
    body.setdefault("kind", kind.name)
    given = (body["apiVersion"], body["kind"])
    if given == (kind.api_version, kind.name):
        return
    if kind.definition is not None and isinstance(given[1], str) and given[0] == kind.api_version:
        cause = invalid_value("kind", given[1], f"must be {kind.name}")
        raise invalid(kind, str((body.get("metadata") or {}).get("name", "")), [cause])
    raise bad_request(
        f'{str(given[1])[:100]} in version "{str(given[0])[:100]}" cannot be handled as a '
        f"{kind.name}: the kind or version does not match the one of the path"
    )


def stamp_new(kind: Kind, namespace: str, body: Body) -> None:
    """Write namespace, name, uid, creation time and generation into a new object."""
    metadata = body["metadata"]
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    set_namespace(kind, namespace, metadata)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generate_name(metadata["generateName"])
    for key in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(key, None)
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = timestamp()
    if kind.generation:
        metadata["generation"] = 1


def generate_name(prefix: str) -> str:
    """A name with this prefix and a random suffix."""
    return prefix[:_LONGEST_PREFIX] + "".join(random.choices(_SAFE, k=_SUFFIX))


def set_namespace(kind: Kind, namespace: str, metadata: Body) -> None:
    """Write the namespace of the request; refuse an object that names another one."""
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


def carry_over(kind: Kind, old: Body, new: Body) -> None:
    """Copy the server's fields into an updated object; refuse another name, uid or version."""
    was, metadata = old["metadata"], new["metadata"]
    name = was["name"]
    _check_name(metadata.setdefault("name", name), name)
    set_namespace(kind, was.get("namespace", ""), metadata)
    _check_same_object(kind, was, metadata)
    for key in _KEPT:
        metadata.pop(key, None)
        if key in was:
            metadata[key] = was[key]
    metadata["resourceVersion"] = was["resourceVersion"]
    metadata.pop("generation", None)
    if "generation" in was:
        metadata["generation"] = was["generation"]


def _check_same_object(kind: Kind, was: Body, metadata: Body) -> None:
    given = metadata.get("uid", was["uid"])
    if given != was["uid"]:
        why = f"Precondition failed: UID in precondition: {given}, UID in object meta: {was['uid']}"
        raise conflict(kind, was["name"], why)
    if metadata.get("resourceVersion", was["resourceVersion"]) != was["resourceVersion"]:
        _check_version(metadata["resourceVersion"])
        raise conflict(kind, was["name"])


def _check_version(written: str) -> None:
    if not set(written) <= set(string.digits):
        raise RefusalError(
            HTTPStatus.BAD_REQUEST, "BadRequest", f"invalid resource version: {written[:50]!r}"
        )


def count_generation(kind: Kind, old: Body, new: Body) -> None:
    """Raise the generation if anything but metadata and status changed."""
    if not kind.generation:
        return
    excluded = (
        _WITHOUT_SPEC
        if kind.has_status or kind.definition is None
        else (_WITHOUT_SPEC - {"status"})
    )
    keys = (old.keys() | new.keys()) - excluded
    if any(old.get(key) != new.get(key) for key in keys):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def mark_deletion(body: Body, grace: int) -> None:
    """Write deletionTimestamp and grace period into an object."""
    metadata = body["metadata"]
    metadata["deletionTimestamp"] = timestamp(datetime.now(UTC) + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if "generation" in metadata:
        metadata["generation"] += 1


def shorten_deletion(body: Body, grace: int) -> None:
    """Shorten the grace period of an object in deletion; it counts from the deletion.

    What has passed already ends now: with a second for the kubelet, unless none is asked for.
    """
    metadata, now = body["metadata"], datetime.now(UTC)
    before = timedelta(seconds=metadata["deletionGracePeriodSeconds"] - grace)
    until = datetime.fromisoformat(metadata["deletionTimestamp"]) - before
    if until < now:
        until, grace = now, min(grace, 1)
    metadata["deletionTimestamp"] = timestamp(until)
    metadata["deletionGracePeriodSeconds"] = grace
