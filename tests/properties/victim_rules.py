"""Random small clusters with a claim, and the rules about who makes way for it.

The rules are written down once more here, in plain dicts, straight from their definition: who may
go, what a quota keeps, which set is better. They try all sets.
"""

from dataclasses import dataclass
from itertools import chain, combinations

from hypothesis import strategies as st

from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind, evictions
from aliquot.engine.model.events import BudgetSet, NodeSet, PodGone, PodSet, QuotaSet
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Budget, Pod, Shape
from aliquot.engine.model.quota import Quota
from aliquot.engine.model.selector import Requirement
from tests.build.values import GPU

TEAMS = ("a", "b", "c")
Amounts = dict[str, int]
Gone = tuple[Pod, ...]
Pair = tuple[Node, Gone]


@dataclass(frozen=True)
class Case:
    nodes: tuple[Node, ...]
    quotas: tuple[Quota, ...]
    running: tuple[Pod, ...]
    claimant: Pod
    budget: Budget | None
    others: tuple[Pod, ...] = ()
    """Who waits beside the claimant."""


def asks(pod: Pod) -> Amounts:
    return {name: amount for name, amount in pod.shape.requests if name != "pods"}


@st.composite
def shapes(draw: st.DrawFn, sizes: tuple[int, ...]) -> Shape:
    requests = {GPU: draw(st.sampled_from(sizes)), "pods": 1}
    if draw(st.booleans()):
        requests["cpu"] = draw(st.integers(1, 2))
    return Shape(tuple(sorted(requests.items())))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes = tuple(
        Node(
            f"n{i}", (("cpu", draw(st.integers(2, 8))), (GPU, draw(st.integers(2, 8))), ("pods", 9))
        )
        for i in range(draw(st.integers(1, 3)))
    )
    quotas = []
    for team in TEAMS:
        low = {GPU: draw(st.integers(3, 8) if team == "a" else st.integers(0, 4))}
        if draw(st.booleans()):
            low["cpu"] = draw(st.integers(2, 8))
        high = {GPU: low[GPU] + draw(st.integers(0, 6))} if draw(st.booleans()) else {}
        quotas.append(
            Quota(
                f"{team}/q",
                tuple(sorted(low.items())),
                tuple(sorted(high.items())),
                namespaces=frozenset({team}),
            )
        )
    running: list[Pod] = []
    for number in range(draw(st.integers(4, 8))):
        node = draw(st.sampled_from(nodes))
        pod = Pod(
            uid=f"r{number}",
            namespace=draw(st.sampled_from((*TEAMS, *TEAMS[1:], *TEAMS[1:], "free"))),
            name=f"r{number}",
            shape=draw(shapes((1, 1, 2, 3))),
            priority=draw(st.sampled_from((0, 0, 10, 20))),
            created=draw(st.integers(0, 5)),
            started=draw(st.sampled_from((0, 0, 1, 2))),
            node=node.name,
            labels=draw(st.sampled_from(((), (("app", "x"),)))),
        )
        here = [other for other in running if other.node == node.name]
        if all(
            sum(asks(other).get(r, 0) for other in [*here, pod]) <= dict(node.allocatable)[r]
            for r in asks(pod)
        ):
            running.append(pod)
    claimant = Pod(
        uid="claimant",
        namespace=draw(st.sampled_from(("a", "a", *TEAMS, "free"))),
        name="claimant",
        shape=draw(shapes((2, 3, 4))),
        priority=draw(st.sampled_from((0, 10, 30, 30))),
        created=9,
        preempts=draw(st.sampled_from((True,) * 9 + (False,))),
    )
    namespace = draw(st.sampled_from(TEAMS))
    selector = (Requirement("app", "In", ("x",)),)
    budget = Budget(namespace, "pdb", draw(st.integers(0, 2)), selector)
    with_budget = budget if draw(st.booleans()) else None
    return Case(nodes, tuple(quotas), tuple(running), claimant, with_budget)


