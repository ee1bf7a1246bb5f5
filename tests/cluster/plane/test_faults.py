"""A control plane in bad weather: whatever is refused, lost, late or cut, it comes out right.

After each storm as many pods run as would have without it, nobody was made to go for nothing,
nothing was ever held twice, the ledger agrees with the cluster, and what is shown is true.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from aliquot.kube.api.resource import NODES, PODS
from aliquot.kube.control import operator
from aliquot.kube.control.control_plane import ControlPlane
from aliquot.server.app import running
from tests.build.manifests import limited_pod, quota
from tests.cluster.plane import weather as w
from tests.cluster.plane.between import standing
from tests.cluster.plane.ground import Ground, ground, resource_of
from tests.cluster.plane.weather import Weather
from tests.cluster.plane.worlds import WORLDS, World, node

BIND = "POST .*/binding"
EVICT = "POST .*/eviction"
WORLD = {world.name: world for world in WORLDS}

Story = Callable[[Ground, Weather], Awaitable[None]]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statuses are written as soon as there is something to say, and again if that fails."""
    monkeypatch.setattr(operator, "_PAUSE", 0.02)
    monkeypatch.setattr(operator, "_REPEAT_SECONDS", 0.2)


def _tell(story: Story) -> None:
    async def tell() -> None:
        async with running() as server, ground(server.kubeconfig) as made:
            weather = Weather()
            with standing(weather):
                await story(made, weather)

    asyncio.run(tell())


@asynccontextmanager
async def _outlived(made: Ground, world: World) -> AsyncIterator[ControlPlane]:
    """A world that comes out as it should, whatever the block does to it."""
    await made.lay(world.objects)
    async with made.plane(world.configuration) as plane:
        yield plane
        await made.settled(plane, lambda: made.books.running() == world.running)
        made.sound(plane)
    assert made.books.made_way() == world.ended


@pytest.mark.parametrize("name", ["reclaim", "gang", "burst"])
@pytest.mark.parametrize(
    "happening",
    [
        w.refused(500, "InternalError"),
        w.refused(503, "ServiceUnavailable"),
        w.refused(429, "TooManyRequests", after=1),
        w.unanswered(),
        w.unsent(),
        w.slow(1.0),
    ],
    ids=["500", "503", "429", "unanswered", "unsent", "slow"],
)
def test_decisions_that_do_not_get_through_at_once(name: str, happening: w.Happening) -> None:
    async def story(made: Ground, weather: Weather) -> None:
        weather.on(f"{BIND}|{EVICT}", happening, times=6)
        async with _outlived(made, WORLD[name]):
            pass

    _tell(story)


def test_a_pod_says_why_it_waits_although_that_was_refused_at_first() -> None:
    async def story(made: Ground, weather: Weather) -> None:
        weather.on("PATCH .*/pods/.*/status", w.refused(500), times=2)
        async with _outlived(made, WORLD["burst"]) as plane:
            await made.settled(plane, lambda: len(made.waiting()) == 3)
        assert set(made.waiting().values()) == {"QuotaMaxExceeded"}

    _tell(story)


def test_quotas_show_what_is_true_although_that_was_refused_at_first() -> None:
    async def story(made: Ground, weather: Weather) -> None:
        weather.on("PATCH .*/elasticquotas/", w.refused(503), times=5)
        weather.on("POST .*/events", w.refused(500), times=3)
        async with _outlived(made, WORLD["burst"]):
            while (await _used(made, "team")).get("cpu") != "6":
                await asyncio.sleep(0.02)

    _tell(story)


def test_a_pod_that_may_never_be_bound_keeps_nobody_from_starting() -> None:
    async def story(made: Ground, weather: Weather) -> None:
        weather.on("POST .*/p-0/binding", w.refused(403, "Forbidden"))
        objects = (node("n-1", cpu=2), *(limited_pod(f"team/p-{n}", {"cpu": 1}) for n in range(3)))
        world = World("forbidden", objects, Counter(team=2))
        async with _outlived(made, world) as plane:
            await made.settled(plane, lambda: made.waiting().get("team/p-0") == "BindingFailed")

    _tell(story)


def test_a_pod_that_is_replaced_while_it_is_bound() -> None:
    async def story(made: Ground, weather: Weather) -> None:
        one = limited_pod("team/p-0", {"cpu": 1})

        async def replace() -> None:
            await made.client.delete(PODS.path("team", "p-0"), query={"gracePeriodSeconds": 0})
            await made.make(one)

        weather.on("POST .*/p-0/binding", w.behind(replace), times=2)
        world = World("replaced", (node("n-1", cpu=1), one), Counter(team=1), Counter(team=2))
        async with _outlived(made, world):
            pass

    _tell(story)


@pytest.mark.parametrize("late", [0.0, 0.3], ids=["at once", "when we know of it"])
def test_a_pod_that_somebody_else_binds_elsewhere(late: float) -> None:
    async def story(made: Ground, weather: Weather) -> None:
        async def bind() -> None:
            target = {"apiVersion": "v1", "kind": "Node", "name": "n-2"}
            about = {"metadata": {"name": "p-0"}, "target": target}
            body = {"apiVersion": "v1", "kind": "Binding", **about}
            await made.client.post(PODS.path("team", "p-0", "binding"), body)
            await asyncio.sleep(late)

        weather.on("POST .*/p-0/binding", w.behind(bind), times=1)
        objects = (node("n-1", cpu=1), node("n-2", cpu=1), limited_pod("team/p-0", {"cpu": 1}))
        world = World("elsewhere", objects, Counter(team=2))
        async with _outlived(made, world):
            while not made.books.running():
                await asyncio.sleep(0.01)
            await asyncio.sleep(late + 0.1)
            await made.make(limited_pod("team/p-1", {"cpu": 1}))

    _tell(story)


