"""The columns that kubectl shows of Kubernetes' own kinds: names, and functions for the cells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aliquot.json import Body, seek
from aliquot.server.rendering.durations import human, read, since
from aliquot.server.rendering.pod_columns import pod_cells

Cells = Callable[[Body, datetime], list[Any]]

NONE = "<none>"
_ROLE = "node-role.kubernetes.io/"
_TYPES = {"Attached": "boolean", "Created At": "date", "Suspend": "boolean"}
"""The types of columns that hold neither text nor numbers."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a kind, those of `-o wide` marked by a star, and the cells of a row."""

    names: Sequence[str]
    cells: Cells
    numbers: frozenset[str] = frozenset()

    def wire(self) -> list[Body]:
        """The columns as a Table has them."""
        return [self._column(name) for name in self.names]

    def _column(self, name: str) -> Body:
        bare = name.removesuffix("*")
        return {
            "name": bare,
            "type": "integer" if bare in self.numbers else _TYPES.get(bare, "string"),
            "format": "name" if bare == "Name" else "",
            "description": "",
            "priority": int(name != bare),
        }


def name_of(body: Body) -> Any:
    """The name of an object."""
    return seek(body, "metadata", "name")


def age_of(body: Body, now: datetime) -> str:
    """The time since an object was created."""
    return since(seek(body, "metadata", "creationTimestamp"), now)


def _plain(body: Body, now: datetime) -> list[Any]:
    return [name_of(body), age_of(body, now)]


def _created(body: Body, now: datetime) -> list[Any]:
    return [name_of(body), seek(body, "metadata", "creationTimestamp")]


