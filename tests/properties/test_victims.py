"""The chosen victims against brute force over all sets, on small clusters.

The engine must find a set exactly when there is one, and one that is as good as the best.
"""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind, binds_and_evictions
from aliquot.engine.model.events import NodeSet, PodGone, PodSet, QuotaSet
from aliquot.engine.model.pod import Pod, Shape
from tests.campaign import examples
from tests.properties.fair_rules import FairRules
from tests.properties.victim_rules import TEAMS, Case, Rules, cases, play, shapes

RULES = {"capacity": Rules, "fair": FairRules}
policies = st.sampled_from(sorted(RULES))


@settings(deadline=None, max_examples=examples(600))
@given(cases(), policies)
def test_the_victims_are_as_good_as_the_best_of_all_sets(case: Case, policy: str) -> None:
    rules = RULES[policy](case)
    best = rules.best()
    gone, node = play(case, policy)
    assert (node is not None) == (best is not None)
    assert rules.cost(gone) == (best if best is not None else rules.cost(()))


@settings(deadline=None, max_examples=examples(200))
@given(cases(), policies)
def test_no_victim_could_be_put_back(case: Case, policy: str) -> None:
    rules = RULES[policy](case)
    gone, node = play(case, policy)
    assert not gone or node is not None
    for pod in gone:
        others = tuple(other for other in gone if other != pod)
        assert node is not None
        assert not rules.starts(node, others) or rules.grows(others)


@settings(deadline=None, max_examples=examples(150))
@given(
    cases(), policies, st.lists(st.tuples(st.sampled_from(TEAMS), shapes((1, 2, 3))), max_size=3)
)
def test_at_the_fixed_point_nobody_waits_for_whom_others_would_have_to_go(
    case: Case, policy: str, more: list[tuple[str, Shape]]
) -> None:
    """Run several claims to the end; then ask brute force about everybody who still waits."""
    engine = Engine(policy)
    running = {pod.uid: pod for pod in case.running[:5]}
    waiting = {case.claimant.uid: case.claimant}
    for number, (team, shape) in enumerate(more):
        waiting[f"w{number}"] = Pod(f"w{number}", team, f"w{number}", shape, created=10 + number)
    for node in case.nodes:
        engine.apply(NodeSet(node))
    for quota in case.quotas:
        engine.apply(QuotaSet(quota))
    for pod in (*running.values(), *waiting.values()):
        engine.apply(PodSet(pod))
    now = 0
    for _ in range(30):
        decisions = list(binds_and_evictions(engine.cycle(now)))
        for decision in decisions:
            if isinstance(decision, Bind):
                pod = replace(waiting.pop(decision.pod.uid), node=decision.node)
                running[pod.uid] = pod
                engine.apply(PodSet(pod))
            else:
                del running[decision.pod.uid]
                engine.apply(PodGone(decision.pod.uid))
        deadline = engine.next_deadline()
        if not decisions and deadline is None:
            break
        now = now if decisions or deadline is None else deadline
    else:
        raise AssertionError("no fixed point")
    for pod in waiting.values():
        others = tuple(other for other in waiting.values() if other != pod)
        final = Case(case.nodes, case.quotas, tuple(running.values()), pod, None, others)
        assert RULES[policy](final).best() is None
