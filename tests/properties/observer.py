"""An observer that follows every event and every decision in plain dicts, and judges each decision.

It knows what the cluster shows and what was decided, adds everything up anew, and shares no books
with the engine. Of the engine it asks only which quota a pod belongs to.
"""

import re
from collections.abc import Iterable
from itertools import groupby, permutations

from aliquot.engine import (
    SECOND,
    WHOLE_GPU,
    Bind,
    BindFailed,
    Decision,
    Device,
    DeviceGone,
    DeviceSet,
    Engine,
    Event,
    Evict,
    EvictFailed,
    Gang,
    GangGone,
    GangSet,
    GpuAmount,
    Knobs,
    Node,
    NodeGone,
    NodeSet,
    Nominate,
    Pod,
    PodGone,
    PodSet,
    Quota,
    QuotaGone,
    QuotaSet,
    Reason,
    Refusal,
    Wait,
    node_refusal,
)
from tests.build.engines import books
from tests.properties.rule_oracle import may_start


def engine_quota(engine: Engine, pod: Pod) -> str:
    """The name of the quota that a pod belongs to; empty if it has none."""
    return engine.quota_of(pod) or ""


_CONFIRM_WITHIN = 1800 * SECOND
"""How long the engine keeps the room of a bind that nothing confirms."""
_FOR_NO_CLAIM = {Reason.NODE_LOST, Reason.RECYCLED, Reason.QUOTA_LOWERED}


_MOST_ORDERED = 5
"""Of a gang that starts with more pods, not all orders are tried: it is not judged by rules."""


def _start_of(decision: Decision) -> str | None:
    """The gang or the pod that a Bind starts; None for other decisions."""
    return decision.pod.gang or decision.pod.uid if isinstance(decision, Bind) else None


