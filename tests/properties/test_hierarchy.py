"""Quota trees in motion: random trees, pods and node losses, run to rest under `hierarchy`.

Runtime is worked out once more by plain rules, and the rest is judged by it: what we start stays
within runtime unless it is surplus; nobody is evicted but by a rule; nobody waits who could start;
owners that put their pods back keep nothing going for ever; history leaves no trace.
"""

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind, Evict, binds_and_evictions
from aliquot.engine.model.events import Event, NodeGone, NodeSet, PodGone, PodSet, QuotaSet
from aliquot.engine.model.knobs import HierarchyKnobs, Knobs
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quota import Quota
from tests.build.engines import books
from tests.build.values import GPU, amounts, node_set, pod_set, quota_set
from tests.campaign import examples
from tests.properties.runtime_rules import TOP, Result, Team, by_the_rules

MOST_ROUNDS = 150
RESOURCES = ("cpu", GPU)


@dataclass(frozen=True)
class World:
    """A cluster, its tree, the pods that are always wanted, in waves, and the knobs."""

    nodes: tuple[Node, ...]
    quotas: tuple[Quota, ...]
    waves: tuple[tuple[Pod, ...], ...]
    knobs: HierarchyKnobs
    lose: bool
    late: int
    edit: Quota
    """A quota as it is changed to half-way."""


