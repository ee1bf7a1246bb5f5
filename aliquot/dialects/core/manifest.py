"""Manifests: documents of a kind that matters to scheduling, with checked types and a name.

Kinds that have no part in scheduling are skipped and counted, not refused.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

import msgspec

from aliquot.dialects.core import objects as wire
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.findings import Finding, Severity
from aliquot.dialects.core.objects import Metadata, Wire
from aliquot.dialects.core.storage import objects as storage_wire
from aliquot.dialects.frameworks.objects import JobWire
from aliquot.dialects.frameworks.table import FRAMEWORKS
from aliquot.dialects.kep9 import objects as quota_wire
from aliquot.dialects.koordinator import objects as profile_wire
from aliquot.dialects.nos import objects as nos_wire
from aliquot.dialects.tensor_fusion import objects as gpu_wire
from aliquot.dialects.volcano import objects as volcano_wire
from aliquot.errors import InputError
from aliquot.json import Body

Key = tuple[str, str, str]
"""Kind, namespace and name, which identify an object."""

ALIQUOT_GROUP = "aliquot.dev"
KEP9_GROUPS = ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io")
NOS_GROUPS = ("nos.nebuly.com", "nos.nebuly.ai")
VOLCANO_GROUP = "scheduling.volcano.sh"
VOLCANO_JOBS = "batch.volcano.sh"
VOLCANO_TOPOLOGY = "topology.volcano.sh"
TENSOR_FUSION = "tensor-fusion.ai"
STORAGE_GROUP = "storage.k8s.io"
KOORDINATOR_QUOTAS = "quota.koordinator.sh"
KOORDINATOR_PREFIX = "quota.scheduling.koordinator.sh/"
MADE_BY_ALIQUOT = {"app.kubernetes.io/managed-by": "aliquot"}
"""The label of objects that Aliquot itself writes, where their design counts on them."""

_KINDS: dict[tuple[str, str], type[Wire]] = {
    ("", "Node"): wire.NodeWire,
    ("", "Namespace"): wire.PlainWire,
    ("", "Pod"): wire.PodWire,
    ("", "ResourceQuota"): wire.ResourceQuotaWire,
    ("scheduling.k8s.io", "PriorityClass"): wire.PriorityClassWire,
    ("", "PersistentVolume"): storage_wire.VolumeWire,
    ("", "PersistentVolumeClaim"): storage_wire.ClaimWire,
    (STORAGE_GROUP, "StorageClass"): storage_wire.StorageClassWire,
    (STORAGE_GROUP, "CSINode"): storage_wire.NodeDriversWire,
    (STORAGE_GROUP, "CSIDriver"): storage_wire.StorageDriverWire,
    (STORAGE_GROUP, "CSIStorageCapacity"): storage_wire.CapacityWire,
    (STORAGE_GROUP, "VolumeAttachment"): storage_wire.AttachmentWire,
    ("policy", "PodDisruptionBudget"): wire.BudgetWire,
    ("", "ReplicationController"): wire.WorkloadWire,
    ("apps", "DaemonSet"): wire.WorkloadWire,
    ("apps", "Deployment"): wire.WorkloadWire,
    ("apps", "ReplicaSet"): wire.WorkloadWire,
    ("apps", "StatefulSet"): wire.WorkloadWire,
    ("batch", "CronJob"): wire.CronJobWire,
    ("batch", "Job"): wire.WorkloadWire,
    (KOORDINATOR_QUOTAS, "ElasticQuotaProfile"): profile_wire.ProfileWire,
    (VOLCANO_GROUP, "Queue"): volcano_wire.QueueWire,
    (VOLCANO_GROUP, "PodGroup"): volcano_wire.PodGroupWire,
    **{(group, "PodGroup"): volcano_wire.PodGroupWire for group in KEP9_GROUPS},
    (VOLCANO_JOBS, "Job"): volcano_wire.GangJobWire,
    (VOLCANO_TOPOLOGY, "HyperNode"): volcano_wire.HyperNodeWire,
    (TENSOR_FUSION, "GPUResourceQuota"): gpu_wire.GpuQuotaWire,
    (TENSOR_FUSION, "GPU"): gpu_wire.GpuWire,
    (ALIQUOT_GROUP, "Timeline"): wire.TimelineWire,
    **{(group, "ElasticQuota"): quota_wire.QuotaWire for group in (*KEP9_GROUPS, *NOS_GROUPS)},
    **{(each.group, each.kind): JobWire for each in FRAMEWORKS},
    **{(group, "CompositeElasticQuota"): nos_wire.CompositeQuotaWire for group in NOS_GROUPS},
}
_SERVICE = ("", "Service")
_CLUSTER_WIDE = {
    *("Node", "Namespace", "PriorityClass", "Queue", "GPU", "HyperNode"),
    *("PersistentVolume", "StorageClass", "CSINode", "CSIDriver", "VolumeAttachment"),
}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAMELESS = {"Timeline"}
_PLAIN_WORDS = {
    " | null": "",
    "`array`": "a list",
    "`object`": "an object",
    "`str`": "text",
    "`int`": "a whole number",
    "`null`": "nothing",
    "`bool`": "true or false",
    "`": "",
}
AnyWire = TypeVar("AnyWire", bound=Wire)
Result = TypeVar("Result")

_AT = re.compile(r" - at `(?:key in )?\$\.?(?P<field>[^`]*)`$")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of the input: its identity, its place, its typed content and its whole body."""

    kind: str
    group: str
    namespace: str
    name: str
    place: str
    content: Wire
    body: Body
    _read: dict[str, Any] | None = field(default=None, init=False, compare=False, repr=False)
    """The results of readers that are decorated with `once`, by reader."""
    _errors: list[InputError] | None = field(default=None, init=False, compare=False, repr=False)
    """The errors so far, while all of them are collected (`all_errors`)."""

    @property
    def key(self) -> Key:
        """Its kind, namespace and name."""
        return key(self.kind, self.namespace, self.name)

    @property
    def title(self) -> str:
        """`Pod team-a/train`, as messages name it."""
        path = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {path}"

    @property
    def metadata(self) -> Metadata:
        """Its metadata."""
        metadata = getattr(self.content, "metadata", None)  # as `metadata_of`, without a call
        assert isinstance(metadata, Metadata)
        return metadata

    def error(self, field: str, problem: str) -> InputError:
        """An error that names this object and a field of it."""
        return InputError(f"{self.place}: {self.title}", field, problem)

    @property
    def is_refused(self) -> bool:
        """Has an error been noted, while all of them are collected?"""
        return bool(self._errors)

    def refuse(self, field: str, problem: str) -> None:
        """Raise an error about a field; where all errors are collected, note it and go on.

        A reader goes on with what the field would be if it were not written.
        """
        self._note(self.error(field, problem))

    def attempt(self, reader: Callable[[], Result]) -> Result | None:
        """What a reader returns; where all errors are collected, None if it raises one."""
        try:
            return reader()
        except InputError as error:
            self._note(error)
            return None

    def _note(self, error: InputError) -> None:
        if self._errors is None:
            raise error
        self._errors.append(error)

    def finding(self, severity: Severity, field: str, problem: str) -> Finding:
        """A finding that names this object and a field of it."""
        return Finding(severity, self.place, self.title, field, problem)


