"""Gangs that lack pods: which are let in, what that counts for, and until when."""

from aliquot.engine.model.events import GangGone, PodGone, QuotaGone
from aliquot.engine.model.knobs import SECOND
from tests.build.values import amounts
from tests.engine.world import World

MINUTE = 60


def two_queues(gpus: int = 4) -> World:
    world = World("queues")
    world.node("n", amounts(gpu=gpus))
    for queue in ("a", "b"):
        world.quota(queue, default_weight=1)
    return world


def phases(world: World) -> dict[str, str]:
    return {each.name: each.phase for each in world.engine.gangs()}


def test_gangs_take_turns_once_each_and_then_time_stands_still() -> None:
    """No deadline is left for gangs that never get pods, so a simulation of them ends."""
    world = two_queues()
    for queue in ("a", "b"):
        world.gang(f"{queue}/g", 1, min_resources=amounts(gpu=3), quota=queue)
    moments = []
    world.run(0)
    assert phases(world) == {"a/g": "Inqueue", "b/g": "Pending"}
    while (deadline := world.engine.next_deadline()) is not None:
        moments.append(deadline // SECOND)
        world.run(moments[-1])
    assert moments == [5 * MINUTE, 10 * MINUTE]


def test_a_gang_alone_is_not_put_behind_itself() -> None:
    world = two_queues()
    world.gang("a/g", 1, min_resources=amounts(gpu=3), quota="a")
    world.run(0)
    assert world.engine.next_deadline() is None
    world.run(30 * MINUTE)
    assert phases(world) == {"a/g": "Inqueue"}


def test_a_gang_whose_closed_queue_is_deleted_is_demand_of_the_default_queue() -> None:
    world = two_queues()
    world.quota("default", default_weight=1, fallback=True)
    world.quota("shut", default_weight=1, closed=True)
    world.gang("x/g", 2, min_resources=amounts(gpu=3), quota="shut")

    def request() -> dict[str, int]:
        (found,) = [each for each in world.engine.summarise() if each.name == "default"]
        return dict(found.request)

    assert request() == {}
    world.apply(QuotaGone("shut"))
    assert request() == {"nvidia.com/gpu": 3}


def test_a_gang_that_is_deleted_makes_place_at_once() -> None:
    world = two_queues()
    for queue in ("a", "b"):
        world.gang(f"{queue}/g", 1, min_resources=amounts(gpu=3), quota=queue)
    world.run(0)
    world.apply(GangGone("a/g"))
    assert phases(world) == {"b/g": "Inqueue"}


def test_a_gang_that_waits_for_room_counts_as_inqueue_for_others() -> None:
    """Its pod needs more than any node has free, though two are free in all."""
    world = World("queues")
    for name in ("n", "m"):
        world.node(name, amounts(gpu=2))
        world.pod("x", f"on-{name}", amounts(gpu=1), node=name)
    for queue in ("a", "b", "x"):
        world.quota(queue, default_weight=1)
    world.gang("a/g", 1, min_resources=amounts(gpu=2), quota="a")
    world.pod("a", "g-0", amounts(gpu=2), gang="a/g", preempts=False)
    world.gang("b/g", 1, min_resources=amounts(gpu=2), quota="b")
    world.run(0)
    assert phases(world) == {"a/g": "Inqueue", "b/g": "Pending"}
    world.apply(GangGone("a/g"), PodGone("a/g-0"))
    world.run(1)
    assert phases(world) == {"b/g": "Inqueue"}


def test_what_is_let_in_is_not_kept_from_pods_that_exist() -> None:
    world = two_queues()
    world.gang("a/g", 1, min_resources=amounts(gpu=3), quota="a")
    world.run(0)
    world.pod("b", "p-0", amounts(gpu=2))
    world.pod("b", "p-1", amounts(gpu=2))
    assert world.run(1) == {"b/p-0": "n", "b/p-1": "n"}
    assert phases(world) == {"a/g": "Pending"}


def test_a_refused_gang_says_that_inqueue_gangs_count() -> None:
    world = two_queues()
    for name in ("g", "h"):
        world.gang(f"a/{name}", 1, min_resources=amounts(gpu=3), quota="a")
    world.run(0)
    first, second = world.engine.gangs()
    assert (first.phase, second.phase) == ("Inqueue", "Pending")
    assert second.refusal is not None
    assert second.refusal.message == (
        "queue a: deserves 4 nvidia.com/gpu, used 3, pod asks 3; "
        "what gangs that are Inqueue ask for counts as used"
    )
