"""The validation of pods and pod templates, on create and on update.

Only what Aliquot or its users rely on is checked. The spec of a pod is immutable but for a few
fields; its node is set by a binding.
"""

from collections.abc import Iterator
from typing import Any

from aliquot.dialects.core.extended_resources import is_extended
from aliquot.dialects.schemas import names
from aliquot.engine import quantity
from aliquot.errors import QuantityError
from aliquot.json import Body, fresh, same
from aliquot.server.rules.causes import (
    Cause,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from aliquot.server.rules.metadata_rules import check_labels

_ENUMS = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    "preemptionPolicy": ("PreemptLowerPriority", "Never"),
}
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LONGEST = 2**31 - 1
"""Seconds of activeDeadlineSeconds; the limit of Kubernetes."""
_MAY_CHANGE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_STANDARD = ("cpu", "memory", "ephemeral-storage", "storage", "pods")


def check_pod(body: Body) -> Iterator[Cause]:
    """A new pod."""
    spec = body.get("spec") or {}
    yield from check_pod_spec(spec, "spec")
    if spec.get("schedulingGates") and spec.get("nodeName"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield forbidden("spec.nodeName", detail)


def check_pod_spec(spec: Body, field: str) -> Iterator[Cause]:
    """The spec of a pod or of a pod template."""
    yield from _check_containers(spec, field)
    for name, words in _ENUMS.items():
        if spec.get(name) and spec[name] not in words:
            yield not_supported(f"{field}.{name}", spec[name], words)
    yield from _check_deadline(spec, field)
    yield from check_labels(spec.get("nodeSelector") or {}, f"{field}.nodeSelector")
    for name in ("nodeName", "serviceAccountName", "priorityClassName"):
        if spec.get(name):
            problems = names.subdomain(spec[name])
            yield from (invalid(f"{field}.{name}", spec[name], each) for each in problems)
    yield from _check_tolerations(spec.get("tolerations") or [], f"{field}.tolerations")
    yield from _check_names(spec.get("volumes") or [], f"{field}.volumes", set())
    yield from _check_names(spec.get("schedulingGates") or [], f"{field}.schedulingGates", set())
    yield from _check_amounts(spec.get("overhead") or {}, f"{field}.overhead")
    yield from _check_node_affinity(spec, field)


def _check_containers(spec: Body, field: str) -> Iterator[Cause]:
    if not spec.get("containers"):
        yield required(f"{field}.containers")
    seen: set[str] = set()
    volumes = {each.get("name") for each in spec.get("volumes") or ()}
    for word in ("initContainers", "containers"):
        containers = spec.get(word) or []
        yield from _check_names(containers, f"{field}.{word}", seen)
        for index, container in enumerate(containers):
            yield from _check_container(container, f"{field}.{word}[{index}]", volumes)


def _check_container(container: Body, field: str, volumes: set[Any]) -> Iterator[Cause]:
    if not container.get("image"):
        yield required(f"{field}.image")
    policy = container.get("imagePullPolicy")
    if policy and policy not in _PULL_POLICIES:
        yield not_supported(f"{field}.imagePullPolicy", policy, _PULL_POLICIES)
    for index, each in enumerate(container.get("env") or ()):
        if not each.get("name"):
            yield required(f"{field}.env[{index}].name")
    for index, each in enumerate(container.get("volumeMounts") or ()):
        place = f"{field}.volumeMounts[{index}]"
        if each.get("name") not in volumes:
            message = f'Not found: "{each.get("name", "")}"'
            yield Cause(f"{place}.name", "FieldValueNotFound", message)
        if not each.get("mountPath"):
            yield required(f"{place}.mountPath")
    yield from check_resources(container.get("resources") or {}, f"{field}.resources")


def check_resources(resources: Body, field: str) -> Iterator[Cause]:
    """Requests and limits: quantities, no request above its limit."""
    limits, requests = (resources.get(word) or {} for word in ("limits", "requests"))
    wrong = [
        *_check_amounts(limits, f"{field}.limits"),
        *_check_amounts(requests, f"{field}.requests"),
    ]
    yield from wrong
    if wrong:
        return
    for name, asked in requests.items():
        limit = limits.get(name)
        place = f"{field}.requests"
        if is_extended(name):
            if limit is None:
                yield required(
                    f"{field}.limits", "Limit must be set for non overcommitable resources"
                )
            elif quantity.parse(str(asked)) != quantity.parse(str(limit)):
                yield invalid(place, str(asked), f"must be equal to {name} limit of {limit}")
        elif (
            limit is not None
            and quantity.parse(str(asked)).nanos > quantity.parse(str(limit)).nanos
        ):
            yield invalid(
                place, str(asked), f"must be less than or equal to {name} limit of {limit}"
            )


def _check_amounts(amounts: Body, field: str) -> Iterator[Cause]:
    for name, value in amounts.items():
        place = f"{field}[{name}]"
        yield from (invalid(place, name, problem) for problem in names.label_key(name))
        if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
            yield invalid(place, name, "must be a standard resource for containers")
        yield from check_amount(value, place, whole=is_extended(name))


def check_amount(value: Any, field: str, whole: bool = False) -> Iterator[Cause]:
    """A quantity that is not negative; with `whole`, an integer."""
    try:
        nanos = quantity.parse(str(value)).nanos
    except QuantityError:
        yield invalid(field, value, "must be a quantity, such as 2, 500m or 10Gi")
        return
    if nanos < 0:
        yield invalid(field, str(value), "must be greater than or equal to 0")
    if whole and nanos % 10**9:
        yield invalid(field, str(value), "must be an integer")


def _check_names(items: list[Body], field: str, seen: set[str]) -> Iterator[Cause]:
    """Names that are RFC 1123 labels and unique."""
    gates = field.endswith("schedulingGates")
    rule = names.label_key if gates else names.label_name
    for index, each in enumerate(items):
        place, name = f"{field}[{index}]{'' if gates else '.name'}", each.get("name")
        if not name:
            yield required(place)
            continue
        yield from (invalid(place, name, problem) for problem in rule(name))
        if name in seen:
            yield duplicate(place, name)
        seen.add(name)


def _check_deadline(spec: Body, field: str) -> Iterator[Cause]:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST:
        detail = f"must be between 1 and {_LONGEST}, inclusive"
        yield invalid(f"{field}.activeDeadlineSeconds", deadline, detail)


def _check_tolerations(tolerations: list[Body], field: str) -> Iterator[Cause]:
    for index, each in enumerate(tolerations):
        place, operator = f"{field}[{index}]", each.get("operator") or "Equal"
        if each.get("key"):
            problems = names.label_key(each["key"])
            yield from (invalid(f"{place}.key", each["key"], problem) for problem in problems)
        elif operator != "Exists":
            means = 'which means "match all values and all keys"'
            detail = f"operator must be Exists when `key` is empty, {means}"
            yield invalid(f"{place}.operator", operator, detail)
        if operator not in ("Equal", "Exists", "Gt", "Lt"):
            yield not_supported(f"{place}.operator", operator, ("Equal", "Exists"))
        if operator == "Exists" and each.get("value"):
            detail = "value must be empty when `operator` is 'Exists'"
            yield invalid(f"{place}.operator", each, detail)
        if each.get("effect") and each["effect"] not in _EFFECTS:
            yield not_supported(f"{place}.effect", each["effect"], _EFFECTS)
        if each.get("tolerationSeconds") is not None and each.get("effect") != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{place}.effect", each.get("effect") or "", detail)


def _check_node_affinity(spec: Body, field: str) -> Iterator[Cause]:
    """A required node affinity has at least one term."""
    word = "requiredDuringSchedulingIgnoredDuringExecution"
    required_of: Any = spec
    for name in ("affinity", "nodeAffinity", word):
        required_of = required_of.get(name) if isinstance(required_of, dict) else None
    if isinstance(required_of, dict) and not required_of.get("nodeSelectorTerms"):
        place = f"{field}.affinity.nodeAffinity.{word}.nodeSelectorTerms"
        yield required(place, "must have at least one node selector term")


def check_taints(taints: list[Body], field: str) -> Iterator[Cause]:
    """The taints of a node: one for each key and effect."""
    seen = set()
    for index, each in enumerate(taints):
        place, key, effect = f"{field}[{index}]", each.get("key") or "", each.get("effect") or ""
        yield from (invalid(f"{place}.key", key, problem) for problem in names.label_key(key))
        if each.get("value"):
            problems = names.label_value(each["value"])
            yield from (invalid(f"{place}.value", each["value"], problem) for problem in problems)
        if not effect:
            yield required(f"{place}.effect")
        elif effect not in _EFFECTS:
            yield not_supported(f"{place}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            yield duplicate(place, each)
        seen.add((key, effect))


def check_pod_update(old: Body, new: Body) -> Iterator[Cause]:
    """Fields of a pod that changed and must not."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if same(before, after):
        return
    for word in ("containers", "initContainers"):
        if len(before.get(word) or ()) != len(after.get(word) or ()):
            detail = "pod updates may not add or remove containers"
            yield forbidden(f"spec.{word}", detail)
            return
    yield from _check_deadline_update(before, after)
    yield from _check_tolerations_update(before, after)
    gated = bool(before.get("schedulingGates"))
    yield from _check_gates(before, after)
    if not same(_immutable(before, gated), _immutable(after, gated)):
        detail = f"pod updates may not change fields other than {_MAY_CHANGE}"
        yield forbidden("spec", detail)
    if gated:
        yield from _check_selector(before, after)


def _immutable(spec: Body, gated: bool) -> Body:
    """The immutable part of a spec; of a gated pod, node selector and affinity may change."""
    kept: Body = fresh(spec)
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        kept.pop(name, None)
    for word in ("containers", "initContainers"):
        for container in kept.get(word) or ():
            container.pop("image", None)
    if gated:
        kept.pop("nodeSelector", None)
        affinity = kept.get("affinity")
        if isinstance(affinity, dict):
            affinity.pop("nodeAffinity", None)
        if not affinity:
            kept.pop("affinity", None)
    return kept


def _check_deadline_update(before: Body, after: Body) -> Iterator[Cause]:
    field = "spec.activeDeadlineSeconds"
    old, new = before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    if old is not None and new is None:
        yield invalid(field, None, "must not update from a positive integer to nil value")
    elif old is not None and new > old:
        yield invalid(field, new, "must be less than or equal to previous value")


def _check_tolerations_update(before: Body, after: Body) -> Iterator[Cause]:
    """Tolerations may be added, and their tolerationSeconds may change."""

    def kept(spec: Body) -> list[Body]:
        listed = spec.get("tolerations") or ()
        return [
            {key: value for key, value in each.items() if key != "tolerationSeconds"}
            for each in listed
        ]

    now = kept(after)
    if any(each not in now for each in kept(before)):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", detail)


def _check_gates(before: Body, after: Body) -> Iterator[Cause]:
    known = {each.get("name") for each in before.get("schedulingGates") or ()}
    for index, each in enumerate(after.get("schedulingGates") or ()):
        if each.get("name") not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{each.get('name')}'"
            yield forbidden(f"spec.schedulingGates[{index}]", detail)


def _check_selector(before: Body, after: Body) -> Iterator[Cause]:
    """The node selector of a gated pod may only be narrowed."""
    now = after.get("nodeSelector") or {}
    for key, value in (before.get("nodeSelector") or {}).items():
        if now.get(key) != value:
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            yield invalid("spec.nodeSelector", now, detail)
            return
