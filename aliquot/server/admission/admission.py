"""Admission: what is looked at after an object is well formed, and before it is kept."""

from dataclasses import replace

from aliquot.json import Body
from aliquot.server.admission import priorities
from aliquot.server.admission.resource_quotas import Books
from aliquot.server.admission.webhooks import Question, Webhooks
from aliquot.server.http.options import WriteOptions
from aliquot.server.kinds.kind import Kind
from aliquot.server.storage.entry import Entry
from aliquot.server.storage.store import Store

_ACCOUNT = "default"
_PATIENCE = 300


class Admission:
    """Everything that may change an object on its way in, or keep it out."""

    def __init__(self, store: Store) -> None:
        self.books = Books(store)
        self._store = store
        self._webhooks = Webhooks(store)

    async def create(self, kind: Kind, body: Body, options: WriteOptions) -> Body:
        """Let a new object in, perhaps changed."""
        if kind.word == "Pod":
            _account(body)
            _tolerate(body)
            priorities.resolve(self._store, kind, body)
        if kind.word == "PriorityClass":
            priorities.only_default(self._store, kind, body)
        if self._webhooks.any():
            body = await self._ask("CREATE", kind, "", body, None, options)
        return body

    async def update(
        self, kind: Kind, old: Body, new: Body, subresource: str, options: WriteOptions
    ) -> Body:
        """Let a change in, perhaps changed."""
        if self._webhooks.any():
            new = await self._ask("UPDATE", kind, subresource, new, old, options)
        return new

    async def delete(self, kind: Kind, found: Entry, dry_run: bool) -> None:
        """Let an object go."""
        if self._webhooks.any():
            options = WriteOptions(dry_run=dry_run)
            await self._ask("DELETE", kind, "", None, found.read(), options)

    def charge(self, kind: Kind, body: Body) -> None:
        """Refuse what a quota has no room for; nothing may happen between this and keeping it."""
        if kind.namespaced:
            self.books.charge(kind, body)

    async def close(self) -> None:
        """Let nothing more in."""
        await self._webhooks.close()

    async def _ask(
        self,
        operation: str,
        kind: Kind,
        subresource: str,
        new: Body | None,
        old: Body | None,
        options: WriteOptions,
    ) -> Body:
        about = (new or old or {})["metadata"]
        question = Question(
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
        changed = await self._webhooks.mutate(question)
        await self._webhooks.validate(replace(question, new=changed))
        return changed or {}


def _tolerate(pod: Body) -> None:
    """A pod puts up with trouble of its node for a while."""
    present = pod["spec"].get("tolerations") or []
    for trouble in ("not-ready", "unreachable"):
        key = f"node.kubernetes.io/{trouble}"
        if not any(_covers(each, key) for each in present):
            toleration = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            present = [*present, {**toleration, "tolerationSeconds": _PATIENCE}]
    pod["spec"]["tolerations"] = present


def _covers(toleration: Body, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (
        None,
        "",
        "NoExecute",
    )


def _account(pod: Body) -> None:
    """A pod runs as somebody."""
    spec = pod.setdefault("spec", {})
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or _ACCOUNT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
