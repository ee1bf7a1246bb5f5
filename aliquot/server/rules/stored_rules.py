"""The validation of kinds without a part in scheduling: roles, services, storage, networks.

What users get wrong most is refused in the words of Kubernetes. Roles are checked, not enforced.
"""

from collections.abc import Callable, Iterator

from aliquot.dialects.schemas import names as naming
from aliquot.json import Body, same
from aliquot.server.rules.causes import (
    Cause,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from aliquot.server.rules.metadata_rules import changed

_RBAC = "rbac.authorization.k8s.io"
_PORTS = "must be between 1 and 65535, inclusive"
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_ACCESS = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_FIELDS = frozenset(
    {
        *("capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "nodeAffinity"),
        *("storageClassName", "mountOptions", "volumeMode", "volumeAttributesClassName"),
    }
)
"""Fields of a PersistentVolume's spec that are not its source."""
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_CLAIM_IS_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)

Check = Callable[[Body], Iterator[Cause]]
Update = Callable[[Body, Body], Iterator[Cause]]


def _service(body: Body) -> Iterator[Cause]:
    spec = body.get("spec") or {}
    kind, ports = spec.get("type"), spec.get("ports") or []
    if kind not in _TYPES:
        yield not_supported("spec.type", kind or "", _TYPES)
    if kind == "ExternalName":
        if not spec.get("externalName"):
            yield required("spec.externalName")
    elif not ports and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    known: set[str] = set()
    for index, port in enumerate(ports):
        yield from _service_port(port, f"spec.ports[{index}]", len(ports) > 1, known)


def _service_port(port: Body, field: str, named: bool, known: set[str]) -> Iterator[Cause]:
    name = port.get("name")
    if not name and named:
        yield required(f"{field}.name")
    elif name:
        yield from (invalid(f"{field}.name", name, each) for each in naming.label_name(name))
        if name in known:
            yield duplicate(f"{field}.name", name)
        known.add(name)
    yield from _check_port(port.get("port") or 0, f"{field}.port")
    if port.get("protocol") not in _PROTOCOLS:
        yield not_supported(f"{field}.protocol", port.get("protocol") or "", _PROTOCOLS)
    if isinstance(port.get("targetPort"), int):
        yield from _check_port(port["targetPort"], f"{field}.targetPort")


def _check_port(number: int, field: str) -> Iterator[Cause]:
    if not 1 <= number <= 65535:
        yield invalid(field, number, _PORTS)


def _service_update(old: Body, new: Body) -> Iterator[Cause]:
    """The address of a Service does not change while it has one."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if "ExternalName" in (before.get("type"), after.get("type")):
        return
    for word in ("clusterIP", "ipFamilies"):
        if before.get(word):
            yield from changed(f"spec.{word}", before[word], after.get(word))


def _role(body: Body) -> Iterator[Cause]:
    for index, rule in enumerate(body.get("rules") or ()):
        yield from _policy_rule(rule, f"rules[{index}]", body.get("kind") == "Role")
    aggregation = body.get("aggregationRule")
    if aggregation is not None and not aggregation.get("clusterRoleSelectors"):
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield required("aggregationRule.clusterRoleSelectors", detail)


def _policy_rule(rule: Body, field: str, namespaced: bool) -> Iterator[Cause]:
    if not rule.get("verbs"):
        yield required(f"{field}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            yield invalid(f"{field}.nonResourceURLs", urls, detail)
        if any(rule.get(word) for word in ("apiGroups", "resources", "resourceNames")):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{field}.nonResourceURLs", urls, detail)
        return
    if not rule.get("apiGroups"):
        yield required(f"{field}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{field}.resources", "resource rules must supply at least one resource")


def _binding(body: Body) -> Iterator[Cause]:
    everywhere, role = body.get("kind") == "ClusterRoleBinding", body.get("roleRef") or {}
    if role.get("apiGroup") != _RBAC:
        yield not_supported("roleRef.apiGroup", role.get("apiGroup") or "", (_RBAC,))
    kinds = ("ClusterRole",) if everywhere else ("Role", "ClusterRole")
    if role.get("kind") not in kinds:
        yield not_supported("roleRef.kind", role.get("kind") or "", kinds)
    if not role.get("name"):
        yield required("roleRef.name")
    for index, subject in enumerate(body.get("subjects") or ()):
        yield from _subject(subject, f"subjects[{index}]", everywhere)


def _subject(subject: Body, field: str, everywhere: bool) -> Iterator[Cause]:
    kind, group = subject.get("kind"), subject.get("apiGroup") or ""
    if not subject.get("name"):
        yield required(f"{field}.name")
    if kind == "ServiceAccount":
        if group:
            yield not_supported(f"{field}.apiGroup", group, ("",))
        if everywhere and not subject.get("namespace"):
            yield required(f"{field}.namespace")
    elif kind in ("User", "Group"):
        if group != _RBAC:
            yield not_supported(f"{field}.apiGroup", group, (_RBAC,))
    else:
        yield not_supported(f"{field}.kind", kind or "", ("ServiceAccount", "User", "Group"))


def _binding_update(old: Body, new: Body) -> Iterator[Cause]:
    if not same(old.get("roleRef") or {}, new.get("roleRef") or {}):
        yield invalid("roleRef", new.get("roleRef"), "cannot change roleRef")


def _claim(body: Body) -> Iterator[Cause]:
    spec = body.get("spec") or {}
    yield from _access_modes(spec)
    if not ((spec.get("resources") or {}).get("requests") or {}).get("storage"):
        yield required("spec.resources[storage]")


def _claim_update(old: Body, new: Body) -> Iterator[Cause]:
    before, after = dict(old.get("spec") or {}), dict(new.get("spec") or {})
    free = ["volumeName"] if not before.get("volumeName") else []
    if not before.get("storageClassName"):
        free.append("storageClassName")
    if (new.get("status") or {}).get("phase") == "Bound":
        free += ["resources", "volumeAttributesClassName"]
    for word in free:
        before.pop(word, None)
        after.pop(word, None)
    if not same(before, after):
        yield forbidden("spec", _CLAIM_IS_FIXED)


def _access_modes(spec: Body) -> Iterator[Cause]:
    modes = spec.get("accessModes") or []
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from (
        not_supported("spec.accessModes", mode, _ACCESS) for mode in modes if mode not in _ACCESS
    )


def _volume(body: Body) -> Iterator[Cause]:
    spec = body.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    if not spec.get("capacity"):
        yield required("spec.capacity")
    if not spec.keys() - _VOLUME_FIELDS:
        yield required("spec", "must specify a volume type")


def _storage_class(body: Body) -> Iterator[Cause]:
    if not body.get("provisioner"):
        yield required("provisioner")
    for word, values in (
        ("reclaimPolicy", ("Delete", "Retain")),
        ("volumeBindingMode", ("Immediate", "WaitForFirstConsumer")),
    ):
        if body.get(word) not in values:
            yield not_supported(word, body.get(word) or "", values)


def _storage_class_update(old: Body, new: Body) -> Iterator[Cause]:
    for word in ("parameters", "provisioner", "reclaimPolicy"):
        if not same(old.get(word), new.get(word)):
            yield forbidden(word, f"updates to {word} are forbidden.")
    yield from changed(
        "volumeBindingMode", old.get("volumeBindingMode"), new.get("volumeBindingMode")
    )


def _ingress(body: Body) -> Iterator[Cause]:
    spec = body.get("spec") or {}
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and backend is None:
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if backend is not None:
        yield from _backend(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        for number, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            yield from _ingress_path(path, f"spec.rules[{index}].http.paths[{number}]")


def _ingress_path(path: Body, field: str) -> Iterator[Cause]:
    kind, text = path.get("pathType"), path.get("path") or ""
    if kind is None:
        yield required(f"{field}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield not_supported(f"{field}.pathType", kind, _PATH_TYPES)
    elif not text.startswith("/") and (text or kind != "ImplementationSpecific"):
        yield invalid(f"{field}.path", text, "must be an absolute path")
    yield from _backend(path.get("backend") or {}, f"{field}.backend")


def _backend(backend: Body, field: str) -> Iterator[Cause]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is None and resource is None:
        yield invalid(field, "", "resource or service backend is required")
    elif service is not None and resource is not None:
        yield invalid(field, "", "cannot set both resource and service backends")
    elif service is not None:
        port = service.get("port") or {}
        if not service.get("name"):
            yield required(f"{field}.service.name")
        if port.get("name") and port.get("number"):
            yield invalid(field, "", "cannot set both port name & port number")
        elif not port.get("name") and not port.get("number"):
            yield required(field, "port name or number is required")


def _ingress_class(body: Body) -> Iterator[Cause]:
    if not (body.get("spec") or {}).get("controller"):
        yield required("spec.controller")


def _network_policy(body: Body) -> Iterator[Cause]:
    words, spec = ("Ingress", "Egress"), body.get("spec") or {}
    for index, word in enumerate(spec.get("policyTypes") or ()):
        if word not in words:
            yield not_supported(f"spec.policyTypes[{index}]", word, words)


def _autoscaler(body: Body) -> Iterator[Cause]:
    spec = body.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    target = spec.get("scaleTargetRef") or {}
    if least is not None and least < 1:
        yield invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        yield invalid("spec.maxReplicas", most, "must be greater than 0")
    if least is not None and most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    for word in ("kind", "name"):
        if not target.get(word):
            yield required(f"spec.scaleTargetRef.{word}")
    version = target.get("apiVersion") or ""
    if "/" not in version and target.get("kind") != "ReplicationController":
        yield invalid(
            "spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group"
        )


def _runtime_class(body: Body) -> Iterator[Cause]:
    handler = body.get("handler") or ""
    yield from (invalid("handler", handler, each) for each in naming.label_name(handler))


def _runtime_class_update(old: Body, new: Body) -> Iterator[Cause]:
    yield from changed("handler", old.get("handler"), new.get("handler"))


def _endpoint_slice(body: Body) -> Iterator[Cause]:
    words = ("FQDN", "IPv4", "IPv6")
    if not body.get("addressType"):
        yield required("addressType")
    elif body["addressType"] not in words:
        yield not_supported("addressType", body["addressType"], words)


CHECK_STORED: dict[str, Check] = {
    "ClusterRole": _role,
    "ClusterRoleBinding": _binding,
    "EndpointSlice": _endpoint_slice,
    "HorizontalPodAutoscaler": _autoscaler,
    "Ingress": _ingress,
    "IngressClass": _ingress_class,
    "NetworkPolicy": _network_policy,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "Role": _role,
    "RoleBinding": _binding,
    "RuntimeClass": _runtime_class,
    "Service": _service,
    "StorageClass": _storage_class,
}
CHECK_STORED_UPDATE: dict[str, Update] = {
    "ClusterRoleBinding": _binding_update,
    "PersistentVolumeClaim": _claim_update,
    "RoleBinding": _binding_update,
    "RuntimeClass": _runtime_class_update,
    "Service": _service_update,
    "StorageClass": _storage_class_update,
}
