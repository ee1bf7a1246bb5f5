"""Bound pods, many at once: as the first list of a cluster's objects brings them.

Every event about a pod goes through every book, and is reported in each topic of the change log. Of
a whole list of pods each book is filled once instead: what pods alike take is added to the columns
together, and what has changed is reported once. The books are those that a `PodSet` of each would
lead to. Pods with whose booking more comes than that (they are known already, terminate, take parts
of GPUs, have rules about other pods) are left to be booked one by one, after the others.
"""

from collections.abc import Sequence

from aliquot.engine.books.changes import NewlyBound
from aliquot.engine.books.repeat_guard import fingerprint
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.pod_rules import NO_RULES
from aliquot.engine.state import State


def load_pods(state: State, pods: Sequence[Pod]) -> list[Pod]:
    """Book the new bound pods among these; returns the others."""
    if len({pod.uid for pod in pods}) < len(pods):
        return [*pods]  # of a pod that comes twice, the last version counts
    new, others = list[Pod](), list[Pod]()
    for pod in pods:
        (new if _is_new_and_bound(state, pod) else others).append(pod)
    for pod in new:
        _register(state, pod)
    bookings, quota_of = state.bookings, state.tree.quota_of
    state.ledger.load(
        {pod.uid: bookings.booking(pod, quota_of(pod), pod.node or "") for pod in new}
    )
    state.bound_pods.load(new, state.ledger.entries)
    _report(state, new)
    return others


def _is_new_and_bound(state: State, pod: Pod) -> bool:
    return (
        pod.node in state.nodes.known
        and not pod.terminating
        and pod.shape.gpu is None
        and pod.rules is NO_RULES
        and pod.uid not in state.pods
        and pod.uid not in state.leaving
    )


def _register(state: State, pod: Pod) -> None:
    """Put a pod into the indices that do not depend on its booking."""
    state.repeat_guard.present += fingerprint(pod)
    state.pods[pod.uid] = pod
    if state.mix is not None:
        state.mix.note(None, pod)
    if not pod.preemptible:
        state.not_preemptible[pod.uid] = None
    state.gangs.join(pod)
    state.by_namespace.setdefault(pod.namespace, {})[pod.uid] = None
    state.budgets.note(pod)
    if pod.quota is not None:
        state.by_quota_label.setdefault(pod.quota, {})[pod.uid] = None


def _report(state: State, pods: Sequence[Pod]) -> None:
    """Report possible victims: what claims search for among them, they search once."""
    entries = state.ledger.entries
    bound = dict.fromkeys((entries[pod.uid].booking.quota, pod.priority) for pod in pods)
    state.changes.bound.extend(NewlyBound(*each) for each in bound)
    charged = {(entries[pod.uid].path[0], entries[pod.uid].booking.charge): pod.uid for pod in pods}
    for uid in charged.values():
        if state.is_above_min(entries[uid]):
            state.changes.victims.append(uid)
