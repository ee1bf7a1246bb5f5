"""Whatever happens, in whatever order: nothing of a GPU leaks, and nothing is handed out twice.

Pods come, are told to start, start or fail to, are resized and end; devices, nodes and quotas come
and go. After every step the books and the columns are what a fold over the pods says, no
device that we handed out is over-committed, no quota was passed by a decision of ours, and a fresh
engine that is told how things are agrees.
"""

from collections import Counter
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from aliquot.engine.books.ledger import Stage
from aliquot.engine.cycle import Engine
from aliquot.engine.gpus.cards import MOST_POINTS
from aliquot.engine.gpus.devices import matches, resolve_ask
from aliquot.engine.gpus.quotas import Usage
from aliquot.engine.model.decisions import Bind, binds_and_evictions
from aliquot.engine.model.events import (
    BindFailed,
    DeviceGone,
    DeviceSet,
    GpuQuotaGone,
    GpuQuotaSet,
    NodeGone,
    NodeSet,
    PodGone,
    PodSet,
)
from aliquot.engine.model.gpu import (
    NO_GPU_AMOUNT,
    WHOLE_GPU,
    Device,
    GpuAmount,
    GpuAsk,
    GpuBound,
    GpuQuota,
    Taken,
)
from aliquot.engine.model.knobs import DevicePlacement, GpuKnobs, Knobs
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod, Shape
from tests.build.engines import books
from tests.campaign import examples

NODES = ("n-0", "n-1")
CARDS = {f"{node}-g{i}": node for node in NODES for i in range(3)}
TEAMS = ("a", "b")

