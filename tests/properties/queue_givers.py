"""Who could make way for a claim within what its queue deserves: the clear cases, by trying all.

Clear is a case where queues beyond what they deserve of what is short give pods on one node, and
have all they deserve even then, of everything, and so have the queues above them.
"""

from itertools import chain, combinations

from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quota import Quota
from tests.build.values import GPU
from tests.properties.queue_rules import Queues, asks

SHARED = ("cpu", GPU)


def could_make_way(rules: Queues, claimant: Pod) -> tuple[Pod, ...] | None:
    """Pods that should have gone for this one; None if there are none."""
    if not any(r in SHARED for r in asks(claimant)) or not rules.has_hope(claimant):
        return None
    if not rules.within_capability(claimant) or not rules.within_deserved(claimant):
        return None
    deserved = {resource: rules.deserved(resource) for resource in SHARED}
    for node in rules.nodes:
        here = [pod for pod in rules.running if pod.node == node.name]
        givers = [p for p in here if _gives(rules, deserved, claimant, node, p)]
        sets = (combinations(givers, k) for k in range(1, min(len(givers), 4) + 1))
        for gone in chain.from_iterable(sets):
            if _fits(rules, claimant, node, gone) and _keep(rules, deserved, claimant, gone):
                return gone
    return None


def _accounts(rules: Queues, claimant: Pod, pod: Pod) -> list[Quota]:
    """The pod's queue and those above it, up to what both sides have in common."""
    common = {queue.name for queue in rules.line(str(claimant.quota))}
    return [queue for queue in rules.line(str(pod.quota)) if queue.name not in common]


def _gives(
    rules: Queues, deserved: dict[str, dict[str, int]], claimant: Pod, node: Node, pod: Pod
) -> bool:
    short = {r for r in SHARED if r in asks(claimant) and _lacks(rules, claimant, node, (), r)}
    accounts = _accounts(rules, claimant, pod)
    return (
        pod.preemptible
        and pod.quota != claimant.quota
        and bool(accounts)
        and all(
            queue.reclaimable
            and any(rules.used(queue.name, r) > deserved[r][queue.name] for r in short)
            for queue in accounts
        )
    )


def _lacks(rules: Queues, claimant: Pod, node: Node, gone: tuple[Pod, ...], resource: str) -> bool:
    used = rules.on(node, resource) - sum(asks(pod).get(resource, 0) for pod in gone)
    has = dict(node.allocatable).get(resource, 0)
    return used + asks(claimant).get(resource, 0) > has


def _fits(rules: Queues, claimant: Pod, node: Node, gone: tuple[Pod, ...]) -> bool:
    return not any(_lacks(rules, claimant, node, gone, each) for each in asks(claimant))


def _keep(
    rules: Queues,
    deserved: dict[str, dict[str, int]],
    claimant: Pod,
    gone: tuple[Pod, ...],
) -> bool:
    """Has everybody who gives all they deserve, and are guaranteed, even then?"""
    for queue in {
        queue.name: queue for p in gone for queue in _accounts(rules, claimant, p)
    }.values():
        inside = rules.inside(queue.name)
        for resource in SHARED:
            given = sum(asks(pod).get(resource, 0) for pod in gone if pod.quota in inside)
            least = max(deserved[resource][queue.name], dict(queue.min).get(resource, 0))
            if given and rules.used(queue.name, resource) - given < least:
                return False
    return True
