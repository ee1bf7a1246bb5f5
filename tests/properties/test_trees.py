"""Trees over pools of nodes that come, go, and change their labels, with quotas and pods in them.

What is kept of the pools is what a new count over the same books has; a new engine that is told how
everything stands shares it in the same way. Pods start on the nodes of their tree, or, in no tree,
on none that a tree has for itself; and nothing that we start is above max or runtime.
"""

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.engine import (
    Bind,
    Engine,
    Event,
    HierarchyKnobs,
    Knobs,
    Node,
    NodeGone,
    NodePool,
    NodeSet,
    Pod,
    PodGone,
    PodSet,
    Quota,
    QuotaSet,
    Requirement,
    Shape,
    Taint,
    Tree,
    TreeGone,
    TreeSet,
    binds_and_evictions,
    node_refusal,
)
from aliquot.engine.books.tree_capacity import TreeCapacity
from tests.build.engines import books
from tests.build.values import amounts
from tests.campaign import examples

ZONES = ("a", "b", "c")
TREES = ("t", "u")
TEAMS = ("p", "q", "r", "s")
SYSTEM = "system"
CLOSED = (Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),)

zones = st.sampled_from(ZONES)
selectors = st.one_of(
    st.just(()),
    zones.map(lambda zone: (Requirement("zone", "In", (zone,)),)),
    zones.map(lambda zone: (Requirement("zone", "NotIn", (zone,)),)),
)
pools = st.builds(
    NodePool,
    selectors,
    ratio=st.sampled_from(((1, 1), (1, 1), (1, 2), (2, 3))),
    apart=st.sampled_from((True, True, False)),
)
fixed = st.builds(NodePool, st.none(), st.integers(0, 9).map(lambda n: amounts(cpu=n)))
trees = st.builds(
    Tree, st.sampled_from(TREES), st.lists(st.one_of(pools, pools, fixed), max_size=2).map(tuple)
)
nodes = st.builds(
    lambda number, zone, cores, closed, ready: Node(
        f"n{number}",
        amounts(cpu=cores, pods=20),
        (("zone", zone),),
        CLOSED if closed or not ready else (),
        ready=ready,
    ),
    st.integers(0, 4),
    zones,
    st.integers(1, 9),
    st.sampled_from((False, False, False, True)),
    st.sampled_from((True, True, True, False)),
)
quotas = st.builds(
    lambda name, low, more, tree: Quota(
        name, amounts(cpu=low), amounts(cpu=low + more), namespaces=frozenset({name}), tree=tree
    ),
    st.sampled_from(TEAMS),
    st.integers(0, 5),
    st.integers(0, 9),
    st.sampled_from(("", *TREES)),
)
pods = st.builds(
    lambda number, team, cores: Pod(
        f"pod-{number}", team, f"pod-{number}", Shape(amounts(cpu=cores, pods=1)), created=number
    ),
    st.integers(0, 14),
    st.sampled_from((*TEAMS, *TEAMS, SYSTEM, "none")),
    st.integers(1, 4),
)
steps = st.one_of(
    trees.map(TreeSet),
    st.sampled_from(TREES).map(TreeGone),
    nodes.map(NodeSet),
    nodes.map(NodeSet),
    st.integers(0, 4).map(lambda number: NodeGone(f"n{number}")),
    quotas.map(QuotaSet),
    pods.map(PodSet),
    pods.map(PodSet),
    pods.map(PodSet),
    st.integers(0, 14).map(lambda number: PodGone(f"pod-{number}")),
)


