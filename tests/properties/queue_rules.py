"""What queues deserve, and who may start in them, once more in plain dicts, from the words.

A queue deserves its part by weight of what the queue above it deserves, or of what the nodes have,
in every resource by itself: no more than it asks for and than its capability, no less than its
guarantee, which is kept whether asked for or not. What somebody fixed as `deserved` comes before
all shares by weight. Of what some queue's `deserved` names, a queue with a `deserved` that does not
name it has its guarantee and no more.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quota import Quota
from tests.properties.level_rules import by_level

ENDLESS = 2**62


def asks(pod: Pod) -> dict[str, int]:
    return dict(pod.shape.requests)


@dataclass
class Queues:
    """A cluster at rest: what is there, what runs, what waits."""

    nodes: tuple[Node, ...]
    queues: dict[str, Quota]
    running: list[Pod] = field(default_factory=list)
    waiting: list[Pod] = field(default_factory=list)

    def total(self, resource: str) -> int:
        return sum(dict(node.allocatable).get(resource, 0) for node in self.nodes)

    def below(self, name: str | None) -> list[Quota]:
        found = [queue for queue in self.queues.values() if queue.parent == name]
        return sorted(found, key=lambda queue: queue.name)

    def line(self, name: str) -> list[Quota]:
        """The queue, and those above it."""
        queue = self.queues[name]
        return [queue, *(self.line(queue.parent) if queue.parent else [])]

    def inside(self, name: str) -> set[str]:
        """The queue, and all below it."""
        return {name}.union(*(self.inside(each.name) for each in self.below(name)))

    def used(self, name: str | None, resource: str) -> int:
        names = set(self.queues) if name is None else self.inside(name)
        return sum(asks(pod).get(resource, 0) for pod in self.running if pod.quota in names)

    def has_hope(self, pod: Pod) -> bool:
        """Could it start, if its queue had all it wants?"""
        closed = any(queue.closed for queue in self.line(str(pod.quota)))
        return not closed and not pod.gated and any(self.could_hold(n, pod) for n in self.nodes)

    def could_hold(self, node: Node, pod: Pod) -> bool:
        has = dict(node.allocatable)
        return all(amount <= has.get(name, 0) for name, amount in pod.shape.requests)

    def wants(self, queue: Quota, resource: str) -> int:
        """What its pods use and ask for, and the queues below it, up to its capability."""
        own = [pod for pod in self.running if pod.quota == queue.name]
        own += [pod for pod in self.waiting if pod.quota == queue.name and self.has_hope(pod)]
        total = sum(asks(pod).get(resource, 0) for pod in own)
        total += sum(self.wants(each, resource) for each in self.below(queue.name))
        return min(total, dict(queue.max).get(resource, ENDLESS))

    def deserved(self, resource: str) -> dict[str, int]:
        """What every queue deserves."""
        found: dict[str, int] = {}
        self._share(self.total(resource), self.below(None), resource, found)
        return found

    def _share(self, total: int, queues: list[Quota], resource: str, found: dict[str, int]) -> None:
        kept = scaled([dict(queue.min).get(resource, 0) for queue in queues], total)
        sure = {queue.name: low for queue, low in zip(queues, kept, strict=True)}
        fixed = [queue for queue in queues if resource in dict(queue.deserved)]
        named = any(resource in dict(queue.deserved) for queue in self.queues.values())
        silent = [queue for queue in queues if named and queue.deserved and queue not in fixed]
        others = [queue for queue in queues if queue not in fixed and queue not in silent]
        promised = [dict(queue.deserved)[resource] for queue in fixed]
        wants = [min(self.wants(q, resource), n) for q, n in zip(fixed, promised, strict=True)]
        left = total - sum(sure[queue.name] for queue in [*others, *silent])
        parts = by_level(left, wants, [sure[q.name] for q in fixed], [n or 1 for n in promised])
        wants = [self.wants(queue, resource) for queue in others]
        lows = [sure[queue.name] for queue in others]
        weights = [queue.default_weight for queue in others]
        rest = total - sum(parts) - sum(sure[queue.name] for queue in silent)
        parts += by_level(rest, wants, lows, weights)
        parts += [sure[queue.name] for queue in silent]
        for queue, part in zip([*fixed, *others, *silent], parts, strict=True):
            found[queue.name] = part
            self._share(part, self.below(queue.name), resource, found)

    def fits(self, pod: Pod) -> bool:
        """Is there a node with room for it?"""
        return any(
            all(
                self.on(node, resource) + amount <= dict(node.allocatable).get(resource, 0)
                for resource, amount in pod.shape.requests
            )
            for node in self.nodes
        )

    def on(self, node: Node, resource: str) -> int:
        here = (pod for pod in self.running if pod.node == node.name)
        return sum(asks(pod).get(resource, 0) for pod in here)

    def within_capability(self, pod: Pod) -> bool:
        return all(
            self.used(queue.name, resource) + amount <= dict(queue.max).get(resource, ENDLESS)
            for queue in self.line(str(pod.quota))
            for resource, amount in pod.shape.requests
        )

    def within_deserved(self, pod: Pod) -> bool:
        return all(
            self.used(queue.name, resource) + amount <= self.deserved(resource)[queue.name]
            for resource, amount in pod.shape.requests
            for queue in self.line(str(pod.quota))
        )

    def within_what_is_idle(self, pod: Pod) -> bool:
        """Would it leave to others what is guaranteed to them?"""
        line = {queue.name for queue in self.line(str(pod.quota))}
        return all(
            self.used(None, resource) + amount + self.kept(self.below(None), resource, line)
            <= self.total(resource)
            for resource, amount in pod.shape.requests
        )

    def kept(self, queues: Iterable[Quota], resource: str, line: set[str]) -> int:
        """What is not in use yet of the guarantees of other queues than these."""
        total = 0
        for queue in queues:
            below = self.kept(self.below(queue.name), resource, line)
            low = 0 if queue.name in line else dict(queue.min).get(resource, 0)
            total += max(low - self.used(queue.name, resource), below)
        return total

    def may_start(self, pod: Pod) -> bool:
        """Could this waiting pod start now, with nobody making way?"""
        if not self.has_hope(pod) or not self.fits(pod) or not self.within_capability(pod):
            return False
        if self.within_deserved(pod):
            return True
        gives_back = pod.preemptible and self.queues[str(pod.quota)].reclaimable
        return gives_back and self.within_what_is_idle(pod)


def scaled(lows: list[int], total: int) -> list[int]:
    """Guarantees, scaled down in proportion where there is less than that."""
    whole = sum(lows)
    return lows if whole <= total else [total * low // whole for low in lows]
