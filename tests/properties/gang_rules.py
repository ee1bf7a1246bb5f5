"""Who makes way where gangs run: whole, or only what they have beyond their core.

The same rules as in `victim_rules`, on top of which a gang is one unit with its core; see there.
"""

from collections import Counter
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind, evictions
from aliquot.engine.model.events import (
    BudgetSet,
    Event,
    GangSet,
    NodeSet,
    PodGone,
    PodSet,
    QuotaSet,
)
from aliquot.engine.model.gang import Gang
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod
from tests.properties.fair_rules import FairRules
from tests.properties.victim_rules import TEAMS, Amounts, Case, Gone, Rules, asks, cases


@dataclass(frozen=True)
class GangCase(Case):
    gangs: tuple[Gang, ...] = ()


@st.composite
def gang_cases(draw: st.DrawFn) -> GangCase:
    case = draw(cases())
    claimant = case.claimant
    if draw(st.booleans()):  # whoever has a min to take back, or is more important
        claimant = replace(claimant, namespace="a", priority=30, preempts=True)
    tasks = ("", "", "m")
    running = []
    for pod in case.running:
        joins = pod.namespace in TEAMS and draw(st.sampled_from((True, True, False)))
        gang = f"{pod.namespace}/g" if joins else None
        running.append(replace(pod, gang=gang, task=draw(st.sampled_from(tasks))))
    gangs = []
    for team in TEAMS:
        least = draw(st.integers(1, 3))
        there = Counter(pod.task for pod in running if pod.gang == f"{team}/g")
        needs = (("m", 1),) if there["m"] and draw(st.booleans()) else ()
        gangs.append(Gang(f"{team}/g", least, needs))
    return GangCase(
        case.nodes,
        case.quotas,
        tuple(running),
        claimant,
        case.budget,
        gangs=tuple(gangs),
    )


class GangRules(Rules):
    """What the words say, about one case with gangs."""

    case: GangCase

    def starts(self, node: Node, gone: Gone) -> bool:
        return self.leaves_gangs(gone) and super().starts(node, gone)

    def leaves_gangs(self, gone: Gone) -> bool:
        """Does every gang go whole, lose nobody, or keep its core?"""
        for gang in self.case.gangs:
            members = [pod for pod in self.case.running if pod.gang == gang.name]
            left = [pod for pod in members if pod not in gone]
            there = Counter(pod.task for pod in left)
            enough = len(left) >= gang.min_member and all(there[t] >= n for t, n in gang.min_tasks)
            if left and len(left) < len(members) and not enough:
                return False
        return True

    def units(self, team: str) -> list[list[Pod]]:
        """The pods of a team, the most important first; the core of its gang in one piece."""
        pods = sorted((p for p in self.case.running if p.namespace == team), key=self.order)
        gang = next(each for each in self.case.gangs if each.name == f"{team}/g")
        members = [pod for pod in pods if pod.gang == gang.name]
        core: list[Pod] = []
        for task, few in gang.min_tasks:
            core += [pod for pod in members if pod.task == task][:few]
        more = [pod for pod in members if pod not in core]
        core += more[: max(gang.min_member - len(core), 0)]
        core.sort(key=self.order)
        found: list[list[Pod]] = []
        for pod in pods:
            if pod not in core:
                found.append([pod])
            elif pod == core[0]:
                found.append(core)
        return found

    def walk(self, team: str, judged: set[str]) -> tuple[Amounts, set[str]]:
        """Floor and over-quota pods of a team, unit by unit."""
        units = self.units(team)
        floor = dict.fromkeys(judged, 0)
        for index, unit in enumerate(units):
            total = {r: floor[r] + sum(asks(pod).get(r, 0) for pod in unit) for r in judged}
            if any(total[r] > self.low[team].get(r, 0) for r in judged):
                return floor, {pod.uid for rest in units[index:] for pod in rest}
            floor = total
        return floor, set()


class FairGangRules(GangRules, FairRules):
    """The same under `fair`."""

    def pieces(self, gone: list[Pod]) -> list[list[Pod]]:
        """A gang that goes whole is one, also when it is the last that may pass a limit."""
        whole = {
            gang.name: [pod for pod in gone if pod.gang == gang.name]
            for gang in self.case.gangs
            if all(pod in gone for pod in self.case.running if pod.gang == gang.name)
        }
        pieces = [pods for pods in whole.values() if pods]
        return pieces + [[pod] for pod in gone if pod.gang not in whole]


def play(case: GangCase, policy: str) -> tuple[Gone, Node | None]:
    """Who goes, and on which node the claimant then starts."""
    engine = Engine(policy)
    events: list[Event] = [
        *map(NodeSet, case.nodes),
        *map(QuotaSet, case.quotas),
        *map(GangSet, case.gangs),
        *map(PodSet, case.running),
        *([BudgetSet(case.budget)] if case.budget is not None else []),
        PodSet(case.claimant),
    ]
    for event in events:
        engine.apply(event)
    first = engine.cycle()
    gone = tuple(decision.pod for decision in evictions(first))
    for pod in gone:
        engine.apply(PodGone(pod.uid))
    second = engine.cycle() if gone else []
    names = [each.node for each in [*first, *second] if isinstance(each, Bind)]
    nodes = {node.name: node for node in case.nodes}
    return gone, nodes[names[0]] if names else None
