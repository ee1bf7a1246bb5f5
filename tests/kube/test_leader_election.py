"""The election, against an API server that does what the test says."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.leader.leader_election import Election
from aliquot.kube.leader.leader_rules import Timing
from aliquot.kube.observe.background_loop import BackgroundLoop
from tests.cluster.kube.stories import story, until
from tests.kube.leases import Leases

TIMING = Timing(duration=2.0, deadline=1.2, retry=0.1)
SLACK = 1.5
"""What a busy machine may take longer."""
MICROSECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


class Story:
    """A candidate, and when it won and lost."""

    def __init__(self, client: Leases) -> None:
        self.told: list[str] = []
        self.election = Election(
            client,
            "team",
            "aliquot",
            on_won=lambda: self.told.append("won"),
            on_lost=lambda: self.told.append("lost"),
            timing=TIMING,
        )


@asynccontextmanager
async def running(client: Leases) -> AsyncIterator[Story]:
    story = Story(client)
    task = asyncio.create_task(story.election.run())
    try:
        yield story
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@story
async def test_the_first_makes_the_lease_and_holds_it() -> None:
    leases = Leases()
    async with running(leases) as one:
        await until(one.election.holds)
        assert one.told == ["won"]
        assert one.election.leader == one.election.identity
        spec = leases.spec("aliquot")
        assert spec["holderIdentity"] == one.election.identity
        assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (2, 0)
        first = spec["renewTime"]
        assert MICROSECONDS.fullmatch(first)
        await until(lambda: leases.spec("aliquot")["renewTime"] != first)
        assert leases.spec("aliquot")["acquireTime"] == first
        assert leases.asked[:3] == ["get", "post", "put"]  # a renewal is one request


def test_no_two_have_the_same_name() -> None:
    names = {Story(Leases()).election.identity for _ in range(20)}
    assert len(names) == 20


@story
async def test_a_clean_stop_hands_over_within_a_retry() -> None:
    leases = Leases()
    async with AsyncExitStack() as longer:
        async with running(leases) as first:
            await until(first.election.holds)
            second = await longer.enter_async_context(running(leases))
            await until(lambda: second.election.leader == first.election.identity)
            assert second.told == []
        assert first.told == ["won", "lost"]
        assert not first.election.holds()
        assert await until(second.election.holds) < TIMING.duration
        assert second.election.transitions == 1


@story
async def test_what_was_given_back_names_nobody() -> None:
    leases = Leases()
    async with running(leases) as one:
        await until(one.election.holds)
        leases.edit("aliquot", strategy="something new")
    spec = leases.spec("aliquot")
    assert (spec["holderIdentity"], spec["renewTime"], spec["acquireTime"]) == ("", None, None)
    assert spec["strategy"] == "something new"


@pytest.mark.parametrize("trouble", ["silence", "refusal", "no connection"])
@story
async def test_whoever_cannot_renew_is_told_at_the_deadline(trouble: str) -> None:
    leases = Leases()
    async with running(leases) as one:
        await until(one.election.holds)
        leases.silent = trouble == "silence"
        if trouble == "refusal":
            leases.failure = ApiError(500, "InternalError", "etcd is away")
        if trouble == "no connection":
            leases.failure = UnreachableError("connection refused", sent=False)
        assert await until(lambda: not one.election.holds()) <= TIMING.deadline + SLACK
        assert await until(lambda: one.told == ["won", "lost"]) < SLACK
        leases.silent, leases.failure = False, None
        await until(one.election.holds)
        assert one.told == ["won", "lost", "won"]


@story
async def test_a_write_whose_answer_is_lost_does_not_cost_the_lease() -> None:
    leases = Leases()
    leases.lose_answers = 1
    async with running(leases) as one:
        assert await until(one.election.holds) < TIMING.deadline
        leases.lose_answers = 3
        await until(lambda: leases.lose_answers == 0)
        await asyncio.sleep(0.3)
        assert one.election.holds()
        assert one.told == ["won"]


@story
async def test_a_deleted_lease_is_made_anew_by_who_holds_it() -> None:
    leases = Leases()
    async with running(leases) as one:
        await until(one.election.holds)
        leases.kept.clear()
        await until(lambda: leases.kept)
        assert leases.spec("aliquot")["holderIdentity"] == one.election.identity
        assert one.told == ["won"]


@story
async def test_another_name_in_the_lease_is_respected_for_a_term() -> None:
    leases = Leases()
    async with running(leases) as one:
        await until(one.election.holds)
        leases.edit("aliquot", holderIdentity="somebody")
        await until(lambda: one.told == ["won", "lost"])
        assert one.election.leader == "somebody"
        taken = await until(one.election.holds)
        assert TIMING.duration - 0.2 < taken < TIMING.duration + 1
        assert one.election.transitions == 1


@story
async def test_holds_turns_false_by_itself_when_its_thread_hangs() -> None:
    """The fence must not depend on who renews."""
    leases = Leases()
    one = Story(leases)

    async def hang() -> None:
        await until(one.election.holds)
        time.sleep(TIMING.deadline + 3)

    async with BackgroundLoop(one.election.run, hang):
        await until(one.election.holds)
        assert await until(lambda: not one.election.holds()) <= TIMING.deadline + 2.5
        assert one.told == ["won"]  # its loop hangs, so it could not say so


@story
async def test_a_busy_main_loop_does_not_lose_the_lease() -> None:
    leases = Leases()
    one = Story(leases)
    async with BackgroundLoop(one.election.run):
        await until(one.election.holds)
        end = time.monotonic() + 2 * TIMING.duration
        while time.monotonic() < end:  # deciding
            assert one.election.holds()
        assert one.told == ["won"]
