"""Room on devices, for the victim search: which cards a pod could get, and what is short of them.

Like room on nodes and right in quotas, what a pod needs of a device, or its namespace of its quota
on GPUs, is an amount that must come free; whoever goes gives back what they have of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice

from aliquot.engine.books.ledger import Entry
from aliquot.engine.gpus.devices import matches, resolve_ask
from aliquot.engine.gpus.quotas import Usage, Wish
from aliquot.engine.model.gpu import NO_GPU_AMOUNT, Device, GpuAmount, GpuAsk
from aliquot.engine.placement.best_node import Ask
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_PODS = 2
"""Beside compute and memory: who needs a whole device needs all others to leave it."""
_MOST_OPTIONS = 40

Needs = dict[object, int]
Option = tuple[str, ...]
"""Devices of a node that a pod could get; none for a pod that asks for none."""


class DeviceRoom:
    """What is left of devices once those who are leaving have left, and what a claim takes."""

    def __init__(self, state: State, claim: Claim) -> None:
        self._state = state
        self._planned: dict[str, GpuAmount] = {}
        """What earlier pods of the claim take of a device, less what they free."""
        self.rights = _rights(state, claim)
        """What must come free of what the claim's namespace may use of GPUs."""
        self._namespace = claim.pods[0].namespace

    def options(self, ask: Ask, node: str, going: Iterable[str]) -> list[Option]:
        """Which devices of a node would do, if all of these went."""
        gpu = ask.gpu
        if gpu is None:
            return [()]
        freed: dict[str, GpuAmount] = {}
        for uid in going:
            for name, amount in _held_on_devices(self._state.ledger.entries[uid]):
                freed[name] = freed.get(name, NO_GPU_AMOUNT).plus(amount)
        able = [
            device
            for device in self._state.devices.on(node)
            if device.ready
            and matches(gpu, device)
            and _fits(_wants(gpu, device), self._free_after(device.name, freed))
        ]
        if len(able) < gpu.count:
            return []
        if gpu.count == 1:
            return [(device.name,) for device in able]
        names = sorted((device.name for device in able), key=lambda name: self._shortage(gpu, name))
        return list(islice(combinations(names, gpu.count), _MOST_OPTIONS))

    def nodes(self, ask: Ask, going: Iterable[str]) -> dict[str, float]:
        """The nodes that would do, if all of these went, and how much each is short of now."""
        assert ask.gpu is not None
        by_node: dict[str, list[str]] = {}
        for uid in going:
            node = self._state.ledger.entries[uid].booking.node
            by_node.setdefault(str(node), []).append(uid)
        found = {}
        for node in {device.node for device in self._state.devices.known.values()}:
            options = self.options(ask, node, by_node.get(node, ()))
            short = [sum(self._shortage(ask.gpu, name) for name in option) for option in options]
            if short:
                found[node] = min(short)
        return found

    def needs(self, ask: Ask, option: Option, with_rights: bool) -> Needs:
        """What must come free of these devices, and of the quota."""
        needs: Needs = dict(self.rights) if with_rights else {}
        for name in option:
            assert ask.gpu is not None
            short = self._short(ask.gpu, self._state.devices.known[name])
            needs.update({("device", name, i): n for i, n in enumerate(short) if n > 0})
            stay = self._state.devices.pods(name) - self._state.gpus_leaving.pods[name]
            if ask.gpu.whole and stay > 0:
                needs["device", name, _PODS] = stay
        return needs

    def frees(self, entry: Entry) -> Iterator[tuple[object, int]]:
        """What somebody gives back by going."""
        taken = entry.booking.gpu
        if taken is None:
            return
        for name, amount in _held_on_devices(entry):
            yield from ((("device", name, i), n) for i, n in enumerate((*amount, 1)))
        if self.rights and entry.booking.namespace == self._namespace:
            figures = (*taken.request, *taken.limit, 1)
            yield from ((("gpus", i), n) for i, n in enumerate(figures))

    def note(self, ask: Ask, option: Option, going: Iterable[str]) -> None:
        """These devices are settled for one pod of the claim; these pods go."""
        for name in option:
            assert ask.gpu is not None
            wants = _wants(ask.gpu, self._state.devices.known[name])
            self._planned[name] = self._planned.get(name, NO_GPU_AMOUNT).plus(wants)
        for uid in going:
            for name, amount in _held_on_devices(self._state.ledger.entries[uid]):
                self._planned[name] = self._planned.get(name, NO_GPU_AMOUNT).plus(amount, -1)

    def is_feasible(
        self, asks: Sequence[Ask], options: Sequence[Option], going: Iterable[str]
    ) -> bool:
        """Once these have gone, is there enough on the devices, and in the quota?"""
        helped: Needs = {}
        for uid in going:
            for key, amount in self.frees(self._state.ledger.entries[uid]):
                helped[key] = helped.get(key, 0) + amount
        needs: Needs = dict(self.rights)
        for ask, option in zip(asks, options, strict=True):
            for name in option:
                assert ask.gpu is not None
                left, wants = self._left(name), _wants(ask.gpu, self._state.devices.known[name])
                for i in (0, 1):
                    key = ("device", name, i)
                    needs[key] = needs.get(key, -left[i]) + wants[i]
                stay = self._state.devices.pods(name) - self._state.gpus_leaving.pods[name]
                if ask.gpu.whole:
                    needs["device", name, _PODS] = stay
        return all(helped.get(key, 0) >= amount for key, amount in needs.items())

    def _shortage(self, gpu: GpuAsk, name: str) -> float:
        """What is short of a device, as parts of what is wanted of it."""
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
        leaving = self._state.gpus_leaving.devices.get(name, NO_GPU_AMOUNT)
        return self._state.devices.free(name).plus(leaving)


def _rights(state: State, claim: Claim) -> Needs:
    """What the claim's namespace would use beyond what it may, once those who leave have left."""
    namespace = claim.pods[0].namespace
    quota = state.gpu_quotas.known.get(namespace)
    asks = [pod.shape.gpu for pod in claim.pods if pod.shape.gpu is not None]
    if quota is None or not asks:
        return {}
    used, leaving = (
        books.get(namespace, Usage()) for books in (state.gpu_quotas.used, state.gpus_leaving.used)
    )
    wishes = [Wish(*state.devices.least(ask), ask.count) for ask in asks]
    bounds = (*quota.requests, *quota.limits, quota.workers)
    has = (*used.requests, *used.limits, used.workers)
    goes = (*leaving.requests, *leaving.limits, leaving.workers)
    wants = (
        *(sum(wish.request[i] * wish.devices for wish in wishes) for i in (0, 1)),
        *(sum(wish.limit[i] * wish.devices for wish in wishes) for i in (0, 1)),
        len(wishes),
    )
    return {
        ("gpus", i): has[i] - goes[i] + wants[i] - most
        for i, most in enumerate(bounds)
        if most is not None and has[i] - goes[i] + wants[i] > most
    }


def _wants(gpu: GpuAsk, device: Device) -> GpuAmount:
    """What it takes of a device: all of it, or what it asks for."""
    if gpu.whole:
        return device.capacity
    return resolve_ask(gpu.request, gpu.request_part, device.capacity)


def _held_on_devices(entry: Entry) -> Iterator[tuple[str, GpuAmount]]:
    taken = entry.booking.gpu
    if taken is not None:
        yield from zip(taken.devices, taken.amounts, strict=True)


def _fits(wants: GpuAmount, has: GpuAmount) -> bool:
    return wants.tflops <= has.tflops and wants.vram <= has.vram
