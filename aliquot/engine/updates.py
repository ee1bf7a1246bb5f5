"""Events, applied to the books: what each changes, and which pods it has booked anew.

The books agree with one event at a time, whatever came before it; no decision is taken here.
Applying the objects that a cluster holds now to an empty state gives the same books as applying
every event of its history.
"""

from collections.abc import Iterable, Sequence

from aliquot.engine.books.changes import Freed
from aliquot.engine.books.ledger import Stage
from aliquot.engine.books.quota_tree import ROOT, assignment, lowers_a_bound, own_pods
from aliquot.engine.model.events import (
    BindFailed,
    BudgetGone,
    BudgetSet,
    DeviceGone,
    DeviceSet,
    Event,
    EvictFailed,
    GangGone,
    GangSet,
    GpuQuotaGone,
    GpuQuotaSet,
    NamespaceGone,
    NamespaceSet,
    NodeGone,
    NodeImagesSet,
    NodeSet,
    PodGone,
    PodSet,
    QuotaGone,
    QuotaSet,
    StorageGone,
    StorageSet,
    TreeGone,
    TreeSet,
    WeightSet,
)
from aliquot.engine.model.gang import Gang
from aliquot.engine.model.gpu import Device, GpuQuota
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod, check_pod
from aliquot.engine.model.quota import Quota
from aliquot.engine.model.tree import Tree
from aliquot.engine.placement.constraints import NodeRefusal, node_refusal
from aliquot.engine.pod_load import load_pods
from aliquot.engine.state import State
from aliquot.errors import ArgumentError


def check_against_books(state: State, event: Event) -> None:
    """Refuse an event that contradicts the books; changes nothing."""
    match event:
        case PodSet(pod):
            _check_uid(pod, state.pods.get(pod.uid))
        case QuotaSet(quota):
            state.tree.check(quota)
        case QuotaGone(name):
            state.tree.check_removal(name)


def _check_pods(state: State, pods: Sequence[Pod]) -> None:
    """Refuse pods of which one makes no sense, or contradicts the books; changes nothing."""
    known = dict[str, Pod]()
    for pod in pods:
        check_pod(pod)
        _check_uid(pod, known.setdefault(pod.uid, state.pods.get(pod.uid, pod)))


def _check_uid(pod: Pod, known: Pod | None) -> None:
    if known is not None and (known.name != pod.name or known.namespace != pod.namespace):
        raise ArgumentError(f"pod {pod.path}: its uid {pod.uid} is that of {known.path}")


def apply_pods(state: State, pods: Sequence[Pod]) -> None:
    """Make the books agree with many pods, as with a `PodSet` of each.

    If one of them makes no sense, an error says so, and none is booked.
    """
    _check_pods(state, pods)
    state.renew_pending()
    for pod in load_pods(state, pods):
        apply_event(state, PodSet(pod))
    state.gang_requests.refresh()
    _requeue_split(state)


def apply_event(state: State, event: Event) -> None:
    """Make the books agree with an event that was checked."""
    if not isinstance(event, NodeSet | NodeGone | NodeImagesSet):
        state.renew_pending()  # not after each node: there may be thousands of them
    match event:
        case PodSet(pod):
            state.set_pod(pod)
        case PodGone(uid):
            state.drop_pod(uid)
        case BindFailed(uid):
            state.unbind(uid)
        case EvictFailed(uid):
            state.eviction_failed(uid)
        case NodeSet(node):
            _set_node(state, node)
        case NodeGone(name):
            _drop_node(state, name)
        case NodeImagesSet(node, images):
            state.node_images.set(node, images)
        case QuotaSet(quota):
            _set_quota(state, quota)
        case QuotaGone(name):
            _drop_quota(state, name)
        case TreeSet(tree):
            _set_tree(state, tree)
        case TreeGone(name):
            _drop_tree(state, name)
        case GangSet(gang):
            _set_gang(state, gang)
        case GangGone(name):
            _drop_gang(state, name)
        case WeightSet(namespace, weight):
            _set_weight(state, namespace, weight)
        case DeviceSet(device):
            _set_device(state, device)
        case DeviceGone(name):
            _refresh_device_nodes(state, state.devices.remove(name), name)
        case GpuQuotaSet(quota):
            _set_gpu_quota(state, quota)
        case GpuQuotaGone(namespace):
            state.gpu_quotas.remove(namespace)
            _gpu_quota_changed(state, namespace)
        case NamespaceSet(namespace, labels):
            state.placement.rule_sets.counts.set_namespace(namespace, labels)
        case NamespaceGone(namespace):
            state.placement.rule_sets.counts.set_namespace(namespace, ())
        case StorageSet(found):
            _note_volumes(state, state.volumes.set(found))
        case StorageGone(kind, name):
            _note_volumes(state, state.volumes.remove((kind, name)))
        case BudgetSet(budget):
            state.budgets.set(budget)
        case BudgetGone(path):
            state.budgets.remove(path)
    state.gang_requests.refresh()
    _requeue_split(state)