def test_an_eviction_that_meets_a_conflict_is_asked_for_again() -> None:
    async def story(made: Ground, weather: Weather) -> None:
        weather.on(EVICT, w.refused(409, "Conflict"), times=3)
        async with _outlived(made, WORLD["reclaim"]):
            pass

    _tell(story)


def test_watches_that_are_cut_again_and_again() -> None:
    async def story(made: Ground, weather: Weather) -> None:
        async with _outlived(made, WORLD["reclaim"]):
            for _ in range(8):
                await asyncio.sleep(0.03)
                weather.cut()

    _tell(story)


def test_watches_that_fall_silent_and_have_expired_then() -> None:
    async def story(made: Ground, weather: Weather) -> None:
        async with _outlived(made, WORLD["burst"]) as plane:
            await made.settled(plane, lambda: made.books.running() == WORLD["burst"].running)
            weather.silent = True
            gone = next(made.books.bound())["metadata"]
            where = PODS.path(gone["namespace"], gone["name"])
            await made.client.delete(where, query={"gracePeriodSeconds": 0})
            await asyncio.sleep(0.1)
            weather.silent = False
            for reflector in plane.scheduler.intake.reflectors.values():
                reflector.list_again()  # as after 410 Gone
            weather.cut()
            made.books.ended.clear()

    _tell(story)


def test_a_node_that_goes_with_its_pods() -> None:
    async def story(made: Ground, weather: Weather) -> None:
        objects = (
            *(node("n-1", cpu=2), node("n-2", cpu=2)),
            *(
                quota("lent/lent", {"cpu": 0}, {"cpu": 4}),
                quota("owner/owner", {"cpu": 4}, {"cpu": 4}),
            ),
            *(limited_pod(f"lent/p-{n}", {"cpu": 1}, nodeName=f"n-{1 + n % 2}") for n in range(4)),
        )
        world = World("lost", objects, Counter(owner=2), Counter(lent=4))
        async with _outlived(made, world):
            await made.client.delete(NODES.path(None, "n-1"))
            for each in range(2):
                await made.make(limited_pod(f"owner/p-{each}", {"cpu": 1}))
            await asyncio.sleep(0.1)
            for each in (0, 2):
                query = {"gracePeriodSeconds": 0}
                await made.client.delete(PODS.path("lent", f"p-{each}"), query=query)

    _tell(story)


def test_a_quota_that_is_edited_while_pods_come() -> None:
    async def story(made: Ground, weather: Weather) -> None:
        most = quota("team/team", {"cpu": 2}, {"cpu": 12})
        objects = (node("n-1", cpu=64), most, quota("idle/idle", {"cpu": 40}, {"cpu": 40}))
        await made.lay(objects)
        made.books.objects.remove(most)
        async with made.plane() as plane:
            for number in range(30):
                await made.make(limited_pod(f"team/p-{number}", {"cpu": 1}))
                limit = (4, 12, 6)[number % 3]
                await _edit(made, "team", {"spec": {"max": {"cpu": str(limit)}}})
            await made.settled(plane, lambda: True)
            held = made.books.running()["team"]
            assert 4 <= held <= 12
            await _edit(made, "team", {"spec": {"max": {"cpu": "20"}}})
            await made.settled(plane, lambda: made.books.running() == Counter(team=20))
            made.sound(plane)
        assert made.books.made_way() == Counter()

    _tell(story)


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_jumps_while_victims_leave(
    hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(made: Ground, weather: Weather) -> None:
        made.stopping = 0.5
        objects = (
            *(
                node("n-1", cpu=4),
                node("n-2", cpu=4),
                quota("lent/lent", {"cpu": 0}, {"cpu": 8}),
                quota("owner/owner", {"cpu": 8}, {"cpu": 8}),
            ),
            *(limited_pod(f"lent/p-{n}", {"cpu": 1}, nodeName=f"n-{1 + n % 2}") for n in range(8)),
            limited_pod("owner/p-0", {"cpu": 2}),
        )
        world = World("spare", objects, Counter(lent=6, owner=1), Counter(lent=2))
        async with _outlived(made, world):
            while not made.books.ended:
                await asyncio.sleep(0.01)
            now = time.time_ns
            monkeypatch.setattr(time, "time_ns", lambda: now() + hours * 3600 * 10**9)

    _tell(story)


async def _used(made: Ground, name: str) -> dict[str, str]:
    found = await made.client.get(resource_of(quota(f"{name}/{name}", {"cpu": 0})).path(name, name))
    used: dict[str, str] = (found.get("status") or {}).get("used") or {}
    return used


async def _edit(made: Ground, name: str, patch: dict[str, object]) -> None:
    await made.client.patch(
        resource_of(quota(f"{name}/{name}", {"cpu": 0})).path(name, name), patch
    )
