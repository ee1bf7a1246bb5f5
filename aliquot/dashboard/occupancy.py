"""Which pods run where, and which wait, as the engine's events say: by node and by quota.

The page shows every card of every node. What a node's cards show is worked out anew only when its
pods have changed, so that a frame costs what has happened since the last one.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aliquot.engine import (
    WHOLE_GPU,
    Device,
    DeviceGone,
    DeviceSet,
    Event,
    GpuQuota,
    GpuQuotaGone,
    GpuQuotaSet,
    Node,
    NodeGone,
    NodeSet,
    Pod,
    PodGone,
    PodSet,
)

Cell = int | list[tuple[int, int]]
"""A card: 0 if it is idle, the owner of the pod that has all of it, or owners with thousandths."""
Users = list[tuple[str, int]]
"""The pods on a card, by uid, with the thousandths of it that each takes."""
_ZONE = "topology.kubernetes.io/zone"
_MOST_CELLS = 64
"""Units of an extended resource on one node beyond which they are an amount, and no cards: no
machine has more cards, nor a card more slices in all."""
_ACCELERATORS = re.compile(
    r"/.*(?:gpu|mig-|tpu|npu|xpu|gaudi|neuron|ascend|mlu|dcu|accelerator)", re.IGNORECASE
)
"""Resources whose units are cards or slices, by the names that vendors chose; others, such as
network devices, stand on the same nodes and are no cards."""
_SLICES = re.compile(r"/(?:mig-|gpu-\d+gb)")
_AMOUNTS = ("memory", "cores", "core", "percentage")
_WHOLE = 1000
_PRODUCT_LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")


class Occupancy:
    """Pods by node and by quota; follows the events that the engine gets."""

    def __init__(self, quota_of: Callable[[Pod], str | None], levels: Sequence[str] = ()) -> None:
        self.levels = tuple(levels) or (_ZONE,)
        """The node labels that say where a node is, from wide to narrow."""
        self.owners: dict[str, int] = {}
        """The number of each quota, and of each namespace that has pods without one: `name/`."""
        self.gpu_quotas: dict[str, GpuQuota] = {}
        """By namespace."""
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.by_node: dict[str, dict[str, Pod]] = {}
        self.waiting: dict[str, Pod] = {}
        self.running_of: Counter[str | None] = Counter()
        self.waiting_of: Counter[str | None] = Counter()
        self.waiting_version = 0
        """Grows whenever a pod begins or ceases to wait."""
        self.total: Counter[str] = Counter()
        """What all nodes have together."""
        self.used: Counter[str] = Counter()
        """What all pods on nodes ask for."""
        self._quota_of = quota_of
        self._booked: dict[str, str | None] = {}
        """The quota that each pod is counted in."""
        self._devices: dict[str, dict[str, Device]] = {}
        self._device_nodes: dict[str, str] = {}
        self._dirty: set[str] = set()
        self._gone: set[str] = set()

    def owner(self, name: str) -> int:
        """The number by which cells name a quota: steady for as long as the page is served."""
        return self.owners.setdefault(name, len(self.owners)) + 1

    def quota_of(self, pod: Pod) -> str | None:
        """The quota that a pod is counted in."""
        return self._booked.get(pod.uid)

    def apply(self, event: Event) -> None:
        """Follow one event; those that say nothing of pods, nodes and devices are passed over."""
        match event:
            case PodSet(pod):
                self._drop(pod.uid)
                self._add(pod)
            case PodGone(uid):
                self._drop(uid)
            case NodeSet(node):
                self._drop_node(node.name)
                self.nodes[node.name] = node
                self.total.update(dict(node.allocatable))
                self._gone.discard(node.name)
                self._dirty.add(node.name)
            case NodeGone(name):
                self._drop_node(name)
                self._dirty.discard(name)
                self._gone.add(name)
            case DeviceSet(device):
                self._devices.setdefault(device.node, {})[device.name] = device
                self._device_nodes[device.name] = device.node
                self._dirty.add(device.node)
            case DeviceGone(name):
                where = self._device_nodes.pop(name, "")
                self._devices.get(where, {}).pop(name, None)
                self._dirty.add(where)
            case GpuQuotaSet(quota):
                self.gpu_quotas[quota.namespace] = quota
            case GpuQuotaGone(namespace):
                self.gpu_quotas.pop(namespace, None)
            case _:
                pass

    def recount(self) -> None:
        """Count every pod in the quota that it belongs to now: quotas have changed."""
        for pod in list(self.pods.values()):
            if self._booked[pod.uid] != self._quota_of(pod):
                self._drop(pod.uid)
                self._add(pod)

    def changed_nodes(self) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """The rows of nodes that differ since the last call, and the nodes that are gone."""
        rows = {name: self._row(name) for name in sorted(self._dirty) if name in self.nodes}
        gone = sorted(self._gone)
        self._dirty, self._gone = set(), set()
        return rows, gone

    def _drop_node(self, name: str) -> None:
        node = self.nodes.pop(name, None)
        if node is not None:
            self.total.subtract(dict(node.allocatable))

    def _add(self, pod: Pod) -> None:
        quota = self._quota_of(pod)
        self.pods[pod.uid], self._booked[pod.uid] = pod, quota
        if pod.node is None:
            self.waiting[pod.uid] = pod
            self.waiting_of[quota] += 1
            self.waiting_version += 1
        else:
            self.by_node.setdefault(pod.node, {})[pod.uid] = pod
            self.running_of[quota] += 1
            self.used.update(dict(pod.shape.requests))
            self._dirty.add(pod.node)

    def _drop(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        quota = self._booked.pop(uid)
        if pod.node is None:
            del self.waiting[uid]
            self.waiting_of[quota] -= 1
            self.waiting_version += 1
        else:
            del self.by_node[pod.node][uid]
            self.running_of[quota] -= 1
            self.used.subtract(dict(pod.shape.requests))
            self._dirty.add(pod.node)

    def _row(self, name: str) -> dict[str, Any]:
        node, pods = self.nodes[name], self.by_node.get(name, {})
        has, labels = dict(node.allocatable), dict(node.labels)
        used: Counter[str] = Counter()
        for pod in pods.values():
            used.update(dict(pod.shape.requests))
        model = next((labels[each] for each in _PRODUCT_LABELS if each in labels), "")
        return {
            "cells": [self._cell(users, pods) for users in self._cards(name)],
            "cpu": _permille(used["cpu"], has.get("cpu", 0)),
            "model": model or node.node_class,
            "places": [labels.get(level, "") for level in self.levels],
            "pods": len(pods),
            "sliced": name not in self._devices and any(map(_SLICES.search, has)),
            "state": _state(node),
        }

    def _cell(self, users: Users, pods: dict[str, Pod]) -> Cell:
        parts = [(self._owner_of(pods[uid]), part) for uid, part in users]
        if not parts:
            return 0
        return parts[0][0] if parts[0][1] == _WHOLE else parts

    def _owner_of(self, pod: Pod) -> int:
        return self.owner(self._booked[pod.uid] or f"{pod.namespace}/")

    def cards(self, name: str) -> list[list[tuple[Pod, int]]]:
        """The pods on each card of a node, with the thousandths of it that they take."""
        pods = self.by_node.get(name, {})
        return [[(pods[uid], part) for uid, part in users] for users in self._cards(name)]

    def _cards(self, name: str) -> Iterator[Users]:
        pods, devices = self.by_node.get(name, {}), self._devices.get(name)
        if devices:
            yield from self._users_of_devices(devices, pods)
            return
        for resource, count in self.nodes[name].allocatable:
            if not _is_card(resource, count):
                continue
            units: list[Users] = []
            for uid, pod in pods.items():
                units += [[(uid, _WHOLE)]] * dict(pod.shape.requests).get(resource, 0)
            yield from units[:count]
            yield from [[]] * (count - len(units))

    def _users_of_devices(
        self, devices: dict[str, Device], pods: dict[str, Pod]
    ) -> Iterator[Users]:
        users: dict[str, Users] = {name: [] for name in devices}
        for uid, pod in pods.items():
            for device in pod.devices:
                if device in users:
                    users[device].append((uid, _part(pod, devices[device])))
        for name in sorted(devices, key=lambda each: (devices[each].index, each)):
            yield users[name]


def takes(pod: Pod) -> dict[str, int]:
    """What a pod asks for, GPU compute and memory included: what its row shows."""
    found = {name: amount for name, amount in pod.shape.requests if name != "pods" and amount}
    gpu = pod.shape.gpu
    if gpu is not None:
        asked = {"tflops": gpu.request.tflops, "vram": gpu.request.vram}
        found |= {name: each * gpu.count for name, each in asked.items() if each}
    return found


def _is_card(resource: str, count: int) -> bool:
    """Is each unit of it a card, or a slice of one? Other extended resources are amounts."""
    named = _ACCELERATORS.search(resource) is not None and not resource.endswith(_AMOUNTS)
    return named and 0 < count <= _MOST_CELLS


def _part(pod: Pod, device: Device) -> int:
    """How much of a device a pod takes, in thousandths: of compute or memory, whichever is more."""
    gpu = pod.shape.gpu
    if gpu is None or gpu.whole:
        return _WHOLE
    shares = [
        _permille(amount, full) + part * _WHOLE // WHOLE_GPU
        for amount, part, full in zip(gpu.request, gpu.request_part, device.capacity, strict=True)
    ]
    return min(max(shares), _WHOLE)


def _permille(amount: int, full: int) -> int:
    return min(_WHOLE, amount * _WHOLE // full) if full else 0


def _state(node: Node) -> str:
    if not node.ready:
        return "not ready"
    return "ready" if node.takes_pods else "cordoned"
