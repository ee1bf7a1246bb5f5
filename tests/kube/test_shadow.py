"""The shadow without a server: what it compares, what it takes back, that nothing piles up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
import pytest

from aliquot.cli.main import run
from aliquot.cli.show.shadow import print_report
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.objects import NodeWire
from aliquot.engine import SECOND
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import NODES
from aliquot.kube.observe.audit import violations
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.shadow.comparison import Verdict, Word
from aliquot.kube.shadow.feed import PATIENCE
from aliquot.kube.shadow.report import ShadowCollector, report
from aliquot.kube.shadow.shadow import Settings, Shadow
from tests.build import manifests
from tests.kube.workshop import QUOTAS, watched_pod


class Beside:
    """A shadow whose watches are the test, and whose clock it sets."""

    def __init__(self, *scheduler_names: str) -> None:
        self.now = 1_000 * SECOND
        settings = Settings(Configuration(), "capacity", scheduler_names)
        self.shadow = Shadow(cast("Client", None), settings, Metrics(), lambda: None)
        self.shadow.clock = self.shadow._feed._clock = lambda: self.now
        self.shadow.intake.ready = True

    def node(self, name: str, gpus: int) -> None:
        body = manifests.node(name, gpu=str(gpus), pods="100")
        self.shadow.intake.objects.put(NODES, msgspec.convert(body, NodeWire))

    def quota(self, team: str, low: int, high: int | None = None) -> None:
        most = None if high is None else {"gpu": str(high)}
        body = manifests.quota(f"{team}/q", {"gpu": str(low)}, most)
        self.shadow.intake.objects.put(QUOTAS, body)

    def pod(self, name: str, team: str, gpus: int = 1, node: str = "", **status: Any) -> None:
        """The watch shows a pod like this; queued, as the real one."""
        found = watched_pod(name, team, gpus, node, **status)
        self.shadow.intake._pod_news.append((QUOTAS, found))

    def gone(self, name: str) -> None:
        self.shadow.intake.pods.gone(name)

    async def round(self, seconds: float = 1.0) -> int:
        """One round of the loop, so much later; how many pods were decided about."""
        self.now += int(seconds * SECOND)
        shadow, before = self.shadow, self.decisions
        shadow.intake.settle()
        shadow._feed.take_back(self.now)
        shadow._feed.settle()
        if shadow.engine is None:
            shadow._begin()
        assert shadow.engine is not None
        await shadow._decide(shadow.engine)
        return self.decisions - before

    @property
    def decisions(self) -> int:
        families = self.shadow._metrics.decisions.collect()
        return int(sum(each.value for family in families for each in family.samples))

    @property
    def verdicts(self) -> dict[str, int]:
        tally = self.shadow.comparison.tally.verdicts
        return {verdict.value: number for verdict, number in tally.items()}

    def violations(self) -> list[str]:
        """Where the books of the engine are not what the cluster shows."""
        assert self.shadow.engine is not None
        return [each for each in violations(self.shadow.engine, self.shadow.intake.mirror) if each]


def play(story: Callable[[Beside], Awaitable[None]], *scheduler_names: str) -> Beside:
    async def run() -> Beside:
        made = Beside(*scheduler_names)
        await story(made)
        return made

    return asyncio.run(run())


def test_a_pod_that_is_bound_before_the_shadow_decides_is_compared_all_the_same() -> None:
    async def story(beside: Beside) -> None:
        beside.node("n", 2)
        await beside.round()
        beside.pod("p", "a")
        beside.pod("p", "a", node="n")
        beside.pod("q", "a", 3)
        beside.pod("q", "a", 3, node="n")
        await beside.round()
        assert beside.verdicts == {"agrees": 1, "wouldWait": 1}
        assert beside.shadow.comparison.tally.waits == {"NoNodeFits": 1}
        assert beside.shadow.engine is not None
        assert beside.shadow.engine.booked_node("q") == "n"

    play(story)


def test_room_that_came_free_at_the_same_moment_counts() -> None:
    async def story(beside: Beside) -> None:
        beside.node("n", 1)
        beside.pod("old", "a", node="n")
        beside.pod("p", "a")
        await beside.round()
        assert beside.shadow.comparison.opinions["p"].word is Word.WAIT
        beside.gone("old")
        beside.pod("p", "a", node="n")
        await beside.round()
        assert beside.verdicts == {"agrees": 1}

    play(story)


def test_how_much_earlier_and_on_which_other_node() -> None:
    async def story(beside: Beside) -> None:
        beside.node("n", 1)
        beside.pod("p", "a")
        await beside.round()
        beside.node("m", 1)
        for _ in range(30):
            await beside.round(2)
        beside.pod("p", "a", node="m")
        await beside.round(0)
        assert beside.verdicts == {"otherNode": 1}
        (found,) = beside.shadow.comparison.differences
        assert found.earlier == 60 * SECOND
        assert (found.node, found.opinion.node) == ("m", "n")
        assert beside.shadow.comparison.tally.earlier == 1

    play(story)


def test_what_was_not_done_is_taken_back_and_costs_little() -> None:
    """Neither a busy loop nor growth, for hours; and what is free in the cluster is free."""

    async def story(beside: Beside) -> None:
        beside.node("n", 4)
        beside.quota("owner", 4)
        beside.quota("lent", 0)
        for number in range(3):
            beside.pod(f"lent-{number}", "lent", node="n")
        beside.pod("fits", "owner")
        beside.pod("then-evicts", "owner", 2)
        await beside.round()
        opinions = beside.shadow.comparison.opinions
        assert {uid: each.word for uid, each in opinions.items()} == {
            "fits": Word.START,
            "then-evicts": Word.EVICT,
        }
        await beside.round(PATIENCE / SECOND + 1)
        engine = beside.shadow.engine
        assert engine is not None
        assert engine.booked_node("fits") is None
        assert not any(engine.is_awaited(f"lent-{number}") for number in range(3))
        assert beside.violations() == []
        decided = [await beside.round(1) for _ in range(50)]
        assert sum(decided) == 0, "they rest, by the loop's own clock"
        beside.pod("fits", "owner", node="n")
        beside.gone("then-evicts")
        await beside.round()
        assert beside.verdicts == {"agrees": 1, "neverStarted": 1}
        feed, comparison = beside.shadow._feed, beside.shadow.comparison
        left = (opinions, feed._facts, feed._assumed, feed._victims)
        assert not any(left), left
        assert not comparison._would_evict
        assert sum(comparison.tally.evictions.values()) == 2
        assert beside.violations() == []

    play(story)


def test_the_same_evictions_in_the_cluster_are_no_difference() -> None:
    async def story(beside: Beside) -> None:
        beside.node("n", 1)
        beside.quota("owner", 1)
        beside.quota("lent", 0)
        beside.pod("victim", "lent", node="n")
        beside.pod("p", "owner")
        await beside.round()
        assert beside.shadow.comparison.opinions["p"].word is Word.EVICT
        target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        beside.pod("victim", "lent", node="n", conditions=[target])
        await beside.round()
        beside.gone("victim")
        beside.pod("p", "owner", node="n")
        await beside.round()
        assert beside.verdicts == {"agrees": 1}
        assert beside.shadow.comparison.tally.evicted == 1

    play(story)


def test_a_new_engine_goes_on_with_the_opinions_of_the_one_before() -> None:
    async def story(beside: Beside) -> None:
        beside.node("n", 2)
        for name in ("bound", "deleted", "waits"):
            beside.pod(name, "a", 2 if name == "waits" else 1)
        await beside.round()
        beside.shadow._drop_engine()
        beside.pod("bound", "a", node="n")
        beside.gone("deleted")
        await beside.round()
        assert beside.verdicts == {"agrees": 1, "neverStarted": 1}
        assert list(beside.shadow.comparison.opinions) == ["waits"]

    play(story)


def test_pods_of_other_schedulers_are_left_alone_if_one_is_named() -> None:
    async def story(beside: Beside) -> None:
        beside.node("n", 1)
        beside.pod("p", "a")
        await beside.round()
        assert not beside.shadow.comparison.opinions

    play(story, "volcano")


def test_the_report_as_json_and_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    async def story(beside: Beside) -> None:
        beside.node("n", 2)
        beside.quota("a", 0, 0)
        await beside.round()
        beside.pod("p", "b")
        beside.pod("q", "a")
        await beside.round()
        beside.pod("q", "a", node="n")
        await beside.round(5)

    beside = play(story)
    found: Body = report(beside.shadow)
    assert found["pods"] == {each.value: int(each is Verdict.WOULD_WAIT) for each in Verdict}
    assert found["pending"]["wouldStart"] == 1
    assert found["wouldWaitFor"] == {"QuotaMaxExceeded": 1}
    capsys.readouterr()
    print_report(found, "json")
    assert msgspec.json.decode(capsys.readouterr().out) == found
    print_report(found, "table")
    drawn = capsys.readouterr().out
    assert "QuotaMaxExceeded: quota a/q: max 0 nvidia.com/gpu, used 0, pod asks 1" in drawn
    assert "Aliquot would have evicted 0 pods, the cluster evicted 0" in drawn
    families = {each.name: each for each in ShadowCollector(beside.shadow.comparison).collect()}
    samples = {
        each.labels["verdict"]: each.value for each in families["aliquot_shadow_pods"].samples
    }
    assert samples == found["pods"]


def test_its_cycles_are_bounded_and_each_pod_gets_an_opinion() -> None:
    """So its watches and probes do not wait for hundreds of claims, as those of a scheduler."""

    async def story(beside: Beside) -> None:
        beside.node("n", 1)
        for number in range(100):
            beside.pod(f"p{number}", "a", 2 + number)
        assert 0 < await beside.round(0.01) < 50
        for _ in range(9):
            await beside.round(0.01)
        assert len(beside.shadow.comparison.opinions) == 100

    play(story)


@pytest.mark.parametrize("option", ["--scheduler-name=x", "--every=1h", "-ojson"])
def test_what_a_shadow_reports_is_said_to_a_shadow_only(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["scheduler", option]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "only with --shadow" in said.err
