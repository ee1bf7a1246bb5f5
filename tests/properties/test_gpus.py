"""Whatever happens, in whatever order: nothing of a GPU leaks, and nothing is handed out twice.

Pods come, are told to start, start or fail to, are resized and end; devices, nodes and quotas come
and go. After every step the books are what a fold over the pods says, no device that we handed out
is over-committed, no quota was passed by a decision of ours, and a fresh engine that is told how
things are agrees.
"""

from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from aliquot.engine.books.ledger import Stage
from aliquot.engine.cycle import Engine
from aliquot.engine.gpus.devices import resolve_ask
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
bounds = st.builds(GpuBound, st.none() | st.integers(0, 40), st.none() | st.integers(0, 40))


class Gpus(RuleBasedStateMachine):
    """One engine, and what the cluster knows."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine("capacity")
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
        capacity=st.builds(GpuAmount, st.integers(5, 20), st.integers(5, 20)),
    )
    def device_comes(self, name: str, capacity: GpuAmount) -> None:
        self.had[name] = capacity
        self.devices[name] = Device(name, CARDS[name], capacity, index=int(name[-1]))
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
        used: dict[str, GpuAmount] = {}
        teams: dict[str, Usage] = {}
        for entry in state.ledger.entries.values():
            taken = entry.booking.gpu
            if taken is None or entry.stage < Stage.HELD:
                continue
            for name, amount in zip(taken.devices, taken.amounts, strict=True):
                used[name] = used.get(name, NO_GPU_AMOUNT).plus(amount)
            before = teams.get(entry.booking.namespace, Usage())
            teams[entry.booking.namespace] = before.plus(taken, +1)
        for name, device in self.devices.items():
            expected = device.capacity.plus(used.get(name, NO_GPU_AMOUNT), -1)
            assert state.devices.free(name) == expected
        assert state.gpu_quotas.used == teams

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
