"""The validation of Kubernetes' own kinds, on create and on update.

All problems are reported, each with the path of its field as Kubernetes writes it. An object is
checked by itself, after its defaults are filled in; what depends on other objects, such as a pod's
PriorityClass, is the matter of admission. Of custom kinds only the metadata is checked here; their
schema is checked in `object_rules`.
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
from aliquot.server.rules.stored_rules import CHECK_STORED, CHECK_STORED_UPDATE
from aliquot.server.rules.workload_rules import (
    check_cron_job,
    check_daemon_set,
    check_deployment,
    check_job,
    check_job_update,
    check_replicated,
    check_replicated_update,
    check_replication_controller,
    check_stateful_set,
    check_stateful_set_update,
)
from aliquot.server.schema.check import check
from aliquot.server.schema.core_schemas import METADATA, schema

__all__ = ["check_create", "check_update", "fill_defaults"]

_ANY_OBJECT = {"type": "object", "properties": {"metadata": METADATA}}


def check_create(kind: str, body: Body) -> list[Cause]:
    """All problems of a new object."""
    given = without_nulls(body)
    return _schema_causes(kind, given) or _rule_causes(kind, given)


def check_update(kind: str, old: Body, new: Body) -> list[Cause]:
    """All problems of an update: immutable fields that changed, and the new object itself."""
    was, given = without_nulls(old), without_nulls(new)
    mistyped = _schema_causes(kind, given)
    if mistyped:
        return mistyped
    before, after = (each.get("metadata") or {} for each in (was, given))
    rules = _UPDATE.get(kind)
    changes = rules(was, given) if rules is not None else ()
    return [*check_metadata_update(before, after), *changes, *_rule_causes(kind, given)]


def _schema_causes(kind: str, body: Any) -> list[Cause]:
    """Fields of the wrong type; if there are any, no other rule is checked."""
    return check(schema(kind) or _ANY_OBJECT, body)


def _rule_causes(kind: str, body: Body) -> list[Cause]:
    rules = _CREATE.get(kind)
    own = rules(body) if rules is not None else ()
    return [*check_metadata(kind, body.get("metadata") or {}), *own]


_CREATE: dict[str, Callable[[Body], Iterator[Cause]]] = {
    **CHECK_STORED,
    "ConfigMap": check_config,
    "CronJob": check_cron_job,
    "CustomResourceDefinition": check_definition,
    "DaemonSet": check_daemon_set,
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
    "ReplicationController": check_replication_controller,
    "ResourceQuota": check_resource_quota,
    "Secret": check_secret,
    "StatefulSet": check_stateful_set,
    "ValidatingWebhookConfiguration": check_webhooks,
}
_UPDATE: dict[str, Callable[[Body, Body], Iterator[Cause]]] = {
    **CHECK_STORED_UPDATE,
    "ConfigMap": check_config_update,
    "CustomResourceDefinition": check_definition_update,
    "DaemonSet": check_replicated_update,
    "Deployment": check_replicated_update,
    "Job": check_job_update,
    "Node": check_node_update,
    "Pod": check_pod_update,
    "PriorityClass": check_priority_class_update,
    "ReplicaSet": check_replicated_update,
    "Secret": check_secret_update,
    "StatefulSet": check_stateful_set_update,
}
