"""Trees with nodes of their own: what each has to share, and where its pods may run."""

from dataclasses import replace

import pytest

from aliquot.engine import (
    Node,
    NodeConstraints,
    NodePool,
    NodeSet,
    Quota,
    QuotaGone,
    QuotaSet,
    Requirement,
    Shape,
    Term,
    Tree,
    TreeGone,
    TreeSet,
    node_refusal,
)
from aliquot.engine.model.events import NodeGone
from aliquot.engine.model.knobs import EvictionKnobs, HierarchyKnobs
from aliquot.engine.model.node import Taint
from aliquot.engine.placement.ask import Ask
from aliquot.errors import ArgumentError
from tests.build.values import amounts, node_set
from tests.engine.world import World

FAST = (Requirement("pool", "In", ("fast",)),)
BIG = (Requirement("pool", "In", ("big",)),)
CORDON = (Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),)


def tree(*pools: NodePool, name: str = "t") -> TreeSet:
    return TreeSet(Tree(name, pools or (NodePool(FAST),)))


def quota(name: str, low: int, high: int, in_tree: str = "t", **more: object) -> QuotaSet:
    given = {"tree": in_tree, "namespaces": frozenset({name}), **more}
    return QuotaSet(Quota(name, amounts(cpu=low), amounts(cpu=high), **given))  # type: ignore[arg-type]


def cluster(*trees: TreeSet, **knobs: object) -> World:
    """Ten of cpu in the pool `fast`, twenty in `big`, thirty elsewhere; a quota wants all of each.

    Quota `a` is in the tree, `z` in none.
    """
    world = World("hierarchy", hierarchy=HierarchyKnobs(surplus=False), **knobs)
    world.apply(*(trees or (tree(),)), quota("a", 1, 100), quota("z", 1, 100, ""))
    for name, cores in (("fast", 10), ("big", 20), ("other", 30)):
        world.node(name, amounts(cpu=cores), labels=(("pool", name),))
    for team in ("a", "z"):
        for number in range(60):
            world.pod(team, f"p-{number}", amounts(cpu=1))
    return world


def runtime(world: World, name: str) -> int:
    return next(each.runtime["cpu"] for each in world.engine.summarise() if each.name == name)


def test_a_tree_shares_its_nodes_and_the_rest_share_what_it_leaves() -> None:
    world = cluster()
    assert (runtime(world, "a"), runtime(world, "z")) == (10, 50)
    started = world.run()
    assert {node for pod, node in started.items() if pod.startswith("a/")} == {"fast"}
    assert sum(pod.startswith("a/") for pod in started) == 10
    assert sum(pod.startswith("z/") for pod in started) == 50


def test_pools_of_one_tree_add_up() -> None:
    world = cluster(tree(NodePool(FAST), NodePool(BIG, ratio=(1, 4))))
    assert (runtime(world, "a"), runtime(world, "z")) == (15, 30), "z stays off its nodes"
    nodes = [node for pod, node in world.run().items() if pod.startswith("a/")]
    assert len(nodes) == 15
    assert set(nodes) <= {"fast", "big"}


def test_what_a_ratio_leaves_is_promised_to_no_quota_that_stays_off_these_nodes() -> None:
    """Quotas z and y each have 15 guaranteed of the 30 that are not the tree's, and get them."""
    world = cluster(tree(NodePool(FAST, ratio=(1, 2)), NodePool(BIG)))
    world.run(0)
    world.apply(quota("z", 15, 100, ""), quota("y", 15, 100, ""))
    for number in range(20):
        world.pod("y", f"p-{number}", amounts(cpu=1))
    assert (runtime(world, "z"), runtime(world, "y")) == (15, 15)


def test_a_node_counts_once_in_a_tree_that_selects_it_twice() -> None:
    world = cluster(tree(NodePool(FAST), NodePool(())))
    assert (runtime(world, "a"), runtime(world, "z")) == (60, 0)


def test_nodes_of_a_tree_may_be_the_default_trees_as_well() -> None:
    world = cluster(tree(NodePool(FAST, apart=False)))
    assert (runtime(world, "a"), runtime(world, "z")) == (10, 60)


def test_an_amount_without_nodes_is_shared_anywhere() -> None:
    world = cluster(tree(NodePool(amounts=amounts(cpu=15))))
    assert (runtime(world, "a"), runtime(world, "z")) == (15, 45)
    assert sum(pod.startswith("a/") for pod in world.run()) == 15


def test_a_tree_without_nodes_has_nothing() -> None:
    world = cluster()
    world.apply(TreeGone("t"))
    assert (runtime(world, "a"), runtime(world, "z")) == (0, 60)
    world.run()
    assert world.told("a/p-0").startswith(
        "quota a (tree t, which has no nodes): runtime 0 cpu, used 0"
    )


