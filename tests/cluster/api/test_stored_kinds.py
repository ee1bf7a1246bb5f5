"""Kinds that manifests bring along: stored, with kube-apiserver's defaults and refusals."""

from typing import Any

import pytest

from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.stored import RBAC, STORED, stored, stored_path
from tests.cluster.api.wire import Body, Wire
from tests.cluster.conftest import Unique

_GROUP = RBAC.partition("/")[0]
_STRATEGY = "spec.updateStrategy.rollingUpdate"


@pytest.mark.parametrize("kind", STORED)
def test_the_life_of_an_object(api: Wire, ns: str, unique: Unique, kind: str) -> None:
    body = stored(kind, ns, unique("life"))
    where = stored_path(body)
    made = api.post(stored_path(body, named=False), body).done(201)
    assert made["metadata"]["uid"]
    read = api.get(where).done()
    assert read["metadata"]["name"] == body["metadata"]["name"]
    assert (read["apiVersion"], read["kind"]) == (body["apiVersion"], kind)
    changed = api.patch(where, {"metadata": {"labels": {"a": "b"}}}).done()
    assert changed["metadata"]["labels"]["a"] == "b"
    strict = {**stored(kind, ns, unique("life")), "flavour": "sweet"}
    refused = api.post(stored_path(strict, named=False), strict, fieldValidation="Strict")
    assert 'unknown field "flavour"' in refused.refused(400, "BadRequest")["message"]
    api.delete(where).done()


_DEFAULTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "Service",
        {},
        {
            "spec.type": "ClusterIP",
            "spec.sessionAffinity": "None",
            "spec.internalTrafficPolicy": "Cluster",
            "spec.ipFamilies": ["IPv4"],
            "spec.ipFamilyPolicy": "SingleStack",
            "spec.ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            "status": {"loadBalancer": {}},
        },
    ),
    (
        "Service",
        {"spec.type": "LoadBalancer", "spec.sessionAffinity": "ClientIP"},
        {
            "spec.externalTrafficPolicy": "Cluster",
            "spec.allocateLoadBalancerNodePorts": True,
            "spec.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
        },
    ),
    (
        "Service",
        {"spec": {"clusterIP": "None", "selector": {"a": "b"}}},
        {"spec.clusterIPs": ["None"], "spec.ipFamilyPolicy": "SingleStack"},
    ),
    (
        "RoleBinding",
        {"subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]},
        {
            "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": "r"},
            "subjects": [
                {"apiGroup": _GROUP, "kind": "User", "name": "u"},
                {"kind": "ServiceAccount", "name": "s"},
            ],
        },
    ),
    (
        "PersistentVolumeClaim",
        {},
        {"spec.volumeMode": "Filesystem", "status": {"phase": "Pending"}},
    ),
    (
        "PersistentVolume",
        {},
        {"spec.persistentVolumeReclaimPolicy": "Retain", "spec.volumeMode": "Filesystem"},
    ),
    ("StorageClass", {}, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
    (
        "NetworkPolicy",
        {},
        {
            "spec.policyTypes": ["Ingress", "Egress"],
            "spec.egress": [{"ports": [{"port": 53, "protocol": "TCP"}]}],
        },
    ),
    ("HorizontalPodAutoscaler", {}, {"spec.minReplicas": 1}),
    ("LimitRange", {}, {"spec.limits.0.defaultRequest": {"cpu": "1"}}),
    (
        "DaemonSet",
        {},
        {
            "spec.revisionHistoryLimit": 10,
            "spec.updateStrategy.type": "RollingUpdate",
            _STRATEGY: {"maxSurge": 0, "maxUnavailable": 1},
            "spec.template.spec.restartPolicy": "Always",
        },
    ),
    (
        "StatefulSet",
        {},
        {
            "spec.podManagementPolicy": "OrderedReady",
            "spec.revisionHistoryLimit": 10,
            _STRATEGY: {"partition": 0},
            "spec.persistentVolumeClaimRetentionPolicy": {
                "whenDeleted": "Retain",
                "whenScaled": "Retain",
            },
            "spec.volumeClaimTemplates.0.kind": "PersistentVolumeClaim",
            "spec.volumeClaimTemplates.0.spec.volumeMode": "Filesystem",
        },
    ),
    (
        "CronJob",
        {},
        {
            "spec.concurrencyPolicy": "Allow",
            "spec.suspend": False,
            "spec.successfulJobsHistoryLimit": 3,
            "spec.failedJobsHistoryLimit": 1,
            "status": {},
        },
    ),
    ("ReplicationController", {}, {"spec.selector": {"app": "a"}, "metadata.labels": {"app": "a"}}),
]


