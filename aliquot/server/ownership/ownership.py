"""Who owns the fields of an object after a write: of an update, and of server-side apply.

An update gives its manager the fields that it changes or adds, and takes them from all others. An
apply names all fields that its manager wants: it owns them from then on, loses those that it no
longer names, and conflicts with a manager that owns one of them with another value.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import msgspec

from aliquot.errors import RefusalError
from aliquot.json import Body, seek
from aliquot.server.kinds import conversion
from aliquot.server.ownership import creation, typed
from aliquot.server.ownership import managers as entries
from aliquot.server.ownership.comparison import compare, owned_fields
from aliquot.server.ownership.field_set import (
    FieldSet,
    covers,
    difference,
    intersection,
    meet,
    paths,
    union,
    with_named_fields,
    without_parts,
)
from aliquot.server.ownership.managers import Managers
from aliquot.server.ownership.merge import compacted, merge, remove
from aliquot.server.ownership.writer import Writer
from aliquot.server.schema.structure import Structure

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE = "before-first-apply"
"""The manager of all fields of an object that had no managers when it was first applied."""
_IDENTITY = ("manager", "operation", "apiVersion", "subresource")
_KUBECTL = "kubectl"
"""The manager that takes over what `kubectl apply` on the client's side left behind."""


def created(writer: Writer, new: Body) -> msgspec.Raw | None:
    """The entry of a new object as JSON; None if its creator owns no field of it."""
    skipped = "status" if writer.kind.has_status else ""
    fields = creation.created(writer.structure, writer.view(new), skipped)
    return creation.entry(writer.about("Update"), fields) if fields else None


def updated(
    writer: Writer, old: Body, new: Body, held: list[Body] | None, given: Any
) -> list[Body]:
    """The entries of an object after an update.

    `held`: its entries so far; `given`: those of the request, which may replace or clear them.
    """
    if given is not None and not writer.subresource:
        if entries.is_reset(given):
            held = []
        elif given != held:
            held = given if entries.are_sound(given) else held
    if not held:
        return []
    changed, removed = compare(writer.structure, writer.view(old), writer.view(new))
    if not changed and not removed:
        return held
    held = writer.known(held)
    if not removed and (refreshed := _refreshed(writer, held, changed)) is not None:
        return refreshed
    found = _reduced(entries.of(held), changed, removed)
    if changed:
        _add(found, writer, changed)
    return entries.written(entries.capped(found))


def _refreshed(writer: Writer, held: list[Body], changed: FieldSet) -> list[Body] | None:
    """The entries with a new time, if the writer alone owns what it changes; else None.

    So it is with most writes: a Lease is renewed, a node or pod reports its status again.
    """
    about = writer.about("Update")
    own = -1
    for place, each in enumerate(held):
        fields = each.get("fieldsV1") or {}
        if all(each.get(word) == about.get(word) for word in _IDENTITY):
            if not covers(fields, changed):
                return None
            own = place
        elif meet(fields, changed):
            return None
    if own < 0 or writer.subresource == "scale":
        return None
    new = [each for place, each in enumerate(held) if place != own]
    return entries.ordered([*new, {**held[own], "time": writer.time}])


def _add(found: Managers, writer: Writer, changed: FieldSet) -> None:
    new = writer.entry("Update", changed)
    if (previous := found.get(new.key)) is not None:
        new = replace(new, fields=union(changed, previous.fields))
    if writer.subresource == "scale":
        new = replace(new, time=None if previous is None else previous.time)
    found[new.key] = new


def _reduced(found: Managers, changed: FieldSet, removed: FieldSet) -> Managers:
    """The managers without the fields that were changed or removed by another."""
    left = {}
    for key, each in found.items():
        fields = difference(difference(each.fields, changed), removed)
        if fields:
            left[key] = each if fields == each.fields else replace(each, fields=fields)
    return left


def applied(writer: Writer, live: Body | None, config: Body, force: bool) -> Body:
    """The object after an apply, with its entries; refused if it conflicts with a manager."""
    _check(writer, config)
    structure = writer.structure
    typed.check(structure, config)
    live = None if live is None else writer.view(live)
    found = entries.of(writer.known(seek(live, "metadata", "managedFields") or []))
    if live is not None and not found:
        everything, _ = compare(structure, {}, live)
        before = replace(writer, manager=_BEFORE)
        _add(found, before, without_parts(everything, writer.reset))
    present: Body = compacted(structure, live or {})
    outcome = _Apply(writer, structure, present, config, found)
    conflicts = outcome.conflicts()
    if writer.manager == _KUBECTL and conflicts:
        allowed = _last_applied_fields(writer, structure, present)
        conflicts = {
            key: left for key, each in conflicts.items() if (left := difference(each, allowed))
        }
    if conflicts and not force:
        raise _refusal(found, conflicts)
    body = outcome.result()
    if writer.manager == _KUBECTL:
        _renew_last_applied(body, config)
    return conversion.to_storage(writer.kind, body)


