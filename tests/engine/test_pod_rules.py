"""Rules about other pods, where they meet gangs, quotas on GPUs and victims.

Each was found by random operations (tests/properties/test_random_operations.py), and made small.
"""

from dataclasses import replace

from aliquot.engine import (
    SECOND,
    AffinityTerm,
    PodRules,
    PodSelector,
    PodSet,
    Requirement,
    binds_and_evictions,
    evictions,
)
from tests.build.values import amounts, device_set, gpu_ask, gpu_quota_set, pod
from tests.engine.world import World

HOST = "kubernetes.io/hostname"


def away_from(app: str) -> PodRules:
    """Anti-affinity to the pods of an app, in all namespaces, on the same node."""
    pods = PodSelector((), (), (Requirement("app", "In", (app,)),))
    return PodRules(anti_affinity=(AffinityTerm(pods, HOST),))


def test_a_pod_of_a_gang_keeps_away_from_a_pod_that_came_while_it_waited() -> None:
    world = World()
    world.gang("a/gang", 1)
    world.pod("a", "late", amounts(gpu=2), gang="a/gang", labels=(("app", "x"),))
    world.node("n", amounts(gpu=1), labels=((HOST, "n"),))
    world.run()
    world.pod("a", "there", amounts(cpu=0), node="n", rules=away_from("x"))
    world.node("n", amounts(gpu=2), labels=((HOST, "n"),))
    assert world.run() == {}
    assert "anti-affinity" in world.told("a/late")


def test_a_victim_of_another_namespace_frees_nothing_of_a_quota_on_gpus() -> None:
    """Two pods alike but for their namespace: only one is charged to the quota on GPUs."""
    world = World()
    world.node("n", amounts(cpu=4), labels=((HOST, "n"),))
    world.apply(device_set("n-0"), gpu_quota_set(workers=1))
    half = {"gpu": gpu_ask(50, 40)}
    world.pod("team", "own", (), shape=half, priority=1, node="n", devices=("n-0",))
    world.pod("other", "alike", (), shape=half, priority=0, node="n", devices=("n-0",))
    world.pod("team", "asks", (), shape=half, priority=2, rules=away_from("x"))
    assert [each.pod.path for each in evictions(world.cycle())] == ["team/own"]
    assert not list(binds_and_evictions(world.cycle()))


def test_a_claim_with_rules_preempts_a_few_times_while_it_waits() -> None:
    """Each time with other victims, which come back and spoil the spread before it starts."""
    world = World()
    guard, claim = world.state.repeat_guard, pod("claim", rules=away_from("x"))
    for number in range(4):
        move = guard.move(0, (claim,), (pod(f"victim-{number}", number + 1),))
        assert guard.repeats(move, owed=True, by="claim") == (number == 3)
        assert not guard.repeats(move, owed=True)
        guard.record(move, "claim")
    world.node("new", amounts(gpu=1))
    assert not guard.repeats(move, owed=True, by="claim")


def test_an_eviction_that_comes_true_is_no_change_of_the_cluster() -> None:
    """Else every preemption could be made again as soon as the pod is seen to terminate."""
    world = World()
    world.node("n", amounts(gpu=1))
    victim = world.pod("a", "victim", amounts(gpu=1), node="n")
    claim = world.pod("a", "claim", amounts(gpu=1), priority=1)
    move = world.state.repeat_guard.move(world.state.waiting.fingerprint, (claim,), (victim,))
    assert [each.pod.path for each in evictions(world.cycle())] == ["a/victim"]
    world.apply(PodSet(replace(victim, terminating=True, gone_by=30 * SECOND)))
    assert world.state.repeat_guard.repeats(move, owed=False)
    world.apply(PodSet(replace(victim, terminating=True, gone_by=30 * SECOND, priority=-1)))
    assert not world.state.repeat_guard.repeats(move, owed=False)
