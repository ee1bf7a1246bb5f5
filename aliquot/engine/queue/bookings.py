"""The terms on which pods start: what they are booked with, and what they claim as a whole.

Everything that a booking or a claim says follows from the pod, where it belongs and where it is to
run; it is worked out here, for whoever books, holds or asks.
"""

from collections.abc import Iterator

from aliquot.engine.books.ledger import Booking, Ledger
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.books.quota_tree import Tree
from aliquot.engine.gpus.devices import Devices
from aliquot.engine.model.gpu import GpuAsk, Taken
from aliquot.engine.model.pod import Pod
from aliquot.engine.placement.best_node import Placement
from aliquot.engine.queue.claim import Claim, Pods


class Bookings:
    """What pods take, ask for and claim."""

    def __init__(
        self, tree: Tree, nodes: Nodes, ledger: Ledger, placement: Placement, devices: Devices
    ) -> None:
        self._tree = tree
        self._nodes = nodes
        self._ledger = ledger
        self._placement = placement
        self._devices = devices

    def booking(
        self, pod: Pod, quota: str | None, node: str, devices: tuple[str, ...] = ()
    ) -> Booking:
        """What a pod takes on a node, and is charged in its quota; of these devices, if any."""
        known, ask = self._nodes.known.get(node), self._placement.ask(pod.shape)
        charge = ask.charge(None if known is None else known.node_class)
        gpu = None if pod.shape.gpu is None else self._on_devices(pod, pod.shape.gpu, node, devices)
        return Booking(quota, charge, node, ask.room, pod.namespace, pod.gang, gpu)

    def _on_devices(self, pod: Pod, ask: GpuAsk, node: str, devices: tuple[str, ...]) -> Taken:
        """What a pod takes of a node's devices: of these, of those it has, else of the best."""
        entry = self._ledger.entries.get(pod.uid)
        booked = entry.booking if entry is not None else None
        if ask.sliced:
            return self._devices.sliced(ask, node)
        if devices or pod.devices:
            return self._devices.taken(ask, devices or pod.devices)
        if booked is not None and booked.node == node and booked.gpu is not None:
            return self._devices.taken(ask, booked.gpu.devices)
        return self._devices.taken(ask, self._devices.choose(ask, node) or ())

    def asking(self, pod: Pod) -> Booking:
        """What a pod asks for."""
        charge = self._placement.ask(pod.shape).charge(None)
        return Booking(self._tree.home(pod), charge, namespace=pod.namespace, gang=pod.gang)

    def claim(
        self, pods: Pods, others: Pods = (), missing: int = 0, surplus: bool = False
    ) -> Claim:
        """What these pods ask for as a whole."""
        asks = tuple(self._placement.ask(pod.shape) for pod in pods)
        held = any(pod.uid in self._ledger.holding for pod in pods)
        claim = Claim(pods, asks, self._tree.home(pods[0]), held, others, missing, surplus)
        if len(pods) > 1 and any(self._tree.home(pod) != claim.quota for pod in pods):
            claim.parts = tuple(self._parts(pods))
        return claim

    def _parts(self, pods: Pods) -> Iterator[Claim]:
        """What each quota is asked for."""
        membership = dict.fromkeys(self._tree.home(pod) for pod in pods)
        for home in membership:
            yield self.claim(tuple(pod for pod in pods if self._tree.home(pod) == home))
