"""Pods whose schedulerName no profile answers: an event tells which scheduler names there are.

On a cluster such a pod waits for a scheduler of that name. On `aliquot up` there is no other one,
so it would wait for ever without a word.
"""

import secrets
from collections.abc import Collection

from aliquot.dialects.core.pods import DEFAULT_SCHEDULER
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.rules.metadata import timestamp
from aliquot.server.storage.entry import Entry, Key
from aliquot.server.storage.window import Change

_COMPONENT = "aliquot"


class UnansweredPods:
    """Looks at pods that are not bound, by key."""

    def __init__(self, api: Api, names: Collection[str]) -> None:
        self._api, self._names = api, tuple(names)
        self.worker = Worker(self._reconcile)
        self._told: set[str] = set()
        """The uids of pods that have their event."""
        api.store.listeners.append(self._on_change)
        for entry in api.store.all("pods"):
            self._look(entry)

    def _on_change(self, change: Change) -> None:
        if change.storage != "pods":
            return
        if change.type == "DELETED":
            self._told.discard(change.entry.uid)
        else:
            self._look(change.entry)

    def _look(self, entry: Entry) -> None:
        spec: Body = entry.selectable.get("spec") or {}
        name = spec.get("schedulerName") or DEFAULT_SCHEDULER
        if not spec.get("nodeName") and name not in self._names and entry.uid not in self._told:
            self._told.add(entry.uid)
            self.worker.enqueue(entry.key)

    async def _reconcile(self, key: Key) -> None:
        found = self._api.store.get("pods", *key)
        if found is not None:
            await self._api.create(self._api.kind("Event"), key[0], self._event(found))

    def _event(self, entry: Entry) -> Body:
        wanted, now = entry.selectable["spec"].get("schedulerName", ""), timestamp()
        message = (
            f"NotSupported: no profile answers schedulerName {wanted}; "
            f"set spec.schedulerName to one of {', '.join(self._names)}, "
            "or add a profile to the Configuration (aliquot up --config)"
        )
        return {
            "metadata": {"name": f"{entry.name[:200]}.{secrets.token_hex(8)}"},
            "involvedObject": {
                **{"apiVersion": "v1", "kind": "Pod", "uid": entry.uid},
                **{"name": entry.name, "namespace": entry.namespace},
            },
            "type": "Warning",
            "reason": "FailedScheduling",
            "message": message,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "reportingInstance": "",
        }
