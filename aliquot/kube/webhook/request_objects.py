"""Objects of a request, as far as they can be read.

What makes no sense is told, never raised: it is for a verdict to say what follows from it.
"""

from dataclasses import dataclass, field
from typing import Any

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.findings import Finding, refused
from aliquot.dialects.core.manifest import Manifest, read
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.kube.webhook.cache import make_sure

PLACE = "in this request"


@dataclass(frozen=True, slots=True)
class Reading:
    """An object as it could be read; if it could not, why."""

    manifest: Manifest | None = None
    problems: list[Finding] = field(default_factory=list)


def reading(body: Body | None) -> Reading:
    """An object, or why it makes no sense; nothing, if there is none."""
    if body is None:
        return Reading()
    try:
        return Reading(read(Document(PLACE, _named(body))))
    except InputError as error:
        return Reading(problems=[refused(error, PLACE)])


def sound(found: Reading) -> Reading:
    """The same, where what makes no sense is as good as not there; what is wrong with it is told.

    An object may have come before anybody looked. It can still be put right, and deleted.
    """
    if found.manifest is None:
        return found
    try:
        make_sure(found.manifest)
    except InputError as error:
        return Reading(problems=[refused(error, PLACE)])
    return found


def _named(body: Body) -> Body:
    """The object as it is judged.

    Names that are to be made up come after us. Which node a pod runs on is not for us to say:
    whoever binds it may know nodes that we have not heard of yet.
    """
    metadata: Any = body.get("metadata") or {}
    if isinstance(metadata, dict) and not metadata.get("name") and metadata.get("generateName"):
        body = {**body, "metadata": {**metadata, "name": f"{metadata['generateName']}0"}}
    spec = body.get("spec")
    if body.get("kind") == "Pod" and isinstance(spec, dict) and spec.get("nodeName"):
        body = {**body, "spec": {**spec, "nodeName": None}}
    return body
