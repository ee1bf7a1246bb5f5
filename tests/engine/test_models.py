"""Cards of one model: what quotas are charged of them, where claims start, who gives back."""

from dataclasses import replace
from typing import Any

import pytest

from aliquot.engine import Amounts, Node
from aliquot.engine.model.events import NodeSet, PodSet
from tests.build import values
from tests.build.values import GPU, amounts
from tests.engine.world import World

A100, V100 = "gpu.aliquot.dev/a100", "gpu.aliquot.dev/v100"
POLICIES = ("capacity", "fair", "hierarchy", "queues")


def node(name: str, model: str, count: int = 4, **more: Any) -> Node:
    has = amounts(gpu=count, pods=110, **{model: count}) if model else amounts(gpu=count, pods=110)
    models = ((GPU, model),) if model else ()
    return Node(name, has, models=models, labels=(("model", model),), **more)


def world(policy: str = "capacity", *nodes: Node) -> World:
    made = World(policy)
    made.apply(*(NodeSet(each) for each in nodes or (node("a", A100), node("v", V100))))
    return made


def on(model: str) -> dict[str, Any]:
    """The shape of a pod that may run on nodes of a model only."""
    return {"constraints": replace(values.pod("p").shape.constraints, selector=(("model", model),))}


def used(made: World, quota: str, word: str = "used") -> dict[str, int]:
    found = next(each for each in made.engine.summarise() if each.name == quota)
    return {name: n for name, n in getattr(found, word).items() if name != "pods"}


def low(total: int, **models: int) -> Amounts:
    return amounts(gpu=total, **{f"gpu.aliquot.dev/{name}": n for name, n in models.items()})


def test_a_bound_pod_is_charged_for_the_model_of_its_node() -> None:
    made = world()
    made.quota("t", low(4, a100=2))
    made.pod("t", "p", amounts(gpu=2), node="a")
    made.pod("t", "q", amounts(gpu=1), node="v")
    assert used(made, "t") == {GPU: 3, A100: 2, V100: 1}


def test_labels_of_nodes_that_change_move_what_is_charged() -> None:
    made = world()
    made.quota("t", low(4, a100=2))
    made.pod("t", "p", amounts(gpu=2), node="a")
    made.apply(NodeSet(node("a", V100)))
    assert used(made, "t") == {GPU: 2, A100: 0, V100: 2}
    made.apply(NodeSet(node("a", "")))
    assert used(made, "t") == {GPU: 2, A100: 0}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_waiting_pod_counts_for_a_model_if_it_can_run_on_no_other(policy: str) -> None:
    made = world(policy)
    made.quota("t", low(0), low(0, a100=8))
    made.pod("t", "any", amounts(gpu=1))
    made.pod("t", "only", amounts(gpu=2), shape=on(A100))
    made.run()
    assert used(made, "t", "request") == {GPU: 3, A100: 2}
    made.apply(NodeSet(replace(node("v", V100), deleted=True)))
    made.run()
    assert used(made, "t", "request")[A100] == 3  # no pod starts there any more


def test_a_pod_too_large_for_other_models_counts_for_the_only_one_that_could_hold_it() -> None:
    made = world("capacity", node("a", A100, 8), node("v", V100, 4))
    made.quota("t", low(0), low(1, a100=8))
    made.pod("t", "p", amounts(gpu=8))
    made.run()
    assert used(made, "t", "request") == {GPU: 8, A100: 8}
    made.apply(NodeSet(node("v", V100, 8)))
    made.run()
    assert used(made, "t", "request") == {GPU: 8, A100: 0}


@pytest.mark.parametrize("policy", POLICIES)
def test_cards_that_no_unused_min_needs_come_first(policy: str) -> None:
    made = world(policy)
    deserved = {"deserved": low(4, a100=4)} if policy == "queues" else {}
    made.quota("owner", low(4, a100=4), **deserved)
    made.quota("t", low(4), **({"deserved": low(4)} if policy == "queues" else {}))
    for number in range(4):
        made.pod("t", f"p{number}", amounts(gpu=1))
    assert set(made.run().values()) == {"v"}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_pod_that_is_not_preemptible_leaves_a_model_to_its_owner(policy: str) -> None:
    made = world(policy)
    deserved = {"deserved": low(4, v100=4)} if policy == "queues" else {}
    made.quota("owner", low(4, v100=4), **deserved)
    made.quota("t", low(4), **({"deserved": low(4)} if policy == "queues" else {}))
    made.pod("t", "stays", amounts(gpu=1), preemptible=False, shape=on(V100))
    made.pod("t", "other", amounts(gpu=1), preemptible=False)
    assert made.run() == {"t/other": "a"}
    refusal = made.engine.why("t/stays")
    assert refusal is not None
    assert str(refusal.reason) == "NonPreemptibleAboveMin"
    assert f"need 5 {V100} of 4" in refusal.message


