"""Devices in the victim search: which GPUs of a node a pod could get, and what is short of them.

What a pod needs of a device, or its namespace of its GPU quota, is an amount that must come free,
like room on a node and right in a quota. A victim frees what it has of its devices.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.ledger import Entry
from aliquot.engine.gpus.devices import enough, matches, resolve_ask
from aliquot.engine.gpus.quotas import DeviceRequest, Exceeded, Usage
from aliquot.engine.model.gpu import NO_GPU_AMOUNT, Device, GpuAmount, GpuAsk
from aliquot.engine.placement.ask import Ask
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_PODS = 2
"""The third amount of a device, beside compute and memory: the pods on it. A pod that needs a whole
device needs all of them gone."""
_MOST_OPTIONS = 40
"""How many sets of devices of one node are searched, each at the cost of a node: all sets of 2 of 9
devices, or of 3 of 7; of more, the first, which lack least."""

Needs = dict[object, int]
Option = tuple[str, ...]
"""Devices of a node that a pod could get; none for a pod that asks for none."""


class DeviceRoom:
    """What is left of devices once the leaving pods are gone, and what a claim takes of it."""

    def __init__(self, state: State, claim: Claim) -> None:
        self._state = state
        self._planned: dict[str, GpuAmount] = {}
        """What earlier pods of the claim take of a device, less what their victims free."""
        self._exceeded = _exceeded(state, claim)
        self.rights: Needs = {
            ("gpus", i): each.used + each.requested - each.limit
            for i, each in self._exceeded.items()
        }
        """What must come free in the GPU quota of the claim's namespace."""
        self._namespace = claim.pods[0].namespace

    def options(self, ask: Ask, node: str, evicted: Iterable[str]) -> list[Option]:
        """The sets of devices that a pod could get on a node if these pods were evicted."""
        gpu = ask.gpu
        if gpu is None:
            return [()]
        freed: dict[str, GpuAmount] = {}
        for uid in evicted:
            for name, amount in _held_on_devices(self._state.ledger.entries[uid]):
                freed[name] = freed.get(name, NO_GPU_AMOUNT).plus(amount)
        fitting = [
            device
            for device in self._state.devices.on(node)
            if device.ready
            and matches(gpu, device)
            and _fits(_wants(gpu, device), self._free_after(device.name, freed))
        ]
        if len(fitting) < gpu.count:
            return []
        if gpu.count == 1:
            return [(device.name,) for device in fitting]
        names = sorted(
            (device.name for device in fitting), key=lambda name: self._shortage(gpu, name)
        )
        return list(islice(combinations(names, gpu.count), _MOST_OPTIONS))

    def nodes(
        self, ask: Ask, evicted: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """The nodes that would do if these bound pods were evicted; what each is short of now.

        The latter as `_shortage` of the cards that are short of least.
        """
        assert ask.gpu is not None
        devices, gpu = self._state.devices, ask.gpu
        cards = devices.cards
        left, wants = cards.free_soon(), cards.needs(gpu)
        for name, amount in self._planned.items():
            place = devices.place(name)
            if place is not None:
                left[:, *place] -= amount
        freed = self._state.bound_pods.cards.freed(evicted, devices.highest_number + 1)
        fits = cards.of_kind(gpu) & (wants <= left + cards.by_place(freed)).all(axis=0)
        short = (np.maximum(wants - left, 0) / np.maximum(wants, 1)).sum(axis=0)
        least = np.sort(np.where(fits, short, np.inf), axis=0)[: gpu.count].sum(axis=0)
        return enough(fits, gpu.count), least

    def needs(self, ask: Ask, option: Option, with_rights: bool) -> Needs:
        """What must come free of these devices, and in the GPU quota."""
        needs: Needs = dict(self.rights) if with_rights else {}
        for name in option:
            assert ask.gpu is not None
            short = self._short(ask.gpu, self._state.devices.known[name])
            needs.update({("device", name, i): n for i, n in enumerate(short) if n > 0})
            remaining = self._state.devices.pods_staying(name)
            if ask.gpu.whole and remaining > 0:
                needs["device", name, _PODS] = remaining
        return needs

    def frees(self, entry: Entry) -> Iterator[tuple[object, int]]:
        """What the eviction of a pod frees of devices, and of the claim's GPU quota."""
        taken = entry.booking.gpu
        if taken is None:
            return
        for name, amount in _held_on_devices(entry):
            yield from ((("device", name, i), n) for i, n in enumerate((*amount, 1)))
        if self.rights and entry.booking.namespace == self._namespace:
            figures = Usage().plus(taken, +1).figures
            yield from ((("gpus", i), n) for i, n in enumerate(figures))

    def freed_bound(self, entry: Entry) -> tuple[Exceeded, int] | None:
        """The first exceeded bound of the GPU quota in which this pod frees something: how much."""
        freed = dict(self.frees(entry))
        found = ((each, freed.get(("gpus", i), 0)) for i, each in self._exceeded.items())
        return next(((each, amount) for each, amount in found if amount), None)

    def commit(self, ask: Ask, option: Option, evicted: Iterable[str]) -> None:
        """Give these devices to one pod of the claim, with these pods evicted for it."""
        for name in option:
            assert ask.gpu is not None
            wants = _wants(ask.gpu, self._state.devices.known[name])
            self._planned[name] = self._planned.get(name, NO_GPU_AMOUNT).plus(wants)
        for uid in evicted:
            for name, amount in _held_on_devices(self._state.ledger.entries[uid]):
                self._planned[name] = self._planned.get(name, NO_GPU_AMOUNT).plus(amount, -1)

    def is_feasible(
        self, asks: Sequence[Ask], options: Sequence[Option], evicted: Iterable[str]
    ) -> bool:
        """With these pods evicted, is there enough on the devices, and in the GPU quota?"""
        freed: Needs = {}
        for uid in evicted:
            for key, amount in self.frees(self._state.ledger.entries[uid]):
                freed[key] = freed.get(key, 0) + amount
        needs: Needs = dict(self.rights)
        for ask, option in zip(asks, options, strict=True):
            for name in option:
                assert ask.gpu is not None
                left, wants = self._left(name), _wants(ask.gpu, self._state.devices.known[name])
                for i in (0, 1):
                    key = ("device", name, i)
                    needs[key] = needs.get(key, -left[i]) + wants[i]
                remaining = self._state.devices.pods_staying(name)
                if ask.gpu.whole:
                    needs["device", name, _PODS] = remaining
        return all(freed.get(key, 0) >= amount for key, amount in needs.items())

    def _shortage(self, gpu: GpuAsk, name: str) -> float:
        """What is short of a device, as a fraction of what is wanted of it."""
        device = self._state.devices.known[name]
        wants, short = _wants(gpu, device), self._short(gpu, device)
        return sum(n / max(amount, 1) for n, amount in zip(short, wants, strict=True))

    def _short(self, gpu: GpuAsk, device: Device) -> GpuAmount:
        left, wants = self._free(device.name), _wants(gpu, device)
        return GpuAmount(max(wants.tflops - left.tflops, 0), max(wants.vram - left.vram, 0))

    def _free_after(self, name: str, freed: dict[str, GpuAmount]) -> GpuAmount:
        return self._free(name).plus(freed.get(name, NO_GPU_AMOUNT))

    def _free(self, name: str) -> GpuAmount:
        return self._left(name).plus(self._planned.get(name, NO_GPU_AMOUNT), -1)

    def _left(self, name: str) -> GpuAmount:
        return self._state.devices.free_soon(name)


def _exceeded(state: State, claim: Claim) -> dict[int, Exceeded]:
    """The bounds of its namespace's GPU quota that the claim exceeds once leaving pods are gone."""
    namespace = claim.pods[0].namespace
    quota = state.gpu_quotas.known.get(namespace)
    asks = [pod.shape.gpu for pod in claim.pods if pod.shape.gpu is not None]
    if quota is None or not asks:
        return {}
    leaving = state.gpus_leaving.used.get(namespace, Usage()).figures
    wishes = [DeviceRequest(*state.devices.least_need(ask), ask.count) for ask in asks]
    return {
        i: each._replace(used=each.used - leaving[i])
        for i, each in enumerate(state.gpu_quotas.totals(quota, wishes, len(wishes)))
        if each is not None and each.used - leaving[i] + each.requested > each.limit
    }


def _wants(gpu: GpuAsk, device: Device) -> GpuAmount:
    """What a pod takes of a device: all of it, or what it asks for."""
    if gpu.whole:
        return device.capacity
    return resolve_ask(gpu.request, gpu.request_part, device.capacity)


def _held_on_devices(entry: Entry) -> Iterator[tuple[str, GpuAmount]]:
    taken = entry.booking.gpu
    if taken is not None:
        yield from zip(taken.devices, taken.amounts, strict=True)


def _fits(wants: GpuAmount, has: GpuAmount) -> bool:
    return wants.tflops <= has.tflops and wants.vram <= has.vram
