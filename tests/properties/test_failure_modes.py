"""Twenty-eight ways in which schedulers of this kind have failed in the field, and what holds here.

In the order of docs/reference/failure-modes.md, which names where each was met. Each test plays the
failure as it was reported; most on the engine alone, those about writes, restarts and leadership on
the parts of the control plane that they concern.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import cast

import pytest

from aliquot.dialects.configuration import Configuration, Profile
from aliquot.engine import (
    SECOND,
    Bind,
    BindFailed,
    DeviceGone,
    Engine,
    Event,
    EvictFailed,
    EvictionKnobs,
    Gang,
    GangSet,
    HierarchyKnobs,
    NodeGone,
    Pod,
    PodGone,
    PodSet,
    QueuesKnobs,
    QuotaGone,
    Wait,
    evictions,
)
from aliquot.engine.queue.claim import Claim
from aliquot.engine.trial import Trial
from aliquot.kube.api.client import Client
from aliquot.kube.control.control_plane import Settings, _assemble
from aliquot.kube.control.scheduler import Settings as SchedulerSettings
from tests.build import values
from tests.build.values import GPU, amounts
from tests.cluster.kube.stories import story, until
from tests.engine.world import World
from tests.kube.leases import Leases
from tests.kube.workshop import Workshop, always, play
from tests.properties.books import check_books
from tests.properties.long_run import LongRun
from tools.streams.text import flat

POLICIES = ("capacity", "fair", "hierarchy", "queues")


class Owners(World):
    """A world in which owners put every evicted pod back at once."""

    made = 0

    def settle(self, seconds: int | None = None) -> list[str]:
        """Decide until there is nothing more to decide; all that were evicted, in order."""
        gone: list[str] = []
        for _ in range(50):
            decisions = self.cycle(seconds)
            for each in evictions(decisions):
                gone.append(each.pod.path)
                self.put_back(each.pod)
            binds = [each for each in decisions if isinstance(each, Bind)]
            for bind in binds:
                self.apply(PodSet(replace(bind.pod, node=bind.node, devices=bind.devices)))
            if not binds and not any(evictions(decisions)):
                return gone
        raise AssertionError("it does not come to rest")

    def put_back(self, pod: Pod) -> None:
        """The pod is gone, and its owner has created another one."""
        self.made += 1
        name = f"{pod.name}.{self.made}"
        again = replace(pod, uid=f"{pod.namespace}/{name}", name=name, node=None, devices=())
        self.apply(PodGone(pod.uid), PodSet(again))

    def used(self, quota: str, resource: str = GPU) -> int:
        """What a quota uses."""
        found = next(each for each in self.engine.summarise() if each.name == quota)
        return found.used.get(resource, 0)

    def running(self, team: str) -> int:
        """How many pods of a team run."""
        pods = self.state.pods.values()
        return sum(pod.namespace == team and pod.node is not None for pod in pods)


def gpus(number: int) -> tuple[tuple[str, int], ...]:
    return amounts(gpu=number)


def test_01_fair_shares_do_not_preempt_each_other_in_turn() -> None:
    """Field: a preemptor whose share was larger than its victim's; the victim took it back, for
    ever. Here the final set of victims is judged, and a quota above its share takes from none."""
    world = Owners("fair")
    world.node("n", gpus(10))
    for team, low in (("a", 2), ("b", 2), ("c", 6)):
        world.quota(team, gpus(low))
    for number in range(8):
        world.pod("a", f"p{number}", gpus(1), node="n", created=number)
    world.pod("b", "p", gpus(2), node="n")
    world.pod("b", "more", gpus(1))
    assert world.settle() == ["a/p7"]
    assert (world.used("a"), world.used("b")) == (7, 3), "what each has of the idle min is 1"
    world.pod("b", "beyond", gpus(1))
    assert world.settle() == []


def test_02_a_victim_that_sorts_before_its_preemptor_does_not_get_its_place_back() -> None:
    """Field: the victim was put back, came first in the order, and was admitted again before its
    preemptor. Here what it freed is held for the claim it was evicted for."""
    world = Owners("capacity")
    world.node("n", gpus(2))
    world.quota("owner", gpus(2))
    world.quota("borrower")
    world.pod("borrower", "first", gpus(2), node="n", priority=100)
    world.pod("owner", "claim", gpus(2), created=5)
    assert world.settle() == ["borrower/first"]
    assert world.running("owner") == 1


def test_03_what_a_first_victim_frees_is_kept_until_the_last_is_gone() -> None:
    """Field: victims ended at different times, and what the first one freed was taken meanwhile.
    Here room and right are held across cycles."""
    world = Owners("capacity")
    world.node("n", gpus(4))
    world.quota("owner", gpus(4))
    world.quota("others")
    for name in ("x", "y"):
        world.pod("others", name, gpus(2), node="n")
    world.pod("owner", "claim", gpus(4))
    assert len(list(evictions(world.cycle()))) == 2
    world.apply(PodGone("others/x"))
    world.pod("others", "thief", gpus(2), priority=100)
    for _ in range(3):
        assert not any(isinstance(each, Bind) for each in world.cycle())
    world.apply(PodGone("others/y"))
    assert world.run() == {"owner/claim": "n"}


def test_04_a_queue_takes_back_only_what_it_may_keep() -> None:
    """Field: one check let a queue evict, another one called it overused with what it won: the
    same pods went back and forth. Here a claim reclaims only if its queue ends within deserved."""
    world = Owners("queues")
    world.node("n", gpus(10))
    for name, priority in (("p", 0), ("q", 5)):
        world.quota(name, default_weight=1, lend=False, priority=priority)
    for number in range(6):
        world.pod("p", f"p{number}", gpus(1), node="n", created=number)
    for number in range(4):
        world.pod("q", f"q{number}", gpus(1), node="n", created=number)
    world.pod("q", "large", gpus(2))
    assert world.settle() == [], "both deserve 5: with 6 it would have to give back at once"
    world.pod("q", "small", gpus(1))
    assert world.settle() == ["p/p5"], "with 5 it keeps what it takes"
    world.pod("q", "one more", gpus(1))
    assert world.settle() == [], "p has what it deserves, and keeps that"


@pytest.mark.parametrize("bands", [False, True])
@pytest.mark.parametrize("quotaless", ["protected", "lowest"])
def test_05_no_setting_switches_the_guard_of_deserved_off(bands: bool, quotaless: str) -> None:
    """Field: the order of plugins left out the check of deserved; a queue was pushed below it and
    took from the next. Here deserved is kept whatever is configured: only who is above it gives."""
    knobs = EvictionKnobs(quotaless=quotaless)  # type: ignore[arg-type]
    world = Owners("queues", queues=QueuesKnobs(bands), eviction=knobs)
    world.node("n", gpus(8))
    for name, deserved, uses in (("a", 4, 2), ("b", 2, 2), ("c", 2, 4)):
        world.quota(
            name,
            deserved=gpus(deserved),
            default_weight=1,
            lend=False,
            priority=5 if name == "c" else 0,  # queues of low priority give back first
        )
        for number in range(uses):
            world.pod(name, f"p{number}", gpus(1), node="n", created=number)
    world.pod("kube-system", "agent", (("cpu", 1),), node="n", priority=2_000_000_000)
    for number in range(2):
        world.pod("a", f"more{number}", gpus(1), priority=5)
    assert [each[0] for each in world.settle()] == ["c", "c"]
    assert [world.running(team) for team in "abc"] == [4, 2, 2]


@pytest.mark.parametrize("policy", POLICIES)
def test_06_a_claim_that_finds_no_victims_holds_up_no_other(policy: str) -> None:
    """Field: the search for victims of a queue that stood alone never ended, and all queues
    froze. Here a claim is tried once in a cycle, and the others follow in the same one."""
    world = World(policy)
    world.node("full", gpus(4))
    world.node("free", amounts(cpu=4000))
    for name in ("alone", "other"):
        world.quota(name, gpus(8), default_weight=1)
    for number in range(4):
        world.pod("alone", f"p{number}", gpus(1), node="full", priority=9)
    for number in range(3):
        world.pod("alone", f"stuck{number}", gpus(1), priority=9, created=1)
    world.pod("other", "small", amounts(cpu=1000), created=9)
    assert [each.pod.path for each in world.cycle() if isinstance(each, Bind)] == ["other/small"]


@pytest.mark.parametrize(
    ("policy", "there_is", "asks"),
    [*((policy, 4, 2) for policy in POLICIES), ("capacity", 99, 3), ("fair", 99, 3)],
)
def test_07_two_queues_do_not_claim_the_same_freed_capacity(
    policy: str, there_is: int, asks: int
) -> None:
    """Field: in one cycle two queues were each given what one pod had freed. Here a decision is
    booked before the next claim is tried, on its node and in its quota (sum of min: 6)."""
    world = World(policy)
    world.node("n", gpus(there_is))
    for name in ("a", "b", "c"):
        world.quota(name, gpus(2), default_weight=1)
    for team in ("a", "b"):
        world.pod(team, "first", gpus(1), node="n")
    world.pod("c", "ends", gpus(2), node="n")
    for team in ("a", "b"):
        world.pod(team, "second", gpus(asks), preempts=False)
    assert not world.run()
    world.apply(PodGone("c/ends"))
    assert len([each for each in world.cycle() if isinstance(each, Bind)]) == 1


def test_08_a_restart_admits_nothing_beyond_the_limit_and_no_finished_work() -> None:
    """Field: after a restart all pending work was admitted before usage was known, and finished
    work was queued again. Here an engine is made of all that was listed, and decides after that."""

    async def told(shop: Workshop) -> None:
        shop.node("n", 8)
        for number in range(3):
            shop.pod(f"waits{number}", "a")
        shop.pod("done", "a", node="n", phase="Succeeded")
        for number in range(2):
            shop.pod(f"runs{number}", "a", node="n")
        shop.quota("a", 3)
        again = Engine("capacity")
        shop.intake.feed.connect(again, shop.intake.mirror)
        decided = {each.pod.name: type(each) for each in flat(again.cycle(1))}
        assert decided == {"waits0": Bind, "waits1": Wait, "waits2": Wait}, "one more, and no more"
        assert again.waiting_pod("done") is None

    play(told)


def test_09_a_replica_that_does_not_lead_writes_nothing() -> None:
    """Field: two replicas acted at once, or one before it led. Here every write asks first
    whether this replica still leads; what was decided without that is dropped."""

    async def told(shop: Workshop) -> None:
        shop.node("n")
        shop.quota("a", 2)
        shop.pod("p", "a")
        shop.leads = False
        shop.decide()
        await shop.send()
        assert shop.answers.written == []

    play(told)


@story
async def test_10_renewals_do_not_wait_behind_other_requests() -> None:
    """Field: renewals of the lease queued behind other requests, and leadership was lost under
    load; replicas were ready before they had seen anything. Here the Lease has a client of its own,
    and a replica is ready when everything has been listed."""
    busy, leases = Leases(), Leases()
    busy.silent = True
    settings = Settings(SchedulerSettings(Configuration(profiles=[Profile("aliquot")])))
    plane = _assemble(cast("Client", busy), cast("Client", leases), settings, None)
    assert plane.election is not None
    renewals = asyncio.create_task(plane.election.run())
    waiting = [asyncio.create_task(busy.get(f"/pods/{number}")) for number in range(50)]
    await until(plane.election.holds)
    assert busy.asked == ["get"] * 50, "no renewal goes by the client that is busy"
    assert not any(check.ok for check in plane.health.ready())
    for task in (renewals, *waiting):
        task.cancel()
    await asyncio.gather(renewals, *waiting, return_exceptions=True)


@pytest.mark.parametrize("policy", POLICIES)
def test_11_usage_counts_on_while_a_quota_does_not_name_the_resource(policy: str) -> None:
    """Field: a resource was taken out of a quota and put back, its usage was forgotten meanwhile,
    and too much was admitted. Here usage is a fold over the pods, whatever the bounds name."""
    world = Owners(policy)
    world.node("n", amounts(gpu=8, cpu=8000))
    world.quota("a", gpus(4), gpus(4), default_weight=1)
    for number in range(4):
        world.pod("a", f"p{number}", gpus(1), node="n")
    world.quota("a", amounts(cpu=1000), amounts(cpu=1000), default_weight=1)
    world.cycle()
    world.apply(QuotaGone("a"))
    world.cycle()
    world.quota("a", gpus(4), gpus(4), default_weight=1)
    world.pod("a", "fifth", gpus(1))
    assert not world.run()
    assert world.used("a") == 4


@pytest.mark.parametrize("policy", POLICIES)
def test_12_the_pods_of_a_restarted_job_are_counted_one_by_one(policy: str) -> None:
    """Field: a job that restarted kept the count of pods it had finished before, and was charged
    too little. Here every pod is charged by its uid; what has succeeded frees nothing twice."""
    world = Owners(policy)
    world.node("n", gpus(8))
    world.quota("a", gpus(2), gpus(2), default_weight=1)
    world.gang("a/job", 2)
    for number in range(2):
        world.pod("a", f"p{number}", gpus(1), gang="a/job", task="w")
    assert len(world.run()) == 2
    world.apply(PodGone("a/p0"), GangSet(Gang("a/job", 2, done=(("w", 1),))))
    assert world.used("a") == 1
    world.apply(GangSet(Gang("a/job", 2)))
    for number in (2, 3):
        world.pod("a", f"p{number}", gpus(1), gang="a/job", task="w")
    assert len(world.run()) == 1, "one of the first two still runs: max is 2"
    assert world.used("a") == 2


@pytest.mark.parametrize("how", ["evicted", "deleted by its owner"])
def test_13_what_an_evicted_pod_had_is_free_when_it_is_gone(how: str) -> None:
    """Field: work was marked evicted and stayed admitted, with no pods, and its quota was never
    free. Here only pods hold quota: when the victim is gone, in whatever way, nothing is left."""
    world = Owners("capacity")
    world.node("n", gpus(2))
    world.quota("a", gpus(2))
    world.quota("b")
    world.pod("b", "x", gpus(2), node="n")
    world.pod("a", "claim", gpus(2))
    assert len(list(evictions(world.cycle()))) == 1
    if how == "evicted":
        world.apply(PodSet(replace(world.state.pods["b/x"], terminating=True)))
    world.apply(PodGone("b/x"))
    assert world.run() == {"a/claim": "n"}
    assert (world.used("b"), world.used("a")) == (0, 2)
    assert not world.state.ledger.holding
    check_books(world.engine)


@pytest.mark.parametrize("when", ["waiting", "decided", "running"])
def test_14_deleted_pods_leave_no_records(when: str) -> None:
    """Field: 52 records held quota for a Deployment of two. Here a pod's record goes with it,
    whether it waited, was about to be bound, or ran."""
    world = Owners("capacity")
    world.node("n", gpus(4))
    world.quota("a", gpus(2), gpus(2))
    for number in range(26):
        for replica in range(2):
            world.pod("a", f"p{number}-{replica}", gpus(1))
        if when != "waiting":
            decided = [each for each in world.cycle() if isinstance(each, Bind)]
            assert len(decided) == 2, "those before have left nothing behind"
            for bind in decided if when == "running" else ():
                world.apply(PodSet(replace(bind.pod, node=bind.node)))
        for uid in list(world.state.pods):
            world.apply(PodGone(uid))
    assert not world.state.ledger.entries
    assert world.used("a") == 0


def test_15_all_is_released_although_part_of_it_is_known_no_longer() -> None:
    """Field: the release of a workload ended at the first flavor that no longer existed, and the
    rest leaked until a restart. Here exactly what was booked is taken back."""
    charges = {"": amounts(gpu=1, mem=32), "big": amounts(gpu=1, mem=80)}
    world = Owners("hierarchy")
    world.quota("top", amounts(gpu=4, mem=320), is_parent=True, namespaces=frozenset())
    world.quota("a", amounts(gpu=4, mem=320), parent="top")
    world.node("n", amounts(gpu=4, mem=320), node_class="big")
    world.apply(values.device_set("card", "n"))
    ask = values.gpu_ask(50, 40)
    shape = {"charges": tuple(charges.items()), "gpu": ask}
    world.pod("a", "p", gpus(1), shape=shape, node="n", devices=("card",))
    assert world.used("top", "mem") == 80
    world.apply(DeviceGone("card"), NodeGone("n"), QuotaGone("a"), PodGone("a/p"))
    check_books(world.engine)
    assert world.used("top") == 0
    world.quota("a", amounts(gpu=4, mem=320), parent="top")
    world.node("n", amounts(gpu=4, mem=320), node_class="big")
    world.apply(values.device_set("card", "n"))
    for name in ("q", "r"):
        world.pod("a", name, gpus(2), shape=shape)
    assert len(world.run()) == 2


@pytest.mark.parametrize("trouble", ["refused", "never ends"])
def test_16_a_preemption_that_comes_to_nothing_is_not_waited_for_for_ever(trouble: str) -> None:
    """Field: the record of evictions under way went wrong, and the scheduler waited for one that
    would never come. Here a refused eviction, or a victim that is late, leads to another."""
    world = Owners("capacity")
    for node in ("n1", "n2"):
        world.node(node, gpus(2))
        world.quota("a", gpus(2))
        world.quota("b")
        world.pod("b", f"on-{node}", gpus(2), node=node)
    world.pod("a", "claim", gpus(2))
    (first,) = evictions(world.cycle(0))
    late = 0
    if trouble == "refused":
        world.apply(EvictFailed(first.pod.uid))
    else:
        world.apply(PodSet(replace(first.pod, terminating=True, gone_by=30 * SECOND)))
        deadline = world.engine.next_deadline()
        assert deadline is not None
        late = deadline // SECOND
    (second,) = evictions(world.cycle(late))
    assert second.pod.uid != first.pod.uid
    world.apply(PodGone(second.pod.uid))
    assert world.run(late) == {"a/claim": second.pod.node}


def test_17_a_bind_that_fails_gives_its_devices_back_once() -> None:
    """Field: a failed bind left its GPUs taken; in another version they were freed twice. Here
    the booking is taken back, however often the failure is told."""
    world = World("capacity")
    world.node("n", amounts(cpu=8000))
    world.apply(values.device_set("card", "n", tflops=100, vram=80))
    ask = {"gpu": values.gpu_ask(100, 80)}
    pod = world.pod("a", "p", amounts(cpu=1), shape=ask)
    for _ in range(3):
        (bind,) = world.cycle()
        assert isinstance(bind, Bind)
        assert bind.devices == ("card",)
        for _ in range(2):
            world.apply(BindFailed(pod.uid))
    (bind,) = world.cycle()
    assert isinstance(bind, Bind)
    world.apply(PodSet(replace(pod, node="n", devices=bind.devices)))
    world.pod("a", "q", amounts(cpu=1), shape=ask)
    assert not world.run(), "there is one card"


def test_18_no_device_is_given_twice() -> None:
    """Field: GPUs were booked twice and binds retried without end; fractions that arrived at once
    were packed beyond the card. Here each pod is booked on its cards before the next is tried."""
    world = World("capacity")
    world.node("n", amounts(cpu=8000))
    for card in ("c1", "c2"):
        world.apply(values.device_set(card, "n", tflops=100, vram=80))
    for number in range(8):
        ask = values.gpu_ask(40, 40) if number % 4 else values.gpu_ask(100, 80)
        world.pod("a", f"p{number}", amounts(cpu=1), shape={"gpu": ask}, created=number)
    binds = [each for each in world.cycle() if isinstance(each, Bind)]
    loads = {"c1": [0, 0], "c2": [0, 0]}
    for bind in binds:
        assert bind.pod.shape.gpu is not None
        for name in bind.devices:
            loads[name][0] += bind.pod.shape.gpu.request.tflops
            loads[name][1] += bind.pod.shape.gpu.request.vram
    assert len(binds) == 3, "one whole card, two parts of the other"
    assert all(load <= [100_000, 80 * values.GIB] for load in loads.values())


def test_19_a_bind_that_is_always_refused_starves_no_other_pod() -> None:
    """Field: a pod whose bind was rejected for good won every cycle, and the others never started.
    Here it backs off, without room or right, and the next in line starts."""

    async def told(shop: Workshop) -> None:
        shop.node("n", 2)
        shop.quota("a", 2)
        shop.pod("bad", "a", 2)
        shop.answers.refuse["/pods/bad/binding"] = always(403)
        shop.decide()
        await shop.write()
        shop.pod("good", "a", 2)
        decided = shop.decide()
        assert [each.pod.name for each in decided if isinstance(each, Bind)] == ["good"]
        await shop.write()
        assert len(shop.answers.to("/pods/good/binding")) == 1

    play(told)


@pytest.mark.parametrize("policy", POLICIES)
def test_20_a_restart_cures_nothing(policy: str) -> None:
    """Field: pods waited until the scheduler was restarted, as its memory was stale. Here, after
    any history, a fresh engine finds the same figures, and no claim that could start."""
    run = LongRun(seed=7, policy=policy)
    run.play(10)
    run.compare_with_rebuilt()


@pytest.mark.parametrize("policy", POLICIES)
def test_21_reclaim_finds_the_victim_in_a_full_cluster(policy: str) -> None:
    """Field: reclaim looked at one node or queue and gave up; or a claim was not even admitted to
    it because the cluster was full. Here all nodes are searched, and the gate does not come
    before the search."""
    world = Owners(policy)
    guarantee = "deserved" if policy == "queues" else "low"
    for name, low in (("a", 2), ("b", 2), ("c", 0)):
        bounds = {guarantee: gpus(low)} if low or policy != "queues" else {}
        world.quota(name, **bounds, default_weight=1)
    for node in ("n1", "n2", "n3"):
        world.node(node, gpus(2))
    world.pod("b", "inside", gpus(2), node="n1")
    world.pod("kube-system", "agent", gpus(2), node="n2", priority=2_000_000_000)
    for number in range(2):
        world.pod("c", f"borrows{number}", gpus(1), node="n3")
    world.pod("a", "claim", gpus(2))
    evicted = {name.partition(".")[0] for seconds in (0, 130) for name in world.settle(seconds)}
    assert evicted == {"c/borrows0", "c/borrows1"}
    assert world.running("a") == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_22_a_claim_larger_than_any_victim_takes_several(policy: str) -> None:
    """Field: no single victim was as large as the claim, so none was chosen. Here a set of
    victims is chosen, on several nodes if the claim is a gang, and not one too many."""
    world = Owners(policy)
    guarantee = "deserved" if policy == "queues" else "low"
    world.quota("a", **{guarantee: gpus(6)}, default_weight=1)
    world.quota("b", default_weight=1, **({"deserved": gpus(2)} if policy == "queues" else {}))
    for node in ("n1", "n2"):
        world.node(node, gpus(4))
        for number in range(4):
            world.pod("b", f"{node}-{number}", gpus(1), node=node)
    world.gang("a/g", 2)
    for number in range(2):
        world.pod("a", f"w{number}", gpus(3), gang="a/g")
    evicted = [name for seconds in (0, 130) for name in world.settle(seconds)]
    assert len(evicted) == 6
    assert world.running("a") == 2


def test_23_a_preemptor_lands_where_its_victims_were() -> None:
    """Field: a preemption was marked done without a reservation of the space, and the preemptor
    never landed. Here it is nominated, and starts there although a more important one came."""
    world = Owners("capacity")
    for team in ("a", "c"):
        world.quota(team, gpus(4))
    world.quota("b")
    for node in ("n1", "n2"):
        world.node(node, gpus(4))
        world.pod("b", node, gpus(4), node=node)
    world.pod("a", "claim", gpus(4))
    (victim,) = evictions(world.cycle())
    world.apply(PodGone(victim.pod.uid))
    world.pod("c", "thief", gpus(4), priority=1000)
    landed = {each.pod.path: each.node for each in world.cycle() if isinstance(each, Bind)}
    assert landed == {"a/claim": victim.pod.node}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_24_removals_in_any_order_leave_nothing_behind(order: tuple[int, ...]) -> None:
    """Field: a pod was removed while its queue was, or a node's capacity before its usage, and
    amounts leaked or fell below zero. Here one thread applies events, in any order."""
    world = Owners("hierarchy")
    world.node("n", gpus(4))
    world.quota("top", gpus(4), is_parent=True, namespaces=frozenset())
    world.quota("a", gpus(4), parent="top")
    world.pod("a", "p", gpus(3), node="n")
    gone: list[Event] = [PodGone("a/p"), QuotaGone("a"), NodeGone("n")]
    for place in order:
        world.apply(gone[place])
        check_books(world.engine)
        assert world.used("top") in (0, 3)
    assert world.used("top") == 0
    world.cycle()
    world.node("n", gpus(4))
    world.quota("a", gpus(4), parent="top")
    world.pod("a", "q", gpus(4))
    assert world.run() == {"a/q": "n"}


def test_25_shares_follow_nodes_and_siblings_before_they_are_checked() -> None:
    """Field: a node came back and totals stayed wrong; a share was checked before it was worked
    out anew; a sibling's stale share kept what it had borrowed. Here shares are those of now."""
    world = Owners("hierarchy", hierarchy=HierarchyKnobs(revoke_after=60 * SECOND))
    for name in ("a", "b"):
        world.quota(name, gpus(2), gpus(8), weight=gpus(1))
    for size in (8, 4, 8):
        world.apply(NodeGone("n"))
        world.node("n", gpus(size))
    for number in range(8):
        world.pod("a", f"p{number}", gpus(1), created=number)
    assert len(world.run(0)) == 8, "b asks for nothing"
    for number in range(4):
        world.pod("b", f"p{number}", gpus(1), created=number)
    shares = {each.name: each.runtime[GPU] for each in world.engine.summarise()}
    assert shares == {"a": 4, "b": 4}
    evicted = [name for seconds in (1, 62) for name in world.settle(seconds)]
    assert len(evicted) == 4
    assert (world.running("a"), world.running("b")) == (4, 4)


