"""Invariant 5 with owners that put an evicted pod back at once: evictions end all the same.

Demand is fixed: every workload always wants the same pods. Whatever the guarantees are, even more
than the cluster has, the system must come to rest; who was evicted and asks again must not set off
the next round.
"""

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind, Evict, binds_and_evictions
from aliquot.engine.model.events import NodeSet, PodGone, PodSet, QuotaSet
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quota import Quota
from tests.build.values import amounts
from tests.campaign import examples

TEAMS = ("a", "b", "c")
MOST_ROUNDS = 80


@dataclass(frozen=True)
class Demand:
    """A cluster, its guarantees, and the pods that are always wanted, in waves of arrival."""

    nodes: tuple[Node, ...]
    quotas: tuple[Quota, ...]
    waves: tuple[tuple[Pod, ...], ...]


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    nodes = tuple(
        Node(
            f"n{i}",
            amounts(cpu=draw(st.integers(2, 8)), gpu=draw(st.integers(2, 8)), pods=20),
        )
        for i in range(draw(st.integers(1, 3)))
    )
    quotas = tuple(
        Quota(
            f"{team}/q",
            amounts(cpu=draw(st.integers(0, 8)) or None, gpu=draw(st.integers(0, 8)) or None),
            namespaces=frozenset({team}),
        )
        for team in TEAMS
    )
    pods: list[list[Pod]] = [[], [], []]
    for number in range(draw(st.integers(2, 5))):
        requests = amounts(
            cpu=draw(st.integers(0, 3)) or None, gpu=draw(st.integers(0, 3)) or None, pods=1
        )
        pod = Pod(
            uid="",
            namespace=draw(st.sampled_from(TEAMS)),
            name="",
            shape=Shape(requests),
            priority=draw(st.sampled_from((0, 0, 10, 20))),
        )
        wave = pods[draw(st.integers(0, 2))]
        for replica in range(draw(st.integers(1, 4))):
            name = f"w{number}-{replica}"
            wave.append(replace(pod, uid=name, name=name, created=draw(st.integers(0, 3))))
    return Demand(nodes, quotas, tuple(map(tuple, pods)))


@settings(deadline=None, max_examples=examples(300))
@given(demands(), st.sampled_from(("capacity", "fair")))
def test_evictions_end_when_owners_put_their_pods_back(demand: Demand, policy: str) -> None:
    engine = Engine(policy)
    for node in demand.nodes:
        engine.apply(NodeSet(node))
    for quota in demand.quotas:
        engine.apply(QuotaSet(quota))
    made = 0
    for wave in demand.waves:
        for pod in wave:
            engine.apply(PodSet(pod))
        for _ in range(MOST_ROUNDS):
            decisions = engine.cycle()
            for decision in binds_and_evictions(decisions):
                match decision:
                    case Bind(pod, host):
                        engine.apply(PodSet(replace(pod, node=host)))
                    case Evict(pod):
                        made += 1
                        again = replace(pod, uid=f"{pod.uid}.{made}", created=100 + made, node=None)
                        engine.apply(PodGone(pod.uid))
                        engine.apply(PodSet(again))
            if not any(binds_and_evictions(decisions)):
                break
        else:
            raise AssertionError("it never comes to rest")
