"""Queues beyond the scenarios: what there is to deserve, and who is never asked to go."""

from aliquot.engine.model.decisions import Wait, evictions
from aliquot.engine.model.events import PodGone
from aliquot.engine.model.reasons import Reason
from tests.build.values import GPU, amounts, node_set
from tests.engine.world import World


def deserved(world: World) -> dict[str, int]:
    return {each.name: each.deserved.get(GPU, 0) for each in world.engine.queues()}


def test_what_is_used_outside_the_queues_is_not_there_to_deserve() -> None:
    world = World("queues")
    world.node("n", amounts(gpu=6))
    for queue in ("a", "b"):
        world.quota(queue, default_weight=1)
        world.pod(queue, "p", amounts(gpu=6))
    world.quota("system", unshared=True)
    world.pod("system", "x", amounts(gpu=2), node="n")
    world.run()
    assert deserved(world) == {"a": 2, "b": 2, "system": 0}


def test_what_no_node_has_is_not_deserved_but_missing() -> None:
    world = World("queues")
    world.node("n", amounts(gpu=1))
    world.quota("a", default_weight=1)
    world.pod("a", "p", amounts(gpu=1, fpga=2))
    world.run()
    refusal = world.engine.why("a/p")
    assert refusal is not None
    assert refusal.reason is Reason.NO_NODE_FITS
    (queue,) = world.engine.queues()
    assert "fpga" not in queue.deserved


def test_a_pod_without_requests_preempts_no_pod_with_requests() -> None:
    """Of two places for pods its queue deserves one, but those who have them use GPUs as well."""
    world = World("queues")
    world.apply(node_set("n", 4, pods=2))
    for queue in ("a", "b"):
        world.quota(queue, default_weight=1)
    world.pod("b", "x-0", amounts(gpu=1), node="n")
    world.pod("b", "x-1", amounts(gpu=1), node="n")
    world.pod("a", "p", ())
    assert world.run() == {}
    assert world.evicted() == []


def test_a_queue_at_what_it_deserves_keeps_its_pods() -> None:
    """They are the least important ones, and still the queue that has more than its part gives."""
    world = World("queues")
    world.node("n", amounts(gpu=6))
    for queue in ("a", "b", "c"):
        world.quota(queue, default_weight=1)
    for number in range(2):
        world.pod("b", f"x-{number}", amounts(gpu=1), node="n", priority=-1, created=9)
    for number in range(4):
        world.pod("c", f"x-{number}", amounts(gpu=1), node="n", created=number)
    world.pod("a", "p", amounts(gpu=2))
    assert world.run() == {"a/p": "n"}
    assert world.evicted() == ["c/x-2", "c/x-3"]


def test_the_last_unit_of_a_capability_is_given_by_a_lesser_pod_of_the_queue() -> None:
    """There is idle room, but the queue may not have more: one of its own goes."""
    world = World("queues")
    world.node("n", amounts(gpu=4))
    world.quota("a", high=amounts(gpu=2), default_weight=1)
    world.pod("a", "x-0", amounts(gpu=1), node="n", created=0)
    world.pod("a", "x-1", amounts(gpu=1), node="n", created=1)
    world.pod("a", "p", amounts(gpu=1), priority=1)
    assert world.run() == {"a/p": "n"}
    assert world.evicted() == ["a/x-1"]


def halves() -> World:
    """Two queues with four GPUs; the second uses them all."""
    world = World("queues")
    world.node("n", amounts(gpu=4))
    for queue in ("a", "b"):
        world.quota(queue, default_weight=1)
    for number in range(4):
        world.pod("b", f"x-{number}", amounts(gpu=1), node="n")
    return world


def test_a_claim_is_owed_what_its_queue_deserves() -> None:
    world = halves()
    world.pod("a", "p", amounts(gpu=2))
    world.pod("a", "q", amounts(gpu=3))
    waiting, policy = world.state.waiting, world.engine._policy
    world.cycle()
    assert deserved(world)["a"] == 2
    assert policy.gates.is_owed(waiting.claim("a/p"))
    assert not policy.gates.is_owed(waiting.claim("a/q"))


