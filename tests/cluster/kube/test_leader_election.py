"""The election against API servers: who leads, who takes over, and when."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from aliquot.errors import ApiError
from aliquot.kube.api import access
from aliquot.kube.api.access import Access
from aliquot.kube.api.client import Client
from aliquot.kube.leader.leader_election import Election
from aliquot.kube.leader.leader_rules import Timing
from tests.cluster.api.servers import Server
from tests.cluster.kube.relay import Relay, relay
from tests.cluster.kube.stories import story, until

TIMING = Timing(duration=3.0, deadline=2.0, retry=0.2)
SLACK = 1.0
"""Seconds that requests may take on a machine that is busy."""


class Candidate:
    """A replica, and when it won and lost."""

    def __init__(self, client: Client, ns: str) -> None:
        self.won: list[float] = []
        self.lost: list[float] = []
        self.election = Election(
            client,
            ns,
            "aliquot",
            on_won=lambda: self.won.append(time.monotonic()),
            on_lost=lambda: self.lost.append(time.monotonic()),
            timing=TIMING,
        )


@asynccontextmanager
async def candidate(way: Access, ns: str) -> AsyncIterator[Candidate]:
    async with Client(way, connections=1) as client:
        made = Candidate(client, ns)
        task = asyncio.create_task(made.election.run())
        try:
            yield made
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def way(server: Server) -> Access:
    return access.find(server.kubeconfig)


def path(ns: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/aliquot"


@story
async def test_one_of_two_leads_and_hands_over_when_it_stops(way: Access, ns: str) -> None:
    async with AsyncExitStack() as longer:
        async with candidate(way, ns) as first:
            await until(first.election.holds)
            second = await longer.enter_async_context(candidate(way, ns))
            await until(lambda: second.election.leader == first.election.identity)
            await asyncio.sleep(TIMING.duration)
            assert first.election.holds()
            assert not second.won
            stopped = time.monotonic()
        await until(second.election.holds)
        assert second.won[0] - stopped < TIMING.retry + SLACK
        assert first.lost[0] < second.won[0]
        assert second.election.transitions == 1


def cut_off(between: Relay, how: str) -> None:
    """Let nothing through, and either say so or not."""
    if how == "silent":
        between.silent = True
    else:
        between.close()


def let_through(between: Relay, server: Server) -> None:
    between.silent = False
    between.lead(server.kubeconfig)


@pytest.mark.parametrize("how", ["silent", "refused"])
@story
async def test_one_that_is_cut_off_is_followed_when_its_lease_has_run_out(
    server: Server, ns: str, how: str
) -> None:
    """Never both; and whoever was cut off knows before anybody else can win."""
    async with (
        relay() as between,
        candidate(between.lead(server.kubeconfig), ns) as first,
        AsyncExitStack() as longer,
    ):
        await until(first.election.holds)
        second = await longer.enter_async_context(candidate(access.find(server.kubeconfig), ns))
        await until(lambda: second.election.leader == first.election.identity)
        cut = time.monotonic()
        cut_off(between, how)
        while not second.election.holds():
            assert time.monotonic() < cut + TIMING.duration + SLACK
            await asyncio.sleep(0.002)
            assert not (first.election.holds() and second.election.holds())
        (lost,), (won,) = first.lost, second.won
        assert TIMING.deadline - 2 * TIMING.retry < lost - cut < TIMING.deadline + SLACK
        assert TIMING.duration - 2 * TIMING.retry < won - cut
        assert lost < won
        let_through(between, server)
        await until(lambda: first.election.leader == second.election.identity)
        assert not first.election.holds()


@pytest.mark.parametrize("how", ["silent", "refused"])
@story
async def test_a_server_that_is_away_for_long_costs_the_lead_and_no_more(
    server: Server, ns: str, how: str
) -> None:
    async with relay() as between, candidate(between.lead(server.kubeconfig), ns) as first:
        await until(first.election.holds)
        cut_off(between, how)
        assert await until(lambda: not first.election.holds()) < TIMING.deadline + 0.1
        let_through(between, server)
        await until(first.election.holds)
        assert (len(first.won), len(first.lost)) == (2, 1)


@story
async def test_a_lease_deleted_by_hand_is_made_anew_by_who_leads(way: Access, ns: str) -> None:
    async with Client(way) as client, candidate(way, ns) as first:
        await until(first.election.holds)
        async with candidate(way, ns) as second:
            await until(lambda: second.election.leader == first.election.identity)
            await client.delete(path(ns))
            await asyncio.sleep(TIMING.duration + TIMING.retry)
            lease = await client.get(path(ns))
            assert lease["spec"]["holderIdentity"] == first.election.identity
            assert (len(first.won), first.lost, second.won) == (1, [], [])


@story
async def test_a_lease_edited_by_hand_is_given_up_at_once_and_had_again(
    way: Access, ns: str
) -> None:
    async with Client(way) as client, candidate(way, ns) as first:
        await until(first.election.holds)
        edited = {"spec": {"holderIdentity": "somebody", "leaseTransitions": 7}}
        await client.patch(path(ns), {"metadata": {"labels": {"team": "a"}}, **edited})
        assert await until(lambda: first.lost) < TIMING.retry + SLACK
        assert TIMING.duration - 0.1 < await until(first.election.holds) < TIMING.duration + SLACK
        lease = await client.get(path(ns))
        assert lease["metadata"]["labels"] == {"team": "a"}
        assert lease["spec"]["leaseTransitions"] == first.election.transitions == 8


@story
async def test_a_change_that_is_no_renewal_does_not_matter(way: Access, ns: str) -> None:
    """A holder knows its own renewals by their times, so no server may round them."""
    async with Client(way) as client, candidate(way, ns) as first:
        await until(first.election.holds)
        await client.patch(path(ns), {"metadata": {"labels": {"team": "a"}}})
        await asyncio.sleep(4 * TIMING.retry)
        assert first.election.holds()
        assert not first.lost
        spec = (await client.get(path(ns)))["spec"]
        assert len(spec["renewTime"]) == len("2026-01-01T00:00:00.000000Z")
        assert spec["acquireTime"] < spec["renewTime"]


@story
async def test_an_update_that_is_late_does_not_bring_a_deleted_lease_back(
    way: Access, ns: str
) -> None:
    """The rules count on it; for Leases, servers make what an update does not find."""
    async with Client(way) as client:
        async with candidate(way, ns) as first:
            await until(first.election.holds)
            late = await client.get(path(ns))
        await client.delete(path(ns))
        with pytest.raises(ApiError) as refused:
            await client.put(path(ns), late)
        assert refused.value.code in (404, 409)
