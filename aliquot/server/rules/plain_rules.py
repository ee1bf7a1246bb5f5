"""What the plainer kinds must be: settings, nodes, budgets, classes, bounds, leases, events."""

import base64
import binascii
import re
from collections.abc import Iterator

from aliquot.errors import SelectorError
from aliquot.json import Body, same
from aliquot.server.rules import names as naming
from aliquot.server.rules.causes import Cause, forbidden, invalid, not_supported, too_long
from aliquot.server.rules.metadata_rules import changed
from aliquot.server.rules.pod_rules import check_amount, check_taints
from aliquot.server.selectors.selectors import Labels

_HIGHEST_OF_USERS = 1_000_000_000
_SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")
_FROZEN = "field is immutable when `immutable` is set"
_NOT_CHANGED = "may not be changed in an update."
_AT_LEAST_ZERO = "must be greater than or equal to 0"
_MOST_DATA = 1024 * 1024
_COUNTED = (
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
)
"""What is counted in whole pieces."""
_EVICTION = ("IfHealthyBudget", "AlwaysAllow")


def check_config(body: Body) -> Iterator[Cause]:
    """A ConfigMap: keys that can be files, and no more than they can hold."""
    size = 0
    for word in ("data", "binaryData"):
        size += sum(len(str(value).encode()) for value in (body.get(word) or {}).values())
    if size > _MOST_DATA:
        yield too_long("", _MOST_DATA)
    for word in ("data", "binaryData"):
        for key in body.get(word) or {}:
            yield from (invalid(f"{word}[{key}]", key, each) for each in naming.data_key(key))


def check_config_update(old: Body, new: Body) -> Iterator[Cause]:
    """A ConfigMap that must not change does not."""
    yield from _frozen(old, new, "data", "binaryData")


def check_secret(body: Body) -> Iterator[Cause]:
    """A Secret: keys that can be files, values in base64."""
    for key, value in (body.get("data") or {}).items():
        yield from (invalid(f"data[{key}]", key, each) for each in naming.data_key(key))
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            yield invalid(f"data[{key}]", "<secret>", "must be base64")


def check_secret_update(old: Body, new: Body) -> Iterator[Cause]:
    """What a Secret is for never changes; one that must not change does not."""
    yield from changed("type", old.get("type"), new.get("type"))
    yield from _frozen(old, new, "data")


def _frozen(old: Body, new: Body, *names: str) -> Iterator[Cause]:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", _FROZEN)
    for name in names:
        if not same(old.get(name) or {}, new.get(name) or {}):
            yield forbidden(name, _FROZEN)


def check_node(body: Body) -> Iterator[Cause]:
    """A Node: its taints, and amounts that are such."""
    yield from check_taints((body.get("spec") or {}).get("taints") or [], "spec.taints")
    status = body.get("status") or {}
    for word in ("capacity", "allocatable"):
        for name, value in (status.get(word) or {}).items():
            yield from check_amount(value, f"status.{word}.{name}")


def check_node_update(old: Body, new: Body) -> Iterator[Cause]:
    """Which machine a Node is never changes."""
    before, after = ((each.get("spec") or {}).get("providerID") or "" for each in (old, new))
    if before not in ("", after):
        detail = 'node updates may not change providerID except from "" to valid'
        yield forbidden("spec.providerID", detail)


def check_priority_class(body: Body) -> Iterator[Cause]:
    """A PriorityClass: users stay below what keeps the cluster running."""
    name, value = (body.get("metadata") or {}).get("name") or "", body.get("value") or 0
    if name.startswith("system-"):
        if name not in _SYSTEM_CLASSES:
            reserved = "priority class names with 'system-' prefix are reserved for system use only"
            yield forbidden("metadata.name", f"{reserved}. error: {name} is not known")
    elif value > _HIGHEST_OF_USERS:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST_OF_USERS}"
        yield forbidden("value", detail)
    policy = body.get("preemptionPolicy")
    if policy and policy not in ("Never", "PreemptLowerPriority"):
        yield not_supported("preemptionPolicy", policy, ("Never", "PreemptLowerPriority"))


def check_priority_class_update(old: Body, new: Body) -> Iterator[Cause]:
    """What a name stands for never changes: pods have copied it."""
    if (old.get("value") or 0) != (new.get("value") or 0):
        yield forbidden("value", _NOT_CHANGED)
    yield from changed("preemptionPolicy", old.get("preemptionPolicy"), new.get("preemptionPolicy"))


def check_budget(body: Body) -> Iterator[Cause]:
    """A PodDisruptionBudget: one bound, not two."""
    spec = body.get("spec") or {}
    if "minAvailable" in spec and "maxUnavailable" in spec:
        detail = "minAvailable and maxUnavailable cannot be both set"
        yield invalid(
            "spec", {key: spec[key] for key in ("minAvailable", "maxUnavailable")}, detail
        )
    for word in ("minAvailable", "maxUnavailable"):
        if word in spec:
            yield from _check_part(spec[word], f"spec.{word}")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy and policy not in _EVICTION:
        yield not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION)
    try:
        Labels.of(spec.get("selector"))
    except SelectorError as error:
        yield invalid("spec.selector", spec["selector"], str(error))


def _check_part(value: int | str, field: str) -> Iterator[Cause]:
    """A number, or a part of a hundred."""
    if isinstance(value, str):
        if not re.fullmatch("[0-9]+%", value):
            words = "a valid percent string must be a numeric string followed by an ending '%'"
            detail = f"{words} (e.g. '1%', or '93%', regex used for validation is '[0-9]+%')"
            yield invalid(field, value, detail)
        elif len(value) > 4 or int(value[:-1]) > 100:
            yield invalid(field, value, "must not be greater than 100%")
    elif value < 0:
        yield invalid(field, value, _AT_LEAST_ZERO)


def check_resource_quota(body: Body) -> Iterator[Cause]:
    """A ResourceQuota: amounts of things that have a name."""
    for name, value in ((body.get("spec") or {}).get("hard") or {}).items():
        field = f"spec.hard[{name}]"
        yield from (invalid(field, name, each) for each in naming.label_key(name))
        yield from check_amount(value, field, whole=name in _COUNTED or name.startswith("count/"))


def check_lease(body: Body) -> Iterator[Cause]:
    """A Lease: it lasts for a while."""
    spec = body.get("spec") or {}
    if "leaseDurationSeconds" in spec and spec["leaseDurationSeconds"] <= 0:
        detail = "must be greater than 0"
        yield invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], detail)
    if spec.get("leaseTransitions", 0) < 0:
        yield invalid("spec.leaseTransitions", spec["leaseTransitions"], _AT_LEAST_ZERO)


def check_event(body: Body) -> Iterator[Cause]:
    """An Event: it is where its object is, or with the cluster's in the default namespace."""
    involved = body.get("involvedObject") or body.get("regarding") or {}
    own = (body.get("metadata") or {}).get("namespace") or ""
    theirs = involved.get("namespace") or ""
    if theirs != own and not (theirs == "" and own in ("default", "kube-system")):
        yield invalid("involvedObject.namespace", theirs, "does not match event.namespace")
