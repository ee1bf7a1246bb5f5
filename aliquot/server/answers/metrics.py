"""Metrics of nodes and pods: simulated, as nodes are. A running pod uses what it requests.

So `kubectl top` shows how full a cluster is by requests. Every answer warns that it is simulated.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from aliquot.engine import quantity
from aliquot.json import Body
from aliquot.server.admission.quota_usage import nanos
from aliquot.server.http.refusals import not_found
from aliquot.server.http.warnings import warn
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules.metadata import timestamp
from aliquot.server.selectors.selection import Selection
from aliquot.server.storage.entry import Entry
from aliquot.server.storage.store import Store
from aliquot.server.subresources.budgets import phase

SIMULATED = "these figures are simulated: a running pod uses what it requests"
_WINDOW = "10s"
"""As wide as that of metrics-server."""
_FORMS: dict[str, quantity.Form] = {"cpu": "decimal", "memory": "binary"}
_MARK = {"sim.aliquot.dev/simulated": "usage equals requests"}


def one(store: Store, kind: Kind, namespace: str | None, name: str) -> Body:
    """The metrics of a node or pod."""
    warn(SIMULATED)
    entry = store.get(kind.plural, namespace or "", name)
    if entry is None or (kind.plural == "pods" and phase(entry.read()) != "Running"):
        raise not_found(kind, name)
    return _metrics(store, kind, [entry])[0]


def many(store: Store, kind: Kind, chosen: Selection) -> Body:
    """The metrics of all nodes or pods of a selection."""
    warn(SIMULATED)
    entries = [each for each in store.all(kind.plural, chosen.namespace) if chosen.match(each)]
    return {
        "kind": kind.list_name,
        "apiVersion": kind.api_version,
        "metadata": {},
        "items": _metrics(store, kind, entries),
    }


def _metrics(store: Store, kind: Kind, entries: Iterable[Entry]) -> list[Body]:
    if kind.plural == "pods":
        running = ((each, each.read()) for each in entries)
        return [_of_pod(kind, each, pod) for each, pod in running if phase(pod) == "Running"]
    used = _by_node(store)
    return [
        {**_about(kind, each), "usage": _written(used.get(each.name, Counter()))}
        for each in entries
    ]


def _by_node(store: Store) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for entry in store.all("pods"):
        pod = entry.read()
        node = pod["spec"].get("nodeName")
        if node and phase(pod) == "Running":
            for container in pod["spec"].get("containers") or ():
                found.setdefault(node, Counter()).update(_usage(container))
    return found


def _of_pod(kind: Kind, entry: Entry, pod: Body) -> Body:
    containers = [
        {"name": each["name"], "usage": _written(_usage(each))}
        for each in pod["spec"].get("containers") or ()
    ]
    return {**_about(kind, entry), "containers": containers}


def _usage(container: Body) -> Counter[str]:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return Counter({word: nanos(asked.get(word, 0)) for word in _FORMS})


def _written(used: Counter[str]) -> dict[str, str]:
    return {word: str(quantity.Quantity(used[word], form)) for word, form in _FORMS.items()}


def _about(kind: Kind, entry: Entry) -> Body:
    metadata: Body = {"name": entry.name, "annotations": dict(_MARK)}
    if entry.namespace:
        metadata["namespace"] = entry.namespace
    if entry.labels:
        metadata["labels"] = dict(entry.labels)
    now = timestamp(datetime.now(UTC))
    metadata["creationTimestamp"] = now
    return {
        "kind": kind.name,
        "apiVersion": kind.api_version,
        "metadata": metadata,
        "timestamp": now,
        "window": _WINDOW,
    }
