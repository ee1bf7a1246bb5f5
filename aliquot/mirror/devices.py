"""The GPUs of the embedded cluster, one by one, as they were last told.

Where GPU objects speak of a node, they are its devices; else they follow from its number of cards.
Nothing is told where nobody shares GPUs.
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
from aliquot.engine import Device, DeviceGone, DeviceSet, Event, GpuAmount, GpuAsk, Node, Pod
from aliquot.mirror.pod_record import PodRecord
from aliquot.mirror.store import Store

Asks = dict[str, dict[str, GpuAsk]]
"""What pods ask for, by the device that they are on, and their path."""

_BEAR_ON_DEVICES = {gpus.KIND, "Node"}
_NOTHING = GpuAmount(0, 0)


class Devices:
    """Devices by name."""

    def __init__(
        self, store: Store, tell: Callable[[Event], None], cards: Cards, written_here: bool
    ) -> None:
        """`written_here`: what a GPU has left is our own word coming back, and tells nothing."""
        self.told: dict[str, Device] = {}
        self._written_here = written_here
        self._store = store
        self._tell = tell
        self._cards = cards
        self._outside: dict[str, GpuAmount] = {}
        """What others have of a GPU, as it was when its object came."""

    def restate(
        self,
        touched: set[Key],
        records: Iterable[PodRecord],
        defaults: Callable[[str], Defaults],
    ) -> None:
        """Tell what has become of the devices, where these objects are not what they were.

        `records` are the pods so far, without those that have just come; `defaults` is what those
        of a namespace ask for where they do not say.
        """
        if not self._cards.shared or not {kind for kind, _, _ in touched} & _BEAR_ON_DEVICES:
            return
        came = [self._store.objects[each] for each in sorted(touched & self._store.objects.keys())]
        given = [each for each in came if each.kind == gpus.KIND]
        if given and not self._written_here:
            asks = asks_by_device(records)
            for manifest in came:
                if isinstance(manifest.content, PodWire):
                    self._add(manifest, defaults(manifest.namespace), asks)
            self._look_outside(given, asks)
        before, self.told = self.told, {each.name: each for each in self._now()}
        for name, device in self.told.items():
            if before.get(name) != device:
                self._tell(DeviceSet(device))
        for name in before:
            if name not in self.told:
                self._tell(DeviceGone(name))

    def _add(self, manifest: Manifest, by_default: Defaults, asks: Asks) -> None:
        """What a pod asks for that came as one that runs."""
        if pods.finished(pods.status(manifest)) or not pods.devices(manifest, self._cards):
            return
        pod = pods.pod(manifest, "", (0, True), 0, self._cards, by_default)
        for name in pod.devices:
            _note(asks, name, pod)

    def _look_outside(self, given: Iterable[Manifest], asks: Asks) -> None:
        for manifest in given:
            bare = gpus.device(manifest)
            held = gpus.taken(asks.get(bare.name, {}).values(), bare.capacity)
            self._outside[bare.name] = gpus.device(manifest, held).used_elsewhere

    def _now(self) -> Iterator[Device]:
        """The devices as the objects have them; GPUs that are nowhere are left out."""
        found = [nodes.node(each, self._cards) for each in self._of_kind("Node")]
        by_host = {dict(node.labels)[HOSTNAME]: node.name for node in found}
        spoken_of = set()
        for manifest in self._of_kind(gpus.KIND):
            device = gpus.device(manifest)
            if device.node:
                node = by_host.get(device.node, device.node)
                spoken_of.add(node)
                yield replace(
                    device, node=node, used_elsewhere=self._outside.get(device.name, _NOTHING)
                )
        yield from self._derived(node for node in found if node.name not in spoken_of)

    def _derived(self, found: Iterable[Node]) -> Iterator[Device]:
        for node in found:
            yield from derived_gpus.devices(node, self._cards)

    def _of_kind(self, kind: str) -> list[Manifest]:
        return [each for each in self._store.objects.values() if each.kind == kind]


def asks_by_device(records: Iterable[PodRecord]) -> Asks:
    """What the pods that run ask for of the devices that they are on."""
    asks: Asks = {}
    for each in records:
        for name in each.pod.devices if each.phase == "Running" else ():
            _note(asks, name, each.pod)
    return asks


def _note(asks: Asks, device: str, pod: Pod) -> None:
    if pod.shape.gpu is not None:
        asks.setdefault(device, {})[pod.path] = pod.shape.gpu
