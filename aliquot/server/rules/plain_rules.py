"""The validation of the simpler kinds, on create and on update.

ConfigMap, Secret, Node, PriorityClass, PodDisruptionBudget, ResourceQuota, Lease and Event.
"""

import base64
import binascii
import re
from collections.abc import Iterator

from aliquot.dialects.priorities import HIGHEST_OF_USERS, SYSTEM
from aliquot.dialects.schemas import names as naming
from aliquot.errors import SelectorError
from aliquot.json import Body, same
from aliquot.server.rules.causes import Cause, forbidden, invalid, not_supported, too_long
from aliquot.server.rules.metadata_rules import changed
from aliquot.server.rules.pod_rules import check_amount, check_taints
from aliquot.server.selectors.selectors import Labels

_FROZEN = "field is immutable when `immutable` is set"
_NOT_CHANGED = "may not be changed in an update."
_AT_LEAST_ZERO = "must be greater than or equal to 0"
_MOST_DATA = 1024 * 1024
"""Bytes of a ConfigMap; the limit of Kubernetes."""
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
"""Keys of a ResourceQuota that count objects: whole numbers only."""
_EVICTION = ("IfHealthyBudget", "AlwaysAllow")


def check_config(body: Body) -> Iterator[Cause]:
    """A ConfigMap: its keys are file names, its size is limited."""
    size = 0
    for word in ("data", "binaryData"):
        size += sum(len(str(value).encode()) for value in (body.get(word) or {}).values())
    if size > _MOST_DATA:
        yield too_long("", _MOST_DATA)
    for word in ("data", "binaryData"):
        for key in body.get(word) or {}:
            yield from (invalid(f"{word}[{key}]", key, each) for each in naming.data_key(key))


def check_config_update(old: Body, new: Body) -> Iterator[Cause]:
    """The data of an immutable ConfigMap does not change."""
    yield from _frozen(old, new, "data", "binaryData")


def check_secret(body: Body) -> Iterator[Cause]:
    """A Secret: its keys are file names, its values base64."""
    for key, value in (body.get("data") or {}).items():
        yield from (invalid(f"data[{key}]", key, each) for each in naming.data_key(key))
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            yield invalid(f"data[{key}]", "<secret>", "must be base64")


def check_secret_update(old: Body, new: Body) -> Iterator[Cause]:
    """The type of a Secret does not change, nor the data of an immutable one."""
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
    """A Node: its taints, and its capacity and allocatable are quantities."""
    yield from check_taints((body.get("spec") or {}).get("taints") or [], "spec.taints")
    status = body.get("status") or {}
    for word in ("capacity", "allocatable"):
        for name, value in (status.get(word) or {}).items():
            yield from check_amount(value, f"status.{word}.{name}")


def check_node_update(old: Body, new: Body) -> Iterator[Cause]:
    """The providerID of a Node does not change once it is set."""
    before, after = ((each.get("spec") or {}).get("providerID") or "" for each in (old, new))
    if before not in ("", after):
        detail = 'node updates may not change providerID except from "" to valid'
        yield forbidden("spec.providerID", detail)


def check_priority_class(body: Body) -> Iterator[Cause]:
    """A PriorityClass: values and names of the system are not for users."""
    name, value = (body.get("metadata") or {}).get("name") or "", body.get("value") or 0
    if name.startswith("system-"):
        if name not in SYSTEM:
            reserved = "priority class names with 'system-' prefix are reserved for system use only"
            yield forbidden("metadata.name", f"{reserved}. error: {name} is not known")
    elif value > HIGHEST_OF_USERS:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_OF_USERS}"
        yield forbidden("value", detail)
    policy = body.get("preemptionPolicy")
    if policy and policy not in ("Never", "PreemptLowerPriority"):
        yield not_supported("preemptionPolicy", policy, ("Never", "PreemptLowerPriority"))


def check_priority_class_update(old: Body, new: Body) -> Iterator[Cause]:
    """Value and preemption policy do not change: pods hold a copy of them."""
    if (old.get("value") or 0) != (new.get("value") or 0):
        yield forbidden("value", _NOT_CHANGED)
    yield from changed("preemptionPolicy", old.get("preemptionPolicy"), new.get("preemptionPolicy"))


def check_budget(body: Body) -> Iterator[Cause]:
    """A PodDisruptionBudget: minAvailable or maxUnavailable, not both."""
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
    """A number that is not negative, or a percentage."""
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
    """A ResourceQuota: its keys are resource names, its bounds quantities."""
    for name, value in ((body.get("spec") or {}).get("hard") or {}).items():
        field = f"spec.hard[{name}]"
        yield from (invalid(field, name, each) for each in naming.label_key(name))
        yield from check_amount(value, field, whole=name in _COUNTED or name.startswith("count/"))


def check_lease(body: Body) -> Iterator[Cause]:
    """A Lease: its duration is positive."""
    spec = body.get("spec") or {}
    if "leaseDurationSeconds" in spec and spec["leaseDurationSeconds"] <= 0:
        detail = "must be greater than 0"
        yield invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], detail)
    if spec.get("leaseTransitions", 0) < 0:
        yield invalid("spec.leaseTransitions", spec["leaseTransitions"], _AT_LEAST_ZERO)


def check_event(body: Body) -> Iterator[Cause]:
    """An Event: in its object's namespace; of a cluster-scoped object, default or kube-system."""
    involved = body.get("involvedObject") or body.get("regarding") or {}
    own = (body.get("metadata") or {}).get("namespace") or ""
    theirs = involved.get("namespace") or ""
    if theirs != own and not (theirs == "" and own in ("default", "kube-system")):
        yield invalid("involvedObject.namespace", theirs, "does not match event.namespace")