def test_a_cycle_begins_with_the_queues_that_deserve_more_or_less_than_before() -> None:
    world = halves()
    policy = world.engine._policy
    world.cycle()
    assert list(policy.gates.begin()) == []
    world.pod("a", "p", amounts(gpu=2))
    assert {"a", "b"} <= set(policy.gates.begin())


def test_a_queue_without_all_of_its_guarantee_keeps_none_of_it() -> None:
    """It has two of the four cpus of its guarantee, and gives the GPU that it has too much."""
    world = World("queues")
    world.node("n", amounts(gpu=2, cpu=8000))
    world.quota("a", default_weight=1)
    world.quota("b", amounts(cpu=4000), default_weight=1)
    world.pod("b", "x-0", amounts(gpu=1, cpu=1000), node="n", created=0)
    world.pod("b", "x-1", amounts(gpu=1, cpu=1000), node="n", created=1)
    world.pod("a", "p", amounts(gpu=1))
    assert world.run() == {"a/p": "n"}
    assert world.evicted() == ["b/x-1"]


def test_of_a_queue_the_namespace_with_more_gives_first() -> None:
    """As much as is asked for, not all that the queue has beyond its part."""
    world = World("queues")
    world.node("n", amounts(gpu=6))
    world.quota("a", default_weight=1)
    world.quota("b", default_weight=1, namespaces=frozenset({"x", "y"}))
    for number in range(4):
        world.pod("x", f"p-{number}", amounts(gpu=1), node="n", created=number)
    for number in range(2):
        world.pod("y", f"p-{number}", amounts(gpu=1), node="n", created=9, priority=-1)
    for number in range(3):
        world.pod("a", f"p-{number}", amounts(gpu=1))
    assert len(world.run()) == 3
    assert [each.pod.path for each in world.evictions][:2] == ["x/p-3", "x/p-2"]


def test_what_was_promised_to_a_claim_ends_with_what_is_held_for_it() -> None:
    """Its queue has more than it deserves; a pod of its own was to make way, and was too slow."""
    world = World("queues")
    world.node("n", amounts(gpu=4))
    world.quota("a", default_weight=1, reclaimable=False)
    world.quota("b", default_weight=1)
    for number in range(3):
        world.pod("a", f"fixed-{number}", amounts(gpu=1), node="n", priority=2)
    world.pod("a", "low", amounts(gpu=1), node="n")
    world.pod("b", "p", amounts(gpu=2))
    world.pod("a", "high", amounts(gpu=1), priority=1)
    gone = [each.pod.name for each in evictions(world.cycle(0))]
    assert gone == ["low"]
    claim = world.state.waiting.claim("a/high")
    assert claim.held
    world.cycle(10_000)
    claim = world.state.waiting.claim("a/high")
    assert not claim.held
    world.apply(PodGone("a/low"))
    refusal = world.engine._policy.gates.gate(claim, None)
    assert refusal is not None
    assert refusal.message == "queue a: deserves 2 nvidia.com/gpu, used 3, pod asks 1"


def test_what_is_only_held_for_a_pod_is_not_yet_used_by_its_namespace() -> None:
    world = halves()
    world.pod("a", "p", amounts(gpu=2))
    world.cycle()
    assert world.state.waiting.claim("a/p").held
    figures = {each.name: each.namespaces for each in world.engine.queues()}
    assert figures["a"]["a"].used.get(GPU, 0) == 0
    assert figures["b"]["b"].used[GPU] == 4


def test_a_queue_keeps_its_guarantee_to_the_last_unit() -> None:
    """Each of its pods has a cpu of the two that are guaranteed to it, so none of them goes."""
    world = World("queues")
    world.node("n", amounts(gpu=2, cpu=8000))
    world.quota("a", default_weight=1)
    world.quota("b", amounts(cpu=2000), default_weight=1)
    for number in range(2):
        world.pod("b", f"x-{number}", amounts(gpu=1, cpu=1000), node="n")
    world.pod("a", "p", amounts(gpu=1))
    assert world.run() == {}
    assert world.evicted() == []


def test_in_a_namespace_priority_comes_before_gangs() -> None:
    """There is room for one: the pod beyond the core of a gang is the more important."""
    world = World("queues")
    world.node("n", amounts(gpu=2))
    world.quota("a", default_weight=1)
    world.gang("a/g", 1, quota="a")
    world.pod("a", "g-0", amounts(gpu=1), node="n", gang="a/g", priority=5)
    world.pod("a", "g-1", amounts(gpu=1), gang="a/g", priority=5)
    world.pod("a", "plain", amounts(gpu=1))
    assert world.run() == {"a/g-1": "n"}


