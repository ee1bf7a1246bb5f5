"""The columns of kinds without a part in scheduling, and of workloads that follow nodes or clocks.

Names and cells are those of kubectl on a cluster of the version that the server follows.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from aliquot.json import Body, seek
from aliquot.server.rendering.columns import (
    NONE,
    Columns,
    age_of,
    containers_of,
    count_of,
    name_of,
    selector_text,
)
from aliquot.server.rendering.durations import since

_UNSET = "<unset>"
_ACCESS = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_MOST_ADDRESSES = 3
_MOST_METRICS = 2
"""Of a list in one cell, kubectl shows so many."""


def _daemon_set(body: Body, now: datetime) -> list[Any]:
    words = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady")
    more = ("updatedNumberScheduled", "numberAvailable")
    return [
        name_of(body),
        *(count_of(body, word) for word in (*words, *more)),
        _labels(seek(body, "spec", "template", "spec", "nodeSelector")),
        age_of(body, now),
        *containers_of(body),
        selector_text(seek(body, "spec", "selector")),
    ]


def _cron_job(body: Body, now: datetime) -> list[Any]:
    last = seek(body, "status", "lastScheduleTime")
    suspended = seek(body, "spec", "suspend")
    return [
        name_of(body),
        seek(body, "spec", "schedule") or "",
        seek(body, "spec", "timeZone") or NONE,
        _UNSET if suspended is None else str(suspended),
        len(seek(body, "status", "active") or ()),
        since(last, now) if last else NONE,
        age_of(body, now),
        *containers_of(body, "spec", "jobTemplate", "spec", "template"),
        selector_text(seek(body, "spec", "jobTemplate", "spec", "selector")),
    ]


def _replication_controller(body: Body, now: datetime) -> list[Any]:
    return [
        name_of(body),
        seek(body, "spec", "replicas") or 0,
        count_of(body, "replicas"),
        count_of(body, "readyReplicas"),
        age_of(body, now),
        *containers_of(body),
        _labels(seek(body, "spec", "selector")),
    ]


def _controller_revision(body: Body, now: datetime) -> list[Any]:
    owner = next(
        (
            each
            for each in seek(body, "metadata", "ownerReferences") or ()
            if each.get("controller")
        ),
        None,
    )
    controller = NONE
    if owner is not None:
        group = str(owner["apiVersion"]).rpartition("/")[0]
        kind = f"{str(owner['kind']).lower()}.{group}" if group else str(owner["kind"]).lower()
        controller = f"{kind}/{owner['name']}"
    return [name_of(body), controller, body.get("revision") or 0, age_of(body, now)]


def _pod_template(body: Body, now: datetime) -> list[Any]:
    labels = _labels(seek(body, "template", "metadata", "labels"))
    return [name_of(body), *containers_of(body, "template"), labels]


def _service(body: Body, now: datetime) -> list[Any]:
    return [
        name_of(body),
        seek(body, "spec", "type") or "",
        seek(body, "spec", "clusterIP") or NONE,
        _external(body),
        ",".join(map(_port, seek(body, "spec", "ports") or ())) or NONE,
        age_of(body, now),
        _labels(seek(body, "spec", "selector")),
    ]


def _external(body: Body) -> str:
    if seek(body, "spec", "type") == "ExternalName":
        return str(seek(body, "spec", "externalName") or "")
    shown = list(seek(body, "spec", "externalIPs") or ())
    if seek(body, "spec", "type") == "LoadBalancer":
        return ",".join([*_balancers(body), *shown]) or "<pending>"
    return ",".join(shown) or NONE


def _balancers(body: Body) -> list[str]:
    listed = seek(body, "status", "loadBalancer", "ingress") or ()
    return sorted({str(each.get("ip") or each.get("hostname") or "") for each in listed} - {""})


def _port(port: Body) -> str:
    number = str(port.get("port"))
    if port.get("nodePort"):
        number += f":{port['nodePort']}"
    return f"{number}/{port.get('protocol', 'TCP')}"


def _endpoints(body: Body, now: datetime) -> list[Any]:
    found: list[str] = []
    for subset in body.get("subsets") or ():
        ports = [f":{each.get('port')}" for each in subset.get("ports") or ()] or [""]
        addresses = [str(each.get("ip", "")) for each in subset.get("addresses") or ()]
        found += [f"{address}{port}" for port in ports for address in addresses]
    return [name_of(body), _first(found, _MOST_ADDRESSES) or NONE, age_of(body, now)]


def _endpoint_slice(body: Body, now: datetime) -> list[Any]:
    ports = [str(each.get("port") or each.get("name") or "*") for each in body.get("ports") or ()]
    addresses = [one for each in body.get("endpoints") or () for one in each.get("addresses") or ()]
    return [
        name_of(body),
        body.get("addressType") or "",
        _first(ports, _MOST_ADDRESSES) or _UNSET,
        _first(addresses, _MOST_ADDRESSES) or _UNSET,
        age_of(body, now),
    ]


def _ingress(body: Body, now: datetime) -> list[Any]:
    hosts = [each["host"] for each in seek(body, "spec", "rules") or () if each.get("host")]
    return [
        name_of(body),
        seek(body, "spec", "ingressClassName") or NONE,
        _first(hosts, _MOST_ADDRESSES) or "*",
        ",".join(_balancers(body)),
        "80, 443" if seek(body, "spec", "tls") else "80",
        age_of(body, now),
    ]


def _ingress_class(body: Body, now: datetime) -> list[Any]:
    about, text = seek(body, "spec", "parameters"), NONE
    if about:
        group = f".{about['apiGroup']}" if about.get("apiGroup") else ""
        text = f"{about.get('kind')}{group}/{about.get('name')}"
    return [name_of(body), seek(body, "spec", "controller") or "", text, age_of(body, now)]


def _network_policy(body: Body, now: datetime) -> list[Any]:
    return [name_of(body), selector_text(seek(body, "spec", "podSelector")), age_of(body, now)]


def _autoscaler(body: Body, now: datetime) -> list[Any]:
    target, least = (seek(body, "spec", word) for word in ("scaleTargetRef", "minReplicas"))
    targets = [_metric(each) for each in seek(body, "spec", "metrics") or ()]
    return [
        name_of(body),
        f"{(target or {}).get('kind')}/{(target or {}).get('name')}",
        _first(targets, _MOST_METRICS, ", ") or NONE,
        _UNSET if least is None else str(least),
        seek(body, "spec", "maxReplicas") or 0,
        count_of(body, "currentReplicas"),
        age_of(body, now),
    ]


def _metric(metric: Body) -> str:
    """The target of a metric; nothing measures it here, so the present value is unknown."""
    kind = str(metric.get("type", ""))
    source = metric.get(f"{kind[:1].lower()}{kind[1:]}") or {}
    target = source.get("target") or {}
    name = f"{source['name']}: " if source.get("name") else ""
    if target.get("averageUtilization") is not None:
        return f"{name}<unknown>/{target['averageUtilization']}%"
    value = target.get("averageValue") or target.get("value") or "<auto>"
    return f"{name}<unknown>/{value}"


def _binding(body: Body, now: datetime) -> list[Any]:
    role, subjects = body.get("roleRef") or {}, body.get("subjects") or ()
    by_kind = {
        kind: ", ".join(
            f"{each.get('namespace', '')}/{each['name']}"
            if kind == "ServiceAccount"
            else str(each["name"])
            for each in subjects
            if each.get("kind") == kind
        )
        for kind in ("User", "Group", "ServiceAccount")
    }
    shown = f"{role.get('kind')}/{role.get('name')}"
    return [name_of(body), shown, age_of(body, now), *by_kind.values()]


def _volume(body: Body, now: datetime) -> list[Any]:
    claim = seek(body, "spec", "claimRef") or {}
    return [
        name_of(body),
        str(seek(body, "spec", "capacity", "storage") or 0),
        _access(seek(body, "spec", "accessModes")),
        seek(body, "spec", "persistentVolumeReclaimPolicy") or "",
        _phase(body),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        seek(body, "spec", "storageClassName") or "",
        seek(body, "spec", "volumeAttributesClassName") or _UNSET,
        seek(body, "status", "reason") or "",
        age_of(body, now),
        seek(body, "spec", "volumeMode") or _UNSET,
    ]


def _claim(body: Body, now: datetime) -> list[Any]:
    volume = seek(body, "spec", "volumeName") or ""
    return [
        name_of(body),
        _phase(body),
        volume,
        str(seek(body, "status", "capacity", "storage") or 0) if volume else "",
        _access(seek(body, "status", "accessModes")) if volume else "",
        seek(body, "spec", "storageClassName") or "",
        seek(body, "spec", "volumeAttributesClassName") or _UNSET,
        age_of(body, now),
        seek(body, "spec", "volumeMode") or _UNSET,
    ]


def _phase(body: Body) -> str:
    if seek(body, "metadata", "deletionTimestamp"):
        return "Terminating"
    return str(seek(body, "status", "phase") or "")


def _access(modes: Iterable[str] | None) -> str:
    given = set(modes or ())
    return ",".join(short for mode, short in _ACCESS.items() if mode in given)


def _storage_class(body: Body, now: datetime) -> list[Any]:
    marks = seek(body, "metadata", "annotations") or {}
    default = any(marks.get(key) == "true" for key in _DEFAULT_CLASS)
    return [
        f"{name_of(body)} (default)" if default else name_of(body),
        body.get("provisioner") or "",
        body.get("reclaimPolicy") or "Delete",
        body.get("volumeBindingMode") or "Immediate",
        bool(body.get("allowVolumeExpansion")),
        age_of(body, now),
    ]


def _attachment(body: Body, now: datetime) -> list[Any]:
    return [
        name_of(body),
        seek(body, "spec", "attacher") or "",
        seek(body, "spec", "source", "persistentVolumeName") or "",
        seek(body, "spec", "nodeName") or "",
        bool(seek(body, "status", "attached")),
        age_of(body, now),
    ]


def _csi_node(body: Body, now: datetime) -> list[Any]:
    return [name_of(body), len(seek(body, "spec", "drivers") or ()), age_of(body, now)]


def _runtime_class(body: Body, now: datetime) -> list[Any]:
    return [name_of(body), body.get("handler") or "", age_of(body, now)]


def _first(texts: list[str], most: int, separator: str = ",") -> str:
    shown = separator.join(texts[:most])
    return f"{shown} + {len(texts) - most} more..." if len(texts) > most else shown


def _labels(labels: Body | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


_TEMPLATE = ("Containers*", "Images*", "Selector*")
_COUNTS = ("Desired", "Current", "Ready")
_BINDING = Columns(("Name", "Role", "Age", "Users*", "Groups*", "ServiceAccounts*"), _binding)

STORED_COLUMNS: dict[str, Columns] = {
    "CSINode": Columns(("Name", "Drivers", "Age"), _csi_node, frozenset({"Drivers"})),
    "ClusterRoleBinding": _BINDING,
    "ControllerRevision": Columns(("Name", "Controller", "Revision", "Age"), _controller_revision),
    "CronJob": Columns(
        ("Name", "Schedule", "Timezone", "Suspend", "Active", "Last Schedule", "Age", *_TEMPLATE),
        _cron_job,
        frozenset({"Active"}),
    ),
    "DaemonSet": Columns(
        ("Name", *_COUNTS, "Up-to-date", "Available", "Node Selector", "Age", *_TEMPLATE),
        _daemon_set,
        frozenset({*_COUNTS, "Up-to-date", "Available"}),
    ),
    "EndpointSlice": Columns(("Name", "AddressType", "Ports", "Endpoints", "Age"), _endpoint_slice),
    "Endpoints": Columns(("Name", "Endpoints", "Age"), _endpoints),
    "HorizontalPodAutoscaler": Columns(
        ("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), _autoscaler
    ),
    "Ingress": Columns(("Name", "Class", "Hosts", "Address", "Ports", "Age"), _ingress),
    "IngressClass": Columns(("Name", "Controller", "Parameters", "Age"), _ingress_class),
    "NetworkPolicy": Columns(("Name", "Pod-Selector", "Age"), _network_policy),
    "PersistentVolume": Columns(
        (
            *("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim"),
            *("StorageClass", "VolumeAttributesClass", "Reason", "Age", "VolumeMode*"),
        ),
        _volume,
    ),
    "PersistentVolumeClaim": Columns(
        (
            *("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass"),
            *("VolumeAttributesClass", "Age", "VolumeMode*"),
        ),
        _claim,
    ),
    "PodTemplate": Columns(("Name", "Containers", "Images", "Pod Labels"), _pod_template),
    "ReplicationController": Columns(
        ("Name", *_COUNTS, "Age", *_TEMPLATE), _replication_controller, frozenset(_COUNTS)
    ),
    "RoleBinding": _BINDING,
    "RuntimeClass": Columns(("Name", "Handler", "Age"), _runtime_class),
    "Service": Columns(
        ("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*"), _service
    ),
    "StorageClass": Columns(
        (
            *("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode"),
            *("AllowVolumeExpansion", "Age"),
        ),
        _storage_class,
    ),
    "VolumeAttachment": Columns(("Name", "Attacher", "PV", "Node", "Attached", "Age"), _attachment),
}
