"""The schemas of Kubernetes' kinds that have no part in scheduling, from their protobuf messages.

Users bring them with their manifests: Services, roles, volumes, policies. They are stored and
shown, so types and known fields are enough, and the table of messages (`protobuf`) has both. Pod
templates and metadata have the schemas that all other kinds have.
"""

from functools import cache

from aliquot.dialects.core.schema import (
    Schema,
    anything,
    conditions,
    flag,
    listed,
    long,
    mapped,
    moment,
    number_or_text,
    open_ended,
    quantity,
    record,
    text,
    whole,
)
from aliquot.server.schema.pod_schema import POD_SPEC
from aliquot.server.schema.protobuf import Field, messages
from aliquot.server.schema.shared_shapes import METADATA, SELECTOR, merged

KINDS = {
    "CSIDriver": "What a storage driver can do.",
    "CSINode": "The storage drivers of a node.",
    "CSIStorageCapacity": "How much storage is left, and where.",
    "ClusterRole": "What may be done, in all namespaces. Stored, not enforced.",
    "ClusterRoleBinding": "Who may do it, in all namespaces. Stored, not enforced.",
    "ControllerRevision": "An earlier state of a StatefulSet or DaemonSet.",
    "CronJob": "Jobs by a schedule.",
    "DaemonSet": "A pod on every node that matches.",
    "EndpointSlice": "Addresses behind a Service.",
    "Endpoints": "Addresses behind a Service.",
    "HorizontalPodAutoscaler": "How many pods, by what they use.",
    "Ingress": "How requests from outside reach Services.",
    "IngressClass": "Which controller serves an Ingress.",
    "NetworkPolicy": "Which pods may talk to each other.",
    "PersistentVolume": "A piece of storage.",
    "PersistentVolumeClaim": "A request for storage.",
    "ReplicationController": "Pods that are replaced when they go.",
    "Role": "What may be done in a namespace. Stored, not enforced.",
    "RoleBinding": "Who may do it in a namespace. Stored, not enforced.",
    "RuntimeClass": "How containers are run.",
    "StorageClass": "How storage is made.",
    "VolumeAttachment": "A volume on a node.",
}
"""Their unique names, which are those of their messages, with a description."""

_SHARED: dict[str, Schema] = {
    "LabelSelector": SELECTOR,
    "ObjectMeta": METADATA,
    "PodSpec": POD_SPEC,
}
_PLAIN: dict[str, Schema] = {
    "FieldsV1": anything(),
    "IntOrString": number_or_text(),
    "MicroTime": moment(),
    "Quantity": quantity(),
    "RawExtension": anything(),
    "Time": moment(),
    "bool": flag(),
    "bytes": text(),
    "int32": whole(),
    "int64": long(),
    "string": text(),
}
_MERGE_KEYS = {"CSINodeSpec": {"drivers": "name"}}
"""By message and field, the merge keys of strategic merge patches, apart from conditions."""


def kind_schema(kind: str) -> Schema:
    """The schema of one of `KINDS`."""
    own = _message(kind)
    about = {
        "apiVersion": text("The group and version of this shape of the object."),
        "kind": text("The kind of the object."),
    }
    return {**own, "description": KINDS[kind], "properties": {**about, **own["properties"]}}


@cache
def _message(name: str) -> Schema:
    properties: dict[str, Schema] = {}
    for field in messages()[name].values():
        if field[2] == "inline":
            properties |= _of(field[1])["properties"]
        else:
            properties[field[0]] = _field(name, field)
    return open_ended(record(properties))


def _field(message: str, field: Field) -> Schema:
    name, kind, how = field
    if name == "conditions" and how == "repeated":
        return merged(conditions(), "type")
    if how == "map":
        return mapped(_of(kind))
    if how == "repeated":
        items, key = listed(_of(kind)), _MERGE_KEYS.get(message, {}).get(name)
        return merged(items, key) if key else items
    return _of(kind)


def _of(kind: str) -> Schema:
    if kind.endswith("ExtraValue"):
        return listed(text())
    return _SHARED.get(kind) or _PLAIN.get(kind) or _message(kind)