def metadata_of(content: Wire) -> Metadata:
    """The metadata of an object."""
    metadata = getattr(content, "metadata", None)
    assert isinstance(metadata, Metadata)
    return metadata


def shape_of_kind(group: str, kind: str) -> type[Wire] | None:
    """What objects of a kind are read as; None for kinds that have no part in scheduling."""
    return _KINDS.get((group, kind))


def once(reader: Callable[[Manifest], Result]) -> Callable[[Manifest], Result]:
    """Cache a reader's result with the manifest, which never changes and is read by many rules.

    An error is not cached: it is raised anew at every call.
    """
    name = f"{reader.__module__}.{reader.__qualname__}"

    @wraps(reader)
    def read_once(manifest: Manifest) -> Result:
        known = manifest._read
        if known is None:
            known = {}
            object.__setattr__(manifest, "_read", known)
        if name not in known:
            known[name] = reader(manifest)
        found: Result = known[name]
        return found

    return read_once


def all_errors(manifest: Manifest, check: Callable[[Manifest], None]) -> list[InputError]:
    """Every error that a check of an object raises or notes, each once, in order.

    What readers have cached meanwhile is dropped if there are any: it lacks what is wrong.
    """
    noted: list[InputError] = []
    object.__setattr__(manifest, "_errors", noted)
    try:
        manifest.attempt(lambda: check(manifest))
    finally:
        object.__setattr__(manifest, "_errors", None)
    if noted:
        object.__setattr__(manifest, "_read", None)
    return list({(each.field, each.problem): each for each in noted}.values())


def first_error(manifest: Manifest, reader: Callable[[], Result]) -> Result:
    """What a reader returns; its first error is raised, even where all errors are collected."""
    collected = manifest._errors
    object.__setattr__(manifest, "_errors", None)
    try:
        return reader()
    finally:
        object.__setattr__(manifest, "_errors", collected)


