"""Bookings of pods: what a pod is entered in the ledger with, on a node or while it waits.

A booking follows from the pod, its quota, the node and the devices chosen there. It is made here
alone, so that what is tried, nominated, assumed and committed for a pod is the same.
"""

from aliquot.engine.books.ledger import Booking, Ledger
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.books.quota_tree import QuotaTree
from aliquot.engine.gpus.devices import Devices
from aliquot.engine.model.gpu import GpuAsk, Taken
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.volumes import VolumeBinding
from aliquot.engine.placement.ask import Ask
from aliquot.engine.placement.best_node import Placement


class Bookings:
    """Makes the bookings of pods."""

    def __init__(
        self, tree: QuotaTree, nodes: Nodes, ledger: Ledger, placement: Placement, devices: Devices
    ) -> None:
        self._tree = tree
        self._nodes = nodes
        self._ledger = ledger
        self._placement = placement
        self._devices = devices

    def booking(
        self, pod: Pod, quota: str | None, node: str, devices: tuple[str, ...] = ()
    ) -> Booking:
        """What a pod takes on a node and its quota is charged; on these devices, if given."""
        return self.of_ask(self._placement.shape_ask(pod.shape), pod, quota, node, devices)

    def of_ask(
        self, ask: Ask, pod: Pod, quota: str | None, node: str, devices: tuple[str, ...] = ()
    ) -> Booking:
        """The same, of a pod whose ask is known: as of every claim that is tried."""
        known = self._nodes.known.get(node)
        return Booking(
            quota,
            ask.charge_nowhere() if known is None else ask.charge(known.charge_class),
            node,
            ask.room,
            pod.namespace,
            pod.gang,
            None if pod.shape.gpu is None else self._on_devices(pod, pod.shape.gpu, node, devices),
            pod.preemptible,
            pod.labels,
            pod.rules,
            pod.terminating,
            self._on_volumes(pod, node) if pod.rules.volumes else (),
        )

    def _on_volumes(self, pod: Pod, node: str) -> tuple[VolumeBinding, ...]:
        """What becomes of a pod's unbound claims on a node: as booked, until it is bound there."""
        entry = self._ledger.entries.get(pod.uid)
        if entry is not None and entry.booking.node == node:
            return entry.booking.volumes
        if pod.node is not None or node not in self._nodes.known:
            return ()
        return self._placement.volumes.choose(pod.rules, node)

    def _on_devices(self, pod: Pod, ask: GpuAsk, node: str, devices: tuple[str, ...]) -> Taken:
        """What a pod takes of a node's devices: of these, else of its own, else of the best."""
        entry = self._ledger.entries.get(pod.uid)
        booked = entry.booking if entry is not None else None
        if ask.sliced:
            return self._devices.sliced(ask, node)
        if devices or pod.devices:
            return self._devices.taken(ask, devices or pod.devices)
        if booked is not None and booked.node == node and booked.gpu is not None:
            return self._devices.taken(ask, booked.gpu.devices)
        judge = self._placement.fragmentation
        card_points = None if judge is None else judge.card_points(pod.shape, node)
        return self._devices.taken(ask, self._devices.choose(ask, node, card_points) or ())

    def pending(self, pod: Pod) -> Booking:
        """What a pending pod requests."""
        charge = self._placement.shape_ask(pod.shape).charge(None)
        return Booking(self._tree.quota_of(pod), charge, namespace=pod.namespace, gang=pod.gang)