amounts = st.builds(GpuAmount, st.integers(0, 12), st.integers(0, 12))
capacities = st.builds(GpuAmount, st.integers(5, 20), st.integers(5, 20))
numbers = st.none() | st.integers(0, 5)
parts = st.builds(
    lambda tflops, vram: GpuAmount(tflops * WHOLE_GPU // 4, vram * WHOLE_GPU // 4),
    st.integers(0, 4),
    st.integers(0, 2),
)
asks = st.one_of(
    st.builds(lambda each, count: GpuAsk(each, each, count=count), amounts, st.integers(1, 3)),
    st.builds(lambda part: GpuAsk(request_part=part, limit_part=part), parts),
    st.just(GpuAsk(request_part=GpuAmount(WHOLE_GPU, WHOLE_GPU), whole=True)),
)
models = st.sampled_from(("", "A100", "a100", "H100"))
ASKED = (
    GpuAsk(GpuAmount(3, 5)),
    GpuAsk(GpuAmount(0, 0), count=3),
    GpuAsk(GpuAmount(6, 0), count=2),
    GpuAsk(GpuAmount(4, 4), model="A100"),
    GpuAsk(request_part=GpuAmount(WHOLE_GPU // 2, WHOLE_GPU // 3), indices=(0, 2)),
    GpuAsk(request_part=GpuAmount(WHOLE_GPU, WHOLE_GPU), whole=True, model="h100"),
    GpuAsk(whole=True, count=2),
)
"""Requests of which each is judged card by card, to be compared with what the columns say."""
bounds = st.builds(GpuBound, st.none() | st.integers(0, 40), st.none() | st.integers(0, 40))


class Gpus(RuleBasedStateMachine):
    """One engine, and what the cluster knows."""

    placement: DevicePlacement = "NodeCompactGPULowLoad"

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine("capacity", Knobs(gpu=GpuKnobs(self.placement)))
        self.pods: dict[str, Pod] = {}
        self.told: dict[str, Bind] = {}
        self.devices: dict[str, Device] = {}
        self.quotas: dict[str, GpuQuota] = {}
        self.nodes: set[str] = set()
        self.made = 0
        self.had: dict[str, GpuAmount] = {}
        """What devices have, or had when they were last there."""

    def apply(self, *events: object) -> None:
        for event in events:
            self.engine.apply(event)  # type: ignore[arg-type]

    @initialize()
    def begin(self) -> None:
        for name in NODES:
            self.node_comes(name)
        for name in CARDS:
            self.device_comes(name, GpuAmount(20, 20))

    @rule(name=st.sampled_from(NODES))
    def node_comes(self, name: str) -> None:
        self.nodes.add(name)
        self.apply(NodeSet(Node(name, (("cpu", 10_000), ("pods", 20)))))

    @rule(name=st.sampled_from(NODES))
    def node_goes(self, name: str) -> None:
        self.nodes.discard(name)
        self.apply(NodeGone(name))

    @rule(
        name=st.sampled_from(sorted(CARDS)),
        capacity=capacities,
        elsewhere=amounts,
        model=models,
        ready=st.booleans(),
    )
    def device_comes(
        self,
        name: str,
        capacity: GpuAmount,
        elsewhere: GpuAmount = NO_GPU_AMOUNT,
        model: str = "",
        ready: bool = True,
    ) -> None:
        self.had[name] = capacity
        facts = (name, CARDS[name], capacity, elsewhere, model)
        self.devices[name] = Device(*facts, index=int(name[-1]), ready=ready)
        self.apply(DeviceSet(self.devices[name]))

    @rule(name=st.sampled_from(sorted(CARDS)), elsewhere=amounts)
    def device_is_used_elsewhere(self, name: str, elsewhere: GpuAmount) -> None:
        if name in self.devices:
            self.devices[name] = replace(self.devices[name], used_elsewhere=elsewhere)
            self.apply(DeviceSet(self.devices[name]))

    @rule(name=st.sampled_from(sorted(CARDS)))
    def device_goes(self, name: str) -> None:
        self.devices.pop(name, None)
        self.apply(DeviceGone(name))

    @rule(
        team=st.sampled_from(TEAMS),
        requests=bounds,
        limits=bounds,
        workers=st.none() | st.integers(0, 5),
    )
    def quota_comes(
        self, team: str, requests: GpuBound, limits: GpuBound, workers: int | None
    ) -> None:
        self.quotas[team] = GpuQuota(team, "q", requests, limits, workers)
        self.apply(GpuQuotaSet(self.quotas[team]))

    @rule(team=st.sampled_from(TEAMS))
    def quota_goes(self, team: str) -> None:
        self.quotas.pop(team, None)
        self.apply(GpuQuotaGone(team))

    @rule(team=st.sampled_from(TEAMS), ask=asks, priority=st.integers(0, 1))
    def pod_comes(self, team: str, ask: GpuAsk, priority: int) -> None:
        self.made += 1
        name = f"p-{self.made}"
        shape = Shape((("cpu", 100), ("pods", 1)), gpu=ask)
        self.pods[name] = Pod(name, team, name, shape, priority=priority, created=self.made)
        self.apply(PodSet(self.pods[name]))

    @rule(data=st.data())
    def pod_goes(self, data: st.DataObject) -> None:
        if self.pods:
            name = data.draw(st.sampled_from(sorted(self.pods)))
            del self.pods[name]
            self.told.pop(name, None)
            self.apply(PodGone(name), PodGone(name))

    @rule(data=st.data(), ask=asks)
    def pod_is_resized(self, data: st.DataObject, ask: GpuAsk) -> None:
        running = sorted(name for name, pod in self.pods.items() if pod.node is not None)
        if running:
            name = data.draw(st.sampled_from(running))
            shape = replace(self.pods[name].shape, gpu=ask)
            self.pods[name] = replace(self.pods[name], shape=shape)
            self.apply(PodSet(self.pods[name]))

    @rule(data=st.data(), fails=st.booleans())
    def bind_is_carried_out(self, data: st.DataObject, fails: bool) -> None:
        if self.told:
            bind = self.told.pop(data.draw(st.sampled_from(sorted(self.told))))
            name = bind.pod.uid
            if fails or bind.node not in self.nodes:
                self.apply(BindFailed(name), BindFailed(name))
                return
            pod = replace(self.pods[name], node=bind.node, devices=bind.devices)
            self.pods[name] = pod
            self.apply(PodSet(pod), PodSet(pod))

    @rule()
    def decides(self) -> None:
        before = books(self.engine).gpu_quotas.used.copy()
        for decision in binds_and_evictions(self.engine.cycle()):
            if isinstance(decision, Bind):
                self.told[decision.pod.uid] = decision
                self.check_bind(decision)
            else:
                self.pods.pop(decision.pod.uid)
                self.apply(PodGone(decision.pod.uid))
        for team, used in books(self.engine).gpu_quotas.used.items():
            quota = self.quotas.get(team)
            if quota is not None and used != before.get(team, Usage()):
                self.check_quota(quota, used, before.get(team, Usage()))

    def check_bind(self, bind: Bind) -> None:
        """As many devices as asked for, of its node, none of them over-committed."""
        ask = bind.pod.shape.gpu
        assert ask is not None
        assert len(set(bind.devices)) == ask.count
        for name in bind.devices:
            assert self.devices[name].node == bind.node
            left = books(self.engine).devices.free(name)
            assert left.tflops >= 0
            assert left.vram >= 0

    def check_quota(self, quota: GpuQuota, used: Usage, before: Usage) -> None:
        """What has grown by our decision is within its bound."""
        for most, has, had in zip(
            (*quota.requests, *quota.limits, quota.workers),
            (*used.requests, *used.limits, used.workers),
            (*before.requests, *before.limits, before.workers),
            strict=True,
        ):
            assert most is None or has <= max(most, had)

    @invariant()
    def books_are_a_fold(self) -> None:
        state = books(self.engine)
        used = {name: device.used_elsewhere for name, device in self.devices.items()}
        pods: Counter[str] = Counter()
        teams: dict[str, Usage] = {}
        for entry in state.ledger.entries.values():
            taken = entry.booking.gpu
            if taken is None or entry.stage < Stage.HELD:
                continue
            for name, amount in zip(taken.devices, taken.amounts, strict=True):
                used[name] = used.get(name, NO_GPU_AMOUNT).plus(amount)
                pods[name] += 1
            before = teams.get(entry.booking.namespace, Usage())
            teams[entry.booking.namespace] = before.plus(taken, +1)
        for name, device in self.devices.items():
            expected = device.capacity.plus(used.get(name, NO_GPU_AMOUNT), -1)
            assert state.devices.free(name) == expected
            assert state.devices.pods(name) == pods[name]
        assert state.gpu_quotas.used == teams
        for node in self.nodes:
            self.check_columns(node, used, pods)

    def check_columns(self, node: str, used: dict[str, GpuAmount], pods: Counter[str]) -> None:
        """What the columns say of a node is what its cards say one by one."""
        state = books(self.engine)
        devices, cards, slot = state.devices, state.devices.cards, state.nodes.slots[node]
        here = [each for each in self.devices.values() if each.node == node and each.ready]
        here.sort(key=lambda device: (device.index, device.name))
        assert cards.names(slot) == tuple(device.name for device in here)
        free = [device.capacity.plus(used[device.name], -1) for device in here]
        idle = [not pods[d.name] and left == d.capacity for d, left in zip(here, free, strict=True)]
        load = [
            sum(
                tenths * min(taken * 100 // has, 100)
                for tenths, taken, has in zip((3, 7), used[each.name], each.capacity, strict=True)
            )
            for each in here
        ]
        part = [
            max(min(n * WHOLE_GPU // has for n, has in zip(left, d.capacity, strict=True)), 0)
            for d, left in zip(here, free, strict=True)
        ]
        none = [0] * (len(cards.load(slot)) - len(here))
        assert cards.load(slot).tolist() == load + none
        assert cards.idle(slot).tolist() == idle + none
        assert cards.there[:, slot].tolist() == [1] * len(here) + none
        if self.placement == "leastFragmentation":
            broken = [0 if is_idle else left for is_idle, left in zip(idle, part, strict=True)]
            assert cards.broken(slot).tolist() == broken + none
            assert cards.broken()[:, slot].tolist() == broken + none
        every = np.arange(len(state.nodes.slots))
        for ask in ASKED:
            kind = [matches(ask, device) for device in here]
            needs = [resolve_ask(ask.request, ask.request_part, d.capacity) for d in here]
            fits = [
                alike and (rests if ask.whole else min(left[0] - n[0], left[1] - n[1]) >= 0)
                for alike, rests, left, n in zip(kind, idle, free, needs, strict=True)
            ]
            assert cards.fit(ask, slot).tolist() == fits + none
            assert devices.hold(ask)[slot] == (sum(fits) >= ask.count)
            assert (devices.hold(ask) == devices.hold(ask, every)).all()
            loads = [each for each, alike in zip(load, kind, strict=True) if alike]
            mean = (MOST_POINTS * len(loads) - sum(loads)) // max(len(loads), 1)
            if state.knobs.gpu.placement != "LowLoadFirst":
                mean = sum(loads) // max(len(loads), 1)
            if loads:
                assert devices.points(ask)[slot] == mean
                assert (devices.points(ask) == devices.points(ask, every)).all()
            serve = [
                alike and (ask.whole or max(n[0] - d.capacity[0], n[1] - d.capacity[1]) <= 0)
                for alike, d, n in zip(kind, here, needs, strict=True)
            ]
            assert devices.could_serve_on(ask)[slot] == (sum(serve) >= ask.count)

    @invariant()
    def what_pods_have_is_what_they_ask_for(self) -> None:
        for name, pod in self.pods.items():
            entry, ask = books(self.engine).ledger.entries[name], pod.shape.gpu
            if entry.stage is not Stage.COMMITTED or ask is None:
                continue
            taken = entry.booking.gpu
            assert isinstance(taken, Taken)
            assert taken.devices == pod.devices
            for device, amount in zip(taken.devices, taken.amounts, strict=True):
                capacity = self.had.get(device, NO_GPU_AMOUNT)
                wants = resolve_ask(ask.request, ask.request_part, capacity)
                assert amount == (capacity if ask.whole else wants)

    @invariant()
    def a_fresh_engine_agrees(self) -> None:
        fresh = Engine("capacity")
        for name in sorted(self.nodes):
            fresh.apply(NodeSet(Node(name, (("cpu", 10_000), ("pods", 20)))))
        for device in self.devices.values():
            fresh.apply(DeviceSet(device))
        for quota in self.quotas.values():
            fresh.apply(GpuQuotaSet(quota))
        for pod in self.pods.values():
            fresh.apply(PodSet(pod))
        live = [(each.requests, each.limits, each.workers) for each in self.engine.gpu_quotas()]
        told = [(each.requests, each.limits, each.workers) for each in fresh.gpu_quotas()]
        assert live == told


Gpus.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestGpus = Gpus.TestCase


class SpreadGpus(Gpus):
    """The same with cards that are little loaded first."""

    placement: DevicePlacement = "LowLoadFirst"


SpreadGpus.TestCase.settings = settings(
    max_examples=examples(20), stateful_step_count=40, deadline=None
)
TestSpreadGpus = SpreadGpus.TestCase
