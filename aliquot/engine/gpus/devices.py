"""The GPUs of the cluster: what each has left, which nodes can serve a pod, which cards it gets.

Amounts stand in columns over the devices, and every node knows the places of its cards, so that one
look at the cards of any number of nodes is a few numpy calls. A pod that asks for several devices
gets them on one node.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.columns import Columns, Resources, Slots
from aliquot.engine.model.gpu import NOTHING, WHOLE, Device, GpuAmount, GpuAsk

DevicePlacement = Literal["NodeCompactGPULowLoad", "CompactFirst", "LowLoadFirst"]

MOST_POINTS = 1000
"""A node, or a card, has between none and so many points."""

_CAP_TFLOPS, _CAP_VRAM, _TFLOPS, _VRAM, _PODS = range(5)
_NOBODY = 0
"""The slot that stands for no device."""
_MOST = 2**42
"""No device has, and nobody uses, more than that: 4 TiB, or as many milli-TFLOPs."""
_PERCENT = 100
_LOADS = ((_TFLOPS, _CAP_TFLOPS, 3), (_VRAM, _CAP_VRAM, 7))
"""How loaded a card is: what is used, of what there is, and its say, of ten."""

Column = NDArray[np.int64]
Names = set[str]


class Taken(NamedTuple):
    """What a pod has of devices: of each, and all in all, as its quota counts it."""

    devices: tuple[str, ...]
    amounts: tuple[GpuAmount, ...]
    request: GpuAmount
    limit: GpuAmount


class Left(NamedTuple):
    """How many devices a filter leaves."""

    filter: str
    devices: int


class Devices:
    """All devices, with what is used of them."""

    def __init__(self, nodes: Nodes, placement: DevicePlacement = "NodeCompactGPULowLoad") -> None:
        facts = Resources()
        for name in ("tflops there is", "vram there is", "tflops", "vram", "pods"):
            facts.row(name)
        self.known: dict[str, Device] = {}
        self._nodes = nodes.slots
        self._cluster = nodes
        self._seen = -1
        self.version = 0
        """Grows when devices come, go or change."""
        self._compact_nodes = placement != "LowLoadFirst"
        self._compact_cards = placement == "CompactFirst"
        self._slots = Slots()
        self._slots.take("<nobody>")
        self._facts = Columns(facts, self._slots, default=0)
        self._cards: Column = np.zeros((0, 1), dtype=np.int64)
        self._on: dict[str, dict[str, None]] = {}
        """The devices of each node, by name."""
        self._had: dict[str, GpuAmount] = {}
        """What devices had that are gone: those who run on one may not know yet."""
        self._matching: dict[tuple[object, ...], NDArray[np.bool_]] = {}

    def __len__(self) -> int:
        return len(self.known)

    def set(self, device: Device) -> Names:
        """A device is there, like this; the nodes that this concerns."""
        old = self.known.get(device.name)
        touched = {device.node, *([old.node] if old is not None else [])}
        if old is not None:
            self._use(device.name, old.outside, -1)
            self._on[old.node].pop(device.name)
        self.known[device.name] = device
        slot = self._slots.take(device.name)
        for row, has in zip((_CAP_TFLOPS, _CAP_VRAM), device.capacity, strict=True):
            self._facts.data[row, slot] = min(has, _MOST)
        self._on.setdefault(device.node, {})[device.name] = None
        self._use(device.name, device.outside, +1)
        self._changed()
        return touched

    def remove(self, name: str) -> Names:
        """A device is no longer there; what pods use of it is remembered until they are gone."""
        device = self.known.pop(name, None)
        if device is None:
            return Names()
        self._had[name] = device.capacity
        self._use(name, device.outside, -1)
        self._on[device.node].pop(name)
        self._facts.data[_CAP_TFLOPS : _CAP_VRAM + 1, self._slots[name]] = 0
        self._tidy(name)
        self._changed()
        return {device.node}

    def post(self, taken: Taken, sign: int) -> None:
        """Count what a pod has, or no longer."""
        for name, amount in zip(taken.devices, taken.amounts, strict=True):
            self._use(name, amount, sign)
            self._facts.data[_PODS, self._slots[name]] += sign
            self._tidy(name)

    def taken(self, ask: GpuAsk, devices: tuple[str, ...]) -> Taken:
        """What a pod that asks for this has of these devices."""
        wishes = [self.wants(ask, name) for name in devices]
        wishes += [self.least(ask)] * (ask.count - len(devices))  # whichever these are
        requests, limits = [each[0] for each in wishes], [each[1] for each in wishes]
        amounts = [
            self._capacity(name) if ask.whole else request
            for name, request in zip(devices, requests, strict=False)
        ]
        total, most = (reduce(GpuAmount.plus, each, NOTHING) for each in (requests, limits))
        return Taken(devices, tuple(amounts), total, most)

    def kinds(self, taken: Taken | None) -> tuple[GpuAmount, ...]:
        """What the devices of a pod have, each: pods on such devices are counted alike."""
        return () if taken is None else tuple(self._capacity(name) for name in taken.devices)

    def wants(self, ask: GpuAsk, name: str) -> tuple[GpuAmount, GpuAmount]:
        """What such a pod asks for of a device: request and limit."""
        capacity = self._capacity(name)
        request = resolve(ask.request, ask.request_part, capacity)
        return request, resolve(ask.limit, ask.limit_part, capacity)

    def _capacity(self, name: str) -> GpuAmount:
        """What a device has, or had before it went away."""
        device = self.known.get(name)
        return device.capacity if device is not None else self._had.get(name, NOTHING)

    def sliced(self, ask: GpuAsk, node: str) -> Taken:
        """What slices of a node's devices count; which device they are of, the node says."""
        capacity = next((device.capacity for device in self.on(node)), NOTHING)
        request = resolve(ask.request, ask.request_part, capacity)
        limit = resolve(ask.limit, ask.limit_part, capacity)
        every = range(ask.count)
        total, most = (
            reduce(GpuAmount.plus, [each for _ in every], NOTHING) for each in (request, limit)
        )
        return Taken((), (), total, most)

    def free(self, name: str) -> GpuAmount:
        """What is left of a device."""
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
        """The devices of a node that a pod gets, the best ones; None if there are too few."""
        if node not in self._cluster.known:
            return None
        cards = self._cards_of(np.array([self._nodes[node]]))
        able, load = self._look(ask, cards)
        if int(able.sum()) < ask.count:
            return None
        points = np.where(able, load if self._compact_cards else MOST_POINTS - load, -1)[0]
        best = np.argsort(-points, kind="stable")[: ask.count]
        return tuple(str(self._slots.names[slot]) for slot in cards[0][best])

    def least(self, ask: GpuAsk) -> tuple[GpuAmount, GpuAmount]:
        """The least that such a pod counts with, request and limit, whichever device it gets."""
        if not any((*ask.request_part, *ask.limit_part)):
            return ask.request, ask.limit
        found = [
            self.wants(ask, device.name)
            for device in self.known.values()
            if device.ready and device.node in self._cluster.known and matches(ask, device)
        ]
        if not found:
            return ask.request, ask.limit
        requests, limits = [each[0] for each in found], [each[1] for each in found]
        return _smallest(requests), _smallest(limits)

    def pods(self, name: str) -> int:
        """How many pods have something of a device."""
        return self._facts.get(_PODS, self._slots[name])

    def points(self, ask: GpuAsk, slots: Column) -> Column:
        """How good each of these nodes is for such a pod, or below zero if it cannot serve it."""
        cards = self._cards_of(slots)
        able, load = self._look(ask, cards)
        there = self._match(ask).take(cards)
        points = load if self._compact_nodes else MOST_POINTS - load
        mean = (points * there).sum(axis=1) // np.maximum(there.sum(axis=1), 1)
        return np.where(able.sum(axis=1) >= ask.count, mean, -1)

    def could_serve(self, ask: GpuAsk) -> bool:
        """Has any node enough devices for such a pod, when they are idle?"""
        on_node = Counter(
            device.node
            for device in self.known.values()
            if device.ready
            and device.node in self._cluster.known
            and matches(ask, device)
            and (ask.whole or _fits(self.wants(ask, device.name)[0], device.capacity))
        )
        return max(on_node.values(), default=0) >= ask.count

    def _cards_of(self, slots: Column) -> Column:
        """The devices of these nodes, by slot: a row each, by index, filled up with nobody."""
        if self._seen != self._cluster.version:
            self._lay_out()
        found: Column = self._cards.take(slots, 0)
        return found

    def _look(self, ask: GpuAsk, cards: Column) -> tuple[NDArray[np.bool_], Column]:
        """Which of these devices would serve such a pod, and how loaded each is."""
        facts = self._facts.data[:, : len(self._slots)].take(cards, 1)
        able = self._match(ask).take(cards)
        load = np.zeros_like(cards)
        for i, (used, there_is, says) in enumerate(_LOADS):
            has, taken = facts[there_is], facts[used]
            if not ask.whole:
                needs = min(ask.request[i], 2 * _MOST)
                able &= has - taken >= needs - (-has * min(ask.request_part[i], WHOLE) // WHOLE)
            load += says * np.minimum(taken * _PERCENT // np.maximum(has, 1), _PERCENT)
        if ask.whole:
            able &= (facts[_TFLOPS] == 0) & (facts[_VRAM] == 0) & (facts[_PODS] == 0)
        return able, load

    def explain(self, ask: GpuAsk) -> list[Left]:
        """How many devices each filter leaves, in order: why there is none, if there is none."""
        left = list(self.known.values())
        steps = [Left("there are", len(left))]
        for name, passes in self._filters(ask):
            left = [device for device in left if passes(device)]
            steps.append(Left(name, len(left)))
        if ask.count > 1:
            on_node = Counter(device.node for device in left)
            enough = sum(number for number in on_node.values() if number >= ask.count)
            steps.append(Left(f"{ask.count} on one node", enough))
        return steps

    def _filters(self, ask: GpuAsk) -> Iterator[tuple[str, Callable[[Device], bool]]]:
        """What a device must pass, in words and as a test."""
        yield "ready", lambda device: device.ready and device.node in self._cluster.known
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
        needs = resolve(ask.request, ask.request_part, device.capacity)
        return ask.whole or (left.tflops >= needs.tflops and left.vram >= needs.vram)

    def _match(self, ask: GpuAsk) -> NDArray[np.bool_]:
        """The devices that are of the kind that is asked for."""
        key = (ask.model, ask.vendor, ask.pool, ask.indices)
        found = self._matching.get(key)
        if found is None:
            found = np.zeros(len(self._slots), dtype=bool)  # nobody matches
            for name, device in self.known.items():
                found[self._slots[name]] = device.ready and matches(ask, device)
            self._matching[key] = found
        return found

    def _changed(self) -> None:
        self.version += 1
        self._matching.clear()
        self._seen = -1

    def _lay_out(self) -> None:
        """Devices have come or gone, or nodes."""
        self._seen = self._cluster.version
        widest = max((len(names) for names in self._on.values()), default=0)
        self._cards = np.full((len(self._nodes), max(widest, 1)), _NOBODY, dtype=np.int64)
        for node in self._on:
            if node in self._cluster.known:
                slots = [self._slots[device.name] for device in self.on(node)]
                self._cards[self._nodes[node], : len(slots)] = slots

    def _use(self, name: str, amount: GpuAmount, sign: int) -> None:
        slot = self._slots.take(name)
        self._facts.data[_TFLOPS, slot] += sign * min(amount.tflops, _MOST)
        self._facts.data[_VRAM, slot] += sign * min(amount.vram, _MOST)

    def _tidy(self, name: str) -> None:
        """Give a slot back whose device is gone and which nobody uses any more."""
        if name not in self.known and not self.pods(name):
            slot = self._slots[name]
            self._facts.data[:, slot] = 0
            self._slots.drop(name)
            self._seen = -1


def resolve(amount: GpuAmount, part: GpuAmount, capacity: GpuAmount) -> GpuAmount:
    """What is asked for of a device that has so much; parts are rounded up."""
    if not any(part):
        return amount
    return GpuAmount(
        amount.tflops + -(-capacity.tflops * part.tflops // WHOLE),
        amount.vram + -(-capacity.vram * part.vram // WHOLE),
    )


def matches(ask: GpuAsk, device: Device) -> bool:
    """Is the device of the kind that is asked for?"""
    return (
        (not ask.model or _same(ask.model, device.model))
        and (not ask.vendor or _same(ask.vendor, device.vendor))
        and (not ask.pool or ask.pool == device.pool)
        and (not ask.indices or device.index in ask.indices)
    )


def _same(asked: str, has: str) -> bool:
    """Names of models and vendors are written in many ways; case does not matter."""
    return asked.casefold() == has.casefold()


def _fits(wants: GpuAmount, has: GpuAmount) -> bool:
    return wants.tflops <= has.tflops and wants.vram <= has.vram


def _smallest(amounts: list[GpuAmount]) -> GpuAmount:
    """The least of each."""
    return GpuAmount(min(each.tflops for each in amounts), min(each.vram for each in amounts))
