"""Devices and quotas on GPUs, as the engine keeps them."""

from dataclasses import replace
from typing import Any

import pytest

from aliquot.engine.cycle import Engine
from aliquot.engine.gpus.devices import Devices
from aliquot.engine.model.decisions import Bind, binds_and_evictions, evictions
from aliquot.engine.model.events import (
    DeviceGone,
    DeviceSet,
    Event,
    GpuQuotaGone,
    NodeSet,
    PodGone,
    PodSet,
)
from aliquot.engine.model.gpu import WHOLE_GPU, Device, GpuAmount, GpuAsk, GpuBound
from aliquot.engine.model.knobs import SECOND, DevicePlacement, GpuKnobs, Knobs
from aliquot.engine.model.pod import Pod, Shape
from tests.build import values
from tests.build.engines import books
from tests.build.values import GIB, amounts, device_set, gpu_amount, gpu_ask, gpu_quota_set
from tests.engine.world import World

CPU = amounts(cpu=64_000)
CPU_OF_A_POD = amounts(cpu=1000)


def gpu_pod(name: str, gpu: GpuAsk, **more: Any) -> Pod:
    return values.pod(name, CPU_OF_A_POD, "team", shape={"gpu": gpu}, **more)


def node_set(name: str = "n") -> NodeSet:
    return values.node_set(name, CPU, pods=110)


def engine(*events: Event, placement: DevicePlacement = "NodeCompactGPULowLoad") -> Engine:
    made = Engine("capacity", Knobs(gpu=GpuKnobs(placement)))
    for event in events:
        made.apply(event)
    return made


def run(made: Engine, now: int = 0) -> dict[str, tuple[str, ...]]:
    """Decide, and let it come true; the devices of those who started."""
    started = {}
    for decision in binds_and_evictions(made.cycle(now)):
        if isinstance(decision, Bind):
            started[decision.pod.name] = decision.devices
            bound = replace(decision.pod, node=decision.node, devices=decision.devices)
            made.apply(PodSet(bound))
        else:
            made.apply(PodGone(decision.pod.uid))
    return started


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        ("LowLoadFirst", ("b-1", "b-2")),
        ("CompactFirst", ("a-1", "a-2")),
        ("NodeCompactGPULowLoad", ("a-3", "a-2")),
    ],
)
def test_devices_are_chosen_by_the_placement_mode(
    placement: DevicePlacement, expected: tuple[str, ...]
) -> None:
    """Nodes by the mean of their cards, not by their number."""
    has = {"a-1": (20, 10), "a-2": (20, 12), "a-3": (20, 14), "b-1": (25, 20), "b-2": (25, 18)}
    cards = [
        device_set(
            name,
            name[0],
            tflops,
            4 * tflops,
            index=int(name[-1]),
            used_elsewhere=gpu_amount(tflops - free, 4 * (tflops - free)),
        )
        for name, (tflops, free) in has.items()
    ]
    made = engine(node_set("a"), node_set("b"), *cards, placement=placement)
    made.apply(PodSet(gpu_pod("p", gpu_ask(5, 5, count=2))))
    assert run(made) == {"p": expected}


def test_several_devices_are_on_one_node() -> None:
    made = engine(node_set("a"), node_set("b"), device_set("a-1", "a"), device_set("b-1", "b"))
    made.apply(PodSet(gpu_pod("p", gpu_ask(1, 1, count=2))))
    assert run(made) == {}
    refusal = made.why("p")
    assert refusal is not None
    assert "there are 2, ready 2, enough left 2, 2 on one node 0" in refusal.message
    made.apply(device_set("b-2", "b"))
    assert run(made) == {"p": ("b-1", "b-2")}


def test_a_pod_that_asks_for_a_whole_card_needs_an_idle_one_and_takes_all_of_it() -> None:
    made = engine(node_set(), device_set("g-1"), device_set("g-2"))
    made.apply(PodSet(gpu_pod("part", gpu_ask(1, 1))))
    assert run(made) == {"part": ("g-1",)}
    made.apply(PodSet(gpu_pod("whole", gpu_ask(1, 1, whole=True))))
    assert run(made) == {"whole": ("g-2",)}
    made.apply(PodSet(gpu_pod("more", gpu_ask(99, 79))))
    made.apply(PodSet(gpu_pod("too-much", gpu_ask(1, 1))))
    assert run(made) == {"more": ("g-1",)}