@st.composite
def quotas(draw: st.DrawFn, name: str, parent: str | None, is_parent: bool) -> Quota:
    named = draw(st.sampled_from((("cpu", "gpu"), ("cpu", "gpu"), ("gpu",), ("cpu",))))
    low = {each: draw(st.integers(0, 6)) for each in named}
    high = {each: value + draw(st.integers(0, 8)) for each, value in low.items()}
    return Quota(
        name,
        amounts(**low),
        amounts(**high),
        parent=parent,
        is_parent=is_parent,
        lend=draw(st.sampled_from((True, True, True, False))),
        namespaces=frozenset() if is_parent else frozenset({name}),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    nodes = tuple(
        Node(f"n{i}", amounts(cpu=draw(st.integers(2, 8)), gpu=draw(st.integers(2, 8)), pods=20))
        for i in range(draw(st.integers(1, 3)))
    )
    tree: list[Quota] = []
    for name in ("a", "b"):
        is_parent = draw(st.booleans())
        tree.append(draw(quotas(name, None, is_parent)))
        if is_parent:
            tree += [draw(quotas(f"{name}{child}", name, False)) for child in "xy"]
    if draw(st.booleans()):
        tree.append(Quota("default", fallback=True))
    leaves = [quota.name for quota in tree if not quota.is_parent]
    waves: list[list[Pod]] = [[], []]
    for number in range(draw(st.integers(2, 5))):
        requests = {"cpu": draw(st.integers(0, 3)), "gpu": draw(st.integers(0, 3)), "pods": 1}
        pod = Pod(
            uid="",
            namespace=draw(st.sampled_from(leaves)),
            name="",
            shape=Shape(tuple(pair for pair in amounts(**requests) if pair[1])),
            priority=draw(st.sampled_from((0, 0, 10))),
            preemptible=draw(st.sampled_from((True, True, True, False))),
        )
        wave = waves[draw(st.integers(0, 1))]
        for replica in range(draw(st.integers(1, 4))):
            name = f"w{number}-{replica}"
            wave.append(replace(pod, uid=name, name=name, created=draw(st.integers(0, 3))))
    knobs = HierarchyKnobs(
        recycle=draw(st.sampled_from(("demand", "always"))), surplus=draw(st.booleans())
    )
    old = draw(st.sampled_from([quota for quota in tree if not quota.fallback]))
    edit = draw(quotas(old.name, old.parent, old.is_parent))
    late = draw(st.sampled_from((0, 1, 10**10)))
    lose = draw(st.booleans())
    return World(nodes, tuple(tree), tuple(map(tuple, waves)), knobs, lose, late, edit)


class Play:
    """A world, played on the engine and kept in plain dicts beside it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.engine = Engine("hierarchy", Knobs(hierarchy=world.knobs))
        self.nodes = {node.name: node for node in world.nodes}
        self.quotas = {quota.name: quota for quota in world.quotas}
        self.pods: dict[str, Pod] = {}
        self.now = 0
        self.evictions = 0
        for event in self.facts():
            self.engine.apply(event)

    def facts(self) -> list[Event]:
        return [
            *(NodeSet(node) for node in self.nodes.values()),
            *(QuotaSet(quota) for quota in self.quotas.values()),
            *(PodSet(pod) for pod in self.pods.values()),
        ]

    def quota(self, pod: Pod) -> Quota:
        return self.quotas[pod.namespace]

    def path(self, quota: Quota) -> list[Quota]:
        return [quota] if quota.parent is None else [quota, *self.path(self.quotas[quota.parent])]

    def used(self, quota: Quota, resource: str) -> int:
        return sum(
            dict(pod.shape.requests).get(resource, 0)
            for pod in self.pods.values()
            if pod.node is not None and quota in self.path(self.quota(pod))
        )

    def could_hold(self, pod: Pod) -> bool:
        return any(
            all(dict(node.allocatable).get(r, 0) >= n for r, n in pod.shape.requests)
            for node in self.nodes.values()
        )

    def shared(self) -> set[str]:
        """The resources that any quota names."""
        return {name for quota in self.quotas.values() for name, _ in (*quota.min, *quota.max)}

    def kept_back(self, pod: Pod, resource: str) -> int:
        """What quotas that never lend have left of their min, for others than this pod's."""
        path = self.path(self.quota(pod))
        kept = 0
        for quota in self.quotas.values():
            above = [each for each in self.path(quota)[1:] if each not in path]
            if not quota.lend and quota not in path and all(each.lend for each in above):
                floor = self.figures(resource)[quota.name].scaled_min
                kept += max(floor - self.used(quota, resource), 0)
        return kept

    def lends(self, pod: Pod) -> bool:
        """May it use what is idle, beyond its quota's runtime?"""
        tops = [quota for quota in self.quotas.values() if quota.parent is None]
        return (
            self.world.knobs.surplus
            and pod.preemptible
            and all(
                sum(self.used(quota, resource) for quota in tops)
                + amount
                + self.kept_back(pod, resource)
                <= sum(dict(node.allocatable)[resource] for node in self.nodes.values())
                for resource, amount in pod.shape.requests
                if resource in self.shared()
            )
        )

    def runtime(self, quota: Quota, resource: str) -> int:
        return self.figures(resource)[quota.name].runtime

    def figures(self, resource: str) -> dict[str, Result]:
        """By the plain rules, from what pods ask for that run or could."""
        row, own = RESOURCES.index(resource), dict.fromkeys(self.quotas, 0)
        for pod in self.pods.values():
            if pod.node is not None or self.could_hold(pod):
                own[pod.namespace] += dict(pod.shape.requests).get(resource, 0)
        teams = [
            Team(
                each.name,
                each.parent or TOP,
                {row: dict(each.min).get(resource, 0)},
                {row: dict(each.max)[resource]} if resource in dict(each.max) else {},
                lend=each.lend,
                own={row: own[each.name]},
            )
            for each in self.quotas.values()
        ]
        total = sum(dict(node.allocatable)[resource] for node in self.nodes.values())
        one = 1000 if resource == "cpu" else 1
        return by_the_rules(teams, row, total, one)

    def within(self, pod: Pod) -> bool:
        """Would its quota, and those above it, stay within their runtime?"""
        return all(
            self.used(quota, resource) + amount <= self.runtime(quota, resource)
            for quota in self.path(self.quota(pod))
            for resource, amount in pod.shape.requests
            if resource in self.shared()
        )

    def fits(self, pod: Pod, node: Node) -> bool:
        here = [each for each in self.pods.values() if each.node == node.name]
        return all(
            sum(dict(each.shape.requests).get(resource, 0) for each in here) + amount
            <= dict(node.allocatable).get(resource, 0)
            for resource, amount in pod.shape.requests
        )

    def below_max(self, pod: Pod) -> bool:
        return all(
            self.used(quota, resource) + amount <= dict(quota.max).get(resource, 2**62)
            for quota in self.path(self.quota(pod))
            for resource, amount in pod.shape.requests
        )

    def unmovable_within_min(self, pod: Pod) -> bool:
        if pod.preemptible:
            return True
        like = [
            each
            for each in self.pods.values()
            if each.node is not None and not each.preemptible and each.namespace == pod.namespace
        ]
        low = dict(self.quota(pod).min)
        return all(
            sum(dict(each.shape.requests).get(r, 0) for each in like) + n <= low.get(r, 0)
            for r, n in pod.shape.requests
            if r in self.shared()
        )

    def rest(self) -> None:
        """Decide and carry out until nothing more happens: that must end."""
        for _ in range(MOST_ROUNDS):
            decisions = self.engine.cycle(self.now)
            acted = list(binds_and_evictions(decisions))
            for decision in acted:
                self.carry_out(decision)
            if acted:
                continue
            deadline = self.engine.next_deadline()
            if deadline is None:
                return self.at_rest()
            self.now = max(self.now, deadline + self.world.late)
        raise AssertionError("it never comes to rest")

    def carry_out(self, decision: Bind | Evict) -> None:
        match decision:
            case Bind(pod, host):
                assert self.fits(pod, self.nodes[host])
                assert self.below_max(pod)
                assert self.unmovable_within_min(pod)
                assert self.within(pod) or self.lends(pod)
                self.set(replace(pod, node=host, started=self.now))
            case Evict(pod, claimant, reason):
                self.check_victim(pod, claimant, reason)
                self.evictions += 1
                del self.pods[pod.uid]
                self.engine.apply(PodGone(pod.uid))
                name = f"{pod.name.partition('.')[0]}.{self.evictions}"
                self.set(replace(pod, uid=name, name=name, node=None, created=100 + self.evictions))

    def check_victim(self, pod: Pod, claimant: Pod | None, reason: str) -> None:
        assert pod.preemptible or reason == "NodeLost"
        if reason == "PreemptedInQuota":
            assert claimant is not None
            assert claimant.namespace == pod.namespace
            assert claimant.priority > pod.priority
        elif reason in ("Recycled", "SurplusReturned"):
            quota = self.quota(pod)
            assert any(
                self.used(quota, resource) > self.runtime(quota, resource)
                for resource in dict(pod.shape.requests)
                if resource in self.shared()
            )
        else:
            assert reason == "NodeLost"

    def set(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod
        self.engine.apply(PodSet(pod))

    def at_rest(self) -> None:
        """Nobody waits who could start, and a rebuilt engine has the same figures."""
        for pod in self.pods.values():
            if pod.node is None:
                free = any(self.fits(pod, node) for node in self.nodes.values())
                may = self.below_max(pod) and self.unmovable_within_min(pod)
                assert not (free and may and (self.lends(pod) or self.within(pod)))
                assert self.engine.why(pod.uid) is not None
        for claim in list(books(self.engine).waiting.claims()):  # nobody was forgotten to be asked
            books(self.engine).waiting.add(claim)
        asked = self.engine.cycle(self.now)
        assert not list(binds_and_evictions(asked))
        fresh = Engine("hierarchy", Knobs(hierarchy=self.world.knobs))
        for event in reversed(self.facts()):
            if not isinstance(event, QuotaSet):
                fresh.apply(event)
        for quota in self.quotas.values():
            fresh.apply(QuotaSet(quota))
        assert fresh.summarise() == self.engine.summarise()


@settings(deadline=None, max_examples=examples(250))
@given(worlds())
def test_quota_trees_come_to_rest_by_the_rules(world: World) -> None:
    play = Play(world)
    for wave in world.waves:
        for pod in wave:
            play.set(pod)
        play.rest()
    play.quotas[world.edit.name] = world.edit
    play.engine.apply(QuotaSet(world.edit))
    play.rest()
    if world.lose and len(play.nodes) > 1:
        del play.nodes["n0"]
        play.engine.apply(NodeGone("n0"))
        play.rest()


def test_two_pods_that_each_exceed_their_share_do_not_block_each_other() -> None:
    engine = Engine("hierarchy")
    engine.apply(node_set("n", 10, pods=9))
    for team in ("a", "b"):
        engine.apply(quota_set(team, 5, 10))
        engine.apply(pod_set(team, 6, team))
    assert [each.pod.name for each in engine.cycle() if isinstance(each, Bind)] == ["a"]


def test_a_lending_group_is_nothing_to_a_tree() -> None:
    """Who shares what is a matter of the tree there; the label must not stand in the way."""
    engine = Engine("hierarchy")
    engine.apply(node_set("n", 8, pods=9))
    for team in ("a", "b"):
        engine.apply(quota_set(team, 4, 8, group="x"))
    for number in range(6):
        engine.apply(pod_set(f"p{number}", 1, uid=f"u{number}"))
    assert sum(isinstance(each, Bind) for each in engine.cycle()) == 6
    assert engine.summarise()[0].runtime == {GPU: 6}