class _Apply:
    """One apply: the merged object, and who owns what of it."""

    def __init__(
        self, writer: Writer, structure: Structure, live: Body, config: Body, found: Managers
    ) -> None:
        self._live, self._found, self._structure = live, dict(found), structure
        own = without_parts(owned_fields(structure, config), writer.reset)
        new = writer.entry("Apply", own)
        last = found.get(new.key)
        self._key = new.key
        self._found[new.key] = replace(new, time=None if last is None else last.time)
        self.merged = merge(structure, live, config)
        if last is not None:
            owned: Iterable[FieldSet] = (each.fields for each in self._found.values())
            self.merged = _pruned(structure, self.merged, last.fields, owned)
        changed, self._removed = compare(structure, live, self.merged, literal=True)
        self._changed = without_parts(changed, writer.reset)
        self._differs = bool(changed or self._removed) or self._has_other_order()
        self._time = writer.time

    def _has_other_order(self) -> bool:
        """Do items of a list come in another order than before?"""
        before, after = (
            compacted(self._structure, each, zeros=False) for each in (self._live, self.merged)
        )
        return bool(before != after)

    def conflicts(self) -> dict[entries.Key, FieldSet]:
        """By manager, the fields that it owns and this apply changes."""
        return {
            key: common
            for key, each in self._found.items()
            if key != self._key and (common := intersection(each.fields, self._changed))
        }

    def result(self) -> Body:
        """The object with its entries."""
        own = self._found.pop(self._key)
        others = _reduced(self._found, self._changed, self._removed)
        if self._differs:
            own = replace(own, time=self._time)
        if own.fields:
            others[own.key] = own
        body: Body = compacted(self._structure, self.merged)
        metadata = {**(body.get("metadata") or {}), "managedFields": entries.written(others)}
        return {**body, "metadata": metadata}


def _pruned(structure: Structure, merged: Body, last: FieldSet, owned: Iterable[FieldSet]) -> Body:
    """The object without what this manager applied last time, and no manager owns any more."""
    last = with_named_fields(last, structure)
    everything = with_named_fields(owned_fields(structure, merged), structure)
    kept: FieldSet = {}
    for each in owned:
        kept = union(kept, with_named_fields(each, structure))
    rest = remove(structure, merged, last) or {}
    left = with_named_fields(owned_fields(structure, rest), structure)
    rest = remove(structure, merged, difference(everything, union(left, kept))) or {}
    left = with_named_fields(owned_fields(structure, rest), structure)
    gone = intersection(difference(everything, left), last)
    pruned: Body = remove(structure, merged, gone) or {}
    return pruned


def _check(writer: Writer, config: Body) -> None:
    kind = writer.kind
    given = (config.get("apiVersion") or "", config.get("kind") or "")
    if given != (kind.api_version, kind.name):
        group, _, version = str(given[0]).rpartition("/")
        message = f"invalid object type: {group}/{version}, Kind={given[1]}"
        raise RefusalError(HTTPStatus.BAD_REQUEST, "BadRequest", message)
    if seek(config, "metadata", "managedFields") is not None:
        message = "metadata.managedFields must be nil"
        raise RefusalError(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def _refusal(found: Managers, conflicts: dict[entries.Key, FieldSet]) -> RefusalError:
    listed = {found[key].described(): list(paths(fields)) for key, fields in conflicts.items()}
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path}
        for manager, fields in listed.items()
        for path in fields
    ]
    if len(causes) == 1:
        detail = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = []
        for manager in sorted(listed):
            lines += [f"conflicts with {manager}:", *(f"- {path}" for path in listed[manager])]
        detail = f"{len(causes)} conflicts: {chr(10).join(lines)}"
    return RefusalError(
        HTTPStatus.CONFLICT, "Conflict", f"Apply failed with {detail}", {"causes": causes}
    )


def _last_applied_fields(writer: Writer, structure: Structure, live: Body) -> FieldSet:
    """The fields that `kubectl apply` on the client's side set, and that are still as it set them.

    kubectl may take these over without a conflict: it is the same user, with another flag.
    """
    try:
        last = json.loads(seek(live, "metadata", "annotations", LAST_APPLIED) or "null")
    except ValueError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != writer.kind.api_version:
        return {}
    changed, removed = compare(structure, last, live)
    return difference(difference(owned_fields(structure, last), changed), removed)


def _renew_last_applied(body: Body, config: Body) -> None:
    """Write the annotation anew where it is, so that `kubectl apply` can be used again."""
    annotations = seek(body, "metadata", "annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return
    metadata = dict(config.get("metadata") or {})
    if LAST_APPLIED in (metadata.get("annotations") or {}):
        kept = {key: each for key, each in metadata["annotations"].items() if key != LAST_APPLIED}
        metadata["annotations"] = kept
    written = json.dumps({**config, "metadata": metadata}, sort_keys=True, separators=(",", ":"))
    body["metadata"]["annotations"] = {**annotations, LAST_APPLIED: written + "\n"}
