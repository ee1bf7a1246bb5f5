"""The faults of the campaign: what each does to a cluster, for how long, and how it ends.

A fault is a coroutine that returns when it is over. What counts as its end is when it returns: from
there the seconds to the first bind are measured.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.cluster.chaos.proxy import Weather
from tests.cluster.chaos.stage import Stage
from tests.cluster.chaos.world import NODES, TEAMS

Fault = Callable[[Stage], Awaitable[None]]

LEASE = 15.0
"""Seconds after which a standby takes over."""


async def kill_the_leader(stage: Stage) -> None:
    leader = await stage.leader()
    leader.kill()
    stage.replace(leader)


async def kill_both(stage: Stage) -> None:
    for each in list(stage.replicas):
        each.kill()
        stage.replace(each)


async def stop_the_leader(stage: Stage) -> None:
    """It sleeps for longer than its Lease, and wakes while another leads."""
    leader = await stage.leader()
    leader.stop()
    try:
        await asyncio.sleep(LEASE + stage.dice.uniform(3, 8))
    finally:
        leader.wake()


async def stop_for_a_moment(stage: Stage) -> None:
    """It sleeps for less than its Lease."""
    leader = await stage.leader()
    leader.stop()
    try:
        await asyncio.sleep(stage.dice.uniform(3, 8))
    finally:
        leader.wake()


async def cut_off_the_leader(stage: Stage) -> None:
    """Its connections are reset for longer than its Lease."""
    leader = await stage.leader()
    async with _weather(stage, leader.name, closed=True):
        await asyncio.sleep(LEASE + stage.dice.uniform(2, 6))


async def half_open(stage: Stage) -> None:
    """Packets of the leader are lost: its connections stay open."""
    leader = await stage.leader()
    async with _weather(stage, leader.name, held=True):
        await asyncio.sleep(stage.dice.uniform(3, LEASE + 5))


async def cut_off_both(stage: Stage) -> None:
    async with _weather(stage, closed=True):
        await asyncio.sleep(stage.dice.uniform(5, 15))


async def lost_answers(stage: Stage) -> None:
    """What is written is carried out, and no answer comes back."""
    leader = await stage.leader()
    async with _weather(stage, leader.name, deaf=True):
        await asyncio.sleep(stage.dice.uniform(3, 10))


async def truncated_answers(stage: Stage) -> None:
    async with _weather(stage, truncated=stage.dice.uniform(0.1, 0.5)):
        await asyncio.sleep(stage.dice.uniform(5, 12))


async def garbled_answers(stage: Stage) -> None:
    async with _weather(stage, garbled=stage.dice.uniform(0.1, 0.5)):
        await asyncio.sleep(stage.dice.uniform(5, 12))


async def slow_server(stage: Stage) -> None:
    async with _weather(stage, delay=(1.0, 5.0)):
        await asyncio.sleep(stage.dice.uniform(10, 20))


async def storm(stage: Stage) -> None:
    """The server answers with 429 and 5xx."""
    async with _weather(stage, refused=stage.dice.uniform(0.3, 0.9)):
        await asyncio.sleep(stage.dice.uniform(5, 12))


async def cut_watches(stage: Stage) -> None:
    for _ in range(stage.dice.randint(3, 10)):
        for proxy in stage.proxies.values():
            proxy.cut_watches()
        await asyncio.sleep(stage.dice.uniform(0.05, 0.5))


async def compaction(stage: Stage) -> None:
    """The server forgets its history: watches that resume are answered with 410."""
    stage.compact()
    async with _weather(stage, expired=True):
        for proxy in stage.proxies.values():
            proxy.cut_watches()
        await asyncio.sleep(stage.dice.uniform(1, 3))


async def restart_the_server(stage: Stage) -> None:
    """The API server is killed and comes back, its history compacted."""
    await stage.restart_server()


async def jump_clock(stage: Stage) -> None:
    """The time of day of all schedulers jumps, forth and back by hours."""
    for seconds in (stage.dice.uniform(600, 7200), -stage.dice.uniform(600, 7200), 0.0):
        for each in stage.replicas:
            each.jump(seconds)
        await asyncio.sleep(stage.dice.uniform(2, 4))


async def lose_a_node(stage: Stage) -> None:
    """A node goes with its pods, and comes back empty."""
    name = f"n-{stage.dice.randint(1, NODES)}"
    await stage.lose_node(name)
    await asyncio.sleep(stage.dice.uniform(2, 6))
    await stage.return_node(name)


async def flap_a_node(stage: Stage) -> None:
    """A node is not ready for a while; its pods stay."""
    name = f"n-{stage.dice.randint(1, NODES)}"
    await stage.set_ready(name, "False")
    await asyncio.sleep(stage.dice.uniform(2, 6))
    await stage.set_ready(name, "True")


async def mass_deletion(stage: Stage) -> None:
    for team in stage.dice.sample(TEAMS, 2):
        await stage.load.delete_many(team)


async def edit_quotas(stage: Stage) -> None:
    """Mins and maxes change while pods start; all mins together stay what they are."""
    for _ in range(stage.dice.randint(2, 5)):
        await stage.edit_quotas()
        await asyncio.sleep(stage.dice.uniform(0.2, 2.0))


FAULTS: dict[str, Fault] = {
    "leader killed": kill_the_leader,
    "both replicas killed": kill_both,
    "leader stopped beyond its Lease": stop_the_leader,
    "leader stopped for a moment": stop_for_a_moment,
    "leader cut off": cut_off_the_leader,
    "leader half-open": half_open,
    "both cut off": cut_off_both,
    "answers lost": lost_answers,
    "answers truncated": truncated_answers,
    "answers garbled": garbled_answers,
    "server slow (1 to 5 s)": slow_server,
    "429 and 5xx": storm,
    "watches cut": cut_watches,
    "history compacted (410)": compaction,
    "API server restarted": restart_the_server,
    "clock jumps": jump_clock,
    "node goes and returns": lose_a_node,
    "node not ready for a while": flap_a_node,
    "mass deletion": mass_deletion,
    "quotas edited": edit_quotas,
}
MIXABLE = ("node goes and returns", "mass deletion", "quotas edited", "clock jumps", "watches cut")
"""What may happen at the same time as any other fault."""


@asynccontextmanager
async def _weather(stage: Stage, name: str | None = None, **changes: Any) -> AsyncIterator[None]:
    """The weather of one replica, or of all, for as long as the block lasts."""
    chosen = stage.proxies_of(name)
    for proxy in chosen:
        proxy.weather = replace(Weather(), **changes)
        if "closed" in changes:
            proxy.cut_watches()
    try:
        yield
    finally:
        for proxy in chosen:
            proxy.weather = Weather()
