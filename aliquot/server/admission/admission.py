"""Admission: what changes or refuses a well-formed object before it is stored.

The built-in plugins run first, then mutating and validating webhooks. ResourceQuotas are charged
last, in the same step as the write, so that nothing can happen in between.
"""

from dataclasses import replace

from aliquot.json import Body
from aliquot.server.admission import limit_ranges, priorities, service_addresses, volumes
from aliquot.server.admission.resource_quotas import UsageIndex
from aliquot.server.admission.webhooks import AdmissionRequest, Webhooks
from aliquot.server.http.options import WriteOptions
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules import metadata
from aliquot.server.rules.metadata import Managers
from aliquot.server.storage.entry import Entry
from aliquot.server.storage.store import Store

_ACCOUNT = "default"
_TOLERATION_SECONDS = 300
"""The default of kube-apiserver's DefaultTolerationSeconds plugin."""


class Admission:
    """All admission plugins and webhooks."""

    def __init__(self, store: Store) -> None:
        self.usage = UsageIndex(store)
        self._store = store
        self.webhooks = Webhooks(store)

    async def create(
        self, kind: Kind, body: Body, managers: Managers, options: WriteOptions
    ) -> tuple[Body, Managers]:
        """Admit a new object, perhaps changed; webhooks see the entries of its managers, too."""
        if kind.unique_name == "Pod":
            _set_account(body)
            limit_ranges.limit(self._store, kind, body)
            _add_tolerations(body)
            priorities.resolve(self._store, kind, body)
        elif kind.unique_name == "PersistentVolumeClaim":
            volumes.admit_claim(self._store, body)
        elif kind.unique_name == "PersistentVolume":
            volumes.admit_volume(body)
        elif kind.unique_name == "PriorityClass":
            priorities.only_default(self._store, kind, body)
        if self.webhooks.any():
            metadata.set_managers(body, metadata.read_managers(managers))
            body = await self._call_webhooks("CREATE", kind, "", body, None, options)
            managers = metadata.take_managers(body)
        return body, managers

    async def update(
        self,
        kind: Kind,
        old: Body,
        new: Body,
        managers: Managers,
        subresource: str,
        options: WriteOptions,
    ) -> tuple[Body, Managers]:
        """Admit an update, perhaps changed."""
        if kind.unique_name == "Service":
            service_addresses.carry_over(old, new)
        if self.webhooks.any():
            metadata.set_managers(new, metadata.read_managers(managers))
            new = await self._call_webhooks("UPDATE", kind, subresource, new, old, options)
            managers = metadata.take_managers(new)
        return new, managers

    async def delete(self, kind: Kind, found: Entry, dry_run: bool) -> None:
        """Admit a deletion."""
        if self.webhooks.any():
            options = WriteOptions(dry_run=dry_run)
            await self._call_webhooks("DELETE", kind, "", None, found.read(), options)

    def charge(self, kind: Kind, body: Body) -> None:
        """Refuse what exceeds a ResourceQuota; the caller must write it before it awaits."""
        if kind.namespaced:
            self.usage.charge(kind, body)
        self.allocate(kind, body)

    def allocate(self, kind: Kind, body: Body) -> None:
        """Give a Service its addresses; the caller must write it before it awaits."""
        if kind.unique_name == "Service":
            service_addresses.allocate(self._store, body)

    async def close(self) -> None:
        """Close the connections to webhooks."""
        await self.webhooks.close()

    async def _call_webhooks(
        self,
        operation: str,
        kind: Kind,
        subresource: str,
        new: Body | None,
        old: Body | None,
        options: WriteOptions,
    ) -> Body:
        about = (new or old or {})["metadata"]
        request = AdmissionRequest(
            operation,
            kind,
            subresource,
            about.get("name", ""),
            about.get("namespace", ""),
            new,
            old,
            options.user,
            options.dry_run,
        )
        changed = await self.webhooks.mutate(request)
        await self.webhooks.validate(replace(request, new=changed))
        return changed or {}


def _add_tolerations(pod: Body) -> None:
    """Add the default tolerations for nodes that are not ready or unreachable."""
    present = pod["spec"].get("tolerations") or []
    for condition in ("not-ready", "unreachable"):
        key = f"node.kubernetes.io/{condition}"
        if not any(_tolerates(each, key) for each in present):
            toleration = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            present = [*present, {**toleration, "tolerationSeconds": _TOLERATION_SECONDS}]
    pod["spec"]["tolerations"] = present


def _tolerates(toleration: Body, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (
        None,
        "",
        "NoExecute",
    )


def _set_account(pod: Body) -> None:
    """Set the service account, `default` unless the pod names one."""
    spec = pod.setdefault("spec", {})
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or _ACCOUNT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
