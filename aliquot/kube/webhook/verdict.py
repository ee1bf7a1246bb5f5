"""The verdict on a write, by the same rules as `aliquot validate`.

A write is refused only for errors that it causes: what the rules find after it is compared with
what they find before it, so that an existing error in another object never refuses a valid write.
Both times the written object comes last, so that a sum that is too high is reported on it. Whether
a pod fits its quota is not decided here: the scheduler does that, and the pod waits. Only what goes
past the scheduler is (see `past_the_scheduler`), and what a quota says that it does not admit.
"""

from collections.abc import Iterator
from http import HTTPStatus

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import VOLCANO_JOBS, Manifest
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.tensor_fusion import quotas as gpu_quotas
from aliquot.dialects.volcano import gangs, hyper_nodes
from aliquot.kube.webhook.cache import QUOTA_KINDS, Cache
from aliquot.kube.webhook.gpu_growth import gpu_growth
from aliquot.kube.webhook.new_findings import new_errors
from aliquot.kube.webhook.past_the_scheduler import RESIZE, judge_resize, node_named
from aliquot.kube.webhook.quota_admission import not_admitted
from aliquot.kube.webhook.related_objects import related_objects
from aliquot.kube.webhook.request_objects import PLACE, RequestObject, checked, read_object
from aliquot.kube.webhook.review import ALLOWED, AdmissionRequest, Verdict
from aliquot.mirror.store import Change
from aliquot.validation import history, pod_specs, pods_and_queues, pods_in_the_way
from aliquot.validation.history import State

OWN_KINDS = {*QUOTA_KINDS, gangs.KIND, hyper_nodes.KIND, gpu_quotas.KIND}
"""Aliquot's own kinds: no other component validates them."""
JUDGED = {*OWN_KINDS, "Pod", "Job"}
"""The kinds that rules exist for; of the kinds named Job, only Volcano's."""

_MOST_ERRORS = 5
"""Errors named in a refusal: enough to correct an object, and still one line in a terminal."""


def judge(cache: Cache, request: AdmissionRequest) -> Verdict:
    """The verdict on a write."""
    if (request.kind, request.part, request.operation) == ("Pod", RESIZE, "UPDATE"):
        return judge_resize(cache, request)
    if request.kind not in JUDGED or request.part or request.operation == "CONNECT":
        return ALLOWED
    if request.kind == "Job" and request.group != VOLCANO_JOBS:
        return ALLOWED
    if request.changes_nothing_of_note or request.is_leaving:
        return ALLOWED
    old, new = checked(read_object(request.old)), read_object(request.new)
    if old.manifest is None and new.manifest is None and not new.problems:
        return ALLOWED
    malformed, found = _after(cache, old.manifest, new)
    if request.operation == "CREATE":
        found += [*_conflicts(cache, new.manifest), *node_named(cache, request, new.manifest)]
    found += gpu_growth(cache, request, old.manifest, new.manifest)
    found += not_admitted(cache, old.manifest, new.manifest)
    errors = [each for each in (*malformed, *found) if each.severity == "error"]
    if errors:
        before = [*old.problems, *_before(cache, old.manifest, new.manifest)]
        errors = new_errors(errors, before, old.manifest, new.manifest)
    title = _title(old, new)
    warnings = [_text(each, title) for each in _warnings(found, title, new.manifest, cache)]
    if errors and _leaves_with_namespace(cache, request):
        warnings, errors = [*(_text(each, title) for each in errors), *warnings], []
    invalid = any(each in malformed for each in errors)
    code = HTTPStatus.UNPROCESSABLE_ENTITY if invalid else HTTPStatus.FORBIDDEN
    return Verdict(_refusal(errors, title), code, tuple(warnings))


