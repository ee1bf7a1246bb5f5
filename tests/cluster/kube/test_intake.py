"""The cluster as a whole, as it is watched: on what terms it is shared."""

import asyncio

from aiohttp import web

from aliquot.dialects.configuration import Configuration, Profile
from aliquot.kube.api.resource import CLAIMS, PODS, VOLUMES
from aliquot.kube.intake.intake import Intake
from tests.build.manifests import pod
from tests.cluster.kube.scripted import Step, asking, event, mark, streams

POD = pod("a/p", schedulerName="aliquot")
POD["metadata"] |= {"uid": "uid-of-p", "resourceVersion": "1"}
POD["metadata"]["annotations"] = {"tensor-fusion.ai/vram-request": "1Gi"}


def slow_about_pods(seconds: float, lists: list[str]) -> Step:
    """A cluster with one pod, and nothing else; whoever asks for pods has to wait."""

    async def step(request: web.Request) -> web.StreamResponse:
        found: tuple[bytes, ...] = ()
        if request.path == "/api/v1/pods":
            lists.append(request.path)
            await asyncio.sleep(seconds)
            found = (event("ADDED", POD),)
        return await streams(*found, mark(1, complete=True), then="hang")(request)

    return step


def test_pods_that_have_to_come_again_still_have_a_say() -> None:
    """A pod changes the terms, so that pods are read anew: until it has come, they stay changed."""
    lists: list[str] = []

    async def watch() -> Intake:
        async with asking(slow_about_pods(0.1, lists)) as (client, _):
            configuration = Configuration(profiles=[Profile("aliquot")])
            intake = Intake(client, configuration, None, lambda: None)
            running = asyncio.create_task(intake.run())
            try:
                async with asyncio.timeout(60):
                    while not intake.ready:
                        await asyncio.sleep(0.01)
                        intake.settle()
            finally:
                running.cancel()
            return intake

    intake = asyncio.run(watch())
    assert intake.sharing_mode.cards.shared
    assert len(lists) == 2


def test_what_a_former_leader_may_have_written_is_read_anew() -> None:
    """Pods, and the claims and volumes that are bound before them."""

    async def watch() -> None:
        async with asking(slow_about_pods(0.0, [])) as (client, _):
            configuration = Configuration(profiles=[Profile("aliquot")])
            intake = Intake(client, configuration, "capacity", lambda: None)
            running = asyncio.create_task(intake.run())
            try:
                async with asyncio.timeout(60):
                    while not intake.ready:
                        await asyncio.sleep(0.01)
                        intake.settle()
                    before = {
                        each: reflector.lists for each, reflector in intake.reflectors.items()
                    }
                    since = intake.read_since
                    await intake.refresh()
            finally:
                running.cancel()
            again = {
                each
                for each, reflector in intake.reflectors.items()
                if reflector.lists > before[each]
            }
            assert again == {PODS, CLAIMS, VOLUMES}
            assert intake.read_since > since

    asyncio.run(watch())