@pytest.mark.parametrize("lowered", ["keep", "evict"])
def test_26_a_restart_before_a_quota_cut_is_carried_out_rejects_no_running_pod(
    lowered: str,
) -> None:
    """Field: a restart in the middle of a delayed cut; pods above the new bound were rejected at
    recovery. Here running pods are counted, and the cut is carried out as if nothing had been."""
    knobs = EvictionKnobs(min_runtime=60 * SECOND, on_quota_lowered=lowered)  # type: ignore[arg-type]
    before, after = (Owners("capacity", eviction=knobs) for _ in range(2))
    for world in (before, after):
        world.node("n", gpus(8))
        world.quota("a", gpus(2), gpus(4 if world is before else 2))
        for number in range(4):
            world.pod("a", f"p{number}", gpus(1), node="n")
    before.quota("a", gpus(2), gpus(2))
    for world in (before, after):
        world.pod("a", "more", gpus(1))
        assert world.settle(10) == [], "they have run for less than minRuntime"
        assert (world.used("a"), world.running("a")) == (4, 4)
        assert world.settle(61) == (["a/p3", "a/p2"] if lowered == "evict" else [])


@pytest.mark.parametrize("policy", ["capacity", "fair"])
def test_27_what_is_not_named_is_no_min_and_no_max_and_zero_is_zero(policy: str) -> None:
    """Field: unset and zero were taken for each other: unlimited quotas refused, and the wrong pods
    were evicted. Here a missing min is 0, a missing max is none, and a max of 0 is 0."""
    world = Owners(policy)
    world.node("n", amounts(gpu=4, cpu=4000))
    world.quota("names", amounts(gpu=1, cpu=2000))
    world.quota("silent", amounts(cpu=2000))
    world.quota("zero", amounts(cpu=0), gpus(0))
    world.pod("zero", "p", gpus(1))
    assert not world.run(), "a max of 0 is 0"
    world.pod("silent", "borrows", gpus(3))
    world.pod("silent", "works", amounts(cpu=2000))
    assert len(world.run()) == 2, "without a max there is none, nor a bound by others' min"
    world.pod("names", "first", amounts(gpu=1, cpu=1000))
    assert world.settle() == []
    world.quota("names", amounts(gpu=2, cpu=2000))
    world.pod("names", "second", amounts(gpu=1, cpu=1000))
    assert world.settle() == ["silent/borrows"], "its min of GPUs is 0; of cpus it has its own"
    assert world.running("names") == 2