def _after(
    cache: Cache, old: Manifest | None, new: RequestObject
) -> tuple[list[Finding], list[Finding]]:
    """What is invalid in the written object, and what the rules find after the write."""
    if new.manifest is None and (old is None or new.problems):
        return new.problems, []
    state = _state(cache, old, new.manifest)
    if new.manifest is not None:
        state.apply_change(Change(0, (new.manifest,)))
    elif old is not None:
        state.apply_change(Change(0, delete=((old.key, PLACE),)))
    return state.refusals, [each for each in _found(state, cache) if each not in state.refusals]


def _before(cache: Cache, old: Manifest | None, new: Manifest | None) -> list[Finding]:
    """What the rules find before the write.

    Rules report on changes: so the old object, or for a creation the last quota, is written again
    unchanged.
    """
    if old is None and new is None:
        return []
    state = _state(cache, old, new)
    again = old or next((e for e in reversed(state.valid.values()) if e.kind in QUOTA_KINDS), None)
    if again is None:
        return []
    state.apply_change(Change(0, (again,)))
    return list(_found(state, cache))


def _state(cache: Cache, old: Manifest | None, new: Manifest | None) -> State:
    objects = related_objects(cache, old, new)
    if old is not None:
        objects[old.key] = old
    special = cache.special(*(each for each in (new,) if each is not None))
    return history.initial_state(objects, cache.quota_index, cache.cards, special)


def _found(state: State, cache: Cache) -> Iterator[Finding]:
    """All that `aliquot validate` would find."""
    parents_hold_pods = cache.settings.hierarchy.parent_pods == "implicitChild"
    yield from history.check_state(state, cache.capacity.total)
    for each in state.applied:
        if each.kind == "Job":
            yield from pod_specs.check_pod_specs(each)
    yield from pods_in_the_way.find_unknown_quotas(state, state.quota_index.names)
    yield from pods_in_the_way.find_pod_conflicts(state, parents_hold_pods)
    yield from pods_and_queues.find_unknown_queues_and_gangs(state, cache)
    yield from pods_and_queues.find_queue_conflicts(state, cache)


def _conflicts(cache: Cache, new: Manifest | None) -> Iterator[Finding]:
    """Queues and quotas together are an error, unless the configuration names the policy."""
    if new is None or new.kind not in QUOTA_KINDS:
        return
    before, after = cache.choice(), cache.choice(new)
    refusal = after.refusal() if after is not None else None
    if refusal is not None and before is not None and not before.conflict:
        yield refusal


def _warnings(
    found: list[Finding], title: str, new: Manifest | None, cache: Cache
) -> Iterator[Finding]:
    """Warnings about the written object itself; none for pods of other schedulers."""
    ours = {each.scheduler_name for each in cache.settings.profiles}
    content = new.content if new is not None else None
    if isinstance(content, PodWire) and _scheduler(content) not in ours:
        return
    yield from (each for each in found if each.severity == "warning" and each.object == title)


def _scheduler(pod: PodWire) -> str | None:
    return pod.spec.scheduler_name if pod.spec is not None else None


def _leaves_with_namespace(cache: Cache, request: AdmissionRequest) -> bool:
    """Is it a deletion in a namespace that is being deleted? A refusal would only delay that."""
    namespace = cache.namespace(request.namespace) if request.namespace else None
    leaving = namespace is not None and namespace.metadata.deletion_timestamp is not None
    return request.operation == "DELETE" and leaving


def _title(old: RequestObject, new: RequestObject) -> str:
    manifest = new.manifest or old.manifest
    return manifest.title if manifest is not None else ""


def _refusal(errors: list[Finding], title: str) -> str:
    """The first errors in one line, and how many more there are."""
    texts = list(dict.fromkeys(_text(each, title) for each in errors))
    more = len(texts) - _MOST_ERRORS
    shown = "; ".join(texts[:_MOST_ERRORS])
    return f"{shown}; and {more} more" if more > 0 else shown


def _text(finding: Finding, title: str) -> str:
    """A finding as text; its object is named unless it is the written one."""
    parts = (finding.object if finding.object != title else "", finding.field, finding.problem)
    return ": ".join(part for part in parts if part)
