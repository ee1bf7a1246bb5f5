"""Changes that a cure consists of, as plain data, and what they make of a moment.

A change patches one object, deletes one, adds some, or waits for a pod to end: what a user does
with `kubectl patch`, `delete` and `create`. So a cure can be carried out as it is written.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Key, Manifest, owner_of, read
from aliquot.json import Body, fresh
from aliquot.mirror.store import Change
from aliquot.questions.cures.templates import at, has_template, template_steps
from aliquot.questions.moment import Moment
from aliquot.server.patch.merge import merge_patch

CONFIGURATION = "Configuration"
"""The kind whose patch is a knob: it is no object of the cluster, but of `--config`."""
_PLACE = "a change"

Step = dict[str, Any]
"""One change: `how`, and the `object`, `patch` or `add` that it is about."""


def patch(key: Key, body: Body) -> Step:
    """A JSON merge patch of an object."""
    return {"how": "patch", "object": reference(key), "patch": body, "add": None}


def delete(key: Key) -> Step:
    """The deletion of an object."""
    return {"how": "delete", "object": reference(key), "patch": None, "add": None}


def wait(key: Key) -> Step:
    """The end of a pod, which is waited for."""
    return {"how": "wait", "object": reference(key), "patch": None, "add": None}


def add(bodies: list[Body]) -> Step:
    """New objects."""
    return {"how": "add", "object": None, "patch": None, "add": bodies}


def reference(key: Key) -> Body:
    """An object by kind, namespace and name; one without a namespace has null."""
    kind, namespace, name = key
    return {"kind": kind, "namespace": namespace or None, "name": name}


def key_of(reference: Body) -> Key:
    """The key of a reference."""
    return reference["kind"], reference["namespace"] or "", reference["name"]


def apply(moment: Moment, steps: Iterable[Step]) -> bool:
    """Carry changes out, in a copy; false if a server would refuse one of them."""
    ended, change = _read(moment, steps)
    if moment.refuses(change):
        return False
    simulation = moment.simulation
    for path in ended:
        record = moment.pod(path)
        if record is not None and record.alive:
            simulation.world.end(record.pod.uid, "Succeeded", simulation.now)
    if change.apply or change.delete:
        simulation.world.change(_with_pods(moment, change))
    return True


def _read(moment: Moment, steps: Iterable[Step]) -> tuple[list[str], Change]:
    """The paths of pods that end, and the objects that are applied and deleted."""
    there = moment.simulation.world.mirror.store.objects
    ended: list[str] = []
    applied: list[Manifest | None] = []
    deleted: list[tuple[Key, str]] = []
    for step in steps:
        key = key_of(step["object"]) if step["object"] is not None else None
        match step["how"]:
            case "patch" if key is not None and key in there:
                before = there[key]
                applied.append(
                    read(Document(before.place, merge_patch(before.body, step["patch"])))
                )
            case "add":
                applied += [read(Document(_PLACE, body)) for body in step["add"]]
            case "delete" if key is not None:
                deleted.append((key, _PLACE))
            case "wait" if key is not None:
                ended.append(f"{key[1]}/{key[2]}")
    known = tuple(each for each in applied if each is not None)
    return ended, Change(moment.simulation.now, known, tuple(deleted))


def _with_pods(moment: Moment, change: Change) -> Change:
    """A change of which the waiting pods of workloads have the new template, under their names.

    Their controller makes them anew, under other names on a cluster: the question is about them.
    """
    objects = moment.simulation.world.mirror.store.objects
    applied = list[Manifest]()
    for each in change.apply:
        before = objects.get(each.key)
        if before is None or not has_template(each):
            applied.append(each)
            continue
        remade = False
        for record in list(moment.simulation.world.mirror.records.values()):
            if record.phase == "Pending" and each.key in _owners(record.owner, objects):
                steps = template_steps(before, record.group_ref.task)
                if steps is None:
                    continue
                old, new = at(before.body, steps) or {}, at(each.body, steps) or {}
                if old == new:
                    continue
                remade = True
                found = read(Document(each.place, _followed(record.body, old, new)))
                applied += [found] if found is not None else []
        applied += [] if remade else [each]
    return replace(change, apply=tuple(applied))


def _owners(owner: Key | None, objects: Mapping[Key, Manifest]) -> Iterator[Key]:
    """The owner of a pod, and the owners of that."""
    while owner is not None:
        yield owner
        owner = owner_of(objects[owner]) if owner in objects else None


def _followed(body: Body, before: Body, after: Body) -> Body:
    """A pod whose template has changed: every field that differs is the template's now."""
    found: Body = fresh(body)
    for part in ("spec", "metadata"):
        old, new, own = before.get(part) or {}, after.get(part) or {}, found.setdefault(part, {})
        for name in {**old, **new}:
            if old.get(name) == new.get(name):
                continue
            own.pop(name, None)
            if new.get(name) is not None:
                own[name] = fresh(new[name])
    return found
