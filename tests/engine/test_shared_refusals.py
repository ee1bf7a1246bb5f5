"""What refuses one claim refuses its like, until a claim starts: then the numbers are others."""

from random import Random
from typing import Any

import pytest

from aliquot.engine import Topology, Wait
from aliquot.engine.model.reasons import Refusal
from aliquot.engine.queue.claim import Claim
from tests.build.values import amounts, device_set, gpu_ask
from tests.engine.test_pod_rules import HOST, away_from
from tests.engine.world import World

JOBS = 20
RACK = "example.com/rack"
APART = away_from("x")


def busy(deserves: int = 4) -> World:
    """A queue that uses what it deserves of a large node; another one deserves the rest."""
    world = World("queues")
    world.node("n", amounts(gpu=100, cpu=100))
    world.quota("q", deserved=amounts(gpu=deserves), namespaces=frozenset())
    world.quota("other", deserved=amounts(gpu=100 - deserves), namespaces=frozenset())
    world.pod("x", "runs", amounts(gpu=1), node="n", quota="q")
    return world


def job(world: World, namespace: str, name: str, gpu: int, pods: int = 3, **more: object) -> None:
    """A gang of which two pods start together."""
    gang = f"{namespace}/{name}"
    world.gang(gang, 2, quota="q")
    for number in range(pods):
        asks = amounts(gpu=gpu)
        world.pod(namespace, f"{name}-{number}", asks, quota="q", gang=gang, **more)


def told(world: World) -> dict[str, str]:
    """What each claim is told in a cycle, by the path of its pods."""
    waits = (each for each in world.cycle() if isinstance(each, Wait))
    return {each.pod.path: each.refusal.message for each in waits}


def starter(world: World, name: str) -> None:
    """A pod of the other queue that starts, so that idle capacity is left alone."""
    world.pod("z", name, amounts(gpu=1), quota="other")


def trials(world: World) -> list[Claim]:
    """The claims that are tried on quotas and nodes from now on."""
    tried, fit = list[Claim](), world.engine._trial.fit
    assume = fit.assume

    def noted(claim: Claim, *rest: object) -> Refusal | None:
        tried.append(claim)
        return assume(claim, *rest)  # type: ignore[arg-type]

    fit.assume = noted  # type: ignore[assignment,method-assign]
    return tried


def test_claims_that_are_alike_are_tried_once() -> None:
    world = busy()
    for number in range(JOBS):
        job(world, f"team-{number}", "job", gpu=2)
    tried = trials(world)
    messages = told(world)
    assert len(messages) == 3 * JOBS
    assert set(messages.values()) == {"queue q: deserves 4 nvidia.com/gpu, used 1, 2 pods ask 4"}
    assert len([each for each in tried if each.size == 2 and not each.surplus]) <= 1 + JOBS


def test_each_is_told_what_it_is_told_when_asked() -> None:
    world = busy()
    for number in range(6):
        job(world, f"team-{number}", "job", gpu=2 + number % 2, preempts=number % 3 > 0)
    starter(world, "starts")
    messages = told(world)
    assert len(messages) == 18
    for path in messages:
        refusal = world.engine.why(path)
        assert refusal is not None
        assert messages[path].startswith(refusal.message)


def test_after_a_start_the_numbers_are_new() -> None:
    """The small job, which is older than the second large one, starts between the two."""
    world = busy()
    job(world, "a", "large", gpu=2, created=0)
    job(world, "a", "small", gpu=1, pods=2, created=1)
    job(world, "b", "large", gpu=2, created=2)
    messages = told(world)
    assert {path for path in messages if "large" in path} == messages.keys()
    assert "used 1," in messages["a/large-0"]
    assert "used 3," in messages["b/large-0"]


@pytest.mark.parametrize(
    "different",
    [{"gpu": 3}, {"preemptible": False}, {"pods": 2}],
    ids=["another request", "not preemptible", "no further pods"],
)
def test_a_claim_that_differs_is_told_what_it_is_told_alone(different: dict[str, object]) -> None:
    alone, together = busy(), busy()
    facts = {"gpu": 2, **different}
    for world in (alone, together):
        job(world, "b", "job", **facts)  # type: ignore[arg-type]
    job(together, "a", "job", gpu=2)
    messages = told(together)
    assert {path: messages[path] for path in messages if path[0] == "b"} == told(alone)


def test_what_was_known_of_one_cycle_is_not_told_in_the_next() -> None:
    world = busy()
    job(world, "a", "job", gpu=2)
    starter(world, "first")
    assert "used 1," in told(world)["a/job-0"]
    world.pod("x", "more", amounts(gpu=1), node="n", quota="q")
    job(world, "b", "job", gpu=2)
    starter(world, "second")
    assert "used 2," in told(world)["b/job-0"]


@pytest.mark.parametrize("seed", range(40))
def test_one_look_at_the_nodes_tells_what_placing_pod_by_pod_would(seed: int) -> None:
    rng = Random(seed)
    world = World("queues")
    world.quota("q", default_weight=1, namespaces=frozenset())
    for number in range(rng.randint(0, 5)):
        world.node(f"n-{number}", amounts(gpu=rng.randint(0, 5), cpu=rng.randint(0, 9)))
        if rng.random() < 0.5:
            world.pod("x", f"p-{number}", amounts(gpu=1, cpu=2), node=f"n-{number}", quota="q")
    size = rng.randint(1, 6)
    world.gang("a/g", size, quota="q")
    asks = amounts(gpu=rng.randint(0, 2) or None, cpu=rng.randint(0, 3) or None)
    for number in range(size):
        world.pod("a", f"g-{number}", asks, quota="q", gang="a/g")
    world.engine._gang_claims.refresh()
    claim, fit = world.state.waiting.claim("a/g-0"), world.engine._trial.fit
    with world.state.speculating():
        assert fit.surely_fits(claim) == (fit.place(claim, None) is None)


@pytest.mark.parametrize(
    ("of_gang", "of_pods"),
    [
        ({}, {"labels": (("app", "x"),), "rules": APART}),
        ({}, {"shape": {"gpu": gpu_ask(100, 80)}}),
        ({"topology": Topology((RACK,))}, {}),
    ],
    ids=["apart", "whole cards", "one rack"],
)
def test_where_pods_depend_on_each_other_one_look_tells_nothing(
    of_gang: dict[str, Any], of_pods: dict[str, Any]
) -> None:
    """Two pods are alike and each has room, but not both."""
    world = World("queues")
    world.quota("q", default_weight=1, namespaces=frozenset())
    for name in "nm" if of_gang else "n":
        world.node(name, amounts(cpu=8), labels=((HOST, name), (RACK, name)))
    world.apply(device_set("n-0"))
    world.gang("a/g", 2, quota="q", **of_gang)
    for number in range(2):
        cpu = amounts(cpu=5 if of_gang else 1)
        world.pod("a", f"g-{number}", cpu, quota="q", gang="a/g", **of_pods)
    world.engine._gang_claims.refresh()
    claim, fit = world.state.waiting.claim("a/g-0"), world.engine._trial.fit
    assert not fit.surely_fits(claim)
    with world.state.speculating():
        assert fit.place(claim, None) is not None
