"""A control plane that dies at any of its writes, and one that takes its place.

Whatever write was the last, and whether or not it arrived, the next control plane brings about what
the first one would have: as many pods run, as many made way, none was asked twice, and nothing was
ever held twice. So it is for a write of which nobody knows whether it was carried out.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from itertools import count

import pytest

from aliquot.kube.control import operator
from aliquot.kube.execution import writer
from aliquot.server.app import running
from tests.campaign import SOAK, length
from tests.cluster.api import binaries
from tests.cluster.plane.between import standing
from tests.cluster.plane.cluster import Cluster
from tests.cluster.plane.fate import Fate, Life
from tests.cluster.plane.ground import Ground, ground
from tests.cluster.plane.worlds import WORLDS, World

_STEP, _SHIFT = 8, 2
"""A sample dies at every eighth write, each fate at others: some of each kind in every world."""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statuses are written as soon as there is anything to say; nobody waits for the dead."""
    monkeypatch.setattr(operator, "_PAUSE", 0.02)
    monkeypatch.setattr(writer, "WRITE_SECONDS", 0.02)


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_any_write(world: World) -> None:
    async def look() -> None:
        async with running() as server, ground(server.kubeconfig) as made:
            for fate in Fate:
                await _at_any_write(made, world, fate)

    asyncio.run(look())


@pytest.mark.skipif(not binaries.real_server(), reason=binaries.NO_REAL_SERVER)
@pytest.mark.parametrize("world", WORLDS[:2], ids=str)
def test_any_write_to_a_real_server(world: World, real_cluster: Cluster) -> None:
    async def look() -> None:
        async with ground(real_cluster.server.kubeconfig) as made:
            await _at_any_write(made, world, Fate.LOST)

    try:
        asyncio.run(look())
    finally:
        real_cluster.wipe()


async def _at_any_write(made: Ground, world: World, fate: Fate) -> None:
    first = 1 - (fate is Fate.LAST)
    if not SOAK:
        first += _SHIFT * list(Fate).index(fate)
    for at in count(first, length(_STEP, 1)):
        life = Life(fate, at)
        await made.lay(world.objects)
        try:
            await _live(made, world, life)
        except BaseException as error:
            error.add_note(f"{world}: {fate.value} was write {at} of {life.writes}")
            raise
        if not life.met.is_set():
            assert at > first, f"{world}: there is no write {first} of which it dies"
            return


async def _live(made: Ground, world: World, life: Life) -> None:
    """Live this life, and another one if it is cut short; then look at what came of it."""
    after = Life()
    await _until_it_is_over(made, world, life)
    if life.dead:
        with standing(after):
            await _to_the_end(made, world)
    evicted = life.evictions + after.evictions
    most = 2 if life.fate is Fate.UNANSWERED else 1
    assert made.books.made_way() == world.ended
    assert Counter({pod: times for pod, times in evicted.items() if times > most}) == Counter()


async def _until_it_is_over(made: Ground, world: World, life: Life) -> None:
    with standing(life):
        living = asyncio.create_task(_to_the_end(made, world))
        dying = asyncio.create_task(life.died.wait())
        await asyncio.wait((living, dying), return_when=asyncio.FIRST_COMPLETED)
        await life.over()
        dying.cancel()
        if life.dead:
            living.cancel()
        with suppress(asyncio.CancelledError):
            await living


async def _to_the_end(made: Ground, world: World) -> None:
    async with made.plane(world.configuration) as plane:
        await made.settled(plane, lambda: made.books.running() == world.running)
        made.sound(plane)
