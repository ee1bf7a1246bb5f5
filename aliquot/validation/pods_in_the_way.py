"""Which pods stand in the way of a change to the quotas, or may not be where they want to be.

What a cluster refuses because of pods does not stop a simulation: which of them are still there
when a timeline gets to it is what the simulation finds out, and what becomes of them is worth
seeing. Pods of a deleted quota belong to the fallback; in a quota that is a parent nobody starts.
So these are objections: errors to `validate`, warnings to `simulate`. Here a pod counts only if
nothing says that it ends.
"""

from collections.abc import Container, Iterator

from aliquot.dialects.core import pods, simulation_annotations
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import PodWire, WorkloadWire
from aliquot.dialects.core.pod_templates import WORKLOADS
from aliquot.dialects.kep9.quotas import KINDS
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.koordinator.keys import PREEMPTIBLE, SPECIAL
from aliquot.dialects.quota_index import QuotaIndex
from aliquot.dialects.volcano import jobs
from aliquot.dialects.volcano.objects import GangJobWire
from aliquot.validation.history import State


def objections(state: State, parents_hold_pods: bool) -> Iterator[Finding]:
    """What a cluster would refuse in a change, because of pods."""
    for each in state.applied:
        if isinstance(each.content, PodWire | WORKLOADS):
            yield from preemptible_as_before(each, state)
            if not parents_hold_pods:
                yield from no_pods_in_parents(each, state.quota_index)
    if state.quotas_changed:
        if not parents_hold_pods:
            yield from no_parent_made_of_a_home(state)
        yield from no_home_deleted(state)


def strangers(state: State, ever: Container[str]) -> Iterator[Finding]:
    """Pods that name what is never there. `ever` are the names of all quotas that ever come."""
    for manifest in state.applied:
        named = koordinator.quota_named(manifest)
        if named is not None and named not in ever and named not in SPECIAL:
            problem = f"there is no quota {named}"
            yield manifest.finding("warning", koordinator.quota_field(manifest), problem)


def preemptible_as_before(manifest: Manifest, state: State) -> Iterator[Finding]:
    """A pod that starts within min as one to be spared cannot turn into another, or back."""
    old = state.replaced.get(manifest.key)
    if old is None or not isinstance(manifest.content, PodWire):
        return
    was, labels = old.metadata.labels or {}, manifest.metadata.labels or {}
    if was.get(PREEMPTIBLE) != labels.get(PREEMPTIBLE):
        problem = "cannot change while the pod is there"
        yield manifest.finding("error", f"metadata.labels[{PREEMPTIBLE}]", problem)


def no_pods_in_parents(manifest: Manifest, quota_index: QuotaIndex) -> Iterator[Finding]:
    """A parent holds quotas, not pods."""
    named = koordinator.quota_named(manifest)
    quota = quota_index.quotas.get(quota_index.names.get(named or "", ""))
    if quota is not None and quota.is_parent:
        below = [each.name for each in quota_index.quotas.values() if each.parent == quota.name]
        hint = f"name one of its children ({', '.join(below[:3])})" if below else "name another"
        problem = f"quota {quota.name} is a parent and holds no pods; {hint}"
        yield manifest.finding("error", koordinator.quota_field(manifest), problem)


def no_parent_made_of_a_home(state: State) -> Iterator[Finding]:
    """A quota becomes a parent when the last pod has left it."""
    for manifest, quota in state.quota_index.pairs:
        before = state.before.quotas.get(quota.name)
        if before is None or before.is_parent or not quota.is_parent:
            continue
        inside = [each for each in staying(state) if _home(each, state.before) == quota.name]
        if inside:
            where = f"metadata.labels[{koordinator.IS_PARENT}]"
            problem = f"cannot become a parent: it is the quota of {few(inside)}"
            yield manifest.finding("error", where, problem)


def no_home_deleted(state: State) -> Iterator[Finding]:
    """A quota goes after the pods that name it."""
    for key, place in state.gone.items():
        kind, _, name = key
        old = state.replaced.get(key)
        if kind not in KINDS or old is None or name in state.quota_index.names:
            continue
        asking = [each for each in staying(state) if koordinator.quota_named(each) == name]
        if asking:
            problem = f"cannot be deleted: it is the quota of {few(asking)}"
            yield Finding("error", place, old.title, "", problem)


def staying(state: State) -> Iterator[Manifest]:
    """The pods and workloads of which nothing says that they have ended, or will."""
    for each in state.sound.values():
        match each.content:
            case PodWire(status=status):
                stays = not pods.finished(status)
            case WorkloadWire(spec=spec):
                stays = spec is not None and spec.replicas != 0 and spec.parallelism != 0
            case GangJobWire():
                stays = any(task.replicas for task in jobs.tasks(each))
            case _:
                stays = False
        if stays and simulation_annotations.duration_of(each) is None:
            yield each


def _home(manifest: Manifest, quota_index: QuotaIndex) -> str | None:
    named = koordinator.quota_named(manifest)
    known = quota_index.engine_name(named) if named is not None else None
    return quota_index.membership.of(known, manifest.namespace)


def few(inside: list[Manifest]) -> str:
    """`Pod a/p`, `Pod a/p and 2 more`."""
    others = len(inside) - 1
    return f"{inside[0].title} and {others} more" if others else inside[0].title
