"""The change log and its cursors; bookings that are tried, and questions that change nothing."""

import pytest

from aliquot.engine import PodGone, QuotaGone
from aliquot.engine.books.changes import Changes, Log
from tests.build.engines import books
from tests.build.values import amounts
from tests.engine.world import World


def test_each_reader_sees_every_change_once() -> None:
    log = Log[int]()
    early = log.cursor()
    log.append(1)
    late = log.cursor()
    log.append(2)
    assert bool(early)
    assert early.unread() == [1, 2]
    assert early.read() == [1, 2]
    assert not early
    assert early.read() == []
    assert late.read() == [2]


def test_what_all_have_read_is_dropped() -> None:
    log = Log[int]()
    slow, fast = log.cursor(), log.cursor()
    for number in range(4):
        log.append(number)
    assert fast.read() == [0, 1, 2, 3]
    log.trim()
    assert len(log) == 4
    assert slow.read() == [0, 1, 2, 3]
    log.append(4)
    log.trim()
    assert len(log) == 1
    assert slow.read() == fast.read() == [4]


def test_a_topic_without_readers_keeps_nothing() -> None:
    changes = Changes()
    changes.usage.append(1)
    changes.trim()
    assert len(changes.usage) == 0


def test_changes_that_were_taken_back_are_not_read() -> None:
    log = Log[int]()
    cursor = log.cursor()
    log.append(1)
    length = len(log)
    log.append(2)
    log.truncate(length)
    assert cursor.read() == [1]


def test_a_gang_that_is_asked_about_is_not_put_into_the_queue() -> None:
    world = World()
    world.node("n", amounts(gpu=4))
    world.gang("a/g", 2)
    world.pod("a", "p", amounts(gpu=1), gang="a/g")
    assert world.told("a/p") == "gang a/g: 2 pods start together, 1 of them is missing"
    assert "a/p" not in books(world.engine).waiting
    world.pod("a", "q", amounts(gpu=1), gang="a/g")
    assert world.engine.why("a/p") is None
    assert [each.phase for each in world.engine.gangs()] == ["Inqueue"]
    assert set(world.run()) == {"a/p", "a/q"}


def test_a_refusal_shows_the_room_of_now_whoever_was_tried_before() -> None:
    """A trial in which a nomination is set aside sees more room than there is for others."""
    world = World()
    world.node("n", amounts(gpu=2))
    world.quota("a", amounts(gpu=2), amounts(gpu=2))
    world.pod("a", "low", amounts(gpu=2), node="n")
    world.pod("a", "high", amounts(gpu=2), priority=1)
    world.cycle()
    world.pod("b", "p", amounts(gpu=2))
    world.cycle()
    assert world.told("b/p").endswith("(asks 2, most free 0); some room is held for nominated pods")


def test_the_order_by_request_follows_what_any_quota_guarantees() -> None:
    world = World("fair")
    world.node("n", amounts(gpu=8, cpu=16))
    world.quota("a", amounts(gpu=4))
    world.pod("a", "x", amounts(gpu=1, cpu=8), node="n")
    world.pod("a", "y", amounts(gpu=2), node="n")
    ranked, slot = world.state.bound_pods.ranked, world.state.tree.slots["a"]
    assert ranked(slot) == ["a/x", "a/y"]
    world.quota("b", amounts(cpu=1))
    assert ranked(slot) == ["a/y", "a/x"]
    world.apply(QuotaGone("b"))
    assert ranked(slot) == ["a/x", "a/y"]


def test_a_gang_with_a_pod_outside_all_queues_waits_for_the_others() -> None:
    world = World("queues")
    world.node("n", amounts(gpu=4))
    world.quota("q", default_weight=1)
    world.quota("r", default_weight=1, deserved=amounts(gpu=4))
    world.pod("r", "x", amounts(gpu=2), node="n", quota="r")
    world.gang("q/g", 2)
    world.pod("q", "p", amounts(gpu=3), gang="q/g", quota="q")
    world.pod("elsewhere", "p", amounts(gpu=1), gang="q/g")
    assert world.run() == {}


@pytest.mark.parametrize("policy", ["capacity", "fair", "hierarchy", "queues"])
def test_the_log_stays_short_however_long_the_engine_runs(policy: str) -> None:
    world = World(policy)
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=2), amounts(gpu=4))
    for number in range(60):
        world.pod("a", f"p-{number}", amounts(gpu=1), node="n")
        world.cycle(number)
        world.apply(PodGone(f"a/p-{number}"))
        world.cycle(number)
    lengths = {name: len(log) for name, log in vars(world.state.changes).items() if name[0] != "_"}
    assert max(lengths.values()) <= 10, lengths


@pytest.mark.parametrize("policy", ["hierarchy", "queues"])
def test_a_question_beside_a_nomination_wakes_nothing(policy: str) -> None:
    world = World(policy)
    world.node("n", amounts(gpu=4))
    for name in "abc":
        world.quota(name, amounts(gpu=1), amounts(gpu=4), default_weight=1)
    world.pod("a", "low", amounts(gpu=2), node="n")
    world.pod("b", "x", amounts(gpu=2), node="n")
    world.pod("a", "high", amounts(gpu=2), priority=1)
    world.pod("a", "more", amounts(gpu=1), priority=2)
    world.cycle()
    assert world.state.ledger.holding
    world.engine._policy.gates.begin()
    world.pod("c", "p", amounts(gpu=4))
    world.engine.why("a/more")
    world.apply(PodGone("c/p"))
    assert list(world.engine._policy.gates.begin()) == []
