"""Queries change nothing: neither a later decision nor a book.

Two engines hear the same events. One of them is asked questions between any two events, and before
and after each cycle: what it decides is what the other one decides, and its books are the same.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.engine import Engine, Pod, Reason
from tests.build.engines import books
from tests.campaign import examples
from tools.streams.cluster import Cluster
from tools.streams.profile import POLICIES
from tools.streams.text import decision_text, flat

Question = Callable[[Engine, Cluster, Random], object]


def _waiting(cluster: Cluster) -> list[str]:
    return [
        uid for uid, pod in cluster.pods.items() if pod.node is None and not cluster.is_binding(uid)
    ]


def _why(engine: Engine, cluster: Cluster, rng: Random) -> object:
    pods = _waiting(cluster)
    return engine.why(rng.choice(pods)) if pods else None


def _explain(engine: Engine, cluster: Cluster, rng: Random) -> object:
    """Every gate of a waiting pod: the answer agrees with the engine's own refusal."""
    pods = _waiting(cluster)
    if not pods:
        return None
    uid = rng.choice(pods)
    found, refusal = engine.explain(uid), engine.why(uid)
    assert found.refusal == refusal
    refused = [gate for gate in found.gates if not gate.passes]
    assert refusal is not None or not refused or found.victims
    if refusal is not None:
        told = [each.reason for gate in refused for each in gate.refusals]
        settled = {Reason.RESERVED_FOR_OTHERS, Reason.RESERVED, Reason.WAITING_FOR_VICTIMS}
        assert refusal.reason in told or refusal.reason in settled or found.victims, told
    return found


def _endings(engine: Engine, cluster: Cluster, rng: Random) -> object:
    pods = _waiting(cluster)
    return engine.endings(rng.choice(pods), [cluster.pods, set()]) if pods else None


def _may_resize(engine: Engine, cluster: Cluster, rng: Random) -> object:
    pods = [pod for pod in cluster.pods.values() if pod.node is not None]
    if not pods:
        return None
    pod = rng.choice(pods)
    requests = tuple((name, amount * rng.randint(1, 3)) for name, amount in pod.shape.requests)
    return engine.may_resize(pod.uid, replace(pod.shape, requests=requests, charges=()))


def _violations(engine: Engine, cluster: Cluster, rng: Random) -> object:
    def bound(uid: str) -> Pod | None:
        pod = cluster.pods.get(uid)
        return pod if pod is not None and pod.node is not None else None

    return list(engine.violations(cluster.pods, bound))


QUESTIONS: dict[str, Question] = {
    "summarise": lambda engine, cluster, rng: engine.summarise(),
    "queues": lambda engine, cluster, rng: engine.queues(),
    "gangs": lambda engine, cluster, rng: engine.gangs(),
    "gpu_quotas": lambda engine, cluster, rng: engine.gpu_quotas(),
    "why": _why,
    "explain": _explain,
    "endings": _endings,
    "roomy_nodes": lambda engine, cluster, rng: [
        engine.roomy_nodes(uid) for uid in _waiting(cluster)[:3]
    ],
    "may_resize": _may_resize,
    "over_quota_pods": lambda engine, cluster, rng: engine.over_quota_pods(),
    "not_preemptible": lambda engine, cluster, rng: engine.not_preemptible(),
    "child_requests": lambda engine, cluster, rng: engine.child_requests(
        {summary.name: summary for summary in engine.summarise()}
    ),
    "quota_of": lambda engine, cluster, rng: [
        engine.quota_of(pod) for pod in cluster.pods.values()
    ],
    "next_deadline": lambda engine, cluster, rng: engine.next_deadline(),
    "violations": _violations,
}


def _books(engine: Engine) -> dict[str, object]:
    """What the engine has written down, in plain values."""
    state, ledger = books(engine), books(engine).ledger
    columns = {
        "wanted": ledger.wanted,
        "held": ledger.held,
        "used": ledger.used,
        "taken": ledger.taken,
        "room leaving": state.leaving.room,
        "charge leaving": state.leaving.charge,
    }
    return {
        "entries": {
            uid: (entry.booking, entry.stage, entry.node, entry.path)
            for uid, entry in ledger.entries.items()
        },
        "claims": {
            claim.uid: (claim.pods, claim.others, claim.missing, claim.surplus, claim.held)
            for claim in state.waiting.claims()
        },
        "nominated": set(ledger.holding),
        "deadline": engine.next_deadline(),
        **{name: column.data.tolist() for name, column in columns.items()},
    }


def _compare_books(questioned: Engine, silent: Engine) -> None:
    expected = _books(silent)
    for name, found in _books(questioned).items():
        assert found == expected[name], name


def _play(rng: Random, asks: Random, policy: str, cycles: int, asked: list[str]) -> None:
    """Play a cluster on two engines, of which one is asked these questions."""
    cluster = Cluster(rng, policy)
    silent, questioned = (Engine(policy, cluster.knobs) for _ in range(2))

    def ask() -> None:
        for name in asked:
            if asks.random() < 1 / 2:
                QUESTIONS[name](questioned, cluster, asks)

    for _ in range(cycles):
        for event in cluster.events():
            silent.apply(event)
            questioned.apply(event)
            ask()
        _compare_books(questioned, silent)
        expected = silent.cycle(cluster.now)
        decided = questioned.cycle(cluster.now)
        assert [*map(decision_text, flat(decided))] == [*map(decision_text, flat(expected))]
        cluster.take(expected)
        ask()
        _compare_books(questioned, silent)
        cluster.advance(silent.next_deadline())


@settings(max_examples=examples(400, sample=30), deadline=None)
@given(
    rng=st.randoms(use_true_random=False),
    asks=st.randoms(use_true_random=False),
    policy=st.sampled_from(POLICIES),
    cycles=st.integers(1, 12),
    asked=st.lists(st.sampled_from(sorted(QUESTIONS)), min_size=1, unique=True),
)
def test_queries_change_nothing(
    rng: Random, asks: Random, policy: str, cycles: int, asked: list[str]
) -> None:
    _play(rng, asks, policy, cycles, asked)
