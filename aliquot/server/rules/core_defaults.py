"""The defaults of Kubernetes' own kinds, as kube-apiserver fills them in.

Only defaults that follow from the object alone; what needs other objects, such as a pod's priority
by its PriorityClass, is the matter of admission.
"""

import base64
from collections.abc import Callable
from typing import Any

from aliquot.dialects.core.schema import QUANTITY_PATTERN, Schema
from aliquot.engine import quantity
from aliquot.errors import QuantityError
from aliquot.json import Body, without_nulls
from aliquot.server.rules.pod_defaults import fill_pod, fill_pod_spec, part, set_missing
from aliquot.server.rules.stored_defaults import FILL_STORED
from aliquot.server.schema.check import check
from aliquot.server.schema.core_schemas import schema


def fill_defaults(kind: str, body: Body) -> Body:
    """The object with its defaults, without nulls, quantities canonical.

    An object that does not fit the schema of its kind gets no defaults: the checks refuse it.
    """
    filled: Body = without_nulls(body)
    shape = schema(kind)
    if shape is None:
        return filled
    filled = _canonical(shape, filled)
    fill = _FILL.get(kind)
    if fill is not None and not check(shape, filled):
        fill(filled)
    return filled


def _canonical(shape: Schema, value: Any) -> Any:
    """The same value with quantities in canonical form: 1000m is 1."""
    if shape.get("pattern") == QUANTITY_PATTERN:
        return _quantity(value)
    if isinstance(value, list) and "items" in shape:
        return [_canonical(shape["items"], each) for each in value]
    if not isinstance(value, dict):
        return value
    properties, more = shape.get("properties", {}), shape.get("additionalProperties", {})
    return {key: _canonical(properties.get(key, more), each) for key, each in value.items()}


def _quantity(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        return str(quantity.parse(str(value)))
    except QuantityError:
        return value


def _namespace(body: Body) -> None:
    metadata = part(body, "metadata")
    name = metadata.get("name")
    if name:
        part(metadata, "labels")["kubernetes.io/metadata.name"] = name
    set_missing(part(body, "status"), phase="Active")


def _node(body: Body) -> None:
    part(body, "spec")
    status = part(body, "status")
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _deployment(body: Body) -> None:
    spec = part(body, "spec")
    set_missing(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = part(spec, "strategy")
    set_missing(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        set_missing(part(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")
    _template(spec)


def _replica_set(body: Body) -> None:
    spec = part(body, "spec")
    set_missing(spec, replicas=1)
    _template(spec)


def _stateful_set(body: Body) -> None:
    spec = part(body, "spec")
    set_missing(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    strategy = part(spec, "updateStrategy")
    set_missing(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        set_missing(part(strategy, "rollingUpdate"), partition=0)
    retention = part(spec, "persistentVolumeClaimRetentionPolicy")
    set_missing(retention, whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.get("volumeClaimTemplates", ()):
        set_missing(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        FILL_STORED["PersistentVolumeClaim"](claim)
    _template(spec)


def _daemon_set(body: Body) -> None:
    spec = part(body, "spec")
    set_missing(spec, revisionHistoryLimit=10)
    strategy = part(spec, "updateStrategy")
    set_missing(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        set_missing(part(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)
    _template(spec)


def _replication_controller(body: Body) -> None:
    """Its selector and labels default to the labels of its template."""
    spec = part(body, "spec")
    set_missing(spec, replicas=1)
    _template(spec)
    labels = spec["template"]["metadata"].get("labels")
    if labels:
        set_missing(spec, selector=dict(labels))
        part(body, "metadata").setdefault("labels", dict(labels))


def _cron_job(body: Body) -> None:
    spec = part(body, "spec")
    set_missing(spec, concurrencyPolicy="Allow", suspend=False)
    set_missing(spec, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    template = part(spec, "jobTemplate")
    part(template, "metadata")
    _template(part(template, "spec"))


def _job(body: Body) -> None:
    spec = part(body, "spec")
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    limit = 2**31 - 1 if "backoffLimitPerIndex" in spec else 6
    policy = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    set_missing(
        spec,
        parallelism=1,
        backoffLimit=limit,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy=policy,
    )
    _template(spec)
    labels = part(part(spec, "template"), "metadata").get("labels")
    if labels:
        part(body, "metadata").setdefault("labels", dict(labels))


def _template(spec: Body) -> None:
    """The template in a spec, or in a PodTemplate."""
    template = part(spec, "template")
    part(template, "metadata")
    fill_pod_spec(part(template, "spec"))


def _secret(body: Body) -> None:
    """StringData is stored as data, and overrides it."""
    set_missing(body, type="Opaque")
    for key, value in body.pop("stringData", {}).items():
        part(body, "data")[key] = base64.b64encode(value.encode()).decode()


def _priority_class(body: Body) -> None:
    set_missing(body, preemptionPolicy="PreemptLowerPriority")


def _webhooks(body: Body) -> None:
    for hook in body.get("webhooks", ()):
        set_missing(hook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        set_missing(hook, namespaceSelector={}, objectSelector={})
        if body.get("kind") == "MutatingWebhookConfiguration":
            set_missing(hook, reinvocationPolicy="Never")
        for rule in hook.get("rules", ()):
            set_missing(rule, scope="*")
        service = part(hook, "clientConfig").get("service")
        if isinstance(service, dict):
            set_missing(service, port=443)


def _budget(body: Body) -> None:
    """A spec, as kube-apiserver always writes one; without a selector it covers no pods."""
    part(body, "spec")


def _definition(body: Body) -> None:
    spec = part(body, "spec")
    names = part(spec, "names")
    kind = names.get("kind")
    if kind:
        set_missing(names, singular=kind.lower(), listKind=f"{kind}List")
    set_missing(part(spec, "conversion"), strategy="None")


_FILL: dict[str, Callable[[Body], None]] = {
    **FILL_STORED,
    "CronJob": _cron_job,
    "CustomResourceDefinition": _definition,
    "DaemonSet": _daemon_set,
    "Deployment": _deployment,
    "Job": _job,
    "MutatingWebhookConfiguration": _webhooks,
    "Namespace": _namespace,
    "Node": _node,
    "Pod": fill_pod,
    "PodDisruptionBudget": _budget,
    "PodTemplate": _template,
    "PriorityClass": _priority_class,
    "ReplicaSet": _replica_set,
    "ReplicationController": _replication_controller,
    "Secret": _secret,
    "StatefulSet": _stateful_set,
    "ValidatingWebhookConfiguration": _webhooks,
}
