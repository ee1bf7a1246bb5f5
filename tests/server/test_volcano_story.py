"""Volcano's Jobs on a whole cluster, as a user of `aliquot up` meets them."""

import asyncio
from pathlib import Path
from typing import Any

from tests.build.manifests import gang_job, queue
from tests.server.client import PODS, Client
from tests.server.process import reaching, started
from tests.server.volcano import GROUPS, JOBS, message, phase, task

Body = dict[str, Any]
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
_SECONDS = 60.0


def test_two_queues_share_a_cluster_by_weight_and_gangs_start_whole_or_not_at_all(
    tmp_path: Path,
) -> None:
    with started(tmp_path, "--nodes", "2x8") as server:
        asyncio.run(_story(tmp_path))
        server.terminate()
        assert server.wait(60) == 0


async def _story(folder: Path) -> None:
    async with reaching(folder) as client:
        await _make(client, QUEUES, queue("research", weight=1))
        await _make(client, QUEUES, queue("product", weight=3))
        await _one_that_does_not_fit_starts_nobody(client)
        await _one_has_it_all(client)
        await _the_other_takes_back_what_it_deserves(client)
        await _what_was_taken_comes_back(client)


async def _one_that_does_not_fit_starts_nobody(client: Client) -> None:
    """The cluster is empty, and any of its pods would have room but one."""
    await _make(client, JOBS, _job("huge", 17, queue="product"))
    group = await _until(client, f"{GROUPS}/huge", _unschedulable)
    condition = _unschedulable(group)
    assert condition["reason"] == "NotEnoughResources"
    assert "nvidia.com/gpu" in condition["message"]
    job = await _until(client, f"{JOBS}/huge", lambda job: job["status"]["pending"] == 17)
    assert (phase(job), message(job)) == ("Pending", "")
    _, found = await client.get(PODS, labelSelector="volcano.sh/job-name=huge")
    assert len(found["items"]) == 17
    assert not any(each["spec"].get("nodeName") for each in found["items"])
    await client.delete(f"{JOBS}/huge")
    await client.until(f"{GROUPS}/huge", lambda code, _: code == 404)
    await client.until(PODS, lambda _, found: not found["items"])  # else some start without it


async def _one_has_it_all(client: Client) -> None:
    await _make(client, JOBS, _job("train", 16, queue="research", minAvailable=4))
    job = await _until(client, f"{JOBS}/train", lambda job: job["status"]["running"] == 16)
    assert phase(job) == "Running"


async def _the_other_takes_back_what_it_deserves(client: Client) -> None:
    """Three quarters of the cluster, all at once; what it takes is beyond the other's gang."""
    await _make(client, JOBS, _job("finetune", 12, queue="product"))
    job = await _until(client, f"{JOBS}/finetune", lambda job: job["status"]["running"] == 12)
    assert (phase(job), job["status"]["minAvailable"]) == ("Running", 12)
    left = await _until(client, f"{JOBS}/train", lambda job: job["status"]["pending"] == 12)
    assert (phase(left), left["status"]["running"]) == ("Running", 4)
    group = await _until(client, f"{GROUPS}/train", lambda o: o["status"]["running"] == 4)
    assert group["status"]["phase"] == "Running"
    _, found = await client.get("/api/v1/namespaces/default/events")
    why = [each["message"] for each in found["items"] if each["reason"] == "Preempting"]
    assert len(why) == 12
    assert all("queue product takes back what it deserves" in each for each in why)


async def _what_was_taken_comes_back(client: Client) -> None:
    await client.delete(f"{JOBS}/finetune")
    job = await _until(client, f"{JOBS}/train", lambda job: job["status"]["running"] == 16)
    assert job["status"]["pending"] == 0
    _, found = await client.get(PODS)
    assert {each["metadata"]["name"] for each in found["items"] if _stays(each)} == {
        f"train-worker-{number}" for number in range(16)
    }


def _stays(pod: Body) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def _job(name: str, pods: int, **spec: Any) -> Body:
    return gang_job(f"default/{name}", task("worker", pods, {"cpu": 1, "gpu": 1}), **spec)


def _unschedulable(group: Body) -> Body:
    found = (group.get("status") or {}).get("conditions") or ()
    return next((each for each in found if each["type"] == "Unschedulable"), {})


async def _make(client: Client, path: str, body: Body) -> None:
    code, answer = await client.post(path, body)
    assert code == 201, answer


async def _until(client: Client, path: str, holds: Any) -> Any:
    def ready(code: int, found: Body) -> bool:
        return code == 200 and "status" in found and bool(holds(found))

    return await client.until(path, ready, _SECONDS)
