"""Gangs over several quotas, and groups of gangs: whole or not at all, at every step.

They start together; pods are evicted for them only if all of them start by it; and gangs that wait
for each other's room all start in the end, if each could alone, once what runs has ended.
"""

from dataclasses import dataclass, replace

from hypothesis import given, note, settings
from hypothesis import strategies as st

from aliquot.engine import Pod
from aliquot.engine.model.decisions import Bind, binds_and_evictions
from aliquot.engine.model.events import PodGone
from tests.build.values import amounts
from tests.campaign import examples
from tests.engine.world import World
from tests.properties.books import check_books

TEAMS = ("a", "b", "c")
_MOST_CYCLES = 60


@dataclass(frozen=True)
class Member:
    """A pod of a gang."""

    team: str
    gpus: int
    priority: int


@dataclass(frozen=True)
class Group:
    """Gangs that start together, each with its least number and its pods."""

    gangs: tuple[tuple[int, tuple[Member, ...]], ...]
    keeps_room: bool

    def names(self, number: int) -> list[str]:
        """The names of its gangs."""
        return [f"a/g{number}-{index}" for index in range(len(self.gangs))]


members = st.builds(
    Member,
    st.sampled_from(TEAMS),
    st.sampled_from((1, 1, 2)),
    st.sampled_from((0, 0, 10)),
)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    gangs = []
    for _ in range(draw(st.integers(1, 2))):
        pods = draw(st.lists(members, min_size=1, max_size=4))
        gangs.append((draw(st.integers(1, len(pods))), tuple(pods)))
    return Group(tuple(gangs), draw(st.booleans()))


@dataclass(frozen=True)
class Case:
    """A cluster: its nodes, its quotas, what runs there, and the groups that come."""

    policy: str
    nodes: tuple[int, ...]
    mins: tuple[int, ...]
    maxes: tuple[int, ...]
    running: tuple[tuple[Member, int], ...]
    groups: tuple[Group, ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    mins = tuple(draw(st.integers(0, 3)) for _ in TEAMS)
    running = st.tuples(members, st.integers(0, len(nodes) - 1))
    return Case(
        draw(st.sampled_from(("capacity", "fair", "hierarchy"))),
        nodes,
        mins,
        tuple(low + draw(st.integers(0, 5)) for low in mins),
        tuple(draw(st.lists(running, max_size=5))),
        tuple(draw(st.lists(groups(), min_size=1, max_size=3))),
    )


class Story:
    """A case as it is played, and what has started so far."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.world = World(case.policy)
        self.started: set[str] = set()
        self.bound: dict[str, Pod] = {}
        self.pods: dict[str, list[Pod]] = {}
        self.claimed_for: set[str] = set()
        for index, gpus in enumerate(case.nodes):
            self.world.node(f"n{index}", amounts(gpu=gpus))
        for team, low, high in zip(TEAMS, case.mins, case.maxes, strict=True):
            self.world.quota(team, amounts(gpu=low), amounts(gpu=high))

    def run_pods(self) -> None:
        """What runs from the start, as far as its node and quota have room for it."""
        free = list(self.case.nodes)
        left = dict(zip(TEAMS, self.case.maxes, strict=True))
        for number, (member, node) in enumerate(self.case.running):
            if member.gpus <= min(free[node], left[member.team]):
                free[node] -= member.gpus
                left[member.team] -= member.gpus
                name, asks = f"r{number}", amounts(gpu=member.gpus)
                pod = self.world.pod(
                    *(member.team, name, asks), node=f"n{node}", priority=member.priority
                )
                self.bound[pod.path] = pod

    def add(self, number: int) -> None:
        """A group comes, with all of its pods."""
        group = self.case.groups[number]
        names = group.names(number)
        for name, (least, own) in zip(names, group.gangs, strict=True):
            others = tuple(each for each in names if each != name)
            self.world.gang(name, least, together=others, keeps_room=group.keeps_room)
            self.pods[name] = [
                self.world.pod(
                    *(each.team, f"{name[2:]}-{index}", amounts(gpu=each.gpus)),
                    gang=name,
                    priority=each.priority,
                    created=1 + number,
                )
                for index, each in enumerate(own)
            ]

    def play(self) -> None:
        """Decide until nothing is left to decide, two minutes apart, and check each step."""
        quiet = 0
        for _ in range(_MOST_CYCLES):
            self.world.now += 121 * 10**9
            decisions = list(binds_and_evictions(self.world.engine.cycle(self.world.now)))
            for each in decisions:
                if isinstance(each, Bind):
                    self.bound[each.pod.path] = replace(each.pod, node=each.node)
                    self.started.add(each.pod.path)
                    self.world.bound(each)
                else:
                    note(f"evicted {each.pod.path}: {each.message}")
                    self.bound.pop(each.pod.path, None)
                    if each.claimant is not None:
                        self.claimed_for.add(each.claimant.path)
            for each in decisions:
                if not isinstance(each, Bind):
                    self.world.apply(PodGone(each.pod.uid))
            self.check_step()
            quiet = 0 if decisions else quiet + 1
            if quiet == 3:
                return
        raise AssertionError("it does not come to rest")

    def check_step(self) -> None:
        """Every gang has its core, or nothing; a group has started as a whole, or not at all."""
        check_books(self.world.engine)
        for number, group in enumerate(self.case.groups):
            begun = []
            for name, (least, _) in zip(group.names(number), group.gangs, strict=True):
                own = self.pods.get(name, ())
                count = sum(pod.path in self.bound for pod in own)
                assert count == 0 or count >= least, f"{name}: {count} of {least} run"
                begun.append(any(pod.path in self.started for pod in own))
            assert all(begun) or not any(begun), f"half of group {number} has started"

    def check_claimants(self) -> None:
        """Those for which pods were evicted have started."""
        assert self.claimed_for <= self.started, "pods were evicted for what does not start"

    def end_all(self) -> None:
        """Whatever runs ends well."""
        for path in list(self.bound):
            pod = self.bound.pop(path)
            self.world.apply(PodGone(pod.uid))

    def begun(self, number: int) -> bool:
        """Has a group started?"""
        names = self.case.groups[number].names(number)
        return any(pod.path in self.started for name in names for pod in self.pods[name])


@settings(max_examples=examples(400, 40), deadline=None)
@given(cases())
def test_gangs_over_quotas_start_and_preempt_whole(case: Case) -> None:
    story = Story(case)
    story.run_pods()
    for number in range(len(case.groups)):
        story.add(number)
        story.play()
    story.check_claimants()


@settings(max_examples=examples(240, 30), deadline=None)
@given(cases())
def test_gangs_that_wait_for_each_other_all_start_in_the_end(case: Case) -> None:
    story = Story(case)
    story.run_pods()
    for number in range(len(case.groups)):
        story.add(number)
    story.play()
    for _ in case.groups:
        story.end_all()
        story.play()
    for number in range(len(case.groups)):
        if not story.begun(number):
            alone = Story(case)
            alone.add(number)
            alone.play()
            assert not alone.begun(number), f"group {number} could start, and waits for ever"