def test_only_quotas_that_name_a_model_have_a_share_of_it() -> None:
    made = world("hierarchy", node("a", A100, 8))
    for name, weight in (("x", 1), ("y", 3)):
        made.quota(name, (), low(8, a100=8), weight=((A100, weight), (GPU, 1)))
        for number in range(8):
            made.pod(name, f"p{number}", amounts(gpu=1))
    made.quota("z", (), low(8))
    made.pod("z", "p", amounts(gpu=1))
    made.run()
    shares = {name: used(made, name, "runtime").get(A100) for name in "xyz"}
    assert shares == {"x": 2, "y": 6, "z": None}


def test_an_evicted_pod_goes_to_another_model_and_comes_back_to_none() -> None:
    made = world()
    for number in range(4):
        made.pod("t", f"p{number}", amounts(gpu=1), node="v")
    made.quota("t", low(4))
    made.quota("owner", low(2, v100=2))
    made.pod("owner", "o", amounts(gpu=2), shape=on(V100))
    assert made.run() == {"owner/o": "v"}
    gone = made.evicted()
    assert len(gone) == 2
    for path in gone:
        made.pod("t", path.partition("/")[2] + "-again", amounts(gpu=1))
    assert set(made.run().values()) == {"a"}
    assert made.evicted() == []


def test_the_message_of_an_eviction_gives_the_numbers_of_the_model() -> None:
    made = world()
    for number in range(4):
        made.pod("t", f"p{number}", amounts(gpu=1), node="v")
    made.quota("t", low(4))
    made.quota("owner", low(1, v100=1))
    made.pod("owner", "o", amounts(gpu=1), shape=on(V100))
    made.run()
    assert made.evictions[0].message == (
        f"quota owner takes back its min for owner/o: min 1 {V100}, used 0, pod asks 1; "
        f"quota t uses 4, min 0; for what it is owed there are {GPU} of other models"
    )


def test_a_pod_of_two_cards_goes_when_one_is_beyond_the_min_of_its_model() -> None:
    made = world("capacity", node("a", A100, 6), node("v", V100, 4))
    made.quota("t", low(8, a100=3))
    for number in range(3):
        made.pod("t", f"p{number}", amounts(gpu=2), node="a")
    made.quota("owner", low(3, a100=2))
    made.pod("owner", "o", amounts(gpu=2), shape=on(A100))
    assert made.run() == {"owner/o": "a"}
    assert len(made.evicted()) == 1


def test_other_models_must_have_room_for_what_the_quota_is_owed() -> None:
    made = world("capacity", node("a", A100, 4), node("v", V100, 4))
    made.quota("t", low(4))
    made.quota("x", low(3))
    for number in range(4):
        made.pod("t", f"p{number}", amounts(gpu=1), node="v")
    for number in range(3):
        made.pod("x", f"p{number}", amounts(gpu=1), node="a")
    made.quota("owner", low(1, v100=1))
    made.pod("owner", "o", amounts(gpu=1), shape=on(V100))
    assert made.run() == {"owner/o": "v"}
    assert len(made.evicted()) == 1
    made.quota("owner", low(2, v100=2))
    made.pod("owner", "o2", amounts(gpu=1), shape=on(V100))
    made.pod("t", "again", amounts(gpu=1), node="a")
    assert made.run() == {}
    assert made.evicted() == []


def test_a_gang_that_needs_victims_gets_one_model() -> None:
    made = world("capacity", node("a", A100, 4), node("v", V100, 4))
    made.quota("t", low(4))
    for number in range(4):
        made.pod("t", f"p{number}", amounts(gpu=1), node="v")
    made.quota("owner", low(3, v100=3))
    made.gang("owner/g", 3)
    for number in range(3):
        made.pod("owner", f"g{number}", amounts(gpu=1), gang="owner/g", shape=on(V100))
    assert set(made.run().values()) == {"v"}
    assert len(made.evicted()) == 3


def test_questions_after_a_node_has_changed_do_not_change_what_is_booked() -> None:
    made = world("capacity", node("a", A100, 8), node("v", V100, 4))
    made.quota("t", low(0), low(1, a100=8))
    made.pod("t", "p", amounts(gpu=8))
    made.run()
    made.apply(NodeSet(node("v", V100, 8)))
    made.engine.why("t/p")
    made.apply(PodSet(values.pod("other", amounts(gpu=1), "t")))
    assert used(made, "t", "request")[A100] == 0
