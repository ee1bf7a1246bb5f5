"""Pods and the queues and gangs they are in: who names what is not there, or may not be there.

As with other quotas, what a cluster refuses because of pods is an objection: an error to
`validate`, a warning to `simulate`, which shows what becomes of the pods: those of a queue that
never comes wait for it.
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
from aliquot.validation.pods_in_the_way import few, staying

Named = tuple[str, str]
"""A queue, and the field that names it."""


def queue_objections(state: State, ever: Container[Key]) -> Iterator[Finding]:
    """What a cluster would refuse in a change, because of pods in queues.

    `ever` are the keys of all objects that ever come.
    """
    if state.quota_index.queues or state.coming_queues:
        for manifest in state.applied:
            for queue, field in _named(manifest):
                yield from queues_that_are_there(manifest, queue, field, ever)
    if not state.quota_index.queues and not state.before.queues:
        return
    yield from only_leaves_take_pods(state)
    if state.quotas_changed:
        yield from no_queue_deleted(state)


def queue_strangers(state: State, ever: Container[Key]) -> Iterator[Finding]:
    """Objects that name what is not there. `ever` are the keys of all objects that ever come."""
    for manifest in state.applied:
        for queue, field in _named(manifest):
            yield from queues_in_time(manifest, queue, field, state, ever)
        for said in _ties(manifest):
            yield from gangs_that_are_there(manifest, said, ever)
            yield from one_queue_a_gang(manifest, said, state)


def queues_that_are_there(
    manifest: Manifest, queue: str, field: str, ever: Container[Key], severity: Severity = "error"
) -> Iterator[Finding]:
    """A queue that is named is there at some time, and takes pods."""
    if queue == queues.ROOT:
        yield manifest.finding(severity, field, "the root queue takes no pods")
    elif queue != queues.DEFAULT and key(queues.KIND, "", queue) not in ever:
        yield manifest.finding(severity, field, f"there is no queue {queue}")


def queues_in_time(
    manifest: Manifest, queue: str, field: str, state: State, ever: Container[Key]
) -> Iterator[Finding]:
    """A queue may come later; where nobody has queues, naming one is but an oddity."""
    if not state.quota_index.queues and not state.coming_queues:
        yield from queues_that_are_there(manifest, queue, field, ever, "warning")
    elif queue in state.coming_queues and key(queues.KIND, "", queue) not in state.sound:
        yield manifest.finding("warning", field, f"queue {queue} comes later; until then pods wait")


def gangs_that_are_there(
    manifest: Manifest, said: GroupRef, ever: Container[Key]
) -> Iterator[Finding]:
    """A pod of a gang that never comes starts by itself."""
    named = group_key(said, manifest.namespace)
    if named is not None and named not in ever:
        problem = f"there is no PodGroup {manifest.namespace}/{said.gang}; pods start by themselves"
        yield manifest.finding("warning", said.gang_field, problem)


def one_queue_a_gang(manifest: Manifest, said: GroupRef, state: State) -> Iterator[Finding]:
    """A gang is in one queue as a whole."""
    group = group_of(said, manifest.namespace, state.sound)
    theirs = gangs.queue_of(group)[0] if group is not None else None
    if said.queue is not None and theirs not in (None, said.queue):
        problem = f"{said.queue!r} does not count: its gang is in the queue {theirs!r}"
        yield manifest.finding("warning", said.queue_field, problem)


def only_leaves_take_pods(state: State) -> Iterator[Finding]:
    """A queue that holds queues holds no pods."""
    parents = {each.name for _, each in state.quota_index.queues if each.is_parent}
    for manifest in staying(state) if parents and state.quotas_changed else state.applied:
        for said in _ties(manifest) if parents else ():
            queue = queue_of(said, manifest.namespace, state.sound)
            if queue in parents:
                below = ", ".join(list(children_named(state.quota_index, queue or ""))[:3])
                problem = f"queue {queue} is a parent and holds no pods; name one of its children"
                where = said.queue_field or said.gang_field or "metadata.namespace"
                yield manifest.finding("error", where, f"{problem} ({below})")


def no_queue_deleted(state: State) -> Iterator[Finding]:
    """A queue goes after its pods."""
    for gone, place in state.gone.items():
        old = state.replaced.get(gone)
        if gone[0] != queues.KIND or old is None or old.name in queues.SPECIAL:
            continue
        inside = [
            each
            for each in staying(state)
            if any(queue_of(said, each.namespace, state.sound) == old.name for said in _ties(each))
        ]
        if inside:
            problem = f"cannot be deleted: it is the queue of {few(inside)}"
            yield Finding("error", place, old.title, "", problem)


def _ties(manifest: Manifest) -> list[GroupRef]:
    """What the pods that come of an object say; a Job of Volcano speaks for all of its pods."""
    found = [group_ref(view, manifest) for view in template_views(manifest)]
    return found[:1] if isinstance(manifest.content, GangJobWire) else found


def _named(manifest: Manifest) -> Iterator[Named]:
    """The queues that an object names."""
    match manifest.content:
        case PodGroupWire():
            found = [gangs.queue_of(manifest)]
        case PlainWire():
            found = [volcano.queue_named(manifest.metadata, manifest)]
        case _:
            found = [(said.queue, said.queue_field) for said in _ties(manifest)]
    yield from ((queue, field) for queue, field in found if queue is not None)