class Rules:
    """What the words say, about one case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.low = {team: dict(q.min) for q in case.quotas for team in q.namespaces}
        self.high = {team: dict(q.max) for q in case.quotas for team in q.namespaces}
        self.managed = {name for low in self.low.values() for name in low}
        self.team = case.claimant.namespace if case.claimant.namespace in TEAMS else None
        self.wants = asks(case.claimant)

    def used(self, team: str, resource: str, gone: Gone = ()) -> int:
        here = (p for p in self.case.running if p.namespace == team and p not in gone)
        return sum(asks(pod).get(resource, 0) for pod in here)

    def short_of_sum(self, gone: Gone) -> set[str]:
        short = set()
        for resource, amount in self.wants.items():
            if resource not in self.managed or self.team is None:
                continue
            naming = [team for team in TEAMS if resource in self.low[team]]
            counted = naming if self.names(resource) else TEAMS
            total = sum(self.used(team, resource, gone) for team in counted)
            most = sum(low.get(resource, 0) for low in self.low.values())
            if not self.names(resource):
                unused = (self.low[t][resource] - self.used(t, resource, gone) for t in naming)
                there_is = self.there_is(resource) - self.used("free", resource, gone)
                most = max(most, there_is - sum(max(each, 0) for each in unused))
            if total + amount > most:
                short.add(resource)
        return short

    def names(self, resource: str) -> bool:
        """Does the claimant's own min name the resource?"""
        return self.team is not None and resource in self.low[self.team]

    def there_is(self, resource: str) -> int:
        return sum(dict(node.allocatable).get(resource, 0) for node in self.case.nodes)

    def over_max(self, gone: Gone) -> bool:
        if self.team is None:
            return False
        high = self.high[self.team]
        return any(
            self.used(self.team, r, gone) + amount > high[r]
            for r, amount in self.wants.items()
            if r in high
        )

    def short_on(self, node: Node, gone: Gone) -> set[str]:
        has = dict(node.allocatable)
        here = [p for p in self.case.running if p.node == node.name and p not in gone]
        return {
            r
            for r, amount in self.wants.items()
            if sum(asks(pod).get(r, 0) for pod in here) + amount > has[r]
        }

    def starts(self, node: Node, gone: Gone) -> bool:
        return not (self.short_of_sum(gone) or self.over_max(gone) or self.short_on(node, gone))

    def entitled(self, resource: str) -> bool:
        assert self.team is not None
        low = self.low[self.team].get(resource, 0)
        return self.used(self.team, resource) + self.wants[resource] <= low

    def spare(self, resource: str) -> int:
        """Min, or what is left of all that is lent once the others have what they are owed."""
        owed = sum(
            min(self.wanted(team, resource), self.low[team].get(resource, 0))
            for team in TEAMS
            if team != self.team
        )
        most = self.there_is(resource) - self.used("free", resource)
        if self.names(resource):
            most = min(most, sum(low.get(resource, 0) for low in self.low.values()))
        assert self.team is not None
        return max(self.low[self.team].get(resource, 0), most - owed)

    def wanted(self, team: str, resource: str) -> int:
        """What the team asks for, running and waiting."""
        others = (pod for pod in self.case.others if pod.namespace == team)
        return self.used(team, resource) + sum(asks(pod).get(resource, 0) for pod in others)

    def may_keep(self) -> bool:
        """Would the claimant have to give nothing back at once?"""
        assert self.team is not None
        return all(
            self.used(self.team, r) + amount <= self.spare(r)
            for r, amount in self.wants.items()
            if r in self.managed
        )

    def grows(self, gone: Gone) -> bool:
        """Would the claimant's quota use more than it does, and more than it could keep?"""
        return self.team is not None and any(
            self.used(self.team, r, gone) + amount > max(self.used(self.team, r), self.spare(r))
            for r, amount in self.wants.items()
            if r in self.managed
        )

    def judged(self, node: Node) -> set[str] | None:
        """The resources in which reclaim is judged for this node; None if it may not reclaim."""
        if self.team is None or self.over_max(()) or not self.may_keep():
            return None
        short = (self.short_on(node, ()) & self.managed) | self.short_of_sum(())
        judged = short or (set(self.wants) & self.managed)
        own = {r for r in judged if self.names(r)}
        return judged if own and all(self.entitled(r) for r in own) else None

    def borrows_too(self, team: str, judged: set[str]) -> bool:
        """Does the team use more than its min of what the claimant is guaranteed?"""
        low = self.low[team]
        return any(self.used(team, r) > low.get(r, 0) for r in judged if self.names(r))

    def order(self, pod: Pod) -> tuple[object, ...]:
        """A smaller key is more important."""
        return (-pod.priority, pod.created, pod.name)

    def walk(self, team: str, judged: set[str]) -> tuple[Amounts, set[str]]:
        """Floor and over-quota pods of a team."""
        pods = sorted(
            (p for p in self.case.running if p.namespace == team),
            key=self.order,
        )
        floor = dict.fromkeys(judged, 0)
        for index, pod in enumerate(pods):
            total = {r: floor[r] + asks(pod).get(r, 0) for r in judged}
            if any(total[r] > self.low[team].get(r, 0) for r in judged):
                return floor, {p.uid for p in pods[index:]}
            floor = total
        return floor, set()

    def may_reclaim(self, node: Node, gone: Gone, tier: int) -> bool:
        judged = self.judged(node)
        if judged is None:
            return False
        for pod in gone:
            if pod.namespace not in TEAMS or pod.namespace == self.team:
                return False
            if not self.borrows_too(pod.namespace, judged):
                return False
            if tier == 0 and pod.uid not in self.walk(pod.namespace, judged)[1]:
                return False
        for team in {pod.namespace for pod in gone}:
            floor, _ = self.walk(team, judged)
            for r in judged:
                bound = self.low[team].get(r, 0)
                above = self.used(team, r) > bound
                keeps = bound if tier < 2 and above else floor[r]
                if self.used(team, r, gone) < keeps:
                    return False
        return True

    def may_take_above_max(self, node: Node, gone: Gone) -> bool:
        """Only of teams above max in what is judged: down to max, and no less than min of it."""
        judged = self.judged(node)
        if judged is None:
            return False
        for team in {pod.namespace for pod in gone}:
            if team not in TEAMS or team == self.team:
                return False
            above = {r for r in judged & self.high[team].keys() if self.above_max(team, r)}
            if not above:
                return False
            for r in judged:
                low = min(self.low[team].get(r, 0), self.used(team, r))
                if self.used(team, r, gone) < (self.high[team][r] if r in above else low):
                    return False
        return True

    def above_max(self, team: str, resource: str) -> bool:
        return self.used(team, resource) > self.high[team][resource]

    def may_preempt(self, gone: Gone) -> bool:
        claimant = self.case.claimant
        own = self.team
        return not self.grows(gone) and all(
            pod.priority < claimant.priority
            and (pod.namespace == own if own else pod.namespace not in TEAMS)
            for pod in gone
        )

    def cost(self, gone: Gone) -> tuple[int, ...]:
        budget = self.case.budget
        broken = 0
        if budget is not None:
            hit = [p for p in gone if p.namespace == budget.namespace and p.labels]
            broken = max(len(hit) - budget.allowed, 0)
        if not gone:
            return (0, -(2**31), 0, 0, 0, 0)
        top = max(pod.priority for pod in gone)
        oldest = min((pod.started, pod.created) for pod in gone if pod.priority == top)
        total = sum(pod.priority + 2**31 for pod in gone)
        return (broken, top, total, len(gone), -oldest[0], -oldest[1])

    def ranks(self, pairs: list[Pair]) -> list[list[Gone]]:
        """The sets that the rules allow, the better rules first."""
        return [
            *(
                [gone for node, gone in pairs if self.may_reclaim(node, gone, tier)]
                for tier in range(3)
            ),
            [gone for _, gone in pairs if self.may_preempt(gone)],
        ]

    def best(self) -> tuple[int, ...] | None:
        """The cost of the best set of the first rank that has one."""
        running = self.case.running
        sets = list(chain.from_iterable(combinations(running, k) for k in range(len(running) + 1)))
        pairs = [
            (node, gone) for node in self.case.nodes for gone in sets if self.starts(node, gone)
        ]
        above = [gone for node, gone in pairs if self.may_take_above_max(node, gone)]
        ranks = [[gone for _, gone in pairs if not gone], above, *self.ranks(pairs)]
        for rank in ranks if self.case.claimant.preempts else ranks[:1]:
            if rank:
                return min(self.cost(gone) for gone in rank)
        return None


def play(case: Case, policy: str = "capacity") -> tuple[Gone, Node | None]:
    """Who goes, and on which node the claimant then starts."""
    engine = Engine(policy)
    for node in case.nodes:
        engine.apply(NodeSet(node))
    for quota in case.quotas:
        engine.apply(QuotaSet(quota))
    for pod in case.running:
        engine.apply(PodSet(pod))
    if case.budget is not None:
        engine.apply(BudgetSet(case.budget))
    engine.apply(PodSet(case.claimant))
    first = engine.cycle()
    gone = tuple(decision.pod for decision in evictions(first))
    for pod in gone:
        engine.apply(PodGone(pod.uid))
    second = engine.cycle() if gone else []
    assert not list(evictions(second))
    names = [decision.node for decision in [*first, *second] if isinstance(decision, Bind)]
    nodes = {node.name: node for node in case.nodes}
    return gone, nodes[names[0]] if names else None
