"""Deletion: at once, after a grace period, or when the last finalizer is taken off."""

from dataclasses import dataclass

from aliquot.dialects.core.documents import Body
from aliquot.server.http.options import DeleteOptions
from aliquot.server.http.refusals import conflict
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules import metadata
from aliquot.server.storage.entry import Entry

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_GRACE = 30


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is left of an object."""

    body: Body
    gone: bool = False
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Deletion:
    """The wish to delete an object."""

    kind: Kind
    entry: Entry
    options: DeleteOptions

    def __post_init__(self) -> None:
        """Refuse where the object is not the one that was meant."""
        wanted = self.options.preconditions
        if wanted is None:
            return
        if wanted.uid is not None and wanted.uid != self.entry.uid:
            self._refuse("UID", wanted.uid, self.entry.uid)
        version = str(self.entry.version)
        if wanted.resource_version is not None and wanted.resource_version != version:
            self._refuse("ResourceVersion", wanted.resource_version, version)

    @property
    def dry(self) -> bool:
        """Is it only tried?"""
        return bool(self.options.dry_run)

    def outcome(self) -> Outcome:
        """What becomes of the object."""
        body = self.entry.read()
        before = list(body["metadata"].get("finalizers") or ())
        held = self._finalizers(before)
        if held:
            body["metadata"]["finalizers"] = held
        else:
            body["metadata"].pop("finalizers", None)
        grace = self._grace(body)
        if self.kind.unique_name == "Namespace":
            body.setdefault("status", {})["phase"] = "Terminating"
        waits = (
            bool(held or grace or (body.get("spec") or {}).get("finalizers"))
            if (self.kind.unique_name == "Namespace")
            else bool(held or grace)
        )
        if not waits:
            return Outcome(body, gone=True)
        if self.entry.deleting:
            left = body["metadata"].get("deletionGracePeriodSeconds", 0)
            if held == before and grace >= left:
                return Outcome(body, unchanged=True)
        metadata.mark_deletion(body, grace)
        return Outcome(body)

    def _finalizers(self, present: list[str]) -> list[str]:
        """Those of the object, with one for the manner in which it goes."""
        policy = self.options.policy
        if policy is None:
            policy = (
                "Orphan"
                if ORPHAN in present
                else ("Foreground" if FOREGROUND in present else _default(self.kind))
            )
        kept = [each for each in present if each not in (ORPHAN, FOREGROUND)]
        added = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(policy, [])
        return kept + added

    def _grace(self, body: Body) -> int:
        """How many seconds a pod has left; other objects have none."""
        if self.kind.unique_name != "Pod":
            return 0
        spec, status = body.get("spec") or {}, body.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
            return 0
        own = spec.get("terminationGracePeriodSeconds", _GRACE)
        asked = self.options.grace_period_seconds
        grace = own if asked is None else asked
        if self.entry.deleting:
            left = body["metadata"].get("deletionGracePeriodSeconds", 0)
            grace = left if asked is None else min(asked, left)
        return max(int(grace), 0) if grace >= 0 else 1

    def _refuse(self, what: str, wanted: str, found: str) -> None:
        why = (
            f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
        )
        raise conflict(self.kind, self.entry.name, why)


def _default(kind: Kind) -> str:
    """Jobs leave their pods behind unless told otherwise, as they always have."""
    return "Orphan" if kind.unique_name == "Job" else "Background"