def read(document: Document, check_names: bool = True, services: bool = False) -> Manifest | None:
    """The object of a document; None for kinds that have no part in scheduling.

    Services have one where pods are spread by default: with `services`, they are read as well.
    """
    body, place = document.body, document.place
    kind = body.get("kind")
    if not isinstance(kind, str) or not kind:
        problem = "is missing" if not kind else f"{kind!r} must be text"
        raise InputError(place, "kind", problem)
    version = body.get("apiVersion")
    if not isinstance(version, str) or not version:
        problem = "is missing" if version is None else f"{version!r} must be text"
        raise InputError(f"{place}: {kind}", "apiVersion", problem)
    group = version.rpartition("/")[0]
    shape = _KINDS.get((group, kind))
    if services and (group, kind) == _SERVICE:
        shape = wire.SelectionWire
    if shape is None:
        return None
    content = convert(body, shape, f"{place}: {_title(body)}")
    metadata = metadata_of(content)
    _, namespace, name = key(kind, metadata.namespace, metadata.name)
    found = Manifest(kind, group, namespace, name, place, content, body)
    if check_names:
        refuse_names(found)
    return found


def refuse_names(manifest: Manifest) -> None:
    """Refuse a name or namespace that no object can have."""
    kind, name, namespace, place = manifest.kind, manifest.name, manifest.namespace, manifest.place
    if kind not in _NAMELESS:
        where = f"{place}: {kind}"
        manifest.attempt(lambda: _check_name(name, _NAME, where, "metadata.name"))
    if namespace:
        where = f"{place}: {kind} {name}"
        manifest.attempt(lambda: _check_name(namespace, _NAMESPACE, where, "metadata.namespace"))


def key(kind: str, namespace: str | None, name: str) -> Key:
    """The key of an object; that of a cluster-wide kind has an empty namespace."""
    return (kind, "" if kind in _CLUSTER_WIDE else namespace or "default", name)


def owner_reference(owner: Body) -> Body:
    """The owner reference that names an object as controller; an object of a file has no uid."""
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata.get("uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {key: value for key, value in reference.items() if value}


def owner_of(manifest: Manifest) -> Key | None:
    """The key of the object that controls this one, if any does."""
    for reference in manifest.metadata.owner_references or []:
        if reference.controller:
            return (reference.kind, manifest.namespace, reference.name)
    return None


def made_by_aliquot(manifest: Manifest) -> bool:
    """Did Aliquot itself write the object, and no user? Then it says nothing of what users want."""
    return MADE_BY_ALIQUOT.items() <= (manifest.metadata.labels or {}).items()


def title_of(body: Body) -> str:
    """Kind and name of an object, as `Manifest.title` has them, as far as they can be read."""
    kind, metadata = str(body.get("kind")), body.get("metadata")
    given = metadata if isinstance(metadata, dict) else {}
    name, namespace = given.get("name"), given.get("namespace")
    if not isinstance(name, str) or not name:
        return kind
    namespace = namespace if isinstance(namespace, str) else None
    if (str(body.get("apiVersion")).rpartition("/")[0], kind) in _KINDS:
        _, namespace, _ = key(kind, namespace, name)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def is_known_kind(kind: str) -> bool:
    """Is it a kind that is read here, in any group?"""
    return any(kind == known for _, known in _KINDS)


def convert(body: Body, shape: type[AnyWire], place: str) -> AnyWire:
    """Convert a body to a struct; a field of the wrong type is refused by its path."""
    try:
        return msgspec.convert(body, shape)
    except msgspec.ValidationError as error:
        text = str(error)
        match = _AT.search(text)
        field = match["field"] if match else ""
        problem = text[: match.start()] if match else text
        for word, plain in _PLAIN_WORDS.items():
            problem = problem.replace(word, plain)
        raise InputError(place, field, problem[0].lower() + problem[1:]) from None
    except RecursionError:
        raise InputError(place, "", "nested too deeply") from None


def _title(body: Body) -> str:
    """Kind and name for a message, as far as they can be read."""
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{body['kind']} {name}" if isinstance(name, str) else str(body["kind"])


def refuse_namespace(name: str, manifest: Manifest, field: str) -> None:
    """Refuse a text in an object that cannot be the name of a namespace."""
    place = f"{manifest.place}: {manifest.title}"
    manifest.attempt(lambda: check_namespace(name, place, field))


def check_namespace(name: str, place: str, field: str) -> None:
    """Raise `InputError` for a text that cannot be the name of a namespace."""
    _check_name(name, _NAMESPACE, place, field)


def _check_name(name: str, pattern: re.Pattern[str], place: str, field: str) -> None:
    if not name:
        raise InputError(place, field, "is missing")
    if not pattern.fullmatch(name):
        rule = "lower-case letters, digits and -" + (" and ." if pattern is _NAME else "")
        shown = name if len(name) < 60 else f"{name[:60]}..."
        raise InputError(place, field, f"{shown!r} must be made of {rule}")