def test_what_systems_pods_use_is_not_there_to_share_where_they_run() -> None:
    world = cluster()
    world.apply(QuotaSet(Quota("system", unshared=True, namespaces=frozenset({"system"}))))
    world.pod("system", "agent", amounts(cpu=3), node="fast")
    world.pod("system", "server", amounts(cpu=4), node="other")
    assert (runtime(world, "a"), runtime(world, "z")) == (7, 46)


def test_what_the_ratio_leaves_is_for_the_system_first() -> None:
    world = cluster(tree(NodePool(FAST, ratio=(1, 2))))
    world.apply(QuotaSet(Quota("system", unshared=True, namespaces=frozenset({"system"}))))
    world.pod("system", "agent", amounts(cpu=3), node="fast")
    assert (runtime(world, "a"), runtime(world, "z")) == (5, 50)
    world.pod("system", "more", amounts(cpu=4), node="fast")
    assert (runtime(world, "a"), runtime(world, "z")) == (3, 50)


def test_a_drained_node_lends_nothing_and_keeps_guarantees() -> None:
    world = cluster()
    world.apply(quota("a", 8, 100))
    world.apply(node_set("fast", amounts(cpu=10), labels=(("pool", "fast"),), taints=CORDON))
    (a, z) = world.engine.summarise()
    assert (a.runtime["cpu"], a.scaled_min) == (0, None), "no pod of it could start"
    assert z.runtime["cpu"] == 50, "what is drained is not the default tree's either"


def test_lost_nodes_scale_the_mins_of_their_tree_only() -> None:
    world = cluster(eviction=EvictionKnobs(node_lost_after=60 * 10**9))
    world.apply(quota("a", 8, 100))
    world.run(0)
    world.apply(NodeGone("fast"))
    world.cycle(0)
    assert runtime(world, "a") == 8
    world.cycle(61)
    assert (runtime(world, "a"), runtime(world, "z")) == (0, 50)


def test_a_node_that_changes_its_pool_moves_what_it_has() -> None:
    world = cluster()
    world.apply(node_set("other", amounts(cpu=30), labels=(("pool", "fast"),)))
    assert (runtime(world, "a"), runtime(world, "z")) == (40, 20)
    world.apply(node_set("other", amounts(cpu=30), labels=(("pool", "none"),)))
    assert (runtime(world, "a"), runtime(world, "z")) == (10, 50)


def test_a_quota_may_come_before_its_tree() -> None:
    world = World("hierarchy")
    world.apply(quota("a", 1, 9))
    world.node("fast", amounts(cpu=2), labels=(("pool", "fast"),))
    world.node("other", amounts(cpu=9))
    world.pod("a", "p", amounts(cpu=1))
    assert world.run() == {}
    world.apply(tree())
    assert world.run() == {"a/p": "fast"}


def test_only_what_quotas_of_a_tree_name_is_shared_in_it() -> None:
    """Quota z names no memory: its pods are not held to a share of it, whatever a tree names."""
    world = World("hierarchy", hierarchy=HierarchyKnobs(surplus=False))
    world.apply(tree(), quota("z", 1, 9, ""), quota("y", 1, 9, ""))
    world.apply(QuotaSet(Quota("a", amounts(memory=5), tree="t", namespaces=frozenset({"a"}))))
    world.node("other", amounts(cpu=10, memory=10))
    world.pod("y", "p", amounts(cpu=1, memory=1))
    for number in range(3):
        world.pod("z", f"p-{number}", amounts(cpu=1, memory=3))
    assert len(world.run()) == 4


def test_a_claim_takes_back_in_its_own_tree_only() -> None:
    """Quota b asks for its min: a, in its tree, gives it back; z, above its share, has no part."""
    world = cluster()
    world.apply(quota("b", 5, 100))
    world.run(0)
    for number in range(5):
        world.pod("b", f"p-{number}", amounts(cpu=1))
    world.run(0)
    world.run(121)
    assert {path.partition("/")[0] for path in world.evicted()} == {"a"}


def test_a_quota_moves_to_another_tree_with_its_pods() -> None:
    world = cluster(tree(), tree(NodePool(BIG), name="u"))
    world.run()
    world.apply(quota("a", 1, 100, "u"))
    assert runtime(world, "a") == 20
    started = world.run()
    assert set(started.values()) == {"big"}
    world.apply(QuotaGone("a"))
    assert runtime(world, "z") == 30, "both trees keep their nodes"


