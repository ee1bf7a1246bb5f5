"""StatefulSets, DaemonSets, CronJobs and ReplicationControllers on the embedded server."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from aliquot.json import Body
from aliquot.server.app import Settings
from aliquot.server.controllers.simulated_nodes import nodes
from tests.server.client import PODS, Client, served

_APPS = "/apis/apps/v1/namespaces/default"
_BATCH = "/apis/batch/v1/namespaces/default"
SETS, DAEMONS = f"{_APPS}/statefulsets", f"{_APPS}/daemonsets"
REVISIONS = f"{_APPS}/controllerrevisions"
CRON_JOBS, JOBS = f"{_BATCH}/cronjobs", f"{_BATCH}/jobs"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CONTROLLERS = "/api/v1/namespaces/default/replicationcontrollers"
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

Story = Callable[[Client], Awaitable[None]]


def test_a_stateful_set_starts_in_order_and_ends_in_reverse() -> None:
    async def story(client: Client) -> None:
        await client.post(SETS, stateful("web", 3))
        for count in (1, 2, 3):
            found = await client.until(PODS, _count(count))
            assert _names(found) == [f"web-{index}" for index in range(count)]
            await asyncio.sleep(0.1)
            assert len((await client.get(PODS))[1]["items"]) == count, "none before it is ready"
            await _bind(client)
        done = await client.until(f"{SETS}/web", _ready(3))
        assert done["status"]["currentRevision"] == done["status"]["updateRevision"]
        await client.merge(f"{SETS}/web/scale", {"spec": {"replicas": 1}})
        gone = []
        async for event in client.watch(PODS, resourceVersion=found["metadata"]["resourceVersion"]):
            if event["type"] == "DELETED":
                gone.append(event["object"]["metadata"]["name"])
                if len(gone) == 2:
                    break
        assert gone == ["web-2", "web-1"]

    _tell(story)


def test_a_pod_of_a_stateful_set_has_its_name_its_host_and_its_claim_and_comes_back() -> None:
    async def story(client: Client) -> None:
        body = stateful("web", 1)
        body["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": _CLAIM}]
        await client.post(SETS, body)
        first = (await client.until(PODS, _count(1)))["items"][0]
        assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("web-0", "web")
        labels = first["metadata"]["labels"]
        assert labels["statefulset.kubernetes.io/pod-name"] == "web-0"
        assert labels["apps.kubernetes.io/pod-index"] == "0"
        (volume,) = [each for each in first["spec"]["volumes"] if each["name"] == "data"]
        assert volume["persistentVolumeClaim"] == {"claimName": "data-web-0"}
        assert _names((await client.get(CLAIMS))[1]) == ["data-web-0"]
        await client.delete(f"{PODS}/web-0")
        again = await client.until(
            PODS, lambda _, found: _uids(found) not in ([], [first["metadata"]["uid"]])
        )
        assert _names(again) == ["web-0"]
        await client.delete(f"{SETS}/web")
        await client.until(PODS, _count(0))
        assert _names((await client.get(CLAIMS))[1]) == ["data-web-0"], "claims stay"

    _tell(story)


def test_a_parallel_stateful_set_and_one_whose_pods_are_a_gang_start_at_once() -> None:
    async def story(client: Client) -> None:
        await client.post(SETS, stateful("web", 3, podManagementPolicy="Parallel"))
        gang = stateful("gang", 2)
        gang["metadata"]["annotations"] = {"scheduling.volcano.sh/group-min-member": "2"}
        await client.post(SETS, gang)
        found = await client.until(PODS, _count(5))
        assert _names(found) == ["gang-0", "gang-1", "web-0", "web-1", "web-2"]

    _tell(story)


def test_an_update_of_a_stateful_set_goes_down_to_its_partition() -> None:
    async def story(client: Client) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
        body = stateful("web", 3, podManagementPolicy="Parallel", updateStrategy=strategy)
        await client.post(SETS, body)
        await client.until(PODS, _count(3))
        await _bind(client)
        await client.until(f"{SETS}/web", _ready(3))
        await _set_image(client, f"{SETS}/web", "v2")
        images = await _until_images(client, {"web-0": "v1", "web-1": "v2", "web-2": "v2"})
        status = (await client.until(f"{SETS}/web", _updated(2, of=3)))["status"]
        assert status["currentRevision"] != status["updateRevision"]
        await client.delete(f"{PODS}/web-0")
        images = await _until_images(client, images)
        await client.merge(f"{SETS}/web", {"spec": {"updateStrategy": {"rollingUpdate": None}}})
        await _until_images(client, dict.fromkeys(images, "v2"))
        numbers = [each["revision"] for each in (await client.get(REVISIONS))[1]["items"]]
        assert sorted(numbers) == [1, 2]

    _tell(story)


def test_a_daemon_set_has_a_pod_on_every_node_that_matches() -> None:
    async def story(client: Client) -> None:
        await client.merge("/api/v1/nodes/node-1", {"metadata": {"labels": {"disk": "ssd"}}})
        taint = {"key": "gpu", "value": "", "effect": "NoSchedule"}
        await client.merge("/api/v1/nodes/node-2", {"spec": {"taints": [taint]}})
        await client.post(DAEMONS, daemon("agent"))
        await client.until(PODS, _count(2))
        await _bind(client)
        done = await client.until(f"{DAEMONS}/agent", lambda _, each: _available(each) == 2)
        assert done["status"]["desiredNumberScheduled"] == 2
        assert await _nodes(client) == ["node-0", "node-1"]
        await client.merge("/api/v1/nodes/node-2", {"spec": {"taints": None}})
        await client.until(PODS, _count(3))
        await client.merge("/api/v1/nodes/node-1", {"spec": {"unschedulable": True}})
        await asyncio.sleep(0.2)
        assert len((await client.get(PODS))[1]["items"]) == 3, "a cordon keeps pods of DaemonSets"
        selector = {"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}}
        await client.merge(f"{DAEMONS}/agent", selector)
        for _ in range(600):
            await _bind(client)
            pods = (await client.get(PODS))[1]["items"]
            left = [
                (each["spec"].get("nodeName"), each["spec"].get("nodeSelector")) for each in pods
            ]
            if left == [("node-1", {"disk": "ssd"})]:  # of the new revision: it stays
                break
            await asyncio.sleep(0.1)
        assert left == [("node-1", {"disk": "ssd"})]
        await client.delete("/api/v1/nodes/node-1")
        await client.until(PODS, _count(0))

    _tell(story, "3x0")


def test_an_update_of_a_daemon_set_replaces_as_many_as_may_be_missing() -> None:
    async def story(client: Client) -> None:
        await client.post(DAEMONS, daemon("agent"))
        await client.until(PODS, _count(3))
        await _bind(client)
        await client.until(f"{DAEMONS}/agent", lambda _, each: _available(each) == 3)
        await _set_image(client, f"{DAEMONS}/agent", "v2")
        most = 0
        for _ in range(1200):
            await _bind(client)
            found = await _get(client, f"{DAEMONS}/agent")
            status = found["status"]
            most = max(most, status.get("numberUnavailable", 0))
            updated = status.get("updatedNumberScheduled") == status["numberReady"] == 3
            if updated and _observed(found):
                break
            await asyncio.sleep(0.05)
        assert set((await _images(client)).values()) == {"v2"}
        assert most <= 1

    _tell(story, "3x0")


def test_a_cron_job_makes_the_job_that_is_due_and_keeps_some() -> None:
    async def story(client: Client) -> None:
        await client.post(CRON_JOBS, cron("tick", suspend=True))
        await _due(client, "tick")
        found = await client.until(JOBS, _count(1))
        job = found["items"][0]
        assert job["metadata"]["name"].startswith("tick-2")
        assert job["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
        shown = await client.until(
            f"{CRON_JOBS}/tick", lambda _, each: bool(each["status"].get("active"))
        )
        assert shown["status"]["active"][0]["name"] == job["metadata"]["name"]
        assert shown["status"]["lastScheduleTime"].endswith(":00Z")
        await client.delete(f"{CRON_JOBS}/tick")
        await client.until(JOBS, _count(0))
        await client.until(PODS, _count(0))

    _tell(story)


def test_a_cron_job_that_forbids_or_replaces_what_runs() -> None:
    async def story(client: Client) -> None:
        for policy in ("Forbid", "Replace"):
            name = policy.lower()
            await client.post(CRON_JOBS, cron(name, suspend=True, concurrencyPolicy=policy))
            _, job = await client.post(JOBS, _manual(await _get(client, f"{CRON_JOBS}/{name}")))
            metadata = job["metadata"]
            active = [{"kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}]
            await client.merge(f"{CRON_JOBS}/{name}/status", {"status": {"active": active}})
            await _due(client, name)
        found = await client.until(
            JOBS, lambda _, each: any(name.startswith("replace-2") for name in _names(each))
        )
        await asyncio.sleep(0.2)
        found = (await client.get(JOBS))[1]
        running = [each for each in found["items"] if "deletionTimestamp" not in each["metadata"]]
        names = [each["metadata"]["name"] for each in running]
        assert [each.rpartition("-")[0] for each in names] == ["forbid", "replace"]
        assert "forbid-manual" in names, "what runs is let run, and no other one starts"
        assert "replace-manual" not in names

    _tell(story)


def test_a_cron_job_drops_old_jobs() -> None:
    async def story(client: Client) -> None:
        limits = {"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0}
        await client.post(CRON_JOBS, cron("tick", suspend=True, **limits))
        owner = await _get(client, f"{CRON_JOBS}/tick")
        for index in range(3):
            job = _manual(owner)
            job["metadata"]["name"] = f"tick-{index}"
            job["spec"] = {**job["spec"], "managedBy": "example.com/suite"}
            await client.post(JOBS, job)
            start = f"2024-05-0{index + 1}T12:00:00Z"
            ended = {"type": "Complete", "status": "True", "lastTransitionTime": start}
            status = {"startTime": start, "completionTime": start, "conditions": [ended]}
            await client.merge(f"{JOBS}/tick-{index}/status", {"status": status})
        found = await client.until(JOBS, _count(1))
        assert _names(found) == ["tick-2"]
        shown = await client.until(
            f"{CRON_JOBS}/tick", lambda _, each: "lastSuccessfulTime" in each["status"]
        )
        assert shown["status"]["lastSuccessfulTime"] == "2024-05-03T12:00:00Z"

    _tell(story)


def test_claims_are_bound_to_volumes_that_fit_or_are_made() -> None:
    async def story(client: Client) -> None:
        await client.post(CLAIMS, {"metadata": {"name": "made"}, "spec": _CLAIM})
        made = await client.until(f"{CLAIMS}/made", _bound)
        assert made["spec"]["storageClassName"] == "standard"
        assert made["status"]["capacity"] == {"storage": "1Gi"}
        volume = await _get(client, f"{VOLUMES}/{made['spec']['volumeName']}")
        assert volume["spec"]["claimRef"]["uid"] == made["metadata"]["uid"]
        static = {**_CLAIM, "storageClassName": ""}
        await client.post(CLAIMS, {"metadata": {"name": "static"}, "spec": static})
        for name, size in (("tiny", "1Mi"), ("small", "2Gi")):
            spec = {"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
            body = {"metadata": {"name": name}, "spec": {**spec, "capacity": {"storage": size}}}
            await client.post(VOLUMES, body)
        static_claim = await client.until(f"{CLAIMS}/static", _bound)
        assert static_claim["spec"]["volumeName"] == "small"
        other = {**_CLAIM, "storageClassName": "nowhere"}
        await client.post(CLAIMS, {"metadata": {"name": "lost"}, "spec": other})
        for name in ("made", "static"):
            await client.delete(f"{CLAIMS}/{name}")
        gone = f"{VOLUMES}/{made['spec']['volumeName']}"
        await client.until(gone, lambda code, _: code == 404)
        for _ in range(600):
            found = (await client.get(VOLUMES))[1]["items"]
            phases = {each["metadata"]["name"]: each["status"]["phase"] for each in found}
            if "Released" in phases.values():
                break
            await asyncio.sleep(0.05)
        assert phases == {"small": "Released", "tiny": "Available"}
        assert (await _get(client, f"{CLAIMS}/lost"))["status"]["phase"] == "Pending"

    _tell(story)


def _bound(_: int, claim: Body) -> bool:
    return bool((claim.get("status") or {}).get("phase") == "Bound")


def test_a_replication_controller_replaces_its_pods() -> None:
    async def story(client: Client) -> None:
        template = {"metadata": {"labels": {"app": "a"}}, "spec": _pod_spec()}
        body = {"metadata": {"name": "old"}, "spec": {"replicas": 2, "template": template}}
        await client.post(CONTROLLERS, body)
        first = await client.until(PODS, _count(2))
        await client.delete(f"{PODS}/{_names(first)[0]}")
        await client.until(PODS, lambda _, found: len(set(_uids(found)) - set(_uids(first))) == 1)

    _tell(story)


def stateful(name: str, replicas: int, **spec: Any) -> Body:
    """A StatefulSet."""
    body = _workload(name)
    body["spec"] |= {"replicas": replicas, "serviceName": name, **spec}
    return body


def daemon(name: str) -> Body:
    """A DaemonSet."""
    return _workload(name)


def cron(name: str, **spec: Any) -> Body:
    """A CronJob of every minute."""
    template = {"spec": {**_pod_spec(), "restartPolicy": "Never"}}
    job = {"spec": {"template": template}}
    return {
        "metadata": {"name": name},
        "spec": {"schedule": "* * * * *", "jobTemplate": job, **spec},
    }


def _workload(name: str) -> Body:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": _pod_spec()}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def _pod_spec() -> Body:
    return {"containers": [{"name": "main", "image": "v1"}], "terminationGracePeriodSeconds": 0}


def _manual(owner: Body) -> Body:
    """A Job of a CronJob that was not made by its schedule."""
    metadata = owner["metadata"]
    reference = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    return {
        "metadata": {"name": f"{metadata['name']}-manual", "ownerReferences": [reference]},
        "spec": owner["spec"]["jobTemplate"]["spec"],
    }


async def _due(client: Client, name: str) -> None:
    """Let a CronJob go on, as if its last Job had been due two minutes ago."""
    before = datetime.now(UTC) - timedelta(minutes=2)
    last = before.strftime("%Y-%m-%dT%H:%M:00Z")
    await client.merge(f"{CRON_JOBS}/{name}/status", {"status": {"lastScheduleTime": last}})
    await client.merge(f"{CRON_JOBS}/{name}", {"spec": {"suspend": False}})


async def _get(client: Client, path: str) -> Body:
    body: Body = (await client.get(path))[1]
    return body


async def _bind(client: Client) -> None:
    """Bind every pod that is not, to the node that it names or to the first."""
    for pod in (await client.get(PODS))[1]["items"]:
        if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            continue
        affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        terms = required.get("nodeSelectorTerms") or [{}]
        fields = terms[0].get("matchFields") or [{"values": ["node-0"]}]
        name = pod["metadata"]["name"]
        target = {"kind": "Node", "name": fields[0]["values"][0]}
        await client.post(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})


async def _set_image(client: Client, path: str, image: str) -> None:
    change = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}]
    code, _ = await client.call("PATCH", path, change, "application/json-patch+json")
    assert code == 200


async def _images(client: Client) -> dict[str, str]:
    found = (await client.get(PODS))[1]["items"]
    return {each["metadata"]["name"]: each["spec"]["containers"][0]["image"] for each in found}


async def _until_images(client: Client, wanted: dict[str, str]) -> dict[str, str]:
    for _ in range(1200):
        await _bind(client)
        if await _images(client) == wanted:
            await _bind(client)
            return wanted
        await asyncio.sleep(0.05)
    raise AssertionError(await _images(client))


async def _nodes(client: Client) -> list[str]:
    found = (await client.get(PODS))[1]["items"]
    return sorted(each["spec"].get("nodeName", "") for each in found)


def _count(count: int) -> Callable[[int, Any], bool]:
    return lambda _, found: len(found["items"]) == count


def _ready(count: int) -> Callable[[int, Any], bool]:
    return lambda _, found: found["status"].get("readyReplicas", 0) == count


def _updated(count: int, of: int) -> Callable[[int, Any], bool]:
    """Does the status, of the spec as it is now, say that so many pods are of the new revision?"""
    return lambda _, found: (
        _observed(found)
        and found["status"].get("readyReplicas") == of
        and found["status"].get("updatedReplicas") == count
    )


def _observed(body: Body) -> bool:
    """Has the controller seen the spec as it is now? Until then, its status is an older one."""
    return bool(body["status"].get("observedGeneration") == body["metadata"]["generation"])


def _available(body: Body) -> int:
    return int(body["status"].get("numberAvailable", 0))


def _names(found: Body) -> list[str]:
    return sorted(each["metadata"]["name"] for each in found["items"])


def _uids(found: Body) -> list[str]:
    return [each["metadata"]["uid"] for each in found["items"]]


def _tell(story: Story, made: str = "1x0") -> None:
    async def tell() -> None:
        async with served(Settings(nodes=tuple(nodes(made, "none")))) as client:
            await story(client)

    asyncio.run(tell())
