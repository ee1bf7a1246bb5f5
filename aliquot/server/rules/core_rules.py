"""What Kubernetes' own kinds must be, when they are made and when they are changed.

Every problem is told, with the path of its field as Kubernetes writes it. An object is judged by
itself, after its defaults are filled in; what depends on other objects, such as a pod's priority
class, is the server's business. Custom kinds are judged by their metadata here, and by their schema
elsewhere.
"""

from collections.abc import Callable, Iterator
from typing import Any

from aliquot.json import Body, without_nulls
from aliquot.server.rules.causes import Cause
from aliquot.server.rules.core_defaults import fill_defaults
from aliquot.server.rules.extension_rules import (
    check_definition,
    check_definition_update,
    check_webhooks,
)
from aliquot.server.rules.metadata_rules import check_metadata, check_metadata_update
from aliquot.server.rules.plain_rules import (
    check_budget,
    check_config,
    check_config_update,
    check_event,
    check_lease,
    check_node,
    check_node_update,
    check_priority_class,
    check_priority_class_update,
    check_resource_quota,
    check_secret,
    check_secret_update,
)
from aliquot.server.rules.pod_rules import check_pod, check_pod_update
from aliquot.server.rules.workload_rules import (
    check_deployment,
    check_job,
    check_job_update,
    check_replicated,
    check_replicated_update,
)
from aliquot.server.schema.check import check
from aliquot.server.schema.core_schemas import schema
from aliquot.server.schema.shared_shapes import METADATA

__all__ = ["check_create", "check_update", "fill_defaults"]

_ANY = {"type": "object", "properties": {"metadata": METADATA}}


def check_create(kind: str, body: Body) -> list[Cause]:
    """All that is wrong with an object to be made."""
    said = without_nulls(body)
    return _misshapen(kind, said) or _wrong(kind, said)


def check_update(kind: str, old: Body, new: Body) -> list[Cause]:
    """All that is wrong with a change: what must have stayed, and what the object becomes."""
    was, said = without_nulls(old), without_nulls(new)
    misshapen = _misshapen(kind, said)
    if misshapen:
        return misshapen
    before, after = (each.get("metadata") or {} for each in (was, said))
    rules = _UPDATE.get(kind)
    stayed = rules(was, said) if rules is not None else ()
    return [*check_metadata_update(before, after), *stayed, *_wrong(kind, said)]


def _misshapen(kind: str, body: Any) -> list[Cause]:
    """Fields of the wrong type: no rule looks any further then."""
    return check(schema(kind) or _ANY, body)


def _wrong(kind: str, body: Body) -> list[Cause]:
    rules = _CREATE.get(kind)
    own = rules(body) if rules is not None else ()
    return [*check_metadata(kind, body.get("metadata") or {}), *own]


_CREATE: dict[str, Callable[[Body], Iterator[Cause]]] = {
    "ConfigMap": check_config,
    "CustomResourceDefinition": check_definition,
    "Deployment": check_deployment,
    "Event": check_event,
    "Job": check_job,
    "Lease": check_lease,
    "MutatingWebhookConfiguration": check_webhooks,
    "Node": check_node,
    "Pod": check_pod,
    "PodDisruptionBudget": check_budget,
    "PriorityClass": check_priority_class,
    "ReplicaSet": check_replicated,
    "ResourceQuota": check_resource_quota,
    "Secret": check_secret,
    "StatefulSet": check_replicated,
    "ValidatingWebhookConfiguration": check_webhooks,
}
_UPDATE: dict[str, Callable[[Body, Body], Iterator[Cause]]] = {
    "ConfigMap": check_config_update,
    "CustomResourceDefinition": check_definition_update,
    "Deployment": check_replicated_update,
    "Job": check_job_update,
    "Node": check_node_update,
    "Pod": check_pod_update,
    "PriorityClass": check_priority_class_update,
    "ReplicaSet": check_replicated_update,
    "Secret": check_secret_update,
    "StatefulSet": check_replicated_update,
}