class Observer:
    """What there is, what is decided, and what must hold for each decision."""

    def __init__(self, engine: Engine, hold_for: int) -> None:
        self.engine = engine
        self.now = 0
        self.nodes: dict[str, Node] = {}
        self.quotas: dict[str, Quota] = {}
        self.gangs: dict[str, Gang] = {}
        self.devices: dict[str, Device] = {}
        self.gone_devices: dict[str, Device] = {}
        """Cards that the engine has known: it goes on counting what pods on them hold."""
        self.pods: dict[str, Pod] = {}
        self.assumed: dict[str, tuple[int, Bind]] = {}
        """Binds that were decided and not confirmed, and since when."""
        self.leaving: dict[str, int] = {}
        """When the eviction of a pod was decided, unless it was refused."""
        self._hold_for = hold_for
        self._class: dict[str, str] = {}
        self._stranded: set[str] = set()

    def see(self, event: Event) -> None:
        """Note what has happened."""
        match event:
            case NodeSet(node):
                self.nodes[node.name] = node
            case NodeGone(name):
                self.nodes.pop(name, None)
            case QuotaSet(quota):
                self.quotas[quota.name] = quota
            case QuotaGone(name):
                self.quotas.pop(name, None)
            case GangSet(gang):
                self.gangs[gang.name] = gang
            case GangGone(name):
                self.gangs.pop(name, None)
            case DeviceSet(device):
                self.devices[device.name] = device
                self.gone_devices.pop(device.name, None)
            case DeviceGone(name):
                if name in self.devices:
                    self.gone_devices[name] = self.devices.pop(name)
            case PodSet(pod):
                self.pods[pod.uid] = pod
                if pod.node is not None:
                    self.assumed.pop(pod.uid, None)
            case PodGone(uid):
                self.pods.pop(uid, None)
                self.assumed.pop(uid, None)
                self.leaving.pop(uid, None)
                self._stranded.discard(uid)
            case BindFailed(uid):
                self.assumed.pop(uid, None)
            case EvictFailed(uid):
                self.leaving.pop(uid, None)

    def begin(self, now: int) -> None:
        """A cycle begins: binds that nothing has confirmed for long are forgotten."""
        self.now = now
        for uid, (since, _) in list(self.assumed.items()):
            if since + _CONFIRM_WITHIN <= now:
                del self.assumed[uid]
        for uid, pod in self.pods.items():
            node = self.nodes.get(pod.node or "")
            nowhere = node is None or not node.ready
            if not (pod.terminating and pod.gone_by is not None and nowhere):
                self._stranded.discard(uid)
            elif pod.gone_by is not None and pod.gone_by <= now:
                self._stranded.add(uid)

    def judge(self, decisions: Iterable[Decision]) -> None:
        """Each decision must be right when it is taken, after those before it."""
        started: dict[str, None] = {}
        for _, together in groupby(decisions, _start_of):
            group = list(together)
            self._judge_rules([each for each in group if isinstance(each, Bind)])
            for decision in group:
                self._judge_decision(decision)
                if isinstance(decision, Bind) and decision.pod.gang in self.gangs:
                    started[str(decision.pod.gang)] = None
        for name in started:
            self._judge_gang(self.gangs[name])

    def judge_wait(self, pod: Pod, refusal: Refusal) -> None:
        """No pod waits for a node where one has room, and rules let it start there."""
        if refusal.reason is not Reason.NO_NODE_FITS or pod.gang or pod.shape.gpu:
            return
        if pod.shape.charges:
            return  # its quota may refuse some classes of nodes
        placed = self._placed()
        for node in self.nodes.values():
            has = dict(node.allocatable)
            opens = not node.deleted and node_refusal(pod.shape.constraints, node) is None
            if opens and all(
                self.taken(node.name, name) + amount <= has.get(name, 0)
                for name, amount in pod.shape.requests
            ):
                assert not may_start(pod, node, self.nodes.values(), placed), (
                    f"{pod.uid} could start on {node.name}: {refusal.message}"
                )

    def _placed(self) -> dict[str, tuple[Pod, Node]]:
        """The pods that are bound or assumed, with their nodes; those of lost nodes aside."""
        where = ((pod, self.nodes.get(str(self.node_of(pod.uid)))) for pod in self.holders())
        return {pod.uid: (pod, node) for pod, node in where if node is not None}

    def _judge_decision(self, decision: Decision) -> None:
        match decision:
            case Bind():
                self._judge_bind(decision)
            case Evict():
                self._judge_eviction(decision)
            case Nominate():
                self._judge_nomination(decision)
            case Wait(pod, refusal):
                assert self._waits(pod.uid), f"{pod.uid} does not wait"
                assert refusal.message

    def is_busy(self) -> bool:
        """Is a bind or an eviction under way?"""
        return bool(self.assumed or self.leaving)

    def judge_owed(self, engine: Engine, knobs: Knobs) -> None:
        """At rest, no claim within its quota's min waits for a pod that one eviction would remove.

        The plainest case: one pod for one pod, of a quota that stays at its min or above without
        it; no lending groups, and every rule that could spare the victim set aside.
        """
        if any(quota.group or quota.parent for quota in self.quotas.values()):
            return
        over, overdue = engine.over_quota_pods(), books(engine).leaving.overdue
        victims = [
            pod
            for pod in self.holders()
            if pod.uid in over
            and pod.uid not in overdue
            and pod.preemptible
            and not (pod.terminating or pod.labels or pod.gang or pod.shape.gpu)
            and pod.namespace != "kube-system"
            and pod.started + knobs.eviction.min_runtime <= self.now
        ]
        for pod in self.pods.values():
            if self._waits(pod.uid) and pod.preempts and self._is_owed(pod):
                found = [each.uid for each in victims if self._would_do(each, pod)]
                assert not found, f"{pod.uid} is owed what {found} have"

    def _is_owed(self, pod: Pod) -> bool:
        quota = self.quotas.get(engine_quota(self.engine, pod))
        if quota is None or pod.blocked or pod.gang or pod.shape.gpu or pod.shape.charges:
            return False
        low, high = dict(quota.min), dict(quota.max)
        return all(
            name == "pods"
            or (
                name in low
                and self.used(quota.name, name) + amount <= min(low[name], high.get(name, 2**62))
            )
            for name, amount in pod.shape.requests
        )

    def _would_do(self, victim: Pod, pod: Pod) -> bool:
        """Could the pod start in place of the victim, and does its quota keep its min?"""
        quota = self.quotas.get(engine_quota(self.engine, victim))
        node = self.nodes.get(victim.node or "")
        if quota is None or node is None or quota.name == engine_quota(self.engine, pod):
            return False
        if node_refusal(pod.shape.constraints, node) is not None or victim.shape.charges:
            return False
        frees, low = dict(victim.shape.requests), dict(quota.min)
        managed = {name for each in self.quotas.values() for name, _ in each.min}
        keeps = all(
            self.used(quota.name, name) - frees.get(name, 0) >= low.get(name, 0) for name in managed
        )
        fits = all(
            self.taken(node.name, name) - frees.get(name, 0) + amount
            <= dict(node.allocatable).get(name, 0)
            for name, amount in pod.shape.requests
        )
        others = {uid: each for uid, each in self._placed().items() if uid != victim.uid}
        return (
            keeps
            and fits
            and self._within_sum_of_min(frees, pod)
            and may_start(pod, node, self.nodes.values(), others)
        )

    def _within_sum_of_min(self, frees: dict[str, int], pod: Pod) -> bool:
        for name, amount in pod.shape.requests:
            naming = [each for each in self.quotas.values() if name in dict(each.min)]
            most = sum(dict(each.min)[name] for each in naming)
            used = sum(self.used(each.name, name) for each in self.quotas.values())
            if naming and used - frees.get(name, 0) + amount > most:
                return False
        return True

    # Who holds what

    def node_of(self, uid: str) -> str | None:
        """The node that a pod is bound to, or will be."""
        pod = self.pods[uid]
        if pod.node is not None:
            return pod.node
        return self.assumed[uid][1].node if uid in self.assumed else None

    def holders(self) -> list[Pod]:
        """The pods that are bound, or whose bind was decided."""
        return [pod for uid, pod in self.pods.items() if self.node_of(uid) is not None]

    def charge(self, pod: Pod, node: str) -> dict[str, int]:
        """What a pod on this node counts as in its quota."""
        known = self.nodes.get(node)
        if known is not None:
            self._class[pod.uid] = known.node_class
        charges = dict(pod.shape.charges)
        default = charges.get("", pod.shape.requests)
        return dict(charges.get(self._class.get(pod.uid, ""), default))

    def lineage(self, name: str | None) -> list[Quota]:
        """A quota and its ancestors."""
        found = []
        while name is not None and name in self.quotas:
            found.append(self.quotas[name])
            name = self.quotas[name].parent
        return found

    def used(self, quota: str, resource: str) -> int:
        """What the pods of a quota, and of those below it, hold."""
        return sum(
            self.charge(pod, str(self.node_of(pod.uid))).get(resource, 0)
            for pod in self.holders()
            if pod.uid not in self._stranded
            and any(each.name == quota for each in self.lineage(self.engine.quota_of(pod)))
        )

    def taken(self, node: str, resource: str) -> int:
        """What the pods on a node hold."""
        return sum(
            dict(pod.shape.requests).get(resource, 0)
            for pod in self.holders()
            if self.node_of(pod.uid) == node
        )

    def _waits(self, uid: str) -> bool:
        return uid in self.pods and self.node_of(uid) is None

    # What a decision must be

    def _judge_bind(self, bind: Bind) -> None:
        pod = bind.pod
        assert self._waits(pod.uid), f"{pod.uid} does not wait: it would be bound twice"
        assert self.pods[pod.uid] == pod, f"{pod.uid} was bound as it no longer is"
        assert not pod.blocked, f"{pod.uid} is gated, terminating or not supported"
        node = self.nodes[bind.node]
        assert not node.deleted, f"{node.name} is being deleted"
        assert node_refusal(pod.shape.constraints, node) is None
        self.assumed[pod.uid] = self.now, bind
        self._judge_node(pod, node)
        self._judge_bounds(pod, node)
        self._judge_devices(bind)

    def _judge_rules(self, binds: list[Bind]) -> None:
        """Rules about pods let them start one after the other; those of a gang in any order."""
        if len(binds) > _MOST_ORDERED:
            return
        assert any(self._is_allowed(order) for order in permutations(binds)), (
            f"rules forbid to start {[each.pod.uid for each in binds]} "
            f"on {[each.node for each in binds]}"
        )

    def _is_allowed(self, order: Iterable[Bind]) -> bool:
        """Do rules let these pods start in this order?"""
        placed = self._placed()
        for bind in order:
            node = self.nodes[bind.node]
            if not may_start(bind.pod, node, self.nodes.values(), placed):
                return False
            placed[bind.pod.uid] = bind.pod, node
        return True

    def _judge_node(self, pod: Pod, node: Node) -> None:
        has = dict(node.allocatable)
        for resource, _ in pod.shape.requests:
            taken = self.taken(node.name, resource)
            assert taken <= has.get(resource, 0), (
                f"node {node.name} has {has.get(resource, 0)} {resource}, "
                f"with {pod.uid} its pods take {taken}"
            )

    def _judge_bounds(self, pod: Pod, node: Node) -> None:
        charge = self.charge(pod, node.name)
        lineage = self.lineage(self.engine.quota_of(pod))
        assert not any(quota.closed for quota in lineage)
        for quota in lineage:
            for resource, most in quota.max:
                if charge.get(resource):
                    used = self.used(quota.name, resource)
                    assert used <= most, (
                        f"quota {quota.name}: max {most} {resource}, with {pod.uid} used {used}"
                    )

    def _judge_devices(self, bind: Bind) -> None:
        ask = bind.pod.shape.gpu
        if ask is None or ask.sliced:
            assert not bind.devices
            return
        assert len(set(bind.devices)) == ask.count
        for name in bind.devices:
            device = self.devices[name]
            assert device.node == bind.node
            assert device.ready
            sharers = [pod for pod in self.holders() if name in self._devices(pod)]
            assert len(sharers) == 1 or not any(
                pod.shape.gpu and pod.shape.gpu.whole for pod in sharers
            ), f"device {name} is whole, and shared by {[pod.uid for pod in sharers]}"
            total = device.used_elsewhere
            for pod in sharers:
                total = total.plus(self._device_share(pod, device))
            assert total.tflops <= device.capacity.tflops, f"device {name}: {total}"
            assert total.vram <= device.capacity.vram, f"device {name}: {total}"

    def _devices(self, pod: Pod) -> tuple[str, ...]:
        assumed = self.assumed.get(pod.uid)
        return pod.devices if pod.node is not None or assumed is None else assumed[1].devices

    def _device_share(self, pod: Pod, device: Device) -> GpuAmount:
        ask = pod.shape.gpu
        assert ask is not None

        return GpuAmount(
            ask.request.tflops + -(-ask.request_part.tflops * device.capacity.tflops // WHOLE_GPU),
            ask.request.vram + -(-ask.request_part.vram * device.capacity.vram // WHOLE_GPU),
        )

    def _judge_nomination(self, nomination: Nominate) -> None:
        for pod, node in zip(nomination.pods, nomination.nodes, strict=True):
            assert self._waits(pod.uid)
            assert not pod.blocked
            assert node in self.nodes
        if nomination.victims:
            assert all(pod.preempts for pod in nomination.pods), "it says preemptionPolicy: Never"
        for victim in nomination.victims:
            assert victim.claimant == nomination.pods[0]
            self._judge_eviction(victim, nomination.pods)

    def _is_within_min(self, pod: Pod) -> bool:
        """Is all that its quota uses within min, in whatever counts that the pod is charged?

        Then no pod of the quota is above what shields those that are not preemptible. Under
        `queues` that is what the queue deserves, which can be less than a min that its parent has
        not.
        """
        name = self.engine.quota_of(pod)
        if name is None or name not in self.quotas:
            return False
        low, charge = dict(self.quotas[name].min), self.charge(pod, str(self.node_of(pod.uid)))
        if self.engine.policy == "queues":
            deserved = {each.name: each.runtime for each in self.engine.summarise()}[name]
            low = {each: min(most, deserved.get(each, 0)) for each, most in low.items()}
        counting = {each for quota in self.quotas.values() for each, _ in quota.min}
        charged = [each for each in charge if charge[each] and each in counting]
        return bool(charged) and all(self.used(name, each) <= low.get(each, 0) for each in charged)

    def _judge_eviction(self, eviction: Evict, claimants: tuple[Pod, ...] = ()) -> None:
        """`claimants`: the pods of the claim that it is for, of a quota each perhaps."""
        pod, claimant = eviction.pod, eviction.claimant
        if eviction.reason is Reason.NODE_LOST:
            assert self.pods[pod.uid].node is not None, f"{pod.uid} may never have run"
            assert self.node_of(pod.uid) not in self.nodes
            self.leaving[pod.uid] = self.now
            return
        assert self.pods[pod.uid].node is not None, f"{pod.uid} does not run"
        overdue = self.leaving.get(pod.uid, -(2**63)) + pod.grace_period + self._hold_for
        assert overdue <= self.now, f"{pod.uid} is evicted a second time, and is not overdue"
        assert not self.pods[pod.uid].terminating, f"{pod.uid} terminates already"
        self.leaving[pod.uid] = self.now
        assert re.search(r"\d", eviction.message), f"no numbers: {eviction.message}"
        assert pod.preemptible or not self._is_within_min(pod), (
            f"{pod.uid} is not preemptible: {eviction.message}"
        )
        if claimant is None:
            assert eviction.reason in _FOR_NO_CLAIM, eviction.reason
        else:
            assert self._waits(claimant.uid)
            quota = self.engine.quota_of(pod)
            claimants = claimants or (claimant,)
            same = [each for each in claimants if self.engine.quota_of(each) == quota]
            if eviction.reason in (Reason.PREEMPTED, Reason.PREEMPTED_IN_QUOTA):
                assert same or eviction.reason is Reason.PREEMPTED
                more = any(pod.priority < each.priority for each in (same or claimants))
                assert more or (quota is None and not same)

    def _judge_gang(self, gang: Gang) -> None:
        """A gang starts with its core, or not at all."""
        members = [pod for pod in self.holders() if pod.gang == gang.name]
        done = sum(number for _, number in gang.done)
        staying = [pod for pod in members if pod.uid not in self.leaving and not pod.terminating]
        assert len(staying) + done >= gang.min_member, (
            f"gang {gang.name} has {len(staying)} pods, and needs {gang.min_member}"
        )