def _requeue_split(state: State) -> None:
    """Queue waiting pods anew that rules of other pods may be about now, or no more."""
    counts = state.placement.rule_sets.counts
    if counts.has_begun:
        counts.has_begun = False
        for uid in [uid for uid in state.pods if uid in state.waiting]:
            state.enqueue(state.pods[uid])
    for namespace, split in state.placement.rule_sets.take_split().items():
        for uid in list(state.in_namespace(namespace)):
            if uid in state.waiting and state.pods[uid].labels in split:
                state.enqueue(state.pods[uid])


def _set_device(state: State, device: Device) -> None:
    old = state.devices.known.get(device.name)
    if old != device:
        _refresh_device_nodes(state, state.devices.set(device), device.name)


def _refresh_device_nodes(state: State, nodes: Iterable[str], device: str) -> None:
    """A device has changed: refresh its nodes, and book the pods on it anew.

    Also on nodes that are gone: what is booked must not depend on what was heard of first.
    """
    state.note_outside_change(device)
    for name in nodes:
        if name not in state.nodes.slots:
            continue
        slot = state.nodes.slots[name]
        if name in state.nodes.known:
            state.changes.nodes.append(slot)
            state.changes.freed.append(Freed(nodes=(slot,)))
            state.ledger.releases += 1
        for uid in sorted(state.ledger.by_node.get(slot, ())):
            gpu = state.ledger.entries[uid].booking.gpu
            if gpu is not None and (device in gpu.devices or not gpu.devices):
                state.book(state.pods[uid])


def _note_volumes(state: State, news: tuple[str, ...]) -> None:
    """A volume has changed, or what decides about volumes."""
    if news:
        state.changes.freed.append(Freed(volumes=news))
        state.changes.outside.append(news[0])


def _set_gpu_quota(state: State, quota: GpuQuota) -> None:
    if state.gpu_quotas.known.get(quota.namespace) != quota:
        state.gpu_quotas.set(quota)
        _gpu_quota_changed(state, quota.namespace)


def _gpu_quota_changed(state: State, namespace: str) -> None:
    state.changes.freed.append(Freed(gpus=namespace))
    state.changes.outside.append(namespace)


def _set_node(state: State, node: Node) -> None:
    if state.nodes.known.get(node.name) == node:
        return
    state.note_outside_change(node.name)
    slot = state.nodes.set(node)
    state.node_images.place(node.name, slot)
    state.changes.nodes.append(slot)
    state.changes.freed.append(Freed((slot,), (state.tree.slots[ROOT],)))
    for uid in sorted(state.ledger.by_node.get(slot, ())):
        state.book(state.pods[uid])


def _drop_node(state: State, name: str) -> None:
    state.node_images.remove(name)
    if name not in state.nodes.known:
        return
    state.changes.outside.append(name)
    state.nodes.remove(name)
    state.changes.nodes.append(state.nodes.slots[name])
    for uid in sorted(state.ledger.by_node.get(state.nodes.slots[name], ())):
        stage = state.ledger.entries[uid].stage
        if stage is Stage.HELD:
            state.drop_nomination(uid)
        elif stage is Stage.COMMITTED:
            state.changes.lost.append(uid)
        # an assumed pod may never have been bound: `State.book` sees whether it was
    state.free_node_slot(name)


def _set_quota(state: State, quota: Quota) -> None:
    before = state.tree.quotas.get(quota.name)
    if before == quota:
        return
    if before is None:
        state.changes.created.append(quota.name)
    elif lowers_a_bound(quota, before):
        state.changes.lowered.append(quota.name)
    state.note_outside_change(quota.name)
    above = () if before is None else state.tree.path(quota.name)  # gangs may wait for these
    state.tree.set(quota)
    if before is not None and before.closed != quota.closed:
        for name in state.gangs.known:
            state.changes.gangs.append(name)
    state.bound_pods.reorder(state.tree.slots[quota.name], state.ledger.entries)
    path = state.tree.path(quota.name)
    state.changes.freed.append(Freed(quotas=(*path, *(each for each in above if each not in path))))
    if before is None:
        _reassign_pods(state, quota.name, quota.namespaces)
    elif assignment(before) != assignment(quota):
        _reassign_pods(state, quota.name, quota.namespaces | before.namespaces)


