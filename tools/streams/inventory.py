"""The nodes, quotas, gangs, GPUs and budgets of a random cluster, and how they change."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from aliquot.engine import (
    Budget,
    BudgetGone,
    BudgetSet,
    Device,
    DeviceGone,
    DeviceSet,
    Event,
    Gang,
    GangGone,
    GangSet,
    GpuQuota,
    GpuQuotaGone,
    GpuQuotaSet,
    Node,
    NodeGone,
    NodeSet,
    Quota,
    QuotaGone,
    QuotaSet,
    WeightSet,
)

from .objects import Objects
from .profile import NAMESPACES, often

Change = Callable[[], Iterator[Event]]


class Inventory:
    """Everything but the pods."""

    def __init__(self, rng: Random, make: Objects) -> None:
        self.rng = rng
        self.make = make
        self.nodes: dict[str, Node] = {}
        self.quotas: dict[str, Quota] = {}
        self.gangs: dict[str, Gang] = {}
        self.devices: dict[str, Device] = {}
        self.lost: list[Node] = []
        self._deleted: list[Quota] = []
        self._budgets: dict[str, Budget] = {}
        self._gpu_quotas: dict[str, GpuQuota] = {}
        self._weights: dict[str, int] = {}

    def changes(self) -> list[tuple[Change, float]]:
        """What may change, and how often in proportion."""
        profile = self.make.profile
        return [
            (self.edit_quota, 3),
            (self.lose_node, 0.4),
            (self.return_node, 1.5),
            (self.change_node, 0.7),
            (self.drop_quota, 0.4),
            (self.return_quota, 0.6),
            (self.change_gang, 1.0 if profile.with_gangs else 0.0),
            (self.change_device, 1.5 if profile.with_devices else 0.0),
            (self.change_gpu_quota, 1.0 if profile.with_devices else 0.0),
            (self.change_budget, 0.7),
            (self.change_weight, 1.0 if profile.policy == "queues" else 0.0),
        ]

    def initial(self) -> Iterator[Event]:
        """The objects that are there from the beginning."""
        rng, make = self.rng, self.make
        for quota in make.quotas.all():
            yield self._set_quota(quota)
        for number in range(rng.randint(6, 12) if make.profile.big else rng.randint(1, 4)):
            yield from self._set_node(make.node(f"n{number}"))
        for namespace in NAMESPACES if make.profile.with_devices else ():
            if often(rng, 0.6):
                yield self._set_gpu_quota(make.gpu_quota(namespace))
        if self.make.profile.policy == "queues":
            yield from self.change_weight()

    def facts(self) -> list[Event]:
        """What an engine that starts now is told of everything but the pods."""
        return [
            *map(QuotaSet, _parents_first(self.quotas)),
            *map(NodeSet, self.nodes.values()),
            *map(DeviceSet, self.devices.values()),
            *map(GpuQuotaSet, self._gpu_quotas.values()),
            *map(GangSet, self.gangs.values()),
            *map(BudgetSet, self._budgets.values()),
            *(WeightSet(*each) for each in self._weights.items()),
        ]

    def _set_quota(self, quota: Quota) -> Event:
        self.quotas[quota.name] = quota
        return QuotaSet(quota)

    def _set_gpu_quota(self, quota: GpuQuota) -> Event:
        self._gpu_quotas[quota.namespace] = quota
        return GpuQuotaSet(quota)

    def _set_node(self, node: Node) -> Iterator[Event]:
        self.nodes[node.name] = node
        yield NodeSet(node)
        if self.make.profile.with_devices and not any(
            device.node == node.name for device in self.devices.values()
        ):
            for device in self.make.devices(node.name):
                self.devices[device.name] = device
                yield DeviceSet(device)

    def edit_quota(self) -> Iterator[Event]:
        """The bounds, weight or state of a quota change."""
        if self.quotas:
            yield self._set_quota(
                self.make.quotas.edited(self.quotas[self.rng.choice(list(self.quotas))])
            )

    def drop_quota(self) -> Iterator[Event]:
        """A quota without children is deleted."""
        parents = {quota.parent for quota in self.quotas.values()}
        free = [
            name
            for name, quota in self.quotas.items()
            if name not in parents and not quota.fallback
        ]
        if free:
            name = self.rng.choice(free)
            self._deleted.append(self.quotas.pop(name))
            yield QuotaGone(name)

    def return_quota(self) -> Iterator[Event]:
        """A quota that was deleted is created again."""
        if self._deleted:
            quota = self._deleted[-1]
            if quota.parent is None or quota.parent in self.quotas:
                yield self._set_quota(self._deleted.pop())

    def lose_node(self) -> Iterator[Event]:
        """A node is lost, at times with its devices."""
        if self.nodes:
            node = self.nodes.pop(self.rng.choice(list(self.nodes)))
            self.lost.append(node)
            yield NodeGone(node.name)
            if often(self.rng, 0.5):
                for device in [each for each in self.devices.values() if each.node == node.name]:
                    del self.devices[device.name]
                    yield DeviceGone(device.name)

    def return_node(self) -> Iterator[Event]:
        """A lost node returns, or a new one joins."""
        if self.lost:
            yield from self._set_node(self.lost.pop())
        elif often(self.rng, 0.2):
            yield from self._set_node(self.make.node(f"n{len(self.nodes)}"))

    def change_node(self) -> Iterator[Event]:
        """A node's resources, labels or taints change; its class stays."""
        if self.nodes:
            old = self.nodes[self.rng.choice(list(self.nodes))]
            node = replace(self.make.node(old.name), node_class=old.node_class)
            yield from self._set_node(node)

    def change_gang(self) -> Iterator[Event]:
        """A gang changes or is deleted."""
        if not self.gangs:
            return
        name = self.rng.choice(list(self.gangs))
        if often(self.rng, 0.3):
            del self.gangs[name]
            yield GangGone(name)
        else:
            self.gangs[name] = self.make.gang(name, self.gangs[name].created)
            yield GangSet(self.gangs[name])

    def change_device(self) -> Iterator[Event]:
        """A device changes or is gone."""
        if not self.devices:
            return
        old = self.devices[self.rng.choice(list(self.devices))]
        if often(self.rng, 0.3):
            del self.devices[old.name]
            yield DeviceGone(old.name)
        else:
            device = self.make.device(old.name, old.node, old.index, old.model)
            self.devices[old.name] = device
            yield DeviceSet(device)

    def change_gpu_quota(self) -> Iterator[Event]:
        """The GPU quota of a namespace changes or is deleted."""
        namespace = self.rng.choice(NAMESPACES)
        if often(self.rng, 0.2):
            self._gpu_quotas.pop(namespace, None)
            yield GpuQuotaGone(namespace)
        else:
            yield self._set_gpu_quota(self.make.gpu_quota(namespace))

    def change_budget(self) -> Iterator[Event]:
        """A budget is made, changed or deleted."""
        namespace = self.make.quotas.namespace()
        budget = self.make.budget(namespace, self.rng.choice("uvw"))
        if budget.path in self._budgets and often(self.rng, 0.5):
            del self._budgets[budget.path]
            yield BudgetGone(budget.path)
        else:
            self._budgets[budget.path] = budget
            yield BudgetSet(budget)

    def change_weight(self) -> Iterator[Event]:
        """The weight of a namespace changes."""
        namespace, weight = self.rng.choice(NAMESPACES), self.rng.randint(1, 4)
        self._weights[namespace] = weight
        yield WeightSet(namespace, weight)


def _parents_first(quotas: dict[str, Quota]) -> list[Quota]:
    """Quotas in an order in which each comes after its parent."""
    placed: dict[str, Quota] = {}
    while len(placed) < len(quotas):
        for name, quota in quotas.items():
            if name not in placed and (quota.parent is None or quota.parent in placed):
                placed[name] = quota
    return list(placed.values())
