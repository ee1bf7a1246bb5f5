"""Quotas that are open to some namespaces only, and priorities that count for the system only."""

import pytest

from aliquot.engine import Reason, SystemNamespaces
from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.events import QuotaSet
from aliquot.engine.model.quota import Quota
from aliquot.engine.model.system_namespaces import CRITICAL_PRIORITY
from tests.build.values import amounts, pod
from tests.engine.world import World

ONE = amounts(gpu=1)
OPEN = frozenset({"a", "b"})
CLOSED = frozenset({"b"})


def shared(open_to: frozenset[str] | None = CLOSED, policy: str = "hierarchy") -> World:
    """Teams a and b with a quota each; b's is open to these namespaces."""
    world = World(policy)
    world.node("n", amounts(gpu=8))
    world.quota("a", amounts(gpu=4), amounts(gpu=8))
    world.quota("b", amounts(gpu=4), amounts(gpu=8), open_to=open_to)
    return world


def charged(world: World, uid: str) -> str | None:
    return world.state.ledger.entries[uid].booking.quota


@pytest.mark.parametrize("policy", ["capacity", "fair", "hierarchy", "queues"])
def test_a_claim_of_a_closed_quota_waits_and_is_charged_to_none(policy: str) -> None:
    world = shared(policy=policy)
    world.pod("a", "p", ONE, quota="b")
    assert world.run() == {}
    refusal = world.engine.why("a/p")
    assert refusal is not None
    assert (refusal.reason, refusal.quota) == (Reason.QUOTA_NOT_ALLOWED, "b")
    assert charged(world, "a/p") is None
    assert all(not each.request.get("nvidia.com/gpu") for each in world.engine.summarise())


def test_a_claim_is_woken_when_the_quota_opens_and_not_before() -> None:
    world = shared()
    world.pod("a", "p", ONE, quota="b")
    world.pod("c", "p", ONE, quota="b")
    world.run()
    world.quota("b", amounts(gpu=5), amounts(gpu=8), open_to=CLOSED)
    assert world.run() == {}
    world.quota("b", amounts(gpu=5), amounts(gpu=8), open_to=OPEN)
    assert world.run() == {"a/p": "n"}
    assert charged(world, "a/p") == "b"
    assert world.told("c/p").startswith("quota b is not open to pods of namespace c")


def test_a_running_pod_goes_to_its_namespaces_quota_when_the_named_one_closes() -> None:
    world = shared(OPEN)
    world.pod("a", "p", ONE, quota="b")
    world.run()
    world.quota("b", amounts(gpu=4), amounts(gpu=8), open_to=CLOSED)
    assert charged(world, "a/p") == "a"
    assert world.run() == {}
    assert world.evicted() == []


def test_an_assumed_pod_stays_charged_when_the_named_quota_closes() -> None:
    world = shared(OPEN)
    world.pod("a", "p", ONE, quota="b")
    world.cycle()
    world.quota("b", amounts(gpu=4), amounts(gpu=8), open_to=CLOSED)
    entry = world.state.ledger.entries["a/p"]
    assert (entry.stage, entry.booking.quota) == (Stage.ASSUMED, "a")


def test_what_is_held_for_a_pod_is_let_go_when_the_quota_closes() -> None:
    world = shared(OPEN)
    for number in range(8):
        world.pod("b", f"p-{number}", ONE, node="n")
    world.pod("a", "p", ONE, quota="b", priority=10)
    world.cycle()
    assert world.state.ledger.entries["a/p"].stage is Stage.HELD
    world.quota("b", amounts(gpu=4), amounts(gpu=8), open_to=CLOSED)
    entry = world.state.ledger.entries["a/p"]
    assert (entry.stage, entry.booking.quota) == (Stage.WAITING, None)


def test_a_gang_with_one_pod_of_a_closed_quota_waits_as_a_whole() -> None:
    world = shared()
    world.gang("a/g", 2)
    world.pod("a", "p", ONE, gang="a/g")
    world.pod("a", "q", ONE, gang="a/g", quota="b")
    assert world.run() == {}
    refusal = world.engine.why("a/p")
    assert refusal is not None
    assert refusal.reason is Reason.QUOTA_NOT_ALLOWED


def test_a_message_names_a_few_namespaces_and_counts_the_rest() -> None:
    several = Quota("x/q", open_to=frozenset(f"n-{number}" for number in range(5)))
    assert "only to those of n-0, n-1, n-2 and 2 more; name" in several.refuse("a")
    assert "only to those of no namespace" in Quota("x/q", open_to=frozenset()).refuse("a")
    assert Quota("x/q").is_open_to("a")


def test_which_pods_are_critical_for_the_system() -> None:
    system = SystemNamespaces(frozenset({"infra"}))
    assert system.names == {"infra", "kube-system"}
    critical = {
        (namespace, priority): system.is_critical(namespace, priority)
        for namespace in ("kube-system", "infra", "team")
        for priority in (CRITICAL_PRIORITY - 1, CRITICAL_PRIORITY)
    }
    assert [key for key, found in critical.items() if found] == [
        ("kube-system", CRITICAL_PRIORITY),
        ("infra", CRITICAL_PRIORITY),
    ]
    tool = pod("tool", ONE, "infra")
    assert (system.needs(tool), system.needs(tool, all_of_them=True)) == (False, True)


@pytest.mark.parametrize("policy", ["capacity", "fair", "hierarchy"])
def test_a_gang_of_the_system_preempts_and_one_of_a_tenant_does_not(policy: str) -> None:
    """Both name a critical priority; the tenant's is tried first, and holds back no claim."""
    world = World(policy, system_namespaces=SystemNamespaces(frozenset({"infra"})))
    world.node("n", amounts(gpu=4))
    world.quota("b", amounts(gpu=4), amounts(gpu=4))
    for number in range(4):
        world.pod("b", f"p-{number}", ONE, node="n")
    for team in ("visitor", "infra"):
        world.gang(f"{team}/g", 2)
        for name in ("p", "q"):
            world.pod(team, name, ONE, gang=f"{team}/g", priority=CRITICAL_PRIORITY)
    assert set(world.run()) == {"infra/p", "infra/q"}
    assert len(world.evicted()) == 2


def test_a_pod_whose_namespace_becomes_none_of_the_system_can_be_evicted() -> None:
    """The configuration is read at the start: a new engine has other system namespaces."""
    for system, evicted in (({"infra"}, []), (set[str](), ["infra/agent"])):
        world = World("queues", system_namespaces=SystemNamespaces(frozenset(system)))
        world.node("n", amounts(gpu=1))
        world.apply(*(QuotaSet(Quota(name, default_weight=1)) for name in ("q", "r")))
        world.apply(QuotaSet(Quota("default", fallback=True, deserved=(), reclaimable=True)))
        world.pod("infra", "agent", ONE, node="n", quota="q")
        world.apply(QuotaSet(Quota("q", max=amounts(gpu=1), deserved=amounts(gpu=0))))
        world.apply(QuotaSet(Quota("r", deserved=amounts(gpu=1))))
        world.pod("team", "p", ONE, quota="r")
        world.run()
        assert world.evicted() == evicted