def test_28_claims_that_cannot_start_are_not_tried_at_every_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Field: ten thousand pods that could not be admitted were looked at on each event, and those
    that could waited behind them. Here a refused claim is tried again when what it waits for
    changes, and claims alike are tried once."""
    world = World("capacity")
    world.node("n", gpus(100))
    world.quota("full", gpus(1), gpus(1))
    world.quota("free", gpus(99))
    world.pod("full", "runs", gpus(1), node="n")
    for number in range(300):
        world.pod("full", f"p{number}", gpus(1 + number % 60), created=number)
    world.run(0)
    tried: list[str] = []
    try_claim = Trial.try_claim

    def counted(trial: Trial, claim: Claim) -> object:
        tried.append(claim.uid)
        return try_claim(trial, claim)

    monkeypatch.setattr(Trial, "try_claim", counted)
    world.pod("free", "p", gpus(1))
    assert world.run(1) == {"free/p": "n"}
    assert tried == ["free/p"]


def test_all_of_them_are_here() -> None:
    numbers = sorted(
        int(name.split("_")[1]) for name, each in globals().items() if _is_failure_mode(name, each)
    )
    assert numbers == list(range(1, 29))


def _is_failure_mode(name: str, each: object) -> bool:
    return isinstance(each, Callable) and name[:5] == "test_" and name[5:7].isdigit()  # type: ignore[arg-type]
