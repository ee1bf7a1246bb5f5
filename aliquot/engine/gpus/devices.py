"""The GPU devices of the cluster: what each has free, which nodes fit a pod, which cards it gets.

What is said of the cards of all nodes is in columns (`cards`). A pod that requests several devices
gets them all on one node.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.gpus.cards import MOST_POINTS, Card, Cards, Column, Mask, Slots
from aliquot.engine.model.gpu import NO_GPU_AMOUNT, WHOLE_GPU, Device, GpuAmount, GpuAsk, Taken
from aliquot.engine.model.knobs import DevicePlacement


class FilterStep(NamedTuple):
    """A filter, and how many devices pass it and all before it."""

    filter: str
    devices: int


class Devices:
    """All devices, and what is used of them."""

    def __init__(self, nodes: Nodes, placement: DevicePlacement = "NodeCompactGPULowLoad") -> None:
        self.known: dict[str, Device] = {}
        self.version = 0
        """Grows with every device that is added, changed or removed."""
        self._nodes = nodes
        self._nodes_version = -1
        self._on: dict[str, dict[str, None]] = {}
        """The devices of each node, by name."""
        self._ordered: dict[str, list[Device]] = {}
        """The devices of each node by index, once they were asked for."""
        self._used: dict[str, Card] = {}
        """What is used of each device that is known, or has pods booked on it."""
        self._unused: list[int] = []
        """Numbers of cards that were forgotten."""
        self._removed: dict[str, GpuAmount] = {}
        """The capacity of removed devices: pods may still be booked on them."""
        self._cards = Cards(placement)
        self._moved: dict[str, None] = {}
        """The nodes whose cards are to be laid out anew."""

    def __len__(self) -> int:
        return len(self.known)

    def set(self, device: Device) -> tuple[str, ...]:
        """Add a device, or change it; returns the nodes concerned."""
        old = self.known.get(device.name)
        nodes = [device.node] if old is None else [device.node, old.node]
        card = self._card(device.name)
        if old is not None:
            card.use(old.used_elsewhere, -1)
            self._on[old.node].pop(device.name)
        self.known[device.name] = device
        self._on.setdefault(device.node, {})[device.name] = None
        card.resize(device.capacity)
        card.use(device.used_elsewhere, +1)
        if old is not None and replace(old, used_elsewhere=device.used_elsewhere) == device:
            self._cards.write(card)
        else:
            self._moved.update(dict.fromkeys(nodes))
        self._mark_changed(nodes)
        return tuple(dict.fromkeys(nodes))

    def remove(self, name: str) -> tuple[str, ...]:
        """Remove a device; what is used of it stays while pods are booked on it.

        Returns the nodes concerned.
        """
        device = self.known.pop(name, None)
        if device is None:
            return ()
        self._removed[name] = device.capacity
        card = self._used[name]
        card.use(device.used_elsewhere, -1)
        card.resize(NO_GPU_AMOUNT)
        self._on[device.node].pop(name)
        self._moved[device.node] = None
        self._mark_changed([device.node])
        self._forget(name, card)
        return (device.node,)

    def _card(self, name: str) -> Card:
        """What is used of a device, known or not."""
        found = self._used.get(name)
        if found is None:
            number = self._unused.pop() if self._unused else len(self._used) + 1
            found = self._used[name] = Card(number)
        return found

    def _forget(self, name: str, card: Card) -> None:
        """Forget a device that is not known once no pod is booked on it, or leaves it."""
        if not (card.pods or card.pods_leaving or name in self.known):
            del self._used[name]
            self._unused.append(card.number)

    def _mark_changed(self, nodes: list[str]) -> None:
        self.version += 1
        for node in nodes:
            self._ordered.pop(node, None)

    def post(self, taken: Taken, sign: int) -> None:
        """Count what a pod takes (sign +1), or stop counting it (-1)."""
        for name, amount in zip(taken.devices, taken.amounts, strict=True):
            card = self._used.get(name) or self._card(name)
            card.use(amount, sign)
            card.pods += sign
            self._cards.write(card)
            if sign < 0:
                self._forget(name, card)

    def post_leaving(self, taken: Taken, sign: int) -> None:
        """Count what a terminating pod will free (sign +1), or stop counting it (-1)."""
        for name, amount in zip(taken.devices, taken.amounts, strict=True):
            card = self._card(name)
            card.leaving = card.leaving.plus(amount, sign)
            card.pods_leaving += sign
            self._cards.write_leaving(card)
            self._forget(name, card)

    @property
    def cards(self) -> Cards:
        """The cards of all nodes in columns, as they are now."""
        nodes, cards = self._nodes, self._cards
        is_current = self._nodes_version == nodes.version and cards.nodes == len(nodes.slots.names)
        if self._moved or not is_current:
            self._lay_out()
        return cards

    def _lay_out(self) -> None:
        """Give the cards of nodes their places, where devices or nodes have come, changed or gone.

        A node whose labels or amounts have changed keeps its places.
        """
        nodes, slots = self._nodes, self._nodes.slots
        self._cards.reserve(len(slots))
        changed = dict.fromkeys(nodes.changed_since(self._nodes_version))
        self._nodes_version = nodes.version
        changed.update(dict.fromkeys(slots[node] for node in self._moved if node in slots))
        for slot in changed:
            node = nodes.at(slot)
            devices = [] if node is None else [each for each in self.on(node.name) if each.ready]
            names = tuple(device.name for device in devices)
            if names != self._cards.names(slot) or (node is not None and node.name in self._moved):
                self._cards.lay_out(slot, [(each, self._used[each.name]) for each in devices])
        self._moved.clear()

    def taken(self, ask: GpuAsk, devices: tuple[str, ...]) -> Taken:
        """What a pod with this request takes of these devices."""
        if len(devices) == ask.count and not ask.of_parts:
            each = self._sizes_of(devices) if ask.whole else (ask.request,) * ask.count
            return Taken(devices, each, ask.request.times(ask.count), ask.limit.times(ask.count))
        needs = [self.need(ask, name) for name in devices]
        if len(devices) < ask.count:  # some devices are not known
            needs += [self.least_need(ask)] * (ask.count - len(devices))
        requests, limits = [each[0] for each in needs], [each[1] for each in needs]
        amounts = [
            self._capacity(name) if ask.whole else request
            for name, request in zip(devices, requests, strict=False)
        ]
        total, most = (reduce(GpuAmount.plus, each, NO_GPU_AMOUNT) for each in (requests, limits))
        return Taken(devices, tuple(amounts), total, most)

    def kinds(self, taken: Taken | None) -> tuple[GpuAmount, ...]:
        """The capacity of each device of a pod: on devices of the same, pods count the same."""
        return () if taken is None else self._sizes_of(taken.devices)

    def _sizes_of(self, devices: tuple[str, ...]) -> tuple[GpuAmount, ...]:
        return tuple(self._capacity(name) for name in devices)

    def need(self, ask: GpuAsk, name: str) -> tuple[GpuAmount, GpuAmount]:
        """Request and limit of such a pod on a device."""
        return _need(ask, self._capacity(name))

    def _capacity(self, name: str) -> GpuAmount:
        """The capacity of a device, also after it was removed."""
        device = self.known.get(name)
        return device.capacity if device is not None else self._removed.get(name, NO_GPU_AMOUNT)

    def sliced(self, ask: GpuAsk, node: str) -> Taken:
        """What slices of a node's devices count in a GPU quota; the node chooses the devices."""
        capacity = next((device.capacity for device in self.on(node)), NO_GPU_AMOUNT)
        every = range(ask.count)
        total, most = (
            reduce(GpuAmount.plus, [each for _ in every], NO_GPU_AMOUNT)
            for each in _need(ask, capacity)
        )
        return Taken((), (), total, most)

    def free(self, name: str) -> GpuAmount:
        """What is free of a device."""
        return self._used[name].free

    def free_soon(self, name: str) -> GpuAmount:
        """What is free of a device once terminating pods have ended."""
        return self._used[name].free_soon

    def pods(self, name: str) -> int:
        """How many pods are booked on a device."""
        return self._used[name].pods

    def pods_staying(self, name: str) -> int:
        """How many pods are booked on a device and do not terminate."""
        return self._used[name].pods - self._used[name].pods_leaving

    def place(self, name: str) -> tuple[int, int] | None:
        """The place of a device in the columns: among its node's, and the slot of the node."""
        self.cards  # noqa: B018
        return self._used[name].place

    def numbers(self, names: tuple[str, ...]) -> list[int]:
        """The numbers of devices, as columns have them (`Cards.by_place`)."""
        return [self._used[name].number for name in names]

    @property
    def highest_number(self) -> int:
        """No device has a higher number."""
        return len(self._used) + len(self._unused)

    def on(self, node: str) -> list[Device]:
        """The devices of a node, by index."""
        found = self._ordered.get(node)
        if found is None:
            devices = (self.known[name] for name in self._on.get(node, ()))
            found = sorted(devices, key=lambda device: (device.index, device.name))
            self._ordered[node] = found
        return found

    def hold(self, ask: GpuAsk, slots: Slots = None) -> Mask:
        """Has each of these nodes enough devices left for such a pod?"""
        return enough(self.cards.fit(ask, slots), ask.count)

    def points(self, ask: GpuAsk, slots: Slots = None) -> Column:
        """The score of each of these nodes for such a pod, where it fits."""
        return self.cards.node_points(ask, slots)

    def choose(
        self, ask: GpuAsk, node: str, card_points: Column | None = None
    ) -> tuple[str, ...] | None:
        """The best devices of a node for a pod; None if too few fit.

        `card_points` says how good each is; by their load, unless it is given.
        """
        if node not in self._nodes.known:
            return None
        slot = self._nodes.slots[node]
        fits = self.cards.fit(ask, slot)
        names = self._cards.names(slot)
        if card_points is None:
            card_points = self._cards.points(slot)
        points = np.where(fits, card_points, -1)
        if ask.count == 1:
            best = int(points.argmax())
            return (names[best],) if points.item(best) >= 0 else None
        number = np.count_nonzero(fits)
        if number < ask.count:
            return None
        in_order = np.argsort(-points, kind="stable")[:number].tolist()
        return tuple(self._near([names[place] for place in in_order], ask.count))

    def _near(self, names: list[str], count: int) -> list[str]:
        """So many of these devices, which are in order: of one domain, or of as few as can be.

        Of domains that have enough, the one with the fewest of them, so that larger ones are kept.
        """
        domains: dict[str, list[str]] = {}
        for name in names:
            domains.setdefault(self.known[name].domain, []).append(name)
        if domains.keys() <= {""}:
            return names[:count]
        apart = [[name] for name in domains.pop("", [])]
        chosen: list[str] = []
        groups = [*domains.values(), *apart]
        while len(chosen) < count:
            wants = count - len(chosen)
            enough = [each for each in groups if len(each) >= wants]
            best = min(enough, key=len) if enough else max(groups, key=len)
            groups.remove(best)
            chosen += best[:wants]
        return chosen

    def least_need(self, ask: GpuAsk) -> tuple[GpuAmount, GpuAmount]:
        """The least that such a pod counts, request and limit, on any device it may get."""
        if not ask.of_parts:
            return ask.request, ask.limit
        needs = [_need(ask, size) for size in self.cards.sizes(ask)]
        if not needs:
            return ask.request, ask.limit
        requests, limits = [each[0] for each in needs], [each[1] for each in needs]
        return _smallest(requests), _smallest(limits)

    def idle_first(self, ask: GpuAsk, node: str) -> tuple[str, ...]:
        """Devices of a node that would do for such a pod if they were idle, the idlest first."""
        slot = self._nodes.slots[node]
        serves = self.cards.serve(ask, slot)
        load, names = self._cards.load(slot), self._cards.names(slot)
        best = np.argsort(np.where(serves, load, MOST_POINTS + 1), kind="stable").tolist()
        return tuple(names[place] for place in best if place < len(names))[: ask.count]

    def could_serve_on(self, ask: GpuAsk) -> Mask:
        """Would each node have enough devices for such a pod if all were idle?"""
        return enough(self.cards.serve(ask), ask.count)

    def could_serve(self, ask: GpuAsk) -> bool:
        """Would any node have enough devices for such a pod if all were idle?"""
        return bool(self.could_serve_on(ask).any())

    def explain(self, ask: GpuAsk) -> list[FilterStep]:
        """How many devices pass each filter, in order: explains why none fits."""
        left = self.cards.there
        steps = [FilterStep("there are", len(self.known))]
        for name, passes in (("ready", left), *self._filters(ask)):
            left = left & passes
            steps.append(FilterStep(name, int(np.count_nonzero(left))))
        if ask.count > 1:
            on_node = left.sum(axis=0)
            number = int(on_node[on_node >= ask.count].sum())
            steps.append(FilterStep(f"{ask.count} on one node", number))
        return steps

    def _filters(self, ask: GpuAsk) -> Iterator[tuple[str, Mask]]:
        """The filters, each with the name that messages show, and the cards that pass it."""
        yield from self._cards.filters(ask)
        fits = self._cards.fit(ask)
        if ask.whole:
            yield "idle", fits
        yield "enough left", fits


def enough(fits: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """The nodes of which so many cards fit: of the columns, those with so many places."""
    if count == 1:
        any_fits: NDArray[np.bool_] = np.logical_or.reduce(fits)
        return any_fits
    number = np.add.reduce(fits.view(np.uint8), dtype=np.uint8 if len(fits) < 256 else np.int64)
    so_many: NDArray[np.bool_] = number >= count
    return so_many


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


def _need(ask: GpuAsk, capacity: GpuAmount) -> tuple[GpuAmount, GpuAmount]:
    """Request and limit of such a pod on a device of this capacity."""
    request = resolve_ask(ask.request, ask.request_part, capacity)
    return request, resolve_ask(ask.limit, ask.limit_part, capacity)


def _same(asked: str, has: str) -> bool:
    """Are the names of two models or vendors equal, but for case?"""
    return asked.casefold() == has.casefold()


def _smallest(amounts: list[GpuAmount]) -> GpuAmount:
    """The least compute and the least memory."""
    return GpuAmount(min(each.tflops for each in amounts), min(each.vram for each in amounts))
