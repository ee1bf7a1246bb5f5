"""Deletion: at once, after a grace period, or when the last finalizer is removed."""

from dataclasses import dataclass

from aliquot.json import Body
from aliquot.server.http.options import DeleteOptions
from aliquot.server.http.refusals import conflict
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules import metadata
from aliquot.server.storage.entry import Entry
from aliquot.server.subresources.budgets import finished

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_GRACE = 30
"""The default of terminationGracePeriodSeconds in Kubernetes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a deletion does to an object."""

    body: Body
    gone: bool = False
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Deletion:
    """A request to delete an object."""

    kind: Kind
    entry: Entry
    options: DeleteOptions

    def __post_init__(self) -> None:
        """Refuse if the preconditions do not hold."""
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
        """Is it a dry run?"""
        return bool(self.options.dry_run)

    def outcome(self) -> Outcome:
        """Removed, marked with a deletionTimestamp, or unchanged."""
        body = self.entry.read()
        before = list(body["metadata"].get("finalizers") or ())
        finalizers = self._finalizers(before)
        if finalizers:
            body["metadata"]["finalizers"] = finalizers
        else:
            body["metadata"].pop("finalizers", None)
        grace = self._grace(body)
        if self.kind.unique_name == "Namespace":
            body.setdefault("status", {})["phase"] = "Terminating"
        waits = (
            bool(finalizers or grace or (body.get("spec") or {}).get("finalizers"))
            if (self.kind.unique_name == "Namespace")
            else bool(finalizers or grace)
        )
        if not waits:
            return Outcome(body, gone=True)
        if self.entry.deleting:
            left = body["metadata"].get("deletionGracePeriodSeconds", 0)
            if finalizers == before and grace >= left:
                return Outcome(body, unchanged=True)
            if grace < left:
                metadata.shorten_deletion(body, grace)
                return Outcome(body)
        metadata.mark_deletion(body, grace)
        return Outcome(body)

    def _finalizers(self, present: list[str]) -> list[str]:
        """The finalizers of the object, with that of the propagation policy."""
        policy = self.options.policy
        if policy is None:
            policy = (
                "Orphan"
                if ORPHAN in present
                else ("Foreground" if FOREGROUND in present else _default_policy(self.kind))
            )
        kept = [each for each in present if each not in (ORPHAN, FOREGROUND)]
        added = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(policy, [])
        return kept + added

    def _grace(self, body: Body) -> int:
        """The grace period of a bound pod in seconds; 0 for all else."""
        if self.kind.unique_name != "Pod":
            return 0
        spec = body.get("spec") or {}
        if not spec.get("nodeName") or finished(body):
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


def _default_policy(kind: Kind) -> str:
    """The default propagation policy: Jobs orphan their pods, as in batch/v1 of Kubernetes."""
    return "Orphan" if kind.unique_name == "Job" else "Background"