@dataclass
class World:
    """An engine, and how everything stands, as another would be told of it."""

    engine: Engine
    nodes: dict[str, Node]
    quotas: dict[str, Quota]
    trees: dict[str, Tree]
    pods: dict[str, Pod]

    def apply(self, event: Event) -> None:
        match event:
            case NodeSet(node):
                self.nodes[node.name] = node
            case NodeGone(name):
                self.nodes.pop(name, None)
            case QuotaSet(quota):
                self.quotas[quota.name] = quota
            case TreeSet(tree):
                self.trees[tree.name] = tree
            case TreeGone(name):
                self.trees.pop(name, None)
            case PodSet(pod):
                if pod.uid in self.pods:
                    return
                self.pods[pod.uid] = pod
            case PodGone(uid):
                self.pods.pop(uid, None)
        self.engine.apply(event)

    def decide(self, now: int) -> list[Bind]:
        """Decide once; all of it comes true."""
        started = []
        for each in binds_and_evictions(self.engine.cycle(now)):
            if isinstance(each, Bind):
                started.append(each)
                bound = replace(each.pod, node=each.node)
                self.pods[bound.uid] = bound
                self.engine.apply(PodSet(bound))
            else:
                self.apply(PodGone(each.pod.uid))
        return started

    def told_anew(self) -> Engine:
        """A new engine that is told how everything stands."""
        engine = fresh()
        events: list[Event] = [NodeSet(each) for each in self.nodes.values()]
        events += [PodSet(each) for each in self.pods.values()]
        events += [QuotaSet(each) for each in self.quotas.values()]
        events += [TreeSet(each) for each in self.trees.values()]
        for event in events:
            engine.apply(event)
        return engine


def fresh() -> Engine:
    return Engine("hierarchy", Knobs(hierarchy=HierarchyKnobs(surplus=False)))


def world() -> World:
    found = World(fresh(), {}, {}, {}, {})
    found.apply(QuotaSet(Quota(SYSTEM, unshared=True, namespaces=frozenset({SYSTEM}))))
    for team in TEAMS:
        low, high = amounts(cpu=2), amounts(cpu=9)
        found.apply(QuotaSet(Quota(team, low, high, namespaces=frozenset({team}))))
    return found


@given(st.lists(steps, min_size=4, max_size=40))
@settings(max_examples=examples(400, 60), deadline=None)
def test_pools_follow_what_changes(history: list[Event]) -> None:
    found = world()
    for now, event in enumerate(history):
        found.apply(event)
        is_same_when_counted_anew(found.engine)
        started = found.decide(now)
        starts_where_it_may(found, started)
        stays_within_its_share(found, started)
    # nodes that are gone, or not ready, for ten minutes count as lost by both
    found.engine.cycle(10**12)
    anew = found.told_anew()
    anew.cycle(0)
    anew.cycle(10**12)
    for bind in found.decide(10**12):
        anew.apply(PodSet(replace(bind.pod, node=bind.node)))
    shares = [{s.name: (s.runtime, s.tree) for s in e.summarise()} for e in (found.engine, anew)]
    if not any(pod.node and pod.node not in found.nodes for pod in found.pods.values()):
        assert shares[0] == shares[1]


def is_same_when_counted_anew(engine: Engine) -> None:
    state = books(engine)
    kept = state.tree_capacity
    new = TreeCapacity(state.resources, state.nodes, state.ledger, state.tree, state.capacity)
    kept.refresh()
    new.refresh()
    for row in range(len(state.resources)):
        assert kept.lent(row) == new.lent(row)
        assert kept.guaranteed(row) == new.guaranteed(row)
    for tree in TREES:
        assert (kept.nodes_of(tree) == new.nodes_of(tree)).all()
    state.ledger.node_tallies[:] = [
        each
        for each in state.ledger.node_tallies
        if each is not new._outside  # it was told of this moment only
    ]


def starts_where_it_may(found: World, started: list[Bind]) -> None:
    for bind in started:
        node, quota = found.nodes[bind.node], found.quotas.get(bind.pod.namespace)
        within, beyond = ((), ()) if quota is None else books(found.engine).tree.reach(quota.name)
        reach = replace(bind.pod.shape.constraints, within=within, beyond=beyond)
        assert node_refusal(reach, node) is None
        tree = found.trees.get(quota.tree) if quota is not None else None
        if tree is not None and tree.within:
            assert any(pool.selects(node) for pool in tree.pools)


def stays_within_its_share(found: World, started: list[Bind]) -> None:
    """Unless pods outside the trees, which nothing bounds, took of it after one of these starts."""
    if not {bind.pod.namespace for bind in started} <= {*TEAMS}:
        return
    shares = {each.name: each for each in found.engine.summarise()}
    for bind in started:
        mine = shares.get(bind.pod.namespace)
        if mine is not None and mine.name != SYSTEM:
            assert mine.used["cpu"] <= min(mine.runtime["cpu"], mine.max["cpu"])
