"""No big claim starves, and little is idle for its sake: the bounds that reservations keep."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from aliquot.engine.model.knobs import SECOND, PlacementKnobs, ScoreMode
from tests.build.values import amounts
from tests.campaign import examples, length
from tests.properties.passing_time import Arrival, Clockwork, arrival, gpus

POLICIES = ("capacity", "fair", "hierarchy", "queues")
NODE = 8
MOST_SECONDS = 5_000
"""Far beyond every bound that is asked for: three big claims, of at most five minutes each."""


@dataclass(frozen=True)
class Case:
    """A few big claims of team a behind small ones that never cease to come."""

    nodes: int
    by_right: bool
    """Is its quota's bound what the big claims lack? Else room on nodes."""
    reserve_after: int
    bigs: tuple[tuple[int, int, int, int], ...]
    """When each comes, its pods, the GPUs of each pod, how long it runs."""
    team: str
    """Of the small claims."""
    every: int
    runs: tuple[tuple[int, int], ...]
    """How long small claims run one after another, and how much less than they say."""
    priority: int
    """Of the big claims; small ones have none."""
    score: ScoreMode

    @property
    def most(self) -> int:
        """What team a is guaranteed, and team b as well: with both, all there is, or more."""
        if self.by_right:
            return NODE
        return NODE * self.nodes // (2 if self.team == "b" else 1)

    def world(self, policy: str) -> Clockwork:
        knobs = PlacementKnobs(self.score, reserve_after=self.reserve_after * SECOND)
        world = Clockwork(policy, placement=knobs)
        for number in range(self.nodes):
            world.node(f"n{number}", amounts(NODE))
        low = amounts(self.most)
        world.quota("a", low, low if self.by_right else (), default_weight=1)
        world.quota("b", low, default_weight=1)
        world.expect(self.smalls())
        for number, (at, pods, each, lasts) in enumerate(self.bigs):
            gang = f"a/big{number}" if pods > 1 else None
            if gang is not None:
                world.gang(gang, pods)
            for member in range(pods):
                name = f"big{number}-{member}"
                more = {"priority": self.priority, "gang": gang}
                world.expect([arrival(at, "a", name, each, lasts, **more)])
        return world

    def smalls(self) -> Iterator[Arrival]:
        for number in count():
            lasts, less = self.runs[number % len(self.runs)]
            name = f"small{number}"
            yield arrival(number * self.every, self.team, name, 1, lasts, says=lasts + less)