def test_a_percentage_counts_by_the_device_it_gets() -> None:
    half = GpuAsk(request_part=GpuAmount(WHOLE_GPU // 2), limit_part=GpuAmount(WHOLE_GPU // 2))
    made = engine(node_set(), device_set("g-1", tflops=100), gpu_quota_set(requests=100))
    for name in ("p-1", "p-2", "p-3"):
        made.apply(PodSet(gpu_pod(name, half)))
    assert run(made) == {"p-1": ("g-1",), "p-2": ("g-1",)}
    refusal = made.why("p-3")
    assert refusal is not None
    assert refusal.message.startswith(
        "quota exceeded in namespace team for total.max.tflops.request: requested 50, limit 100"
    )


def test_amounts_of_gpu_quotas_are_exact() -> None:
    small = GpuAsk(GpuAmount(500, GIB), GpuAmount(500, GIB), count=3)
    made = engine(
        node_set(), *(device_set(f"g-{i}") for i in range(3)), gpu_quota_set(requests=2, limits=2)
    )
    made.apply(PodSet(gpu_pod("p", small)))
    assert run(made) == {"p": ("g-0", "g-1", "g-2")}
    (standing,) = made.gpu_quotas()
    assert standing.requests == GpuAmount(1500, 3 * GIB)
    assert standing.workers == 1


def test_a_late_quota_counts_what_runs() -> None:
    made = engine(node_set(), device_set("g"))
    for i in range(3):
        made.apply(PodSet(gpu_pod(f"p-{i}", gpu_ask(30, 1))))
    assert len(run(made)) == 3
    made.apply(gpu_quota_set(requests=60, limits=1000))
    (standing,) = made.gpu_quotas()
    assert standing.requests.tflops == 90_000
    status = {each.type: each.status for each in standing.conditions}
    assert status == {"Ready": True, "Exceeded": True, "AlertThresholdReached": True}
    made.apply(GpuQuotaGone("team"))
    assert made.gpu_quotas() == []


def test_what_is_reserved_blocks_others_and_is_not_shown() -> None:
    made = engine(node_set(), device_set("g"), gpu_quota_set(requests=50))
    made.apply(PodSet(gpu_pod("p-1", gpu_ask(30, 1))))
    made.apply(PodSet(gpu_pod("p-2", gpu_ask(30, 1))))
    (bind,) = [each for each in made.cycle() if isinstance(each, Bind)]
    assert made.gpu_quotas()[0].requests == GpuAmount()
    made.apply(PodSet(replace(bind.pod, node=bind.node, devices=bind.devices)))
    assert made.gpu_quotas()[0].requests == gpu_amount(30, 1)
    assert made.why("p-2") is not None


def test_an_assumed_pod_that_is_never_bound_is_taken_back() -> None:
    made = engine(node_set(), device_set("g"), gpu_quota_set(requests=50))
    made.apply(PodSet(gpu_pod("p-1", gpu_ask(30, 1))))
    assert [type(each) for each in made.cycle(0)] == [Bind]
    made.apply(PodSet(gpu_pod("p-2", gpu_ask(30, 1), priority=1)))
    assert not [each for each in made.cycle(60 * SECOND) if isinstance(each, Bind)]
    assert made.next_deadline() == 30 * 60 * SECOND
    late = [each.pod.name for each in made.cycle(30 * 60 * SECOND) if isinstance(each, Bind)]
    assert late == ["p-2"]


def test_resizing_is_judged_before_it_is_done() -> None:
    single = GpuBound(100_000)
    made = engine(
        node_set(), device_set("g", tflops=100), gpu_quota_set(200, 200, single_limits=single)
    )
    made.apply(PodSet(gpu_pod("p", gpu_ask(30, 1))))
    made.apply(PodSet(gpu_pod("q", gpu_ask(30, 1))))
    run(made)

    def shape(request: int, limit: int) -> Shape:
        gpu = GpuAsk(gpu_amount(request, 1), gpu_amount(limit, 1))
        return Shape((("cpu", 1000), ("pods", 1)), gpu=gpu)

    assert made.may_resize("p", shape(70, 70)) is None
    assert made.may_resize("p", shape(10, 10)) is None
    beyond = made.may_resize("p", shape(71, 71))
    assert beyond is not None
    assert beyond.message == "device g has 70 tflops for it, asks 71"
    alone = made.may_resize("p", shape(30, 150))
    assert alone is not None
    assert alone.resource == "single.max.tflops.limit"
    before = made.gpu_quotas()[0].requests
    made.apply(gpu_quota_set(200, 90, single_limits=single))
    together = made.may_resize("p", shape(30, 61))
    assert together is not None
    assert together.resource == "total.max.tflops.limit"
    assert made.gpu_quotas()[0].requests == before
    made.apply(PodSet(replace(books(made).pods["p"], shape=shape(40, 50))))
    assert made.gpu_quotas()[0].requests == gpu_amount(70, 2)
    made.apply(PodSet(replace(books(made).pods["p"], shape=shape(30, 30))))
    assert made.gpu_quotas()[0].requests == before


def test_a_device_that_comes_back_is_not_handed_out_twice() -> None:
    made = engine(node_set(), device_set("g"))
    made.apply(PodSet(gpu_pod("whole", gpu_ask(1, 1, whole=True))))
    assert run(made) == {"whole": ("g",)}
    made.apply(DeviceGone("g"))
    made.apply(device_set("g"))
    made.apply(PodSet(gpu_pod("next", gpu_ask(1, 1))))
    assert run(made) == {}
    made.apply(PodGone("whole"))
    assert run(made) == {"next": ("g",)}


def test_a_device_that_grows_has_more_left() -> None:
    made = engine(node_set(), device_set("g", tflops=60))
    made.apply(PodSet(gpu_pod("p", gpu_ask(10, 1))))
    run(made)
    made.apply(device_set("g", tflops=71))
    devices: Devices = books(made).devices
    assert devices.free("g").tflops == 61_000


def test_lower_priorities_make_way_on_a_device_and_in_a_quota() -> None:
    made = engine(node_set(), device_set("g-1"), device_set("g-2"), gpu_quota_set(requests=150))
    for i in range(3):
        made.apply(PodSet(gpu_pod(f"low-{i}", gpu_ask(50, 1), created=i)))
    assert len(run(made)) == 3
    made.apply(PodSet(gpu_pod("high", gpu_ask(80, 1), priority=10, created=9)))
    evicted = [each.pod.name for each in evictions(made.cycle())]
    assert evicted == ["low-1", "low-2"]


def message(made: Engine, name: str) -> str:
    refusal = made.why(name)
    assert refusal is not None
    return refusal.message


def test_a_refusal_counts_what_every_filter_leaves() -> None:
    """A card on a node that is not there is not ready; one with exactly enough has enough left."""
    made = engine(
        node_set("n"),
        device_set("n-1", vram=8),
        device_set("n-2", vram=4),
        device_set("x-1", "gone"),
    )
    made.apply(PodSet(gpu_pod("p", gpu_ask(1, 8, count=2))))
    made.cycle()
    assert message(made, "p") == (
        "0/1 nodes fit: 1 without devices for it "
        "(there are 3, ready 2, enough left 1, 2 on one node 0)"
    )
    made.apply(PodSet(gpu_pod("q", gpu_ask(101, 1))))
    made.cycle()
    assert message(made, "q").endswith("(there are 3, ready 2, enough left 0)")


def test_only_nodes_without_devices_are_told_to_be_without() -> None:
    """An idle card has no points by load, and serves all the same."""
    made = engine(values.node_set("tiny", amounts(cpu=500), pods=110), device_set("d", "tiny"))
    made.apply(PodSet(gpu_pod("p", gpu_ask(1, 1))))
    made.cycle()
    assert message(made, "p") == "0/1 nodes fit: 1 too little cpu (asks 1, most free 500m)"
    made.apply(node_set("bare"))
    made.cycle()
    told = "0/2 nodes fit: 1 too little cpu (asks 1, most free 500m), 1 without devices"
    assert message(made, "p").startswith(told)


def test_what_could_be_served_is_what_idle_cards_of_one_node_would_serve() -> None:
    made = engine(
        node_set("a"),
        node_set("b"),
        device_set("a-1", "a"),
        device_set("a-2", "a"),
        device_set("b-1", "b"),
    )
    devices = books(made).devices
    assert devices.could_serve(gpu_ask(100, 80, count=2))
    assert not devices.could_serve(gpu_ask(100, 80, count=3)), "on no node"
    assert not devices.could_serve(gpu_ask(101, 80)), "more than a card has"
    made.apply(DeviceSet(Device("a-2", "a", gpu_amount(100, 80), ready=False)))
    assert not devices.could_serve(gpu_ask(1, 1, count=2)), "not ready"
    made.apply(device_set("x-1", "gone"))
    made.apply(device_set("x-2", "gone"))
    assert not devices.could_serve(gpu_ask(1, 1, count=2)), "on a node that is not there"


def test_computing_and_memory_make_a_pod_alike_hard_to_place() -> None:
    made = engine(node_set("n"), device_set("d"))
    one, other = (
        books(made).placement.hardness(
            books(made).placement.shape_ask(gpu_pod("p", GpuAsk(each, each)).shape)
        )
        for each in (GpuAmount(3, 5), GpuAmount(5, 3))
    )
    assert one == other


def evicted(made: Engine, now: int = 0) -> list[str]:
    """Who is evicted in one cycle."""
    return [each.pod.path for each in evictions(made.cycle(now))]


def on(name: str, gpu: GpuAsk, *devices: str, namespace: str = "team", priority: int = 0) -> PodSet:
    """A pod that runs on these devices of node n."""
    running = replace(gpu_pod(name, gpu, node="n", devices=devices), uid=f"{namespace}-{name}")
    return PodSet(replace(running, namespace=namespace, priority=priority))


def test_what_a_gpu_quota_is_short_of_only_its_own_namespace_gives() -> None:
    """The pod of another namespace is less important, and gives nothing of this quota back."""
    made = engine(node_set(), device_set("d"), gpu_quota_set(workers=1))
    made.apply(on("x", gpu_ask(10, 10), "d"))
    made.apply(on("y", gpu_ask(70, 60), "d", namespace="other", priority=-1))
    made.apply(PodSet(gpu_pod("p", gpu_ask(10, 10), priority=1)))
    assert evicted(made) == ["team/x"]


@pytest.mark.parametrize("big", [(80, 1), (1, 70)])
def test_a_pod_goes_for_what_is_short_of_a_device_be_it_one_thing(big: tuple[int, int]) -> None:
    made = engine(node_set(), device_set("d"))
    made.apply(on("x", gpu_ask(*big), "d"))
    made.apply(PodSet(gpu_pod("p", gpu_ask(50, 50), priority=1)))
    assert evicted(made) == ["team/x"]


def test_the_two_cards_that_would_do_are_found_among_many_that_never_will() -> None:
    weak = [device_set(f"weak-{number}", tflops=10) for number in range(10)]
    made = engine(node_set(), *weak, device_set("strong-0"), device_set("strong-1"))
    made.apply(on("x", gpu_ask(100, 80, count=2), "strong-0", "strong-1"))
    made.apply(PodSet(gpu_pod("p", gpu_ask(50, 1, count=2), priority=1)))
    assert evicted(made) == ["team/x"]


def test_the_two_cards_that_others_can_leave_are_found_among_many_that_they_will_not() -> None:
    made = engine(node_set(), device_set("strong-0"), device_set("strong-1"))
    for number in range(10):
        made.apply(device_set(f"kept-{number}"))
        made.apply(on(f"k-{number}", gpu_ask(60, 1), f"kept-{number}", priority=9))
    made.apply(on("x", gpu_ask(100, 80, count=2), "strong-0", "strong-1"))
    made.apply(PodSet(gpu_pod("p", gpu_ask(50, 1, count=2), priority=1)))
    assert evicted(made) == ["team/x"]


def test_a_gpu_quota_is_given_back_by_pods_on_other_nodes() -> None:
    """The claim fits on one node only; the pod that uses up the quota runs on the other."""
    made = engine(
        node_set("n"),
        node_set("m"),
        device_set("d", "m"),
        device_set("small", tflops=10),
        gpu_quota_set(workers=1),
    )
    made.apply(on("x", gpu_ask(5, 5), "small"))
    made.apply(PodSet(gpu_pod("p", gpu_ask(50, 50), priority=1)))
    assert evicted(made) == ["team/x"]


def test_a_pod_keeps_the_devices_it_was_given_where_the_cluster_does_not_name_them() -> None:
    made = engine(node_set(), device_set("d-1"), device_set("d-2"))
    waiting = gpu_pod("p", gpu_ask(60, 60))
    made.apply(PodSet(waiting))
    (bind,) = (each for each in made.cycle() if isinstance(each, Bind))
    (given,) = bind.devices
    made.apply(PodSet(replace(waiting, node="n")))
    (other,) = {"d-1", "d-2"} - {given}
    assert books(made).devices.free(given) == gpu_amount(40, 20)
    assert books(made).devices.free(other) == gpu_amount(100, 80)


def test_what_a_pod_takes_on_a_lost_node_does_not_depend_on_what_was_heard_of_first() -> None:
    """The pod of a node that is gone, and its card, come in any order after a restart."""
    none, whole = GpuAmount(0, 0), GpuAmount(WHOLE_GPU, WHOLE_GPU)
    ask = GpuAsk(none, none, whole, whole, whole=True)
    pod = PodSet(gpu_pod("p", ask, node="gone", devices=("card",)))
    card, quota = device_set("card", "gone"), gpu_quota_set()
    first, second = engine(quota, pod, card), engine(quota, card, pod)
    assert first.gpu_quotas() == second.gpu_quotas()


@pytest.mark.parametrize("policy", ["hierarchy", "queues"])
def test_a_pod_is_no_demand_once_no_card_is_left_for_it(policy: str) -> None:
    world = World(policy)
    world.node("n", amounts(cpu=9_000))
    for name in ("a", "b"):
        world.quota(name, (), amounts(cpu=9_000), default_weight=1)
        world.pod(name, "p", amounts(cpu=9_000), shape={"gpu": gpu_ask(1, 1)})
    world.pod("a", "q", amounts(cpu=9_000))
    world.pod("b", "filler", amounts(cpu=1), node="n")
    world.apply(device_set("card"))
    world.run()
    assert shares(world) == {"a": 4_500, "b": 4_500}
    world.apply(DeviceGone("card"))
    assert shares(world) == {"a": 8_999, "b": 1}


def shares(world: World) -> dict[str, int]:
    """The runtime of every quota in cpu."""
    return {each.name: each.runtime["cpu"] for each in world.engine.summarise()}


def test_cards_of_one_pod_are_near_each_other_first() -> None:
    """Of four cards in two domains and two more in a third, by NVLink or NUMA node."""
    made = engine(node_set())
    for index, domain in enumerate(("a", "b", "a", "b", "c", "c", "c")):
        made.apply(device_set(f"d{index}", index=index, domain=domain))
    made.apply(PodSet(gpu_pod("two", gpu_ask(0, 0, 2, whole=True))))
    assert run(made) == {"two": ("d0", "d2")}, "not c, which has more than are needed"
    made.apply(PodSet(gpu_pod("three", gpu_ask(0, 0, 3, whole=True))))
    assert run(made) == {"three": ("d4", "d5", "d6")}
    made.apply(PodSet(gpu_pod("one", gpu_ask(0, 0, 1, whole=True))))
    assert run(made) == {"one": ("d1",)}


def test_cards_that_no_domain_has_enough_of_are_of_few_domains() -> None:
    made = engine(node_set())
    for index, domain in enumerate(("", "a", "b", "b", "c", "")):
        made.apply(device_set(f"d{index}", index=index, domain=domain))
    made.apply(PodSet(gpu_pod("three", gpu_ask(0, 0, 3, whole=True))))
    (found,) = run(made).values()
    assert found[:2] == ("d2", "d3")


def test_a_device_that_has_moved_is_a_card_of_its_new_node_alone() -> None:
    made = engine(node_set("a"), node_set("b"), device_set("d", "a"), device_set("e", "a"))
    devices = books(made).devices
    ask, slots = gpu_ask(10, 10), books(made).nodes.slots
    assert devices.hold(ask)[[slots["a"], slots["b"]]].tolist() == [True, False]
    made.apply(device_set("d", "b"))
    assert devices.cards.names(slots["a"]) == ("e",)
    assert devices.cards.names(slots["b"]) == ("d",)
    made.apply(PodSet(gpu_pod("p", gpu_ask(100, 80), node="b", devices=("d",))))
    assert devices.hold(ask)[[slots["a"], slots["b"]]].tolist() == [True, False]


def test_a_bind_with_devices_that_comes_true_is_no_change_from_outside() -> None:
    """After such changes, evictions may be made again: with owners that put pods back, for ever."""
    made = engine(node_set(), device_set("n-0"), device_set("n-1"))
    made.apply(PodSet(gpu_pod("p", gpu_ask(20, 1))))
    outside = books(made).changes.outside.cursor()
    (bind,) = (each for each in made.cycle(0) if isinstance(each, Bind))
    bound = replace(bind.pod, node=bind.node, devices=bind.devices)
    assert bound.devices
    made.apply(PodSet(bound))
    assert outside.read() == []
    made.apply(PodSet(replace(bound, devices=("n-0", "n-1"))))
    assert outside.read() == ["p"]
