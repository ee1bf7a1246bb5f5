"""The managers of an object: who owns which of its fields, as `metadata.managedFields` has it.

A manager is told apart by its name, the operation (Apply or Update), the subresource, and, for
updates, the apiVersion that it used.
"""

from dataclasses import dataclass, replace
from typing import Any

from aliquot.json import Body
from aliquot.server.ownership.field_set import FieldSet, union

MOST_UPDATERS = 10
"""Entries of updates before the oldest are merged into one; the limit of kube-apiserver."""
_ANCIENT = "ancient-changes"
_ORDER = ("operation", "time", "manager", "apiVersion", "subresource")

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Manager:
    """One entry: a manager and the fields that it owns."""

    name: str
    operation: str
    api_version: str
    subresource: str
    fields: FieldSet
    time: str | None

    @property
    def key(self) -> Key:
        """What tells managers apart."""
        version = "" if self.applied else self.api_version
        return (self.name, self.operation, version, self.subresource)

    @property
    def applied(self) -> bool:
        """Did it apply, rather than update?"""
        return self.operation == "Apply"

    def about(self) -> Body:
        """The entry as objects carry it, without its fields."""
        written: Body = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
        }
        if self.time is not None:
            written["time"] = self.time
        if self.subresource:
            written["subresource"] = self.subresource
        return written

    def entry(self) -> Body:
        """The entry as objects carry it."""
        return {**self.about(), "fieldsType": "FieldsV1", "fieldsV1": self.fields}

    def described(self) -> str:
        """The manager as conflicts name it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return text if self.applied else f"{text} using {self.api_version}"


Managers = dict[Key, Manager]


def of(entries: list[Body]) -> Managers:
    """The managers of a stored object, whose entries are known to be sound."""
    found = {}
    for each in entries:
        manager = Manager(
            each.get("manager", ""),
            each["operation"],
            each["apiVersion"],
            each.get("subresource", ""),
            each.get("fieldsV1") or {},
            each.get("time"),
        )
        found[manager.key] = manager
    return found


def are_sound(entries: Any) -> bool:
    """Are these the entries of managers? A request may send anything."""
    return isinstance(entries, list) and bool(entries) and all(map(_is_sound, entries))


def _is_sound(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.get("operation") not in ("Apply", "Update"):
        return False
    if not entry.get("apiVersion") or entry.get("fieldsType") != "FieldsV1":
        return False
    texts = (entry.get(word) or "" for word in ("manager", "apiVersion", "subresource", "time"))
    if not all(isinstance(each, str) for each in texts):
        return False
    fields = entry.get("fieldsV1") or {}
    return isinstance(fields, dict) and _is_field_set(fields)


def _is_field_set(fields: FieldSet) -> bool:
    level: list[Any] = [fields]
    while level:
        if not all(isinstance(each, dict) for each in level):
            return False
        if any(not (key == "." or key[1:2] == ":") for each in level for key in each):
            return False
        level = [inner for each in level for inner in each.values()]
    return True


def is_reset(entries: Any) -> bool:
    """Do these entries of a request ask to forget all managers?"""
    return entries in ([], [{}])


def written(managers: Managers) -> list[Body]:
    """The entries of an object."""
    return ordered([each.entry() for each in managers.values()])


def ordered(entries: list[Body]) -> list[Body]:
    """Entries in the order of kube-apiserver: appliers first, then by time."""
    if len(entries) > 1:
        entries.sort(key=lambda each: tuple(each.get(word, "") for word in _ORDER))
    return entries


def _order(manager: Manager) -> tuple[str, str, str, str, str]:
    return (
        manager.operation,
        manager.time or "",
        manager.name,
        manager.api_version,
        manager.subresource,
    )


def capped(managers: Managers) -> Managers:
    """The managers with the oldest updates merged, so that no object grows without bound."""
    updaters = sorted((each for each in managers.values() if not each.applied), key=_order)
    surplus = len(updaters) - MOST_UPDATERS
    if surplus <= 0:
        return managers
    kept, first = dict(managers), {}
    for each in updaters:
        if surplus <= 0:
            break
        bucket = replace(each, name=_ANCIENT, subresource="", fields={})
        if each.api_version not in first:
            first[each.api_version] = each
            continue
        held = kept.get(bucket.key) or kept.pop(first[each.api_version].key)
        kept.pop(each.key, None)
        kept[bucket.key] = replace(bucket, fields=union(held.fields, each.fields), time=each.time)
        surplus -= 1
    return kept
