"""The GPU devices of the cluster: what each has free, which nodes fit a pod, which cards it gets.

Amounts are in columns over the devices, and each node has a row of the slots of its cards, so that
checking the cards of any number of nodes is a few numpy calls. A pod that requests several devices
gets them all on one node.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.columns import Columns, Resources, Slots
from aliquot.engine.model.gpu import NO_GPU_AMOUNT, WHOLE_GPU, Device, GpuAmount, GpuAsk, Taken
from aliquot.engine.model.knobs import DevicePlacement

MOST_POINTS = 1000
"""The highest score of a node or card: percentages, weighted by tenths (see `_LOADS`)."""

_CAP_TFLOPS, _CAP_VRAM, _TFLOPS, _VRAM, _PODS = range(5)
_NO_DEVICE = 0
"""The slot that fills the rows of nodes with fewer cards than others."""
_MOST = 2**42
"""Capacity and usage of a device saturate here: 4 TiB, or as many milli-TFLOPs, is more than any
device has, and its product with WHOLE_GPU fits an int64."""
_PERCENT = 100
_LOADS = ((_TFLOPS, _CAP_TFLOPS, 3), (_VRAM, _CAP_VRAM, 7))
"""The load of a card: used and capacity, with a weight in tenths; memory weighs more, because
pods can share compute over time, but not memory."""

Column = NDArray[np.int64]


class FilterStep(NamedTuple):
    """A filter, and how many devices pass it and all before it."""

    filter: str
    devices: int


class Devices:
    """All devices, and what is used of them."""

    def __init__(self, nodes: Nodes, placement: DevicePlacement = "NodeCompactGPULowLoad") -> None:
        facts = Resources()
        for name in ("tflops there is", "vram there is", "tflops", "vram", "pods"):
            facts.row(name)
        self.known: dict[str, Device] = {}
        self._node_slots = nodes.slots
        self._nodes = nodes
        self._nodes_version = -1
        self.version = 0
        """Grows with every device that is added, changed or removed."""
        self._compact_nodes = placement != "LowLoadFirst"
        self._compact_cards = placement == "CompactFirst"
        self._slots = Slots()
        self._slots.take("<no device>")
        self._facts = Columns(facts, self._slots, default=0)
        self._cards: Column = np.zeros((0, 1), dtype=np.int64)
        self._on: dict[str, dict[str, None]] = {}
        """The devices of each node, by name."""
        self._removed: dict[str, GpuAmount] = {}
        """The capacity of removed devices: pods may still be booked on them."""
        self._matching: dict[tuple[object, ...], NDArray[np.bool_]] = {}

    def __len__(self) -> int:
        return len(self.known)

    def set(self, device: Device) -> tuple[str, ...]:
        """Add a device, or change it; returns the nodes concerned."""
        old = self.known.get(device.name)
        nodes = [device.node] if old is None else [device.node, old.node]
        if old is not None:
            self._use(device.name, old.used_elsewhere, -1)
            self._on[old.node].pop(device.name)
        self.known[device.name] = device
        slot = self._slots.take(device.name)
        for row, has in zip((_CAP_TFLOPS, _CAP_VRAM), device.capacity, strict=True):
            self._facts.data[row, slot] = min(has, _MOST)
        self._on.setdefault(device.node, {})[device.name] = None
        self._use(device.name, device.used_elsewhere, +1)
        self._mark_changed()
        return tuple(dict.fromkeys(nodes))

    def remove(self, name: str) -> tuple[str, ...]:
        """Remove a device; its slot stays while pods are booked on it. Returns the nodes."""
        device = self.known.pop(name, None)
        if device is None:
            return ()
        self._removed[name] = device.capacity
        self._use(name, device.used_elsewhere, -1)
        self._on[device.node].pop(name)
        self._facts.data[_CAP_TFLOPS : _CAP_VRAM + 1, self._slots[name]] = 0
        self._free_slot(name)
        self._mark_changed()
        return (device.node,)

    def post(self, taken: Taken, sign: int) -> None:
        """Count what a pod takes (sign +1), or stop counting it (-1)."""
        for name, amount in zip(taken.devices, taken.amounts, strict=True):
            self._use(name, amount, sign)
            self._facts.data[_PODS, self._slots[name]] += sign
            self._free_slot(name)

    def taken(self, ask: GpuAsk, devices: tuple[str, ...]) -> Taken:
        """What a pod with this request takes of these devices."""
        needs = [self.need(ask, name) for name in devices]
        needs += [self.least_need(ask)] * (ask.count - len(devices))  # devices that are not known
        requests, limits = [each[0] for each in needs], [each[1] for each in needs]
        amounts = [
            self._capacity(name) if ask.whole else request
            for name, request in zip(devices, requests, strict=False)
        ]
        total, most = (reduce(GpuAmount.plus, each, NO_GPU_AMOUNT) for each in (requests, limits))
        return Taken(devices, tuple(amounts), total, most)

    def kinds(self, taken: Taken | None) -> tuple[GpuAmount, ...]:
        """The capacity of each device of a pod: on devices of the same, pods count the same."""
        return () if taken is None else tuple(self._capacity(name) for name in taken.devices)

    def need(self, ask: GpuAsk, name: str) -> tuple[GpuAmount, GpuAmount]:
        """Request and limit of such a pod on a device."""
        capacity = self._capacity(name)
        request = resolve_ask(ask.request, ask.request_part, capacity)
        return request, resolve_ask(ask.limit, ask.limit_part, capacity)

    def _capacity(self, name: str) -> GpuAmount:
        """The capacity of a device, also after it was removed."""
        device = self.known.get(name)
        return device.capacity if device is not None else self._removed.get(name, NO_GPU_AMOUNT)

    def sliced(self, ask: GpuAsk, node: str) -> Taken:
        """What slices of a node's devices count in a GPU quota; the node chooses the devices."""
        capacity = next((device.capacity for device in self.on(node)), NO_GPU_AMOUNT)
        request = resolve_ask(ask.request, ask.request_part, capacity)
        limit = resolve_ask(ask.limit, ask.limit_part, capacity)
        every = range(ask.count)
        total, most = (
            reduce(GpuAmount.plus, [each for _ in every], NO_GPU_AMOUNT)
            for each in (request, limit)
        )
        return Taken((), (), total, most)

    def free(self, name: str) -> GpuAmount:
        """What is free of a device."""
        slot, cells = self._slots[name], self._facts
        return GpuAmount(
            cells.get(_CAP_TFLOPS, slot) - cells.get(_TFLOPS, slot),
            cells.get(_CAP_VRAM, slot) - cells.get(_VRAM, slot),
        )

    def on(self, node: str) -> list[Device]:
        """The devices of a node, by index."""
        found = (self.known[name] for name in self._on.get(node, ()))
        return sorted(found, key=lambda device: (device.index, device.name))

    def choose(self, ask: GpuAsk, node: str) -> tuple[str, ...] | None:
        """The best devices of a node for a pod; None if too few fit."""
        if node not in self._nodes.known:
            return None
        cards = self._cards_of(np.array([self._node_slots[node]]))
        fit, load = self._check(ask, cards)
        if int(fit.sum()) < ask.count:
            return None
        points = np.where(fit, load if self._compact_cards else MOST_POINTS - load, -1)[0]
        best = np.argsort(-points, kind="stable")[: ask.count]
        return tuple(str(self._slots.names[slot]) for slot in cards[0][best])

    def least_need(self, ask: GpuAsk) -> tuple[GpuAmount, GpuAmount]:
        """The least that such a pod counts, request and limit, on any device it may get."""
        if not any((*ask.request_part, *ask.limit_part)):
            return ask.request, ask.limit
        found = [
            self.need(ask, device.name)
            for device in self.known.values()
            if device.ready and device.node in self._nodes.known and matches(ask, device)
        ]
        if not found:
            return ask.request, ask.limit
        requests, limits = [each[0] for each in found], [each[1] for each in found]
        return _smallest(requests), _smallest(limits)

    def pods(self, name: str) -> int:
        """How many pods are booked on a device."""
        return self._facts.get(_PODS, self._slots[name])

    def points(self, ask: GpuAsk, slots: Column) -> Column:
        """The score of each of these nodes for such a pod; below zero where it does not fit."""
        cards = self._cards_of(slots)
        fit, load = self._check(ask, cards)
        matching = self._match(ask).take(cards)
        points = load if self._compact_nodes else MOST_POINTS - load
        mean = (points * matching).sum(axis=1) // np.maximum(matching.sum(axis=1), 1)
        return np.where(fit.sum(axis=1) >= ask.count, mean, -1)

    def idle_first(self, ask: GpuAsk, node: str) -> tuple[str, ...]:
        """Devices of a node that would do for such a pod if they were idle, the idlest first."""
        cards = self._cards_of(np.array([self._node_slots[node]]))
        serves, (_, load) = self._serves(ask, cards)[0], self._check(ask, cards)
        best = np.argsort(np.where(serves, load[0], MOST_POINTS + 1), kind="stable")
        chosen = [slot for slot in cards[0][best] if slot != _NO_DEVICE][: ask.count]
        return tuple(str(self._slots.names[slot]) for slot in chosen)

    def could_serve_on(self, ask: GpuAsk, slots: Column) -> NDArray[np.bool_]:
        """Would each of these nodes have enough devices for such a pod if all were idle?"""
        enough: NDArray[np.bool_] = (
            self._serves(ask, self._cards_of(slots)).sum(axis=1) >= ask.count
        )
        return enough

    def _serves(self, ask: GpuAsk, cards: Column) -> NDArray[np.bool_]:
        """Which of these devices would do for such a pod if they were idle."""
        facts = self._facts.data[:, : len(self._slots)].take(cards, 1)
        serves: NDArray[np.bool_] = self._match(ask).take(cards)
        for i, (_, capacity, _) in enumerate(_LOADS):
            serves = serves & (ask.whole or facts[capacity] >= min(ask.request[i], 2 * _MOST))
        return serves

    def could_serve(self, ask: GpuAsk) -> bool:
        """Would any node have enough devices for such a pod if all were idle?"""
        on_node = Counter(
            device.node
            for device in self.known.values()
            if device.ready
            and device.node in self._nodes.known
            and matches(ask, device)
            and (ask.whole or _fits(self.need(ask, device.name)[0], device.capacity))
        )
        return max(on_node.values(), default=0) >= ask.count

    def _cards_of(self, slots: Column) -> Column:
        """The device slots of these nodes: one row each, by index, filled up with _NO_DEVICE."""
        if self._nodes_version != self._nodes.version:
            self._lay_out()
        found: Column = self._cards.take(slots, 0)
        return found

    def _check(self, ask: GpuAsk, cards: Column) -> tuple[NDArray[np.bool_], Column]:
        """Which of these devices fit such a pod, and the load of each."""
        facts = self._facts.data[:, : len(self._slots)].take(cards, 1)
        fit = self._match(ask).take(cards)
        load = np.zeros_like(cards)
        for i, (used, capacity, weight) in enumerate(_LOADS):
            has, taken = facts[capacity], facts[used]
            if not ask.whole:
                needs = min(ask.request[i], 2 * _MOST)
                fit &= has - taken >= needs - (
                    -has * min(ask.request_part[i], WHOLE_GPU) // WHOLE_GPU
                )
            load += weight * np.minimum(taken * _PERCENT // np.maximum(has, 1), _PERCENT)
        if ask.whole:
            fit &= (facts[_TFLOPS] == 0) & (facts[_VRAM] == 0) & (facts[_PODS] == 0)
        return fit, load

    def explain(self, ask: GpuAsk) -> list[FilterStep]:
        """How many devices pass each filter, in order: explains why none fits."""
        left = list(self.known.values())
        steps = [FilterStep("there are", len(left))]
        for name, passes in self._filters(ask):
            left = [device for device in left if passes(device)]
            steps.append(FilterStep(name, len(left)))
        if ask.count > 1:
            on_node = Counter(device.node for device in left)
            enough = sum(number for number in on_node.values() if number >= ask.count)
            steps.append(FilterStep(f"{ask.count} on one node", enough))
        return steps

    def _filters(self, ask: GpuAsk) -> Iterator[tuple[str, Callable[[Device], bool]]]:
        """The filters, each with the name that messages show."""
        yield "ready", lambda device: device.ready and device.node in self._nodes.known
        if ask.pool:
            yield f"pool {ask.pool}", lambda device: device.pool == ask.pool
        if ask.indices:
            yield "index", lambda device: device.index in ask.indices
        if ask.model:
            yield f"model {ask.model}", lambda device: _same(ask.model, device.model)
        if ask.vendor:
            yield f"vendor {ask.vendor}", lambda device: _same(ask.vendor, device.vendor)
        if ask.whole:
            yield "idle", self._is_idle
        yield "enough left", lambda device: self._has_room(ask, device)

    def _is_idle(self, device: Device) -> bool:
        return self.free(device.name) == device.capacity and not self.pods(device.name)

    def _has_room(self, ask: GpuAsk, device: Device) -> bool:
        left = self.free(device.name)
        needs = resolve_ask(ask.request, ask.request_part, device.capacity)
        return ask.whole or (left.tflops >= needs.tflops and left.vram >= needs.vram)

    def _match(self, ask: GpuAsk) -> NDArray[np.bool_]:
        """Which device slots are of the requested kind, and ready."""
        key = (ask.model, ask.vendor, ask.pool, ask.indices)
        found = self._matching.get(key)
        if found is None:
            found = np.zeros(len(self._slots), dtype=bool)  # _NO_DEVICE never matches
            for name, device in self.known.items():
                found[self._slots[name]] = device.ready and matches(ask, device)
            self._matching[key] = found
        return found

    def _mark_changed(self) -> None:
        self.version += 1
        self._matching.clear()
        self._nodes_version = -1

    def _lay_out(self) -> None:
        """Make the rows of cards anew, after nodes or devices were added or removed."""
        self._nodes_version = self._nodes.version
        widest = max((len(names) for names in self._on.values()), default=0)
        self._cards = np.full((len(self._node_slots), max(widest, 1)), _NO_DEVICE, dtype=np.int64)
        for node in self._on:
            if node in self._nodes.known:
                slots = [self._slots[device.name] for device in self.on(node)]
                self._cards[self._node_slots[node], : len(slots)] = slots

    def _use(self, name: str, amount: GpuAmount, sign: int) -> None:
        slot = self._slots.take(name)
        self._facts.data[_TFLOPS, slot] += sign * min(amount.tflops, _MOST)
        self._facts.data[_VRAM, slot] += sign * min(amount.vram, _MOST)

    def _free_slot(self, name: str) -> None:
        """Free the slot of a removed device once no pod is booked on it."""
        if name not in self.known and not self.pods(name):
            slot = self._slots[name]
            self._facts.data[:, slot] = 0
            self._slots.drop(name)
            self._nodes_version = -1


def resolve_ask(amount: GpuAmount, part: GpuAmount, capacity: GpuAmount) -> GpuAmount:
    """An amount plus a fraction (in millionths, rounded up) of a device of this capacity."""
    if not any(part):
        return amount
    return GpuAmount(
        amount.tflops + -(-capacity.tflops * part.tflops // WHOLE_GPU),
        amount.vram + -(-capacity.vram * part.vram // WHOLE_GPU),
    )


def matches(ask: GpuAsk, device: Device) -> bool:
    """Is the device of the requested model, vendor, pool and index?"""
    return (
        (not ask.model or _same(ask.model, device.model))
        and (not ask.vendor or _same(ask.vendor, device.vendor))
        and (not ask.pool or ask.pool == device.pool)
        and (not ask.indices or device.index in ask.indices)
    )


def _same(asked: str, has: str) -> bool:
    """Are the names of two models or vendors equal, but for case?"""
    return asked.casefold() == has.casefold()


def _fits(wants: GpuAmount, has: GpuAmount) -> bool:
    return wants.tflops <= has.tflops and wants.vram <= has.vram


def _smallest(amounts: list[GpuAmount]) -> GpuAmount:
    """The least compute and the least memory."""
    return GpuAmount(min(each.tflops for each in amounts), min(each.vram for each in amounts))
