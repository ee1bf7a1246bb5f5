"""Rules for pods and the quotas that they name: one function a rule.

What a cluster refuses because of pods (a pod in a parent quota, the deletion of a quota that has
pods) is an error to `validate`. It does not stop a simulation, which finds out whether the pods
still exist at that time and shows what becomes of them: pods of a deleted quota belong to the
fallback quota, and in a parent quota no pod starts. So it is a warning to `simulate`. A pod counts
here only if nothing says that it ends.
"""

from collections.abc import Container, Iterator

from aliquot.dialects.core import pods, simulation_annotations
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import PodWire, WorkloadWire
from aliquot.dialects.core.pod_templates import WORKLOADS
from aliquot.dialects.frameworks.gangs import roles
from aliquot.dialects.frameworks.objects import JobWire
from aliquot.dialects.kep9.quotas import KINDS, quota_name
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.koordinator.keys import PREEMPTIBLE, SPECIAL
from aliquot.dialects.quota_index import QuotaIndex
from aliquot.dialects.volcano import jobs
from aliquot.dialects.volcano.objects import GangJobWire
from aliquot.validation.history import State

_NO_LABELS = "has no effect: a label names the quota of a pod under the policy hierarchy only"


def find_pod_conflicts(state: State, parents_hold_pods: bool) -> Iterator[Finding]:
    """What a cluster would refuse of a change because of pods."""
    for each in state.applied:
        yield from only_open_quotas_are_named(each, state.quota_index)
        if isinstance(each.content, PodWire | WORKLOADS):
            yield from preemptible_as_before(each, state)
            if not parents_hold_pods:
                yield from no_pods_in_parents(each, state.quota_index)
    if state.quotas_changed:
        if not parents_hold_pods:
            yield from no_parent_with_pods(state)
        yield from no_quota_with_pods_deleted(state)


def find_unknown_quotas(state: State, ever: Container[str]) -> Iterator[Finding]:
    """Warn of pods that name a quota which never exists, or where labels name none.

    `ever` are the names of all quotas, also of those that come later.
    """
    for manifest in state.applied:
        named = koordinator.quota_named(manifest)
        if named is None:
            continue
        field = koordinator.quota_field(manifest)
        if state.quota_index.by_label is None:
            yield manifest.finding("warning", field, _NO_LABELS)
        elif named not in ever and named not in SPECIAL:
            yield manifest.finding("warning", field, f"there is no quota {named}")


def only_open_quotas_are_named(manifest: Manifest, quota_index: QuotaIndex) -> Iterator[Finding]:
    """A pod names a quota that is open to its namespace.

    A cluster refuses such pods and Volcano Jobs; other workloads it takes, and refuses their pods.
    """
    refused = isinstance(manifest.content, PodWire | GangJobWire)
    for name, field in koordinator.quotas_named(manifest).items():
        quota = quota_index.closed_quota(name, manifest.namespace)
        if quota is not None:
            problem = quota.refuse(manifest.namespace)
            if not quota.unshared:
                problem += f" in its annotation {koordinator.NAMESPACES}"
            if not refused:
                problem += "; a server with the webhook refuses the pods"
            yield manifest.finding("error" if refused else "warning", field, problem)


def preemptible_as_before(manifest: Manifest, state: State) -> Iterator[Finding]:
    """A pod's preemptible label cannot change: a non-preemptible pod was admitted within min."""
    old = state.replaced.get(manifest.key)
    if old is None or not isinstance(manifest.content, PodWire):
        return
    was, labels = old.metadata.labels or {}, manifest.metadata.labels or {}
    if was.get(PREEMPTIBLE) != labels.get(PREEMPTIBLE):
        problem = "cannot change while the pod is there"
        yield manifest.finding("error", f"metadata.labels[{PREEMPTIBLE}]", problem)


def no_pods_in_parents(manifest: Manifest, quota_index: QuotaIndex) -> Iterator[Finding]:
    """A parent quota holds no pods."""
    named = koordinator.quota_named(manifest)
    asked = quota_index.find_quota(named, manifest.namespace) if named is not None else None
    quota = quota_index.quotas.get(asked or "")
    if quota is not None and quota.is_parent and quota.is_open_to(manifest.namespace):
        below = [each.name for each in quota_index.quotas.values() if each.parent == quota.name]
        hint = f"name one of its children ({', '.join(below[:3])})" if below else "name another"
        problem = f"quota {quota.name} is a parent and holds no pods; {hint}"
        yield manifest.finding("error", koordinator.quota_field(manifest), problem)


def no_parent_with_pods(state: State) -> Iterator[Finding]:
    """A quota cannot become a parent while it holds pods."""
    for manifest, quota in state.quota_index.pairs:
        before = state.before.quotas.get(quota.name)
        if before is None or before.is_parent or not quota.is_parent:
            continue
        inside = [
            each for each in lasting_pods(state) if _quota_of(each, state.before) == quota.name
        ]
        if inside:
            where = f"metadata.labels[{koordinator.IS_PARENT}]"
            problem = f"cannot become a parent: it is the quota of {list_titles(inside)}"
            yield manifest.finding("error", where, problem)


def no_quota_with_pods_deleted(state: State) -> Iterator[Finding]:
    """A quota cannot be deleted while pods name it."""
    for key, place in state.deleted.items():
        kind, _, name = key
        old = state.replaced.get(key)
        if kind not in KINDS or old is None or name in state.quota_index.names:
            continue
        gone = quota_name(old)
        inside = [
            each
            for each in lasting_pods(state)
            if koordinator.quota_named(each) == name and _quota_of(each, state.before) == gone
        ]
        if inside:
            problem = f"cannot be deleted: it is the quota of {list_titles(inside)}"
            yield Finding("error", place, old.title, "", problem)


def lasting_pods(state: State) -> Iterator[Manifest]:
    """The pods and workloads that have not ended, and have no annotation that says when they do."""
    for each in state.valid.values():
        match each.content:
            case PodWire(status=status):
                stays = not pods.finished(status)
            case WorkloadWire(spec=spec):
                stays = spec is not None and spec.replicas != 0 and spec.parallelism != 0
            case GangJobWire():
                stays = any(task.replicas for task in jobs.tasks(each))
            case JobWire():
                stays = any(role.count for role in roles(each))
            case _:
                stays = False
        if stays and simulation_annotations.duration_of(each) is None:
            yield each


def _quota_of(manifest: Manifest, quota_index: QuotaIndex) -> str | None:
    named = koordinator.quota_named(manifest)
    known = quota_index.find_quota(named, manifest.namespace)
    return quota_index.membership.of(known, manifest.namespace)


def list_titles(inside: list[Manifest]) -> str:
    """The first object, and how many more: `Pod a/p and 2 more`."""
    others = len(inside) - 1
    return f"{inside[0].title} and {others} more" if others else inside[0].title
