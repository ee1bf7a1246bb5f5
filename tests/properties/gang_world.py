"""Random gangs in small clusters, and what a cluster knows of them, in plain dicts.

A decision is carried out when the cluster gets round to it, or fails; meanwhile others are taken.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from aliquot.engine.model.decisions import Bind, Decision, Evict, binds_and_evictions
from aliquot.engine.model.gang import Gang
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quota import Quota
from aliquot.engine.model.reasons import Reason
from tests.build.values import GPU

TEAMS = ("a", "b", "c")
NODE_NAMES = ("n1", "n2", "n3")
GANGS = ("a/g1", "a/g2", "b/g3", "c/g4")
TASKS = ("", "m", "w")


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    gpus = draw(st.integers(2, 6))
    return Node(name, (("cpu", draw(st.integers(3, 8))), (GPU, gpus), ("pods", 8)))


@st.composite
def quotas(draw: st.DrawFn, team: str) -> Quota:
    low = draw(st.integers(0, 5))
    fixed = draw(st.sampled_from((None, None, None, 2, 4)))
    return Quota(
        team,
        ((GPU, low),) if draw(st.booleans()) else (("cpu", low), (GPU, low)),
        ((GPU, low + draw(st.integers(0, 6))),) if draw(st.booleans()) else (),
        namespaces=frozenset({team}),
        default_weight=draw(st.integers(1, 3)),
        lend=draw(st.booleans()),
        deserved=() if fixed is None else ((GPU, fixed),),
        reclaimable=draw(st.sampled_from((True,) * 5 + (False,))),
    )


@st.composite
def gangs(draw: st.DrawFn, name: str) -> Gang:
    least = draw(st.integers(1, 4))
    tasks = {"m": draw(st.integers(0, 1)), "w": draw(st.integers(0, 2))}
    needed = tuple((task, n) for task, n in tasks.items() if n)
    with_tasks = draw(st.booleans()) and sum(tasks.values()) <= least
    done = (("w", 1),) if draw(st.sampled_from((False,) * 5 + (True,))) else ()
    return Gang(
        name,
        least,
        needed if with_tasks else (),
        ((GPU, draw(st.integers(0, 6))),),
        done=done,
    )


@st.composite
def pods(draw: st.DrawFn, number: int) -> Pod:
    gang = draw(st.sampled_from((*GANGS, *GANGS, None)))
    requests = {GPU: draw(st.sampled_from((1, 1, 1, 2, 3))), "pods": 1}
    if draw(st.booleans()):
        requests["cpu"] = draw(st.integers(1, 2))
    return Pod(
        f"u{number}",
        draw(st.sampled_from(TEAMS)) if gang is None else gang.partition("/")[0],
        f"p{number}",
        Shape(tuple(sorted(requests.items()))),
        priority=draw(st.sampled_from((0, 0, 10, 20))),
        created=draw(st.integers(0, 3)),
        gang=gang,
        task=draw(st.sampled_from(TASKS)),
        gated=draw(st.sampled_from((False,) * 9 + (True,))),
        preemptible=draw(st.sampled_from((True,) * 9 + (False,))),
    )


class Cluster:
    """What is there, what was decided, and what has come of it."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.quotas: dict[str, Quota] = {}
        self.gangs: dict[str, Gang] = {}
        self.pods: dict[str, Pod] = {}
        self.binding: dict[str, str] = {}
        """Who is to be bound, and where."""
        self.evicting: set[str] = set()

    def host(self, uid: str) -> str | None:
        return self.pods[uid].node or self.binding.get(uid)

    def staying(self, gang: str) -> list[Pod]:
        """The pods of a gang that run, or are about to, and are not on their way out."""
        return [
            pod
            for uid, pod in self.pods.items()
            if pod.gang == gang
            and self.host(uid) is not None
            and not pod.terminating
            and uid not in self.evicting
        ]

    def is_complete(self, gang: Gang) -> bool:
        """Are as many there as it needs, in all and of each task?"""
        there = Counter(pod.task for pod in self.staying(gang.name)) + Counter(dict(gang.done))
        enough = there.total() >= gang.min_member
        return enough and all(there[task] >= few for task, few in gang.min_tasks)

    def take_note(self, decisions: list[Decision]) -> None:
        """Check what was decided, one by one; then what has become of each gang."""
        started: set[str | None] = set()
        shrunk: set[str | None] = set()
        for decision in binds_and_evictions(decisions):
            match decision:
                case Bind(pod, node):
                    self._check_bind(pod, node)
                    self.binding[pod.uid] = node
                    started.add(pod.gang)
                case Evict(pod, claimant, reason):
                    self._check_eviction(pod, claimant, reason)
                    self.evicting.add(pod.uid)
                    if reason is not Reason.NODE_LOST:
                        shrunk.add(pod.gang)
        for name, gang in self.gangs.items():
            if name in started:
                assert self.is_complete(gang), f"{gang} starts without its core"
            if name in shrunk:
                assert self.is_complete(gang) or not self.staying(name), f"{gang} is torn apart"

    def _check_bind(self, pod: Pod, node: str) -> None:
        known = self.pods[pod.uid]
        assert known.node is None
        assert not known.gated
        assert not known.terminating
        assert pod.uid not in self.binding
        has = dict(self.nodes[node].allocatable)
        for resource, amount in pod.shape.requests:
            on_node = self.asked(lambda other: self.host(other.uid) == node, resource)
            assert on_node + amount <= has[resource]
            most = dict(self.quotas[pod.namespace].max).get(resource)
            used = self.asked(lambda other: other.namespace == pod.namespace, resource)
            assert most is None or used + amount <= most

    def asked(self, counts: Callable[[Pod], bool], resource: str) -> int:
        """What those who run, or are about to, take of a resource."""
        return sum(
            dict(pod.shape.requests).get(resource, 0)
            for uid, pod in self.pods.items()
            if self.host(uid) is not None and counts(pod)
        )

    def _check_eviction(self, pod: Pod, claimant: Pod | None, reason: Reason) -> None:
        if reason is Reason.NODE_LOST:
            assert self.host(pod.uid) not in {None, *self.nodes}
            return
        assert pod.uid not in self.evicting, "nobody is evicted twice"
        assert self.pods[pod.uid].node is not None
        assert not self.pods[pod.uid].terminating
        if claimant is not None:
            assert self.host(claimant.uid) is None
            assert claimant.gang not in self.gangs or claimant.gang != pod.gang

    def bound(self, uid: str) -> Pod:
        """A bind is carried out."""
        self.pods[uid] = replace(self.pods[uid], node=self.binding.pop(uid))
        return self.pods[uid]

    def gone(self, uid: str) -> None:
        """A pod is no longer there."""
        del self.pods[uid]
        self.binding.pop(uid, None)
        self.evicting.discard(uid)
