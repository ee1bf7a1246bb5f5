"""The devices of a cluster, sent to the engine when objects change.

The devices of a node are its GPU objects; without any, they are derived from the node's number of
cards. Where single GPUs are not shared (`tensor_fusion.sharing`), the engine has no devices.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from aliquot.dialects.core import nodes, pods
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.nodes import HOSTNAME
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.tensor_fusion import derived_gpus, gpus
from aliquot.dialects.tensor_fusion.quotas import Defaults
from aliquot.engine import Device, DeviceGone, DeviceSet, Event, GpuAmount, GpuAsk, Pod
from aliquot.mirror.pod_record import PodRecord
from aliquot.mirror.store import Store

Asks = dict[str, dict[str, GpuAsk]]
"""What running pods request of GPUs, by device and by the pod's path."""

_DEVICE_KINDS = {gpus.KIND, "Node"}
_NOTHING = GpuAmount(0, 0)


class Devices:
    """The devices that were last sent to the engine, by name."""

    def __init__(
        self, store: Store, send: Callable[[Event], None], cards: Cards, live: bool
    ) -> None:
        """`live`: we write `available` into GPUs, so it says nothing of other pods."""
        self.sent: dict[str, Device] = {}
        self._live = live
        self._store = store
        self._send = send
        self._cards = cards
        self._outside: dict[str, GpuAmount] = {}
        """What pods outside our view held of a GPU when its object came."""

    def refresh(
        self,
        touched: set[Key],
        records: Iterable[PodRecord],
        defaults: Callable[[str], Defaults],
    ) -> None:
        """Send the devices that differ after a change of the `touched` objects.

        `records` are the known pods, without those that the change brings; `defaults` gives the GPU
        requests of a namespace's pods that state none.
        """
        if not self._cards.shared or not {kind for kind, _, _ in touched} & _DEVICE_KINDS:
            return
        came = [self._store.objects[each] for each in sorted(touched & self._store.objects.keys())]
        given = [each for each in came if each.kind == gpus.KIND]
        if given and not self._live:
            asks = asks_by_device(records)
            for manifest in came:
                if isinstance(manifest.content, PodWire):
                    self._add(manifest, defaults(manifest.namespace), asks)
            self._measure_outside_use(given, asks)
        before, self.sent = self.sent, {each.name: each for each in self._now()}
        for name, device in self.sent.items():
            if before.get(name) != device:
                self._send(DeviceSet(device))
        for name in before:
            if name not in self.sent:
                self._send(DeviceGone(name))

    def _add(self, manifest: Manifest, by_default: Defaults, asks: Asks) -> None:
        """Add what a pod requests that was bound before it came to us."""
        if pods.finished(pods.status(manifest)) or not pods.devices(manifest, self._cards):
            return
        pod = pods.pod(manifest, "", (0, True), 0, self._cards, by_default)
        for name in pod.devices:
            _note(asks, name, pod)

    def _measure_outside_use(self, given: Iterable[Manifest], asks: Asks) -> None:
        for manifest in given:
            bare = gpus.device(manifest)
            held = gpus.taken(asks.get(bare.name, {}).values(), bare.capacity)
            self._outside[bare.name] = gpus.device(manifest, held).used_elsewhere

    def _now(self) -> Iterator[Device]:
        """The devices by the objects of now; GPUs without a node are left out."""
        manifests = self._of_kind("Node")
        found = [nodes.node(each, self._cards) for each in manifests]
        domains = {each.name: derived_gpus.domains(each) for each in manifests}
        by_host = {dict(node.labels)[HOSTNAME]: node.name for node in found}
        with_gpu_objects = set()
        for manifest in self._of_kind(gpus.KIND):
            device = gpus.device(manifest)
            if device.node:
                node = by_host.get(device.node, device.node)
                with_gpu_objects.add(node)
                yield replace(
                    device, node=node, used_elsewhere=self._outside.get(device.name, _NOTHING)
                )
        for one in found:
            if one.name not in with_gpu_objects:
                yield from derived_gpus.devices(one, self._cards, domains[one.name])

    def _of_kind(self, kind: str) -> list[Manifest]:
        return [each for each in self._store.objects.values() if each.kind == kind]


def asks_by_device(records: Iterable[PodRecord]) -> Asks:
    """What running pods request of the devices that they are on."""
    asks: Asks = {}
    for each in records:
        for name in each.pod.devices if each.phase == "Running" else ():
            _note(asks, name, each.pod)
    return asks


def _note(asks: Asks, device: str, pod: Pod) -> None:
    if pod.shape.gpu is not None:
        asks.setdefault(device, {})[pod.path] = pod.shape.gpu
