"""The objects of an admission request, as far as they can be read.

An invalid object is returned as a problem, never raised: the verdict decides what follows from it.
"""

from dataclasses import dataclass, field
from typing import Any

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.findings import Finding, refused
from aliquot.dialects.core.manifest import Manifest, all_errors, read
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.mirror.validity import check_by_itself

PLACE = "in this request"
"""What findings name in place of a file."""


@dataclass(frozen=True, slots=True)
class RequestObject:
    """An object, or the problems that keep it from being read."""

    manifest: Manifest | None = None
    problems: list[Finding] = field(default_factory=list)


def read_object(body: Body | None) -> RequestObject:
    """Read an object; both fields are empty if there is none."""
    if body is None:
        return RequestObject()
    try:
        return RequestObject(read(Document(PLACE, _named(body))))
    except InputError as error:
        return RequestObject(problems=[refused(error, PLACE)])


def checked(found: RequestObject) -> RequestObject:
    """The object, or its problems if it is invalid.

    The old object of a request may be invalid, if it was stored before the webhook was there. It
    counts as missing, so that it can still be corrected and deleted.
    """
    if found.manifest is None:
        return found
    errors = all_errors(found.manifest, check_by_itself)
    return RequestObject(problems=[refused(each, PLACE) for each in errors]) if errors else found


def _named(body: Body) -> Body:
    """The object with a name and without a node.

    A name from `generateName` is added only after admission. A pod's node is not validated: the
    scheduler that binds it may know nodes that are not in the cache yet.
    """
    metadata: Any = body.get("metadata") or {}
    if isinstance(metadata, dict) and not metadata.get("name") and metadata.get("generateName"):
        body = {**body, "metadata": {**metadata, "name": f"{metadata['generateName']}0"}}
    spec = body.get("spec")
    if body.get("kind") == "Pod" and isinstance(spec, dict) and spec.get("nodeName"):
        body = {**body, "spec": {**spec, "nodeName": None}}
    return body