def _node(body: Body, now: datetime) -> list[Any]:
    info = seek(body, "status", "nodeInfo") or {}
    kernel = info.get("kernelVersion") or "<unknown>"
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        name_of(body),
        _node_status(body),
        _node_roles(body),
        age_of(body, now),
        info.get("kubeletVersion") or "",
        _address(body, "InternalIP"),
        _address(body, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _node_status(body: Body) -> str:
    conditions = seek(body, "status", "conditions") or ()
    ready = next((each.get("status") for each in conditions if each.get("type") == "Ready"), None)
    word = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if seek(body, "spec", "unschedulable") else word


def _node_roles(body: Body) -> str:
    labels = seek(body, "metadata", "labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    roles |= {value for key, value in labels.items() if key == "kubernetes.io/role" and value}
    return ",".join(sorted(roles)) or NONE


def _address(body: Body, kind: str) -> str:
    addresses = seek(body, "status", "addresses") or ()
    return next((each.get("address") for each in addresses if each.get("type") == kind), NONE)


def _namespace(body: Body, now: datetime) -> list[Any]:
    return [name_of(body), seek(body, "status", "phase") or "", age_of(body, now)]


def _deployment(body: Body, now: datetime) -> list[Any]:
    return [
        name_of(body),
        f"{count_of(body, 'readyReplicas')}/{seek(body, 'spec', 'replicas') or 0}",
        count_of(body, "updatedReplicas"),
        count_of(body, "availableReplicas"),
        age_of(body, now),
        *containers_of(body),
        selector_text(seek(body, "spec", "selector")),
    ]


def _replica_set(body: Body, now: datetime) -> list[Any]:
    return [
        name_of(body),
        seek(body, "spec", "replicas") or 0,
        count_of(body, "replicas"),
        count_of(body, "readyReplicas"),
        age_of(body, now),
        *containers_of(body),
        selector_text(seek(body, "spec", "selector")),
    ]


def _stateful_set(body: Body, now: datetime) -> list[Any]:
    ready = f"{count_of(body, 'readyReplicas')}/{seek(body, 'spec', 'replicas') or 0}"
    return [name_of(body), ready, age_of(body, now), *containers_of(body)]


def _job(body: Body, now: datetime) -> list[Any]:
    return [
        name_of(body),
        _job_status(body),
        _completions(body),
        _job_duration(body, now),
        age_of(body, now),
        *containers_of(body),
        selector_text(seek(body, "spec", "selector")),
    ]


def _job_status(body: Body) -> str:
    conditions = seek(body, "status", "conditions") or ()
    true = {each.get("type") for each in conditions if each.get("status") == "True"}
    ended = next((word for word in ("Complete", "Failed") if word in true), None)
    if ended is None and seek(body, "metadata", "deletionTimestamp"):
        return "Terminating"
    words = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return ended or next((word for word in words if word in true), "Running")


def _completions(body: Body) -> str:
    done, wanted = count_of(body, "succeeded"), seek(body, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = seek(body, "spec", "parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(body: Body, now: datetime) -> str:
    begin = read(seek(body, "status", "startTime"))
    end = read(seek(body, "status", "completionTime")) or now
    return "" if begin is None else human(int((end - begin).total_seconds()))


def _event(body: Body, now: datetime) -> list[Any]:
    involved = body.get("involvedObject") or body.get("regarding") or {}
    first = since(seek(body, "firstTimestamp") or seek(body, "eventTime"), now)
    last = since(body["lastTimestamp"], now) if body.get("lastTimestamp") else first
    count = body.get("count") or 1
    if series := body.get("series"):
        last, count = since(series.get("lastObservedTime"), now), series.get("count")
    kind, name = str(involved.get("kind") or "").lower(), involved.get("name")
    return [
        last,
        body.get("type") or "",
        body.get("reason") or "",
        f"{kind}/{name}" if name else kind,
        involved.get("fieldPath") or "",
        _event_source(body),
        str(body.get("message") or body.get("note") or "").strip(),
        first,
        count,
        name_of(body),
    ]


def _event_source(body: Body) -> str:
    who = seek(body, "source", "component") or body.get("reportingComponent") or ""
    who = who or body.get("reportingController") or ""
    where = seek(body, "source", "host") or body.get("reportingInstance")
    return f"{who}, {where}" if where else who


def _lease(body: Body, now: datetime) -> list[Any]:
    return [name_of(body), seek(body, "spec", "holderIdentity") or "", age_of(body, now)]


def _config_map(body: Body, now: datetime) -> list[Any]:
    number = len(body.get("data") or ()) + len(body.get("binaryData") or ())
    return [name_of(body), number, age_of(body, now)]


def _secret(body: Body, now: datetime) -> list[Any]:
    return [name_of(body), body.get("type") or "", len(body.get("data") or ()), age_of(body, now)]


def _priority_class(body: Body, now: datetime) -> list[Any]:
    default = "true" if body.get("globalDefault") else "false"
    policy = body.get("preemptionPolicy") or ""
    return [name_of(body), body.get("value") or 0, default, age_of(body, now), policy]


def _budget(body: Body, now: datetime) -> list[Any]:
    least, most = (seek(body, "spec", word) for word in ("minAvailable", "maxUnavailable"))
    return [
        name_of(body),
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        count_of(body, "disruptionsAllowed"),
        age_of(body, now),
    ]


def _resource_quota(body: Body, now: datetime) -> list[Any]:
    hard, used = (seek(body, "status", word) or {} for word in ("hard", "used"))
    parts = {name: f"{name}: {used.get(name, 0)}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in parts.items() if name.startswith("limits.")]
    requests = [text for name, text in parts.items() if not name.startswith("limits.")]
    return [name_of(body), ", ".join(requests), ", ".join(limits), age_of(body, now)]


def _webhooks(body: Body, now: datetime) -> list[Any]:
    return [name_of(body), len(body.get("webhooks") or ()), age_of(body, now)]


def count_of(body: Body, word: str) -> Any:
    """A number of the status; 0 if it is not there."""
    return seek(body, "status", word) or 0


def containers_of(body: Body, *template: str) -> tuple[str, str]:
    """Names and images of the containers of a template, by default that of the spec."""
    listed = seek(body, *(template or ("spec", "template")), "spec", "containers") or ()
    names = ",".join(str(each.get("name", "")) for each in listed)
    return names, ",".join(str(each.get("image", "")) for each in listed)


def selector_text(selector: Body | None) -> str:
    """A selector as kubectl writes it, in the order of its keys."""
    if not selector:
        return NONE
    lines = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        key, operator = each.get("key"), str(each.get("operator", ""))
        values = ",".join(sorted(each.get("values") or ()))
        alone = {"Exists": str(key), "DoesNotExist": f"!{key}"}
        lines.append(alone.get(operator, f"{key} {operator.lower()} ({values})"))
    return ",".join(sorted(lines, key=lambda line: line.lstrip("!"))) or NONE


_TEMPLATE = ("Containers*", "Images*")
_WITH_WEBHOOKS = Columns(("Name", "Webhooks", "Age"), _webhooks, frozenset({"Webhooks"}))

CREATED = Columns(("Name", "Created At"), _created)
"""The columns of kinds without columns of their own."""

COLUMNS: dict[str, Columns] = {
    "ConfigMap": Columns(("Name", "Data", "Age"), _config_map),
    "CustomResourceDefinition": CREATED,
    "Deployment": Columns(
        ("Name", "Ready", "Up-to-date", "Available", "Age", *_TEMPLATE, "Selector*"), _deployment
    ),
    "Event": Columns(
        (
            "Last Seen",
            "Type",
            "Reason",
            "Object",
            "Subobject*",
            "Source*",
            "Message",
            "First Seen*",
            "Count*",
            "Name*",
        ),
        _event,
    ),
    "Job": Columns(
        ("Name", "Status", "Completions", "Duration", "Age", *_TEMPLATE, "Selector*"), _job
    ),
    "Lease": Columns(("Name", "Holder", "Age"), _lease),
    "MutatingWebhookConfiguration": _WITH_WEBHOOKS,
    "Namespace": Columns(("Name", "Status", "Age"), _namespace),
    "Node": Columns(
        (
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            "Internal-IP*",
            "External-IP*",
            "OS-Image*",
            "Kernel-Version*",
            "Container-Runtime*",
        ),
        _node,
    ),
    "Pod": Columns(
        (
            "Name",
            "Ready",
            "Status",
            "Restarts",
            "Age",
            "IP*",
            "Node*",
            "Nominated Node*",
            "Readiness Gates*",
        ),
        pod_cells,
    ),
    "PodDisruptionBudget": Columns(
        ("Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age"),
        _budget,
        frozenset({"Allowed Disruptions"}),
    ),
    "PriorityClass": Columns(
        ("Name", "Value", "Global-Default", "Age", "PreemptionPolicy"),
        _priority_class,
        frozenset({"Value"}),
    ),
    "ReplicaSet": Columns(
        ("Name", "Desired", "Current", "Ready", "Age", *_TEMPLATE, "Selector*"),
        _replica_set,
        frozenset({"Desired", "Current", "Ready"}),
    ),
    "ResourceQuota": Columns(("Name", "Request", "Limit", "Age"), _resource_quota),
    "Secret": Columns(("Name", "Type", "Data", "Age"), _secret),
    "ServiceAccount": Columns(("Name", "Age"), _plain),
    "StatefulSet": Columns(("Name", "Ready", "Age", *_TEMPLATE), _stateful_set),
    "ValidatingWebhookConfiguration": _WITH_WEBHOOKS,
}