@st.composite
def cases(draw: st.DrawFn, most_bigs: int = 1) -> Case:
    by_right = draw(st.booleans())
    team = "a" if by_right else draw(st.sampled_from("ab"))
    nodes = draw(st.integers(2 if by_right or team == "b" else 1, 3))
    bigs = []
    for _ in range(draw(st.integers(1, most_bigs))):
        each = draw(st.integers(2, 4) if by_right else st.integers(3, NODE))
        most = NODE // each if by_right else nodes
        pods = draw(st.integers(1, min(most, NODE * nodes // 2 // each) if team == "b" else most))
        bigs.append((draw(st.integers(0, 100)), pods, each, draw(st.integers(1, 90))))
    return Case(
        nodes,
        by_right,
        reserve_after=draw(st.sampled_from((0, 20, 60))),
        bigs=tuple(bigs),
        team=team,
        every=draw(st.integers(2, 12)),
        runs=tuple(
            draw(
                st.lists(
                    st.tuples(st.integers(1, 150), st.sampled_from((0, 0, 0, 5, 60))),
                    min_size=1,
                    max_size=4,
                )
            )
        ),
        priority=draw(st.sampled_from((0, 0, 7))),
        score=draw(st.sampled_from(("pack", "spread"))),
    )


class Watch:
    """When each big claim must have started, seen from outside."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._passed: dict[int, int] = {}
        """When the first claim behind a big one started, while that waited."""
        self.due: dict[int, int] = {}

    def look(self, world: Clockwork) -> None:
        """After the decisions of a moment."""
        now, case = world.second, self._case
        waiting = [i for i in range(len(case.bigs)) if self._waits(world, i)]
        for i in waiting:
            if i not in self._passed and any(
                at == now and self._is_behind(uid, i) for uid, at in world.started.items()
            ):
                self._passed[i] = now
        line = [i for i in waiting if i in self._passed]
        ready = [
            i
            for i in line
            if now >= case.bigs[i][0] + case.reserve_after and not self._is_behind_others(world, i)
        ]
        for i in waiting:
            assert i not in self.due or now <= self.due[i], f"big{i} starves"
        if ready and not any(i in self.due for i in waiting):
            first = min(ready, key=lambda i: (self._passed[i], case.bigs[i][0], i))
            self.due[first] = world.last_known_end()

    def _waits(self, world: Clockwork, i: int) -> bool:
        return any(pod.name.startswith(f"big{i}-") for pod in world.waiting())

    def _is_behind_others(self, world: Clockwork, i: int) -> bool:
        """Do small claims wait that came before it, and are as important?"""
        since = self._case.bigs[i][0] * SECOND
        return not self._case.priority and any(
            pod.name.startswith("small") and pod.created <= since for pod in world.waiting()
        )

    def _is_behind(self, uid: str, i: int) -> bool:
        """Is it a claim that came later, or is less important?"""
        case, name = self._case, uid.partition("/")[2]
        if name.startswith("small"):
            came = int(name.removeprefix("small")) * case.every
            return case.priority > 0 or came > case.bigs[i][0] or case.team == "b"
        j = int(name.removeprefix("big").partition("-")[0])
        return (case.bigs[j][0], j) > (case.bigs[i][0], i)


def play(case: Case, world: Clockwork, watch: Watch) -> None:
    """Until all big claims have started."""
    bigs = {f"a/big{i}-{m}" for i, each in enumerate(case.bigs) for m in range(each[1])}
    while not bigs <= world.started.keys():
        assert world.step(MOST_SECONDS), "the big claims never start"
        watch.look(world)


def is_bounded(case: Case, policy: str) -> bool:
    """Are all small claims behind the big ones? Where quotas take turns, some may be before."""
    return policy in ("capacity", "fair") or case.team == "a"


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(200))
@given(case=cases())
def test_a_passed_claim_starts_within_its_bound(policy: str, case: Case) -> None:
    """`reserveAfter` after it came, and the longest run of the pods that are there then."""
    assume(is_bounded(case, policy))
    play(case, case.world(policy), Watch(case))


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(60, sample=10))
@given(case=cases(), moment=st.integers(1, 60))
def test_a_restart_keeps_the_bound(policy: str, case: Case, moment: int) -> None:
    """A fresh engine does not know who was passed, but how long each claim has waited."""
    assume(is_bounded(case, policy))
    world = case.world(policy)
    for _ in range(moment):
        world.step(MOST_SECONDS)
    world.restart()
    world.decide()
    watch = Watch(case)
    watch.look(world)
    play(case, world, watch)


@settings(max_examples=length(4, 12))
@given(
    policy=st.sampled_from(POLICIES),
    share=st.integers(0, 40),
    quotas=st.sampled_from((3, 10, 20)),
    lasts=st.lists(st.integers(20, 60), min_size=1, max_size=3),
)
@example(policy="capacity", share=10, quotas=length(40, 100), lasts=[20, 33, 60])
def test_little_is_idle_for_reservations(
    policy: str, share: int, quotas: int, lasts: list[int]
) -> None:
    """Every quota has a claim of half a node behind small ones; all start in the end."""
    knobs = PlacementKnobs("spread", 10 * SECOND, share)
    world = Clockwork(policy, placement=knobs)
    nodes, small = quotas // 2 + 1, count()
    for number in range(nodes):
        world.node(f"n{number}", amounts(NODE))
    for number in range(quotas):
        team = f"t{number}"
        world.quota(team, amounts(NODE // 2), amounts(NODE // 2), default_weight=1)
        early = [arrival(at, team, f"s{at}", 1, lasts[next(small) % len(lasts)]) for at in range(4)]
        late = [
            arrival(at, team, f"s{at}", 1, lasts[next(small) % len(lasts)])
            for at in (6, 7, 12, 30, 50)
        ]
        world.expect([*early, arrival(5, team, "big", NODE // 2, 20), *late])
    reserved = 0
    for _ in range(2_000):
        if not world.step(MOST_SECONDS):
            break
        claims = world.reserved()
        reserved = max(reserved, len(claims))
        asked = sum(gpus(pod) for pods in claims.values() for pod in pods)
        assert len(claims) <= 1 or asked * 100 <= share * nodes * NODE
        teams = [pods[0].namespace for pods in claims.values()]
        assert len(set(teams)) == len(teams), "two reservations of one quota"
    assert world.next_moment() is None, "it does not end"
    assert world.pods == {}
    assert reserved


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(60, sample=10))
@given(
    kept=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    every=st.integers(1, 9),
    lasts=st.integers(1, 60),
)
def test_nothing_is_kept_where_pods_never_end(
    policy: str, kept: list[int], every: int, lasts: int
) -> None:
    """A Deployment has some of each node: the big claim never starts, and small ones go on."""
    world = Clockwork(policy, placement=PlacementKnobs(reserve_after=5 * SECOND))
    world.quota("a", amounts(2 * NODE * len(kept)), default_weight=1)
    for number, gpu in enumerate(kept):
        world.node(f"n{number}", amounts(NODE))
        world.pod("a", f"serves{number}", amounts(gpu), node=f"n{number}", endless=True)
    world.expect([arrival(1, "a", "big", NODE, 5)])
    world.expect(arrival(at * every, "a", f"small{at}", 1, lasts) for at in range(60))
    while world.step(MOST_SECONDS):
        assert world.reserved() == {}
        smalls = [pod for pod in world.waiting() if pod.name != "big"]
        assert not smalls or not any(world.free().values()), "room is idle"
    assert [pod.name for pod in world.waiting()] == ["big"]


@pytest.mark.parametrize("policy", ["capacity", "fair"])
@settings(max_examples=examples(100))
@given(
    low=st.integers(1, 4),
    asks=st.integers(1, 4),
    at=st.integers(0, 80),
    every=st.integers(3, 9),
    runs=st.lists(st.integers(5, 60), min_size=1, max_size=3),
    urgent=st.booleans(),
)
def test_a_borrower_keeps_no_owed_claim_waiting(
    policy: str, low: int, asks: int, at: int, every: int, runs: list[int], urgent: bool
) -> None:
    """Nor one before it in the order: with room, and within its min or more urgent, it starts."""
    world = Clockwork(policy, placement=PlacementKnobs(reserve_after=10 * SECOND))
    world.node("n", amounts(NODE))
    world.quota("a", amounts(low))
    world.quota("b", amounts(NODE - low))
    world.expect([arrival(5, "b", "big", NODE, 5)])
    world.expect(
        arrival(number * every, "b", f"small{number}", 1, runs[number % len(runs)])
        for number in range(40)
    )
    urgency = 9 if urgent else 0
    team = "b" if urgent else "a"
    asks = asks if urgent else min(asks, low)
    for _ in range(400):
        if world.second >= at or not world.step(at):
            break
    free = world.free()["n"]
    world.expect([arrival(at, team, "comes", asks, 5, priority=urgency)])
    world.step(at)
    if free >= asks:
        assert world.started.get(f"{team}/comes") == at
        assert world.evicted() == []
    while world.step(MOST_SECONDS):
        pass
    assert world.pods == {}