def _drop_quota(state: State, name: str) -> None:
    quota = state.tree.quotas.get(name)
    if quota is not None:
        state.changes.outside.append(name)
        state.tree.remove(name)
        state.bound_pods.reorder(state.tree.slots[name], state.ledger.entries)
        state.changes.freed.append(Freed(quotas=(state.tree.slots[ROOT],)))
        _reassign_pods(state, name, quota.namespaces)
        for account in (name, own_pods(name)):
            if account in state.tree.slots:
                state.tree.slots.drop(account)


def _set_tree(state: State, tree: Tree) -> None:
    if state.tree.trees.get(tree.name) != tree:
        state.tree.set_tree(tree)
        _tree_changed(state, tree.name)


def _drop_tree(state: State, name: str) -> None:
    if name in state.tree.trees:
        state.tree.remove_tree(name)
        _tree_changed(state, name)


def _tree_changed(state: State, name: str) -> None:
    """A tree has other nodes: its waiting pods may run on others, and more or less is shared."""
    state.note_outside_change(name)
    state.changes.freed.append(Freed(quotas=(state.tree.slots[ROOT],)))
    for uid in sorted(uid for uid in state.pods if uid in state.waiting):
        entry = state.ledger.entries[uid]
        node = state.nodes.known.get(entry.booking.node or "")
        constraints = state.placement.ask(state.pods[uid]).shape.constraints
        if node is not None and node_refusal(constraints, node) is NodeRefusal.TREE:
            state.drop_nomination(uid)
        state.enqueue(state.pods[uid])


def _reassign_pods(state: State, quota: str, namespaces: Iterable[str]) -> None:
    """Charge the pods that this quota may have gained or lost to the quota of each now.

    Pods of the quotas below it keep their quota, but count in other ancestors.
    """
    uids = dict(state.by_quota_label.get(quota, {}))
    for name in (quota, *state.tree.below(quota)):
        uids.update(state.ledger.by_quota.get(name, {}))
    for namespace in sorted(namespaces):
        uids.update(state.by_namespace.get(namespace, {}))
    if quota == state.tree.membership.fallback:
        uids = dict.fromkeys(state.pods)
    uids.update(dict.fromkeys(state.gangs.requesting))
    for gang in state.gangs.known.values():
        if gang.min_resources and state.gangs.lacks_pods(gang) and not state.gangs.requests(gang):
            state.changes.gangs.append(gang.name)  # its quota may have been closed, and is another
    ordered = sorted(uids)  # the order of the books depends on what was tried before
    for uid in ordered:
        state.ledger.move(uid, state.quota_of(uid))
    for uid in ordered:  # in a second pass: booking a pod reads the charges of all the others
        if uid in state.waiting:
            state.enqueue(state.pods[uid])
        elif state.ledger.entries[uid].stage is Stage.COMMITTED or uid in state.leaving:
            state.track_bound(state.pods[uid])


def _set_gang(state: State, gang: Gang) -> None:
    if state.gangs.known.get(gang.name) != gang:
        state.gangs.set(gang)
        state.bound_pods.regroup(gang.name)
        state.note_outside_change(gang.name)
        for uid in state.gangs.members.get(gang.name, ()):  # they may have become evictable
            if uid in state.bound_pods.slots:
                state.changes.freed.append(Freed(nodes=(state.ledger.entries[uid].node,)))


def _drop_gang(state: State, name: str) -> None:
    """Drop a gang: its waiting pods claim one by one."""
    if name not in state.gangs.known:
        return
    state.ledger.release(state.gangs.remove(name))
    state.bound_pods.regroup(name)
    state.changes.outside.append(name)
    for uid in list(state.gangs.members.get(name, ())):
        if state.pods[uid].node is None and state.ledger.entries[uid].stage <= Stage.HELD:
            state.enqueue(state.pods[uid])


def _set_weight(state: State, namespace: str, weight: int) -> None:
    if state.weights.get(namespace, 1) != weight:
        state.weights[namespace] = weight
        state.note_outside_change(namespace)