def test_a_queue_that_deserves_none_of_something_could_not_keep_it() -> None:
    world = World("queues")
    world.node("n", amounts(gpu=4))
    world.quota("a", default_weight=1)
    world.quota("b", default_weight=1, deserved=amounts(gpu=4))
    world.pod("b", "x", amounts(gpu=4), node="n")
    world.pod("a", "p", amounts(gpu=1))
    world.pod("b", "p", amounts(gpu=1))
    world.cycle()
    assert deserved(world) == {"a": 0, "b": 4}
    claims, policy = world.state.waiting, world.engine._policy
    assert not policy.gates.could_keep_idle(claims.claim("a/p"))
    assert policy.gates.could_keep_idle(claims.claim("b/p"))


def test_claims_for_which_pods_of_their_queue_went_all_start() -> None:
    """The queue has more than it deserves, and keeps that: each claim replaces a lesser pod."""
    world = World("queues")
    world.node("n", amounts(gpu=4))
    for queue in ("a", "b"):
        world.quota(queue, default_weight=1)
    world.quota("kept", amounts(gpu=2), lend=False, default_weight=1)
    for number in range(2):
        world.pod("a", f"fixed-{number}", amounts(gpu=1), node="n", preemptible=False)
        world.pod("a", f"low-{number}", amounts(gpu=1), node="n")
    world.pod("b", "p", amounts(gpu=3))
    for number in range(2):
        world.pod("a", f"high-{number}", amounts(gpu=1), priority=1)
    gone = {each.pod.name for each in evictions(world.cycle())}
    assert gone == {"low-0", "low-1"}
    for name in sorted(gone):
        world.apply(PodGone(f"a/{name}"))
    assert set(world.run()) == {"a/high-0", "a/high-1"}


def test_a_queue_takes_back_up_to_its_capability() -> None:
    world = World("queues")
    world.node("n", amounts(gpu=4))
    world.quota("a", high=amounts(gpu=2), default_weight=1)
    world.quota("b", default_weight=1)
    for number in range(4):
        world.pod("b", f"x-{number}", amounts(gpu=1), node="n", created=number)
    world.pod("a", "p", amounts(gpu=2))
    assert world.run() == {"a/p": "n"}
    assert world.evicted() == ["b/x-2", "b/x-3"]


def test_what_is_within_deserved_need_not_be_idle_where_the_rest_is() -> None:
    """Of the cards, one is kept for the guarantee of c; a deserves the other, and cpu is idle."""
    world = World("queues")
    world.node("n", amounts(cpu=8, gpu=3))
    world.quota("a", deserved=amounts(gpu=2), default_weight=1)
    world.quota("b", deserved=amounts(cpu=8), default_weight=1)
    world.quota("c", amounts(gpu=1), deserved=amounts(gpu=1), lend=False, default_weight=1)
    for number in range(2):
        world.pod("b", f"x-{number}", amounts(cpu=1, gpu=1), node="n")
    world.pod("a", "p", amounts(cpu=1, gpu=1))
    assert world.run() == {"a/p": "n"}
    assert world.evicted() == []


def test_a_claim_waits_for_its_victims_though_it_uses_what_is_idle_besides() -> None:
    """The cpu that it takes above deserved need not come free; the card will."""
    world = World("queues")
    world.node("n", amounts(cpu=8, gpu=2))
    world.quota("a", deserved=amounts(gpu=2), default_weight=1)
    world.quota("b", deserved=amounts(cpu=8), default_weight=1)
    world.pod("a", "q", amounts(cpu=1), node="n")
    for number in range(2):
        world.pod("b", f"x-{number}", amounts(cpu=1, gpu=1), node="n")
    world.pod("a", "p", amounts(cpu=1, gpu=1))
    decisions = world.cycle()
    assert len(list(evictions(decisions))) == 1
    told = [each.refusal.reason for each in decisions if isinstance(each, Wait)]
    assert told == [Reason.WAITING_FOR_VICTIMS]