def test_pods_in_no_tree_stay_off_the_nodes_that_trees_have_for_themselves() -> None:
    world = World("hierarchy")
    world.apply(tree(NodePool(FAST), NodePool(BIG, apart=False)), quota("z", 1, 9, ""))
    world.apply(QuotaSet(Quota("system", unshared=True, namespaces=frozenset({"system"}))))
    for name, cores in (("fast", 4), ("big", 6)):
        world.node(name, amounts(cpu=cores), labels=(("pool", name),))
    for team in ("z", "system", "none"):
        for number in range(2):
            world.pod(team, f"p-{number}", amounts(cpu=1))
    started = world.run()
    assert started["z/p-0"] == started["z/p-1"] == "big"
    assert len(started) == 6
    world.pod("z", "large", amounts(cpu=5))
    assert world.run() == {}
    world.apply(TreeGone("t"))
    assert world.run() == {}
    world.apply(node_set("new", amounts(cpu=5), labels=(("pool", "fast"),)))
    assert world.run() == {"z/large": "new"}


def test_a_pod_is_told_how_many_nodes_are_not_its_trees() -> None:
    world = World("hierarchy")
    world.apply(tree(), quota("a", 1, 9))
    for name, pool in (("f-0", "fast"), ("f-1", "fast"), ("other", "other")):
        world.node(name, amounts(cpu=2 if pool == "fast" else 9), labels=(("pool", pool),))
    world.pod("a", "p", amounts(cpu=3))
    world.run()
    assert world.told("a/p").startswith(
        "0/3 nodes fit: 2 too little cpu (asks 3m, most free 2m), 1 outside its quota's "
        "tree; it needs one node"
    )


def test_a_pod_that_names_its_node_is_not_kept_off_it() -> None:
    """As the pods of DaemonSets do."""
    world = World("hierarchy")
    world.apply(tree(), quota("z", 1, 9, ""))
    world.node("fast", amounts(cpu=4), labels=(("pool", "fast"),))
    world.node("other", amounts(cpu=4))
    named = Term((), (Requirement("metadata.name", "In", ("fast",)),))
    world.pod("z", "p", amounts(cpu=1), shape={"constraints": NodeConstraints(required=(named,))})
    assert world.run() == {"z/p": "fast"}


@pytest.mark.parametrize("own", [NodeConstraints(), NodeConstraints((("pool", "fast"),))])
def test_what_trees_leave_is_the_same_by_node_and_by_column(own: NodeConstraints) -> None:
    pools = "fast", "big", "other"
    nodes = [Node(name, (), (("pool", name),)) for name in pools]
    world = World("hierarchy")
    world.apply(*(NodeSet(each) for each in nodes))
    for within, beyond in (((FAST,), ()), ((FAST, BIG), ()), ((), (FAST,)), ((), ((),)), ((), ())):
        reach = replace(own, within=within, beyond=beyond)
        column = world.state.placement.open_nodes(
            Ask(Shape((), reach), world.state.resources, "pack", world.state.nodes.classes)
        )
        alone = [node_refusal(reach, each) is None for each in nodes]
        assert [bool(column[world.state.nodes.slots[name]]) for name in pools] == alone


@pytest.mark.parametrize("ratio", [(0, 1), (2, 1), (1, 0), (1,)])
def test_a_ratio_is_above_0_and_at_most_1(ratio: tuple[int, int]) -> None:
    with pytest.raises(ArgumentError, match="ratio"):
        NodePool(FAST, ratio=ratio)


def guarantees(world: World) -> dict[str, tuple[int, int]]:
    """Guaranteed and allocated."""
    sure, given = world.engine.guarantees({each.name: each for each in world.engine.summarise()})
    return {name: (sure[name]["cpu"], given[name].get("cpu", 0)) for name in sorted(sure)}


def test_what_is_given_is_guaranteed() -> None:
    """A quota is sure of its min and of what it uses; its parent of the sum of that."""
    world = World("hierarchy")
    world.node("n", amounts(cpu=100))
    world.apply(
        quota("1", 20, 40, "", is_parent=True),
        quota("2", 10, 40, "", parent="1"),
        quota("3", 5, 40, "", parent="1"),
    )
    world.pod("2", "p", amounts(cpu=5), node="n")
    assert guarantees(world) == {"1": (20, 15), "2": (10, 5), "3": (5, 0)}
    world.pod("2", "q", amounts(cpu=10), node="n")
    assert guarantees(world) == {"1": (20, 20), "2": (15, 15), "3": (5, 0)}
    world.pod("2", "r", amounts(cpu=10), node="n")
    assert guarantees(world) == {"1": (30, 30), "2": (25, 25), "3": (5, 0)}
    world.apply(quota("2", 20, 40, "", parent="1"))
    world.apply(QuotaGone("3"))
    assert guarantees(world) == {"1": (25, 25), "2": (25, 25)}, "all that was guaranteed is back"
    world.apply(QuotaGone("2"))
    assert guarantees(world) == {"1": (20, 0)}
