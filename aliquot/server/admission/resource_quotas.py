"""ResourceQuotas: the usage of every namespace, and the refusal of what exceeds it.

Usage is summed over the stored objects and updated with every change before the write returns, so
that two pods created at the same time cannot both use the last of a quota.
"""

from collections import Counter

from aliquot.json import Body
from aliquot.server.admission.quota_usage import (
    Usage,
    nanos,
    of_pod,
    text,
    unspecified,
)
from aliquot.server.http.refusals import forbidden
from aliquot.server.kinds.kind import Kind
from aliquot.server.storage.entry import Entry
from aliquot.server.storage.store import Store
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import finished

QUOTAS = "resourcequotas"
_ONE = 10**9
_OBJECTS = (
    *("configmaps", "persistentvolumeclaims", "replicationcontrollers", QUOTAS),
    *("secrets", "serviceaccounts", "services"),
)
"""Keys that count the objects of a storage."""


class UsageIndex:
    """What the pods of a namespace use; counted when first asked for, then kept up to date."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._by_pod: dict[str, dict[str, Usage]] = {}
        """By namespace and uid, what each pod uses."""
        self._totals: dict[str, Usage] = {}
        store.listeners.append(self._on_change)

    def used(self, namespace: str, key: str) -> int:
        """What a namespace uses of a key of `spec.hard`, in nanos."""
        if key in _OBJECTS:
            return _ONE * len(self._store.all(key, namespace))
        if key.startswith("count/") and key != "count/pods":
            return _ONE * len(self._store.all(key.removeprefix("count/"), namespace))
        if namespace not in self._totals:
            self._count_namespace(namespace)
        return self._totals[namespace][key]

    def charge(self, kind: Kind, body: Body) -> None:
        """Refuse a new object that would exceed a quota of its namespace."""
        namespace = body["metadata"].get("namespace", "")
        quotas = self._store.all(QUOTAS, namespace)
        if not quotas:
            return
        asked = of_pod(body) if kind.unique_name == "Pod" else _counted(kind)
        for entry in quotas:
            quota = entry.read()
            hard = (quota.get("spec") or {}).get("hard") or {}
            if kind.unique_name == "Pod" and (missing := unspecified(body, hard)):
                raise forbidden(kind, body["metadata"]["name"], _must_specify(entry.name, missing))
            over = [
                key
                for key in hard
                if asked[key] and self.used(namespace, key) + asked[key] > nanos(hard[key])
            ]
            if over:
                raise forbidden(
                    kind,
                    body["metadata"]["name"],
                    self._exceeded(entry.name, namespace, hard, asked, sorted(over)),
                )

    def status(self, namespace: str, hard: Body) -> Body:
        """The status of a ResourceQuota with these bounds."""
        used = {key: text(self.used(namespace, key), hard[key]) for key in hard if known(key)}
        return {"hard": hard, "used": used}

    def _exceeded(
        self, name: str, namespace: str, hard: Body, asked: Usage, over: list[str]
    ) -> str:
        requested = ",".join(f"{key}={text(asked[key], hard[key])}" for key in over)
        used = ",".join(f"{w}={text(self.used(namespace, w), hard[w])}" for w in over)
        limited = ",".join(f"{key}={hard[key]}" for key in over)
        return f"exceeded quota: {name}, requested: {requested}, used: {used}, limited: {limited}"

    def _count_namespace(self, namespace: str) -> None:
        self._totals[namespace], self._by_pod[namespace] = Counter(), {}
        for entry in self._store.all("pods", namespace):
            self._add(entry)

    def _on_change(self, change: Change) -> None:
        if change.storage != "pods" or change.entry.namespace not in self._totals:
            return
        namespace, uid = change.entry.namespace, change.entry.uid
        self._totals[namespace] -= self._by_pod[namespace].pop(uid, Counter())
        if change.type != "DELETED":
            self._add(change.entry)

    def _add(self, entry: Entry) -> None:
        pod = entry.read()
        if not finished(pod):
            self._by_pod[entry.namespace][entry.uid] = usage = of_pod(pod)
            self._totals[entry.namespace].update(usage)


def known(key: str) -> bool:
    """Is this key of `spec.hard` counted here? Others are kept, but not enforced."""
    return key in ("pods", "cpu", "memory", "ephemeral-storage", *_OBJECTS) or key.startswith(
        ("requests.", "limits.", "count/", "hugepages-")
    )


def _counted(kind: Kind) -> Usage:
    return Counter({f"count/{kind.resource}": _ONE, kind.plural: 0 if kind.group else _ONE})


def _must_specify(name: str, missing: dict[str, list[str]]) -> str:
    listed = [f"{key} for: {','.join(sorted(names))}" for key, names in sorted(missing.items())]
    return f"failed quota: {name}: must specify {'; '.join(listed)}"
