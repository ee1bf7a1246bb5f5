"""Whether a write may be made, by the very rules of `aliquot validate`.

Only what a write makes wrong refuses it: what the rules find afterwards is compared with what they
find as things are, so that an old sin elsewhere never stands in the way of an innocent write. Both
times the object in question comes last, so that a sum that is too high is laid at its door. Never
decides whether a pod fits its quota: that is the scheduler's to say, and no reason to refuse it.
"""

from collections.abc import Iterator

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.tensor_fusion import quotas as gpu_quotas
from aliquot.dialects.volcano import gangs
from aliquot.kube.webhook.cache import SHARES, Cache
from aliquot.kube.webhook.new_findings import to_blame
from aliquot.kube.webhook.related_objects import surroundings
from aliquot.kube.webhook.request_objects import PLACE, Reading, reading, sound
from aliquot.kube.webhook.review import ALLOWED, Asked, Verdict
from aliquot.mirror.store import Change
from aliquot.validation import history, pods_and_queues, pods_in_the_way
from aliquot.validation.history import State

OURS = {*SHARES, gangs.KIND, gpu_quotas.KIND}
"""The kinds that nobody else judges."""
JUDGED = {*OURS, "Pod"}

_MOST_ERRORS = 5


def judge(live: Cache, asked: Asked) -> Verdict:
    """Say whether a write may be made."""
    if asked.kind not in JUDGED or asked.part or asked.operation == "CONNECT":
        return ALLOWED
    if asked.changes_nothing_of_note or asked.is_leaving:
        return ALLOWED
    old, new = sound(reading(asked.old)), reading(asked.new)
    if old.manifest is None and new.manifest is None and not new.problems:
        return ALLOWED
    malformed, found = _after(live, old.manifest, new)
    if asked.operation == "CREATE":
        found += _conflicts(live, new.manifest)
    errors = [each for each in (*malformed, *found) if each.severity == "error"]
    if errors:
        before = [*old.problems, *_before(live, old.manifest, new.manifest)]
        errors = to_blame(errors, before, old.manifest, new.manifest)
    title = _title(old, new)
    warnings = [_words(each, title) for each in _worth_a_word(found, title, new.manifest, live)]
    if errors and _must_go(live, asked):
        warnings, errors = [*(_words(each, title) for each in errors), *warnings], []
    code = 422 if any(each in malformed for each in errors) else 403
    return Verdict(_refusal(errors, title), code, tuple(warnings))


def _after(live: Cache, old: Manifest | None, new: Reading) -> tuple[list[Finding], list[Finding]]:
    """What makes no sense in what is written, and what is to be said once it is."""
    if new.manifest is None and (old is None or new.problems):
        return new.problems, []
    state = _standing(live, old, new.manifest)
    if new.manifest is not None:
        state.apply_change(Change(0, (new.manifest,)))
    elif old is not None:
        state.apply_change(Change(0, delete=((old.key, PLACE),)))
    return state.refusals, [each for each in _found(state, live) if each not in state.refusals]


def _before(live: Cache, old: Manifest | None, new: Manifest | None) -> list[Finding]:
    """What is to be said as things are.

    Rules speak up when something changes: so what is there is put where it is, once more.
    """
    if old is None and new is None:
        return []
    state = _standing(live, old, new)
    again = old or next((e for e in reversed(state.valid.values()) if e.kind in SHARES), None)
    if again is None:
        return []
    state.apply_change(Change(0, (again,)))
    return list(_found(state, live))


def _standing(live: Cache, old: Manifest | None, new: Manifest | None) -> State:
    objects = surroundings(live, old, new)
    if old is not None:
        objects[old.key] = old
    special = live.special(*(each for each in (new,) if each is not None))
    return history.initial_state(objects, live.quota_index, live.cards, special)


def _found(state: State, live: Cache) -> Iterator[Finding]:
    """Everything that `aliquot validate` would say."""
    parents_hold_pods = live.settings.hierarchy.parent_pods == "implicitChild"
    yield from history.check_state(state, live.capacity.total)
    yield from pods_in_the_way.find_unknown_quotas(state, state.quota_index.names)
    yield from pods_in_the_way.find_pod_conflicts(state, parents_hold_pods)
    yield from pods_and_queues.find_unknown_queues_and_gangs(state, live)
    yield from pods_and_queues.find_queue_conflicts(state, live)


def _conflicts(live: Cache, new: Manifest | None) -> Iterator[Finding]:
    """Queues and quotas together need somebody to say which of them hold."""
    if new is None or new.kind not in SHARES:
        return
    before, after = live.choice(), live.choice(new)
    refusal = after.refusal() if after is not None else None
    if refusal is not None and before is not None and not before.conflict:
        yield refusal


def _worth_a_word(
    found: list[Finding], title: str, new: Manifest | None, live: Cache
) -> Iterator[Finding]:
    """Warnings about the object itself; pods that somebody else schedules are left alone."""
    ours = {each.scheduler_name for each in live.settings.profiles}
    content = new.content if new is not None else None
    if isinstance(content, PodWire) and _scheduler(content) not in ours:
        return
    yield from (each for each in found if each.severity == "warning" and each.object == title)


def _scheduler(pod: PodWire) -> str | None:
    return pod.spec.scheduler_name if pod.spec is not None else None


def _must_go(live: Cache, asked: Asked) -> bool:
    """Whatever is in a namespace goes with it: to refuse that would only hold up the rest."""
    space = live.space(asked.namespace) if asked.namespace else None
    leaving = space is not None and space.metadata.deletion_timestamp is not None
    return asked.operation == "DELETE" and leaving


def _title(old: Reading, new: Reading) -> str:
    manifest = new.manifest or old.manifest
    return manifest.title if manifest is not None else ""


def _refusal(errors: list[Finding], title: str) -> str:
    """All that is wrong, as far as anybody would read."""
    words = list(dict.fromkeys(_words(each, title) for each in errors))
    more = len(words) - _MOST_ERRORS
    shown = "; ".join(words[:_MOST_ERRORS])
    return f"{shown}; and {more} more" if more > 0 else shown


def _words(finding: Finding, title: str) -> str:
    """A finding; the object is named where it is another than the one that is written."""
    parts = (finding.object if finding.object != title else "", finding.field, finding.problem)
    return ": ".join(part for part in parts if part)
