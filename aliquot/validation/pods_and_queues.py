"""Rules for pods and the queues and gangs that they name: one function a rule.

As in `pods_in_the_way`, what a cluster refuses because of pods is an error to `validate` and a
warning to `simulate`, which goes on: pods of a queue that never comes wait for it.
"""

from collections.abc import Container, Iterator

from aliquot.dialects.core.findings import Finding, Severity
from aliquot.dialects.core.manifest import Key, Manifest, key
from aliquot.dialects.core.objects import PlainWire
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.volcano import gangs, queues
from aliquot.dialects.volcano import keys as volcano
from aliquot.dialects.volcano.keys import GroupRef
from aliquot.dialects.volcano.objects import GangJobWire, PodGroupWire
from aliquot.dialects.volcano.queue_rules import children_named
from aliquot.mirror.group_membership import group_key, group_of, group_ref, queue_of
from aliquot.validation.history import State
from aliquot.validation.pods_in_the_way import lasting_pods, list_titles

Named = tuple[str, str]
"""A queue, and the field that names it."""


def find_queue_conflicts(state: State, ever: Container[Key]) -> Iterator[Finding]:
    """What a cluster would refuse of a change because of pods in queues.

    `ever` are the keys of all objects, also of those that come later.
    """
    if state.quota_index.queues or state.later_queues:
        for manifest in state.applied:
            for queue, field in _named(manifest):
                yield from queue_exists(manifest, queue, field, ever)
    if not state.quota_index.queues and not state.before.queues:
        return
    yield from only_leaves_take_pods(state)
    if state.quotas_changed:
        yield from no_queue_with_pods_deleted(state)


def find_unknown_queues_and_gangs(state: State, ever: Container[Key]) -> Iterator[Finding]:
    """Warn of objects that name a queue or gang that does not exist, or does not count.

    `ever` are the keys of all objects, also of those that come later.
    """
    for manifest in state.applied:
        for queue, field in _named(manifest):
            yield from queue_comes_later(manifest, queue, field, state, ever)
        for ref in _group_refs(manifest):
            yield from gang_exists(manifest, ref, ever)
            yield from one_queue_a_gang(manifest, ref, state)


def queue_exists(
    manifest: Manifest, queue: str, field: str, ever: Container[Key], severity: Severity = "error"
) -> Iterator[Finding]:
    """A queue that is named exists at some time, and is not the root."""
    if queue == queues.ROOT:
        yield manifest.finding(severity, field, "the root queue takes no pods")
    elif queue != queues.DEFAULT and key(queues.KIND, "", queue) not in ever:
        yield manifest.finding(severity, field, f"there is no queue {queue}")


def queue_comes_later(
    manifest: Manifest, queue: str, field: str, state: State, ever: Container[Key]
) -> Iterator[Finding]:
    """Warn of a queue that comes later, or is named where there are no queues at all."""
    if not state.quota_index.queues and not state.later_queues:
        yield from queue_exists(manifest, queue, field, ever, "warning")
    elif queue in state.later_queues and key(queues.KIND, "", queue) not in state.valid:
        yield manifest.finding("warning", field, f"queue {queue} comes later; until then pods wait")


def gang_exists(manifest: Manifest, ref: GroupRef, ever: Container[Key]) -> Iterator[Finding]:
    """Warn of a PodGroup that never exists: its pods start one by one."""
    named = group_key(ref, manifest.namespace)
    if named is not None and named not in ever and ref.declared is None:
        problem = f"there is no PodGroup {manifest.namespace}/{ref.gang}; pods start by themselves"
        yield manifest.finding("warning", ref.gang_field, problem)


def one_queue_a_gang(manifest: Manifest, ref: GroupRef, state: State) -> Iterator[Finding]:
    """Warn of a pod that names another queue than its gang: the gang's queue counts."""
    group = group_of(ref, manifest.namespace, state.valid)
    gang_queue = gangs.queue_of(group)[0] if group is not None else None
    if ref.queue is not None and gang_queue not in (None, ref.queue):
        problem = f"{ref.queue!r} does not count: its gang is in the queue {gang_queue!r}"
        yield manifest.finding("warning", ref.queue_field, problem)


def only_leaves_take_pods(state: State) -> Iterator[Finding]:
    """A queue that is a parent holds no pods."""
    parents = {each.name for _, each in state.quota_index.queues if each.is_parent}
    for manifest in lasting_pods(state) if parents and state.quotas_changed else state.applied:
        for ref in _group_refs(manifest) if parents else ():
            queue = queue_of(ref, manifest.namespace, state.valid)
            if queue in parents:
                below = ", ".join(list(children_named(state.quota_index, queue or ""))[:3])
                problem = f"queue {queue} is a parent and holds no pods; name one of its children"
                where = ref.queue_field or ref.gang_field or "metadata.namespace"
                yield manifest.finding("error", where, f"{problem} ({below})")


def no_queue_with_pods_deleted(state: State) -> Iterator[Finding]:
    """A queue cannot be deleted while pods are in it."""
    for deleted, place in state.deleted.items():
        old = state.replaced.get(deleted)
        if deleted[0] != queues.KIND or old is None or old.name in queues.SPECIAL:
            continue
        inside = [each for each in lasting_pods(state) if old.name in _queues_of(each, state)]
        if inside:
            problem = f"cannot be deleted: it is the queue of {list_titles(inside)}"
            yield Finding("error", place, old.title, "", problem)


def _queues_of(manifest: Manifest, state: State) -> Iterator[str | None]:
    """The queues that the pods of an object are in."""
    for ref in _group_refs(manifest):
        yield queue_of(ref, manifest.namespace, state.valid)


def _group_refs(manifest: Manifest) -> list[GroupRef]:
    """What the pods of an object name; a Volcano Job has one for all of its pods."""
    found = [group_ref(view, manifest) for view in template_views(manifest)]
    return found[:1] if isinstance(manifest.content, GangJobWire) else found


def _named(manifest: Manifest) -> Iterator[Named]:
    """The queues that an object names, with their fields."""
    match manifest.content:
        case PodGroupWire():
            found = [gangs.queue_of(manifest)]
        case PlainWire():
            found = [volcano.queue_named(manifest.metadata, manifest)]
        case _:
            found = [(ref.queue, ref.queue_field) for ref in _group_refs(manifest)]
    yield from ((queue, field) for queue, field in found if queue is not None)
