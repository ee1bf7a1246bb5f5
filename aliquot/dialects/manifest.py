"""A document made sure of: its kind is one we read, its fields have the right types, it has a name.

Kinds that have no part in scheduling are passed over and counted, not refused.
"""

import re
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from aliquot.dialects import wire
from aliquot.dialects.documents import Body, Document
from aliquot.dialects.wire import Metadata, Wire
from aliquot.errors import InputError

Key = tuple[str, str, str]
"""Kind, namespace and name: what an object is known by."""

ALIQUOT_GROUP = "aliquot.dev"
KEP9_GROUPS = ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io")
NOS_GROUPS = ("nos.nebuly.com", "nos.nebuly.ai")
KOORDINATOR_PREFIX = "quota.scheduling.koordinator.sh/"

_KINDS: dict[tuple[str, str], type[Wire]] = {
    ("", "Node"): wire.NodeWire,
    ("", "Namespace"): wire.PlainWire,
    ("", "Pod"): wire.PodWire,
    ("", "ResourceQuota"): wire.ResourceQuotaWire,
    ("scheduling.k8s.io", "PriorityClass"): wire.PriorityClassWire,
    ("policy", "PodDisruptionBudget"): wire.PlainWire,
    ("apps", "Deployment"): wire.WorkloadWire,
    ("apps", "ReplicaSet"): wire.WorkloadWire,
    ("apps", "StatefulSet"): wire.WorkloadWire,
    ("batch", "Job"): wire.WorkloadWire,
    (ALIQUOT_GROUP, "Timeline"): wire.TimelineWire,
    **{(group, "ElasticQuota"): wire.QuotaWire for group in (*KEP9_GROUPS, *NOS_GROUPS)},
}
_NOT_YET = {
    *((group, "CompositeElasticQuota") for group in NOS_GROUPS),
    ("scheduling.volcano.sh", "Queue"),
    ("scheduling.volcano.sh", "PodGroup"),
    ("scheduling.x-k8s.io", "PodGroup"),
    ("batch.volcano.sh", "Job"),
    ("tensor-fusion.ai", "GPUResourceQuota"),
    ("tensor-fusion.ai", "GPU"),
}
_CLUSTER_WIDE = {"Node", "Namespace", "PriorityClass"}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
AnyWire = TypeVar("AnyWire", bound=Wire)

_AT = re.compile(r" - at `(?:key in )?\$\.?(?P<field>[^`]*)`$")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of the input: who it is, where it was written, and what we read of it."""

    kind: str
    group: str
    namespace: str
    name: str
    place: str
    content: Wire
    body: Body

    @property
    def key(self) -> Key:
        """What it is known by."""
        return key(self.kind, self.namespace, self.name)

    @property
    def title(self) -> str:
        """`Pod team-a/train`, as messages name it."""
        path = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {path}"

    @property
    def metadata(self) -> Metadata:
        """Its metadata."""
        metadata = getattr(self.content, "metadata", None)
        assert isinstance(metadata, Metadata)
        return metadata

    def error(self, field: str, problem: str) -> InputError:
        """An error that names this object and a field of it."""
        return InputError(f"{self.place}: {self.title}", field, problem)


def read(document: Document) -> Manifest | None:
    """The object of a document; None for kinds that have no part in scheduling."""
    body, place = document.body, document.place
    kind = str(body["kind"])
    version = body.get("apiVersion")
    if not isinstance(version, str) or not version:
        raise InputError(place, "apiVersion", f"is missing (kind {kind})")
    group = version.rpartition("/")[0]
    if (group, kind) in _NOT_YET:
        raise InputError(place, "kind", f"{kind} of {group} is not supported yet")
    shape = _KINDS.get((group, kind))
    if shape is None:
        return None
    content = convert(body, shape, f"{place}: {kind}")
    unnamed = Manifest(kind, group, "", "", place, content, body)
    name = _checked_name(unnamed.metadata.name, place, kind)
    _, namespace, _ = key(kind, unnamed.metadata.namespace, name)
    return replace(unnamed, namespace=namespace, name=name)


def key(kind: str, namespace: str | None, name: str) -> Key:
    """What an object is known by; objects that belong to no namespace have an empty one."""
    return (kind, "" if kind in _CLUSTER_WIDE else namespace or "default", name)


def convert(body: Body, shape: type[AnyWire], place: str) -> AnyWire:
    """Check the types of all fields; a wrong one is named by its path."""
    try:
        return msgspec.convert(body, shape)
    except msgspec.ValidationError as error:
        text = str(error)
        match = _AT.search(text)
        field = match["field"] if match else ""
        problem = text[: match.start()] if match else text
        raise InputError(place, field, problem[0].lower() + problem[1:].replace("`", "")) from None
    except RecursionError:
        raise InputError(place, "", "nested too deeply") from None


def _checked_name(name: str, place: str, kind: str) -> str:
    if not name:
        raise InputError(f"{place}: {kind}", "metadata.name", "is missing")
    if not _NAME.fullmatch(name):
        rule = "lower-case letters, digits, - and . (at most 253)"
        raise InputError(f"{place}: {kind}", "metadata.name", f"{name!r} must be {rule}")
    return name
