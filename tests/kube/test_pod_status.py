"""What is written to a pod: only what differs from what it shows, or was written since."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

import pytest

from aliquot.errors import ApiError
from aliquot.kube.api.client import Client
from aliquot.kube.exchange.shown_status import ShownStatus
from aliquot.kube.execution import pod_status
from aliquot.kube.execution.pod_status import PodStatus
from aliquot.kube.execution.writer import Writer
from tests.build.values import pod
from tests.kube.workshop import Answers, Body

P = pod("p", 1, "a")
LABEL = "nos.nebuly.com/capacity"


class Statuses:
    """The status of one pod, with a cluster that shows what the test wants."""

    def __init__(self, **shown: Any) -> None:
        self.answers, self.writer = Answers(), Writer(lambda: True)
        self.shown = {P.uid: ShownStatus(**shown)}
        client = cast("Client", self.answers)
        self.pod_status = PodStatus(client, self.writer, lambda: self.shown)
        self.pod_status.begin()

    def shows(self, **shown: Any) -> None:
        self.shown = {P.uid: ShownStatus(**shown)}

    def written(self) -> list[Body]:
        """What has been written since this was last asked."""

        async def write() -> None:
            task = asyncio.create_task(self.writer.run())
            while not self.writer.idle:
                await asyncio.sleep(0)
            task.cancel()

        asyncio.run(write())
        return self.taken()

    def taken(self) -> list[Body]:
        """What has been written since this was last asked, with no more of it sent now."""
        found, self.answers.written = self.answers.written, []
        return [body for _, _, body in found]

    def label(self, **labels: str) -> None:
        self.pod_status.update_labels([P], {P.uid: labels})


def test_a_condition_is_written_once_and_again_only_if_the_cluster_shows_another() -> None:
    made = Statuses()
    made.pod_status.refuse(P, ("Why", "one"))
    made.pod_status.refuse(P, ("Why", "one"))
    assert made.pod_status.refusal(P.uid) == ("Why", "one")
    assert made.pod_status.refused() == [P.uid]
    ((condition,),) = (each["status"]["conditions"] for each in made.written())
    assert "lastTransitionTime" in condition
    made.pod_status.refuse(P, ("Why", "one"))
    made.pod_status.refuse(P, ("Why", "two"))
    ((condition,),) = (each["status"]["conditions"] for each in made.written())
    assert "lastTransitionTime" not in condition, "it was False before"
    made.shows(refusal=("Why", "one"))
    assert made.pod_status.refusal(P.uid) == ("Why", "one")
    made.pod_status.refuse(P, ("Why", "two"))
    assert len(made.written()) == 1


def test_nothing_is_written_to_a_pod_that_is_gone() -> None:
    made = Statuses()
    made.shown = {}
    made.pod_status.refuse(P, ("Why", "one"))
    assert made.pod_status.refusal(P.uid) is None
    made.pod_status.clear_nomination(P)
    made.label(**{LABEL: "in-quota"})
    assert made.written() == []


def test_a_new_engine_believes_what_the_cluster_shows_alone() -> None:
    """A write may have been dropped with the leadership."""
    made = Statuses()
    made.pod_status.refuse(P, ("Why", "one"))
    made.label(**{LABEL: "in-quota"})
    made.writer.drop_all()
    made.pod_status.begin()
    made.pod_status.refuse(P, ("Why", "one"))
    made.label(**{LABEL: "in-quota"})
    assert len(made.written()) == 2


def test_labels_are_set_and_removed_and_not_written_twice_at_once() -> None:
    made = Statuses(capacity={"old": "x", LABEL: "in-quota"})
    made.label(**{LABEL: "over-quota"})
    made.label(**{LABEL: "over-quota"})
    assert [each["metadata"]["labels"] for each in made.written()] == [
        {"old": None, LABEL: "over-quota"}
    ]
    made.label(**{LABEL: "in-quota"})
    assert [each["metadata"]["labels"] for each in made.written()] == [{"old": None}]
    made.shows(capacity={LABEL: "in-quota"})
    made.label(**{LABEL: "in-quota"})
    assert made.written() == []


def test_a_nomination_is_cleared_where_the_cluster_shows_one() -> None:
    made = Statuses(nominated="n1")
    made.pod_status.clear_nomination(P)
    assert [each["status"] for each in made.written()] == [{"nominatedNodeName": None}]
    made.shows()
    made.pod_status.clear_nomination(P)
    assert made.written() == []


MOMENT = 0.05
Story = Callable[[Statuses], Awaitable[None]]


def words(bodies: list[Body]) -> list[str]:
    return [each["status"]["conditions"][0]["message"] for each in bodies]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[Story], list[Body]]:
    """Plays a story with a writer that runs; returns all that was written until all was."""
    monkeypatch.setattr(pod_status, "MOMENT", MOMENT)

    def played(story: Story, **shown: Any) -> list[Body]:
        made = Statuses(**shown)

        async def run() -> None:
            task = asyncio.create_task(made.writer.run())
            await story(made)
            async with asyncio.timeout(60):
                while not made.writer.idle:
                    await asyncio.sleep(0.001)
            task.cancel()

        asyncio.run(run())
        return made.taken()

    return played


def test_words_that_change_within_a_moment_are_written_once_as_they_are_then(
    play: Callable[..., list[Body]],
) -> None:
    told: list[str] = []

    async def story(made: Statuses) -> None:
        for each in ("one", "two", "three"):
            made.pod_status.refuse(P, ("Why", each), partial(told.append, each))
            assert made.pod_status.refusal(P.uid) == ("Why", each), "as it is about to be"
            await asyncio.sleep(0)
        assert made.taken() == []

    assert words(play(story)) == ["three"]
    assert told == ["three"], "nor is an event recorded of what was not written"


def test_an_event_is_not_lost_by_later_words_of_the_same_reason(
    play: Callable[..., list[Body]],
) -> None:
    """As when numbers in a condition are brought up to date, of which no event tells."""
    told: list[str] = []

    async def same(made: Statuses) -> None:
        made.pod_status.refuse(P, ("Why", "one"), partial(told.append, "one"))
        made.pod_status.refuse(P, ("Why", "two"))

    async def another(made: Statuses) -> None:
        made.pod_status.refuse(P, ("Why", "one"), partial(told.append, "not this"))
        made.pod_status.refuse(P, ("Other", "two"))

    assert [words(play(each)) for each in (same, another)] == [["two"], ["two"]]
    assert told == ["one"]


def test_later_words_do_not_put_off_the_first(play: Callable[..., list[Body]]) -> None:
    """Else a pod whose words change all the time would never be told anything."""

    async def story(made: Statuses) -> None:
        until = asyncio.get_running_loop().time() + 60
        number = 0
        while not made.answers.written and asyncio.get_running_loop().time() < until:
            number += 1
            made.pod_status.refuse(P, ("Why", str(number)))
            await asyncio.sleep(MOMENT / 10)
        assert made.answers.written

    play(story)


def test_words_that_come_back_within_a_moment_are_not_written(
    play: Callable[..., list[Body]],
) -> None:
    async def story(made: Statuses) -> None:
        made.pod_status.refuse(P, ("Why", "two"))
        made.pod_status.refuse(P, ("Why", "one"))
        assert made.pod_status.refusal(P.uid) == ("Why", "one")

    assert play(story, refusal=("Why", "one")) == []


def test_a_pod_that_starts_within_a_moment_is_not_said_to_wait(
    play: Callable[..., list[Body]],
) -> None:
    async def bound_by_us(made: Statuses) -> None:
        made.pod_status.refuse(P, ("Why", "one"))
        made.pod_status.withdraw_refusal(P.uid)

    async def bound_elsewhere(made: Statuses) -> None:
        made.pod_status.refuse(P, ("Why", "one"))
        made.shows(bound=True)

    async def gone(made: Statuses) -> None:
        made.pod_status.refuse(P, ("Why", "one"))
        made.shown = {}

    assert [play(each) for each in (bound_by_us, bound_elsewhere, gone)] == [[], [], []]


def test_a_nomination_is_cleared_only_if_it_was_written(
    play: Callable[..., list[Body]],
) -> None:
    async def at_once(made: Statuses) -> None:
        made.pod_status.nominate(P, "n1")
        made.writer.withdraw(P.uid, "nominate")
        made.pod_status.clear_nomination(P)

    async def later(made: Statuses) -> None:
        made.pod_status.nominate(P, "n1")
        while not made.answers.written:
            await asyncio.sleep(MOMENT / 10)
        made.pod_status.clear_nomination(P)  # though the cluster does not show it yet

    assert play(at_once) == []
    assert [each["status"]["nominatedNodeName"] for each in play(later)] == ["n1", None]


def test_a_condition_that_could_not_be_written_is_written_whole_again(
    play: Callable[..., list[Body]],
) -> None:
    async def story(made: Statuses) -> None:
        tried: list[ApiError] = []

        def refused() -> ApiError:
            tried.append(ApiError(500, "", "not now"))
            return tried[-1]

        made.answers.refuse["/status"] = refused
        made.pod_status.refuse(P, ("Why", "one"))
        while not tried:
            await asyncio.sleep(MOMENT / 10)
        made.answers.refuse.clear()

    (body,) = play(story)
    assert "lastTransitionTime" in body["status"]["conditions"][0]