@pytest.mark.parametrize(("kind", "changes", "expected"), _DEFAULTS)
def test_defaults(
    api: Wire,
    ns: str,
    unique: Unique,
    kind: str,
    changes: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    body = stored(kind, ns, unique("default"), changes)
    made = api.post(stored_path(body, named=False), body).done(201)
    assert {path: _at(made, path) for path in expected} == expected


def _at(body: Any, path: str) -> Any:
    for word in path.split("."):
        body = body[int(word)] if word.isdecimal() else body[word]
    return body


_PORTS = "must be between 1 and 65535, inclusive"
_PATH = "spec.rules.0.http.paths.0"
_SHOWN_PATH = "spec.rules[0].http.paths[0]"
_REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("Service", {"spec.ports": None}, "spec.ports: Required value"),
    (
        "Service",
        {"spec.ports.0.port": 70000},
        f"spec.ports[0].port: Invalid value: 70000: {_PORTS}",
    ),
    (
        "Service",
        {"spec.ports": [{"port": 1, "name": "a"}, {"port": 2}]},
        "spec.ports[1].name: Required value",
    ),
    (
        "Service",
        {"spec.ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]},
        'spec.ports[1].name: Duplicate value: "a"',
    ),
    (
        "Service",
        {"spec.ports.0.protocol": "ICMP"},
        'spec.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
    ),
    ("Service", {"spec.type": "ExternalName"}, "spec.externalName: Required value"),
    ("Service", {"metadata.name": "bad_name"}, "label must consist of"),
    (
        "Role",
        {"rules": [{"apiGroups": [""], "resources": ["pods"]}]},
        "rules[0].verbs: Required value: verbs must contain at least one value",
    ),
    (
        "Role",
        {"rules": [{"nonResourceURLs": ["/x"], "verbs": ["get"]}]},
        "namespaced rules cannot apply to non-resource URLs",
    ),
    (
        "ClusterRole",
        {"rules": [{"verbs": ["get"]}]},
        "rules[0].resources: Required value: resource rules must supply at least one resource",
    ),
    (
        "ClusterRoleBinding",
        {"roleRef.kind": "Role"},
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
    ),
    (
        "ClusterRoleBinding",
        {"subjects": [{"kind": "ServiceAccount", "name": "s"}]},
        "subjects[0].namespace: Required value",
    ),
    (
        "RoleBinding",
        {"subjects": [{"kind": "Robot", "name": "r"}]},
        'subjects[0].kind: Unsupported value: "Robot": supported values: '
        '"ServiceAccount", "User", "Group"',
    ),
    ("RoleBinding", {"roleRef": {"kind": "Role"}}, "roleRef.name: Required value"),
    (
        "PersistentVolumeClaim",
        {"spec.accessModes": None},
        "spec.accessModes: Required value: at least 1 access mode is required",
    ),
    ("PersistentVolumeClaim", {"spec.resources": None}, "spec.resources[storage]: Required value"),
    (
        "PersistentVolume",
        {"spec.hostPath": None},
        "spec: Required value: must specify a volume type",
    ),
    ("StorageClass", {"provisioner": None}, "provisioner: Required value"),
    (
        "StorageClass",
        {"reclaimPolicy": "Burn"},
        'reclaimPolicy: Unsupported value: "Burn": supported values: "Delete", "Retain"',
    ),
    ("Ingress", {"spec": {}}, "either `defaultBackend` or `rules` must be specified"),
    (
        "Ingress",
        {f"{_PATH}.pathType": None},
        f"{_SHOWN_PATH}.pathType: Required value: pathType must be specified",
    ),
    (
        "Ingress",
        {f"{_PATH}.backend": {"service": {"name": "s"}}},
        f"{_SHOWN_PATH}.backend: Required value: port name or number is required",
    ),
    (
        "HorizontalPodAutoscaler",
        {"spec.minReplicas": 4},
        "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`",
    ),
    (
        "DaemonSet",
        {"spec.selector": {"matchLabels": {"app": "z"}}},
        "`selector` does not match template `labels`",
    ),
    (
        "DaemonSet",
        {"spec.template.spec.restartPolicy": "Never"},
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ),
    (
        "StatefulSet",
        {"spec.podManagementPolicy": "Wild"},
        "spec.podManagementPolicy: Invalid value: \"Wild\": must be 'OrderedReady' or 'Parallel'",
    ),
    (
        "CronJob",
        {"spec.schedule": "x"},
        'spec.schedule: Invalid value: "x": expected exactly 5 fields, found 1: [x]',
    ),
    (
        "CronJob",
        {"spec.schedule": "60 * * * *"},
        "end of range (60) above maximum (59): 60",
    ),
    (
        "CronJob",
        {"spec.timeZone": "Mars/Olympus"},
        'spec.timeZone: Invalid value: "Mars/Olympus": unknown time zone Mars/Olympus',
    ),
    (
        "CronJob",
        {"spec.concurrencyPolicy": "Wild"},
        'spec.concurrencyPolicy: Unsupported value: "Wild": supported values: '
        '"Allow", "Forbid", "Replace"',
    ),
    (
        "CronJob",
        {"spec.jobTemplate.spec.template.spec.restartPolicy": "Always"},
        "spec.jobTemplate.spec.template.spec.restartPolicy: ",
    ),
    ("CronJob", {"metadata.name": "c" * 53}, "must be no more than 52 characters"),
    ("EndpointSlice", {"addressType": None}, "addressType: Required value"),
    ("IngressClass", {"spec": {}}, "spec.controller: Required value"),
    (
        "ReplicationController",
        {"spec.selector": {"app": "z"}},
        "`selector` does not match template `labels`",
    ),
]


@pytest.mark.parametrize(("kind", "changes", "problem"), _REFUSED)
def test_refusals(
    api: Wire, ns: str, unique: Unique, kind: str, changes: dict[str, Any], problem: str
) -> None:
    body = stored(kind, ns, unique("bad"), changes)
    status = api.post(stored_path(body, named=False), body).refused(422, "Invalid")
    assert problem in status["message"]
    assert all(cause["field"] for cause in status["details"]["causes"])


_FIXED: list[tuple[str, Body, str]] = [
    ("RoleBinding", {"roleRef": {"name": "other"}}, "roleRef: Invalid value"),
    ("PersistentVolumeClaim", {"spec": {"accessModes": ["ReadWriteMany"]}}, "spec is immutable"),
    ("StorageClass", {"provisioner": "example.com/y"}, "is invalid: provisioner: "),
    ("Service", {"spec": {"clusterIP": "10.0.0.199"}}, "spec.clusterIP"),
    ("StatefulSet", {"spec": {"serviceName": "y"}}, "updates to statefulset spec for fields other"),
    ("DaemonSet", {"spec": {"selector": {"matchLabels": {"b": "c"}}}}, "field is immutable"),
    ("RuntimeClass", {"handler": "other"}, "field is immutable"),
]


@pytest.mark.parametrize(("kind", "change", "problem"), _FIXED)
def test_what_may_not_change(
    api: Wire, ns: str, unique: Unique, kind: str, change: Body, problem: str
) -> None:
    body = stored(kind, ns, unique("fixed"))
    api.post(stored_path(body, named=False), body).done(201)
    status = api.patch(stored_path(body), change).refused(422, "Invalid")
    assert problem in status["message"]


def test_services_have_addresses_of_their_own_and_keep_them(api: Wire, ns: str) -> None:
    bodies = [stored("Service", ns, name, {"spec.type": "NodePort"}) for name in ("a", "b")]
    made = [api.post(stored_path(each, named=False), each).done(201) for each in bodies]
    addresses = [each["spec"]["clusterIP"] for each in made]
    ports = [each["spec"]["ports"][0]["nodePort"] for each in made]
    assert len(set(addresses)) == len(set(ports)) == 2
    assert all(each["spec"]["clusterIPs"] == [each["spec"]["clusterIP"]] for each in made)
    replaced = api.put(stored_path(bodies[0]), bodies[0]).done()
    assert replaced["spec"]["clusterIP"] == addresses[0]
    assert replaced["spec"]["ports"][0]["nodePort"] == ports[0]


_COLUMNS = {
    "CronJob": "NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST SCHEDULE AGE",
    "DaemonSet": "NAME DESIRED CURRENT READY UP-TO-DATE AVAILABLE NODE SELECTOR AGE",
    "HorizontalPodAutoscaler": "NAME REFERENCE TARGETS MINPODS MAXPODS REPLICAS AGE",
    "Ingress": "NAME CLASS HOSTS ADDRESS PORTS AGE",
    "NetworkPolicy": "NAME POD-SELECTOR AGE",
    "PersistentVolumeClaim": "NAME STATUS VOLUME CAPACITY ACCESS MODES STORAGECLASS "
    "VOLUMEATTRIBUTESCLASS AGE",
    "Role": "NAME CREATED AT",
    "RoleBinding": "NAME ROLE AGE",
    "Service": "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE",
    "StatefulSet": "NAME READY AGE",
    "StorageClass": "NAME PROVISIONER RECLAIMPOLICY VOLUMEBINDINGMODE ALLOWVOLUMEEXPANSION AGE",
}


@pytest.mark.parametrize("kind", _COLUMNS)
def test_columns(kubectl: Kubectl, api: Wire, ns: str, unique: Unique, kind: str) -> None:
    body = stored(kind, ns, unique("shown"))
    api.post(stored_path(body, named=False), body).done(201)
    rows = kubectl("get", kind.lower(), body["metadata"]["name"]).rows
    assert " ".join(rows[0]) == _COLUMNS[kind]
    assert rows[1][0] == body["metadata"]["name"]


@pytest.mark.parametrize(
    ("short", "kind"),
    [
        ("cj", "CronJob"),
        ("ds", "DaemonSet"),
        ("ep", "Endpoints"),
        ("hpa", "HorizontalPodAutoscaler"),
        ("ing", "Ingress"),
        ("limits", "LimitRange"),
        ("netpol", "NetworkPolicy"),
        ("pv", "PersistentVolume"),
        ("pvc", "PersistentVolumeClaim"),
        ("rc", "ReplicationController"),
        ("sa", "ServiceAccount"),
        ("sc", "StorageClass"),
        ("sts", "StatefulSet"),
        ("svc", "Service"),
    ],
)
def test_short_names(
    kubectl: Kubectl, api: Wire, ns: str, unique: Unique, short: str, kind: str
) -> None:
    body = stored(kind, ns, unique("short"))
    api.post(stored_path(body, named=False), body).done(201)
    shown = kubectl.json("get", short, body["metadata"]["name"])
    assert shown["kind"] == kind


def test_apply_of_all_at_once(kubectl: Kubectl, ns: str, unique: Unique) -> None:
    bodies = [stored(kind, ns, unique("applied")) for kind in STORED]
    rows = kubectl("apply", "-f", "-", documents=bodies).rows
    assert [row[1] for row in rows] == ["created"] * len(bodies)
    for body in bodies:
        body["metadata"]["labels"] = {"team": "a"}
    rows = kubectl("apply", "-f", "-", documents=bodies).rows
    assert [row[1] for row in rows] == ["configured"] * len(bodies)
