"""ControllerRevisions: the templates that a StatefulSet or DaemonSet has had, numbered.

`kubectl rollout history` and `undo` read them; a StatefulSet makes pods below its partition from an
older one.
"""

import hashlib
from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from aliquot.dialects.core.manifest import owner_reference
from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.http.options import DeleteOptions
from aliquot.server.storage.owners import OwnerIndex

HASH = "controller-revision-hash"
"""The label of pods with the revision that they were made from."""
_STORAGE = "controllerrevisions.apps"
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names in Kubernetes: no vowels, so that they form no words."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One template of a workload: the name of its ControllerRevision, its hash, its number."""

    name: str
    hash: str
    number: int
    template: Body


def template_hash(template: Body, kind: str = "") -> str:
    """The hash of a pod template, for labels and names; another one for each kind of owner."""
    encoded = msgspec.json.encode(template, order="sorted")
    digest = hashlib.sha256(encoded + kind.encode()).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:10])


class Revisions:
    """Makes, finds and deletes ControllerRevisions."""

    def __init__(self, api: Api, owners: OwnerIndex) -> None:
        self._api, self._owners = api, owners
        self._kind = api.kind("ControllerRevision")

    def all(self, owner: Body) -> list[Revision]:
        """The revisions of a workload, oldest first."""
        found = self._owners.dependents(owner["metadata"]["uid"], _STORAGE)
        return sorted((_read(entry.read()) for _, entry in found), key=lambda each: each.number)

    async def current(self, owner: Body) -> Revision:
        """The revision of the template as it is now, made or renumbered to be the newest."""
        known, wanted = self.all(owner), template_hash(owner["spec"]["template"], owner["kind"])
        number = known[-1].number + 1 if known else 1
        found = next((each for each in known if each.hash == wanted), None)
        if found is None:
            return await self._create(owner, wanted, number)
        if found is known[-1]:
            return found
        await self._renumber(owner, found, number)
        return Revision(found.name, found.hash, number, found.template)

    async def delete_old(self, owner: Body, used: set[str]) -> None:
        """Delete revisions beyond revisionHistoryLimit that no pod has."""
        limit = owner["spec"].get("revisionHistoryLimit", 10)
        idle = [each for each in self.all(owner) if each.hash not in used]
        for each in idle[: max(len(idle) - limit, 0)]:
            try:
                await self._api.delete(
                    self._kind, owner["metadata"]["namespace"], each.name, DeleteOptions()
                )
            except RefusalError as refusal:
                if refusal.code != HTTPStatus.NOT_FOUND:
                    raise

    async def _create(self, owner: Body, wanted: str, number: int) -> Revision:
        metadata, template = owner["metadata"], owner["spec"]["template"]
        name = f"{metadata['name']}-{wanted}"
        body: Body = {
            "metadata": {
                "name": name,
                "labels": {**((template.get("metadata") or {}).get("labels") or {}), HASH: wanted},
                "ownerReferences": [owner_reference(owner)],
            },
            "data": {"spec": {"template": {**template, "$patch": "replace"}}},
            "revision": number,
        }
        await self._api.create(self._kind, metadata["namespace"], body)
        return Revision(name, wanted, number, template)

    async def _renumber(self, owner: Body, revision: Revision, number: int) -> None:
        """An older template is in use again: it gets the newest number."""

        def edit(body: Body) -> Body:
            body["revision"] = number
            return body

        await self._api.change(self._kind, owner["metadata"]["namespace"], revision.name, edit)


def _read(body: Body) -> Revision:
    metadata = body["metadata"]
    template = dict(((body.get("data") or {}).get("spec") or {}).get("template") or {})
    template.pop("$patch", None)
    label = (metadata.get("labels") or {}).get(HASH, "")
    return Revision(metadata["name"], label, body.get("revision") or 0, template)
