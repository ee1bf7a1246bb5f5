"""Random small clusters for the property tests, and an oracle that knows only the rules.

The oracle works on plain dicts, straight from the definitions, one pod and one node at a time:
slow, obvious, and sharing no code with the engine.
"""

from fractions import Fraction

from hypothesis import strategies as st

from aliquot.engine.model.importance import natural
from aliquot.engine.model.node import Node, NodeConstraints, Taint, Toleration
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quantity import Amounts
from aliquot.engine.model.quota import Quota
from aliquot.engine.model.selector import Requirement, Term
from tests.build.values import GPU

TEAMS = ("team-a", "team-b")
NAMESPACES = (*TEAMS, "free")
HUGE = 12 * 10**18
LIMIT = 2**62

RESOURCES = (GPU, "cpu")
asked = st.sampled_from([1, 1, 2, 2, 3, 3, 4, HUGE])
bound = st.sampled_from([0, 2, 3, 4, 5, 6, 7, 8, 9, HUGE, HUGE * 1000])
had = st.sampled_from([4, 6, 8, 10, 12, HUGE])


def amounts(values: st.SearchStrategy[int]) -> st.SearchStrategy[Amounts]:
    """Amounts of a few resources, each sometimes left out."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(RESOURCES, values)).map(
        lambda named: tuple(sorted(named.items()))
    )


WHERES = st.sampled_from(
    [
        *[NodeConstraints()] * 5,
        NodeConstraints(selector=(("zone", "x"),)),
        NodeConstraints(required=(Term((Requirement("zone", "NotIn", ("x",)),)),)),
        NodeConstraints(preferred=((10, Term((Requirement("zone", "In", ("y",)),))),)),
        NodeConstraints(tolerations=(Toleration(operator="Exists"),)),
    ]
)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    requests = draw(amounts(asked))
    return Shape(tuple(sorted([*requests, ("pods", 1)])), draw(WHERES))


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    allocatable = draw(amounts(had))
    zone = draw(st.sampled_from(["x", "y"]))
    tainted = draw(st.sampled_from([False, False, False, True]))
    taints = (Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),) if tainted else ()
    pods = draw(st.integers(2, 6))
    return Node(name, tuple(sorted([*allocatable, ("pods", pods)])), (("zone", zone),), taints)


@st.composite
def quotas(draw: st.DrawFn, namespace: str) -> Quota:
    low, high = dict(draw(amounts(bound))), dict(draw(amounts(bound)))
    low = {name: min(value, high.get(name, value)) for name, value in low.items()}
    return Quota(
        f"{namespace}/quota",
        tuple(sorted(low.items())),
        tuple(sorted(high.items())),
        namespaces=frozenset({namespace}),
    )


@st.composite
def pods(draw: st.DrawFn, number: int) -> Pod:
    return Pod(
        uid=f"uid-{number}",
        namespace=draw(st.sampled_from([*TEAMS, *NAMESPACES])),
        name=draw(st.sampled_from(["p", "p-", "pod-0"])) + str(number),
        shape=draw(shapes()),
        priority=draw(st.sampled_from([0, 0, 0, 100])),
        created=draw(st.integers(0, 3)),
        gated=draw(st.sampled_from([False] * 9 + [True])),
    )


def _part(pod: Pod, low: dict[str, int], managed: set[str]) -> Fraction:
    """The largest part of min that a pod takes in any resource."""
    parts = [
        Fraction(amount, min(low[r], LIMIT)) if low.get(r) else Fraction(LIMIT)
        for r, amount in pod.shape.requests
        if r in managed
    ]
    return max(parts, default=Fraction(0))


class Oracle:
    """A cluster in plain dicts, and what may start in it."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.quotas: dict[str, Quota] = {}
        self.waiting: dict[str, Pod] = {}
        self.running: dict[str, tuple[Pod, str]] = {}

    def quota(self, pod: Pod) -> Quota | None:
        return self.quotas.get(pod.namespace)

    def used(self, namespaces: set[str], resource: str) -> int:
        return sum(
            dict(pod.shape.requests).get(resource, 0)
            for pod, _ in self.running.values()
            if pod.namespace in namespaces
        )

    def on(self, node: str, resource: str) -> int:
        return sum(
            dict(pod.shape.requests).get(resource, 0)
            for pod, where in self.running.values()
            if where == node
        )

    def within_quota(self, pod: Pod) -> str | None:
        """The gate that refuses the pod, if one does."""
        quota = self.quota(pod)
        if quota is None:
            return None
        asks = dict(pod.shape.requests)
        for resource, most in quota.max:
            used = self.used({pod.namespace}, resource)
            if resource in asks and most < LIMIT and used + asks[resource] > most:
                return "QuotaMaxExceeded"
        for resource, amount in asks.items():
            mins = {
                name: dict(q.min)[resource]
                for name, q in self.quotas.items()
                if resource in dict(q.min)
            }
            most = sum(mins.values())
            if not mins or most >= LIMIT:
                continue
            if pod.namespace in mins:
                used = self.used(set(mins), resource)
            else:
                used = self.used(set(self.quotas), resource)
                most = max(most, self.there_is(resource) - self.unused(mins, resource))
            if used + amount > most:
                return "BorrowingExhausted"
        return None

    def there_is(self, resource: str) -> int:
        """What the nodes have of a resource for the quotas; cordoned ones only what runs there."""
        has = (
            min(dict(node.allocatable).get(resource, 0), self.on(node.name, resource))
            if node.taints
            else dict(node.allocatable).get(resource, 0)
            for node in self.nodes.values()
        )
        outside = {pod.namespace for pod, _ in self.running.values()} - self.quotas.keys()
        return sum(min(each, LIMIT) for each in has) - self.used(outside, resource)

    def unused(self, mins: dict[str, int], resource: str) -> int:
        return sum(max(low - self.used({name}, resource), 0) for name, low in mins.items())

    def fits(self, pod: Pod, node: Node) -> bool:
        where, zone = pod.shape.constraints, dict(node.labels)["zone"]
        if where.selector and zone != "x":
            return False
        if where.required is not None and zone == "x":
            return False
        if node.taints and not where.tolerations:
            return False
        have = dict(node.allocatable)
        return all(
            self.on(node.name, resource) + amount <= min(have.get(resource, 0), LIMIT - 1)
            for resource, amount in pod.shape.requests
        )

    def sure_of(self, namespace: str, resource: str) -> int:
        """Min, and its part of what all quotas leave idle of theirs."""
        mins = {name: dict(quota.min).get(resource, 0) for name, quota in self.quotas.items()}
        idle = sum(max(low - self.used({name}, resource), 0) for name, low in mins.items())
        low, whole = mins[namespace], sum(mins.values())
        return low + (idle * low // whole if whole else 0)

    def over_quota(self, namespace: str) -> set[str]:
        """The running pods there from which on the sum passes min: the older and smaller first."""
        low = dict(self.quotas[namespace].min)
        managed = {name for quota in self.quotas.values() for name, _ in quota.min}
        pods = [pod for pod, _ in self.running.values() if pod.namespace == namespace]
        total = dict.fromkeys(managed, 0)
        over: set[str] = set()
        for pod in sorted(
            pods, key=lambda pod: (pod.created, _part(pod, low, managed), natural(pod.path))
        ):
            for name, amount in pod.shape.requests:
                if name in total:
                    total[name] += amount
            if over or any(total[name] > low.get(name, 0) for name in total):
                over.add(pod.uid)
        return over

    def refusal(self, pod: Pod) -> str | None:
        """Why the pod may not start; None if it may."""
        if pod.gated:
            return "SchedulingGated"
        refused = self.within_quota(pod)
        if refused is None and not any(self.fits(pod, node) for node in self.nodes.values()):
            return "NoNodeFits"
        return refused
