"""A scheduler in this process, on a server in this process: what it does when all goes wrong."""

import asyncio
from functools import partial

from aliquot.engine.model.events import Event
from aliquot.json import Body
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CUSTOM, PODS
from aliquot.kube.control import control_plane as plane
from aliquot.kube.control.control_plane import control_plane
from aliquot.server.app import Settings, running
from tests.build.manifests import limited_pod
from tests.cluster.kube.in_process import SETTINGS, scheduling, shows


def test_what_was_not_written_in_a_moment_without_the_lease_is_decided_again() -> None:
    asked: list[bool] = []

    def lapses_once() -> bool:
        asked.append(True)
        return len(asked) > 1

    async def story() -> None:
        async with scheduling(lapses_once) as (client, _):
            await client.post(PODS.path("default"), limited_pod("p"))
            await shows(client, PODS.path("default", "p"), lambda p: "nodeName" in p["spec"])

    asyncio.run(story())


def test_an_engine_that_cannot_take_note_of_something_is_made_anew() -> None:
    def fail(event: Event) -> None:
        raise RuntimeError("a defect")

    async def story() -> None:
        async with scheduling() as (client, made):
            while made.engine is None:
                await asyncio.sleep(0.01)
            made.engine.apply = fail  # type: ignore[method-assign]
            await client.post(PODS.path("default"), limited_pod("p"))
            await shows(client, PODS.path("default", "p"), lambda p: "nodeName" in p["spec"])

    asyncio.run(story())


def test_every_pod_that_made_no_sense_before_is_told_so() -> None:
    """There are more of them than are written to at once."""

    def says_so(found: Body) -> bool:
        said = found["status"].get("conditions") or ()
        return any(each.get("reason") == "InvalidPod" for each in said)

    async def story() -> None:
        async with running(Settings()) as server:
            reach = partial(access.find, server.kubeconfig, None)
            async with Client(reach()) as client:
                names = [f"p{number}" for number in range(100)]
                for name in names:
                    body = limited_pod(name)
                    body["metadata"]["annotations"] = {"tensor-fusion.ai/vram-request": "many"}
                    await client.post(PODS.path("default"), body)
                async with control_plane(reach, plane.Settings(SETTINGS, lease=None)):
                    for name in names:
                        await shows(client, PODS.path("default", name), says_so)

    asyncio.run(story())


def test_what_others_say_of_a_gpu_is_left_as_it_is() -> None:
    where = CUSTOM["gpus.tensor-fusion.ai"]
    status = {
        "capacity": {"tflops": "100", "vram": "40Gi"},
        "nodeSelector": {"kubernetes.io/hostname": "node-0"},
        "runningApps": [{"name": "app", "count": 1}],
    }

    async def story() -> None:
        async with scheduling() as (client, _):
            about = {"apiVersion": where.api_version, "kind": "GPU", "metadata": {"name": "g"}}
            await client.post(where.path(), about)
            await client.patch(where.path(None, "g", "status"), {"status": status})
            path = where.path(None, "g")
            found = await shows(client, path, lambda gpu: "available" in gpu.get("status", {}))
            assert found["status"]["runningApps"] == status["runningApps"]

    asyncio.run(story())
