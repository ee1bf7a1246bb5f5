"""What moves by itself: workloads, owners, namespaces, quotas, budgets, simulated nodes."""

import asyncio
from typing import Any

from aliquot.server.app import Settings
from aliquot.server.controllers.simulated_nodes import nodes
from tests.build.manifests import pod
from tests.server.client import MAPS, PODS, Client, config, served

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"


def test_a_deployment_makes_replaces_scales_and_takes_along() -> None:
    async def story(client: Client) -> None:
        await client.post(DEPLOYMENTS, _workload("web", 3))
        first = await client.until(PODS, lambda _, found: len(found["items"]) == 3)
        await client.delete(f"{PODS}/{first['items'][0]['metadata']['name']}")
        await client.until(PODS, lambda _, found: _names(found) != _names(first))
        await client.until(PODS, lambda _, found: len(found["items"]) == 3)
        code, _ = await client.merge(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 1}})
        assert code == 200
        await client.until(PODS, lambda _, found: len(found["items"]) == 1)
        await client.delete(f"{DEPLOYMENTS}/web")
        await client.until(SETS, lambda _, found: not found["items"])
        await client.until(PODS, lambda _, found: not found["items"])

    _tell(story)


def test_a_new_template_rolls_out() -> None:
    async def story(client: Client) -> None:
        await client.post(DEPLOYMENTS, _workload("web", 2))
        await client.until(PODS, lambda _, found: len(found["items"]) == 2)
        await _bind_all(client)
        await client.until(f"{DEPLOYMENTS}/web", _available(2))
        change = [
            {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "v2"}
        ]
        await client.call("PATCH", f"{DEPLOYMENTS}/web", change, "application/json-patch+json")
        for _ in range(40):
            await _bind_all(client)
            _, found = await client.get(PODS)
            images = [each["spec"]["containers"][0]["image"] for each in found["items"]]
            if images == ["v2", "v2"]:
                break
            await asyncio.sleep(0.1)
        assert images == ["v2", "v2"]
        done = await client.until(f"{DEPLOYMENTS}/web", _available(2))
        assert done["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"

    _tell(story, 2)


def test_a_job_ends_when_its_pods_have() -> None:
    async def story(client: Client) -> None:
        job = _workload("train", 1)
        template = job["spec"]["template"]
        template["metadata"]["annotations"] = {"sim.aliquot.dev/duration": "1s"}
        template["spec"]["restartPolicy"] = "Never"
        job["spec"] = {"completions": 2, "parallelism": 2, "template": template}
        code, made = await client.post(JOBS, job)
        assert code == 201, made
        await client.until(PODS, lambda _, found: len(found["items"]) == 2)
        await _bind_all(client)
        done = await client.until(f"{JOBS}/train", lambda _, job: _condition(job, "Complete"))
        assert done["status"]["succeeded"] == 2
        assert "active" not in done["status"]

    _tell(story, 1)


def test_a_work_queue_waits_for_all_its_pods() -> None:
    async def story(client: Client) -> None:
        job = _workload("train", 1)
        template = job["spec"]["template"]
        template["spec"]["restartPolicy"] = "Never"
        job["spec"] = {"parallelism": 2, "template": template}
        await client.post(JOBS, job)
        found = await client.until(PODS, lambda _, found: len(found["items"]) == 2)
        first, second = (f"{PODS}/{each['metadata']['name']}" for each in found["items"])
        await client.merge(f"{first}/status", {"status": {"phase": "Succeeded"}})
        told = await client.until(
            f"{JOBS}/train", lambda _, job: job["status"].get("succeeded") == 1
        )
        assert (told["status"]["active"], _condition(told, "Complete")) == (1, False)
        await client.merge(f"{second}/status", {"status": {"phase": "Succeeded"}})
        done = await client.until(f"{JOBS}/train", lambda _, job: _condition(job, "Complete"))
        assert done["status"]["succeeded"] == 2
        _, found = await client.get(PODS)
        assert len(found["items"]) == 2

    _tell(story)


def test_pods_run_on_simulated_nodes_and_stop_with_grace() -> None:
    async def story(client: Client) -> None:
        await client.post(PODS, pod("p"))
        await client.post(f"{PODS}/p/binding", {"target": {"name": "node-0"}})
        running = await client.until(f"{PODS}/p", lambda _, found: _phase(found) == "Running")
        assert running["status"]["containerStatuses"][0]["ready"]
        await client.delete(f"{PODS}/p")
        assert (await client.get(f"{PODS}/p"))[1]["metadata"]["deletionTimestamp"]
        await client.until(f"{PODS}/p", lambda code, _: code == 404)
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        await client.until(leases, lambda _, found: _names(found) == ["node-0"])

    _tell(story, 1)


def test_a_namespace_goes_with_all_that_is_in_it() -> None:
    async def story(client: Client) -> None:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
        await client.until("/api/v1/namespaces/team/serviceaccounts/default", _there)
        await client.post("/api/v1/namespaces/team/configmaps", config("a"))
        _, left = await client.delete("/api/v1/namespaces/team")
        assert left["status"]["phase"] == "Terminating"
        code, refused = await client.post("/api/v1/namespaces/team/configmaps", config("b"))
        assert (code, refused["reason"]) in ((403, "Forbidden"), (404, "NotFound"))
        await client.until("/api/v1/namespaces/team", lambda code, _: code == 404)
        assert (await client.get("/api/v1/namespaces/team/configmaps"))[1]["items"] == []

    _tell(story)


def test_owners_can_wait_for_what_they_own_or_leave_it_behind() -> None:
    async def story(client: Client) -> None:
        for policy in ("Foreground", "Orphan"):
            _, owner = await client.post(MAPS, config("owner"))
            owned = config("owned")
            owned["metadata"]["ownerReferences"] = [_reference(owner)]
            owned["metadata"]["finalizers"] = ["example.com/hold"]
            await client.post(MAPS, owned)
            await client.delete(f"{MAPS}/owner", {"propagationPolicy": policy})
            if policy == "Foreground":
                await client.until(
                    f"{MAPS}/owned", lambda _, o: "deletionTimestamp" in o["metadata"]
                )
                assert (await client.get(f"{MAPS}/owner"))[0] == 200
                await client.merge(f"{MAPS}/owned", {"metadata": {"finalizers": None}})
                await client.until(f"{MAPS}/owned", lambda code, _: code == 404)
            await client.until(f"{MAPS}/owner", lambda code, _: code == 404)
        _, left = await client.get(f"{MAPS}/owned")
        assert "ownerReferences" not in left["metadata"]
        assert "deletionTimestamp" not in left["metadata"]

    _tell(story)


def test_a_quota_is_never_exceeded_however_many_come_at_once() -> None:
    async def story(client: Client) -> None:
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5", "requests.cpu": "3"}}}
        await client.post(QUOTAS, quota)
        resources = {"resources": {"requests": {"cpu": "500m"}}}
        bodies = [
            pod(f"p{number}", containers=[{"name": "main", "image": "none", **resources}])
            for number in range(20)
        ]
        answers = await asyncio.gather(*(client.post(PODS, body) for body in bodies))
        assert sorted(code for code, _ in answers) == [201] * 5 + [403] * 15
        refused = next(said for code, said in answers if code == 403)
        assert "exceeded quota: q, requested: pods=1, used: pods=5" in refused["message"]
        used = {"pods": "5", "requests.cpu": "2500m"}
        await client.until(f"{QUOTAS}/q", lambda _, found: found["status"].get("used") == used)
        code, refused = await client.post(PODS, pod("silent"))
        assert (code, "must specify requests.cpu" in refused["message"]) == (403, True)

    _tell(story)


def test_evictions_keep_to_the_budget_however_many_come_at_once() -> None:
    async def story(client: Client) -> None:
        budget = {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}}
        await client.post(BUDGETS, {"metadata": {"name": "b"}, "spec": budget})
        for number in range(5):
            body = pod(f"p{number}")
            body["metadata"]["labels"] = {"app": "web"}
            await client.post(PODS, body)
        await _bind_all(client)
        await client.until(
            f"{BUDGETS}/b", lambda _, found: found["status"]["disruptionsAllowed"] == 2
        )
        asked = [
            client.post(f"{PODS}/p{number}/eviction", {"metadata": {"name": f"p{number}"}})
            for number in range(5)
        ]
        answers = await asyncio.gather(*asked)
        assert sorted(code for code, _ in answers) == [201, 201, 429, 429, 429]
        refused = next(said for code, said in answers if code == 429)
        assert refused["reason"] == "TooManyRequests"
        assert refused["details"]["causes"][0]["reason"] == "DisruptionBudget"

    _tell(story, 1)


def _workload(name: str, replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod(name)["spec"]}
    selector = {"matchLabels": {"app": name}}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


async def _bind_all(client: Client) -> None:
    """What a scheduler would do."""
    _, found = await client.get(PODS, fieldSelector="spec.nodeName=")
    for each in found["items"]:
        name = each["metadata"]["name"]
        await client.post(f"{PODS}/{name}/binding", {"target": {"name": "node-0"}})


def _reference(owner: dict[str, Any]) -> dict[str, Any]:
    about = owner["metadata"]
    kind = {"apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": True}
    return {**kind, "name": about["name"], "uid": about["uid"]}


def _names(found: dict[str, Any]) -> list[str]:
    return [each["metadata"]["name"] for each in found["items"]]


def _there(code: int, _: object) -> bool:
    return code == 200


def _phase(found: dict[str, Any]) -> str:
    return str(found["status"]["phase"])


def _condition(found: dict[str, Any], word: str) -> bool:
    conditions = found["status"].get("conditions") or ()
    return any(each["type"] == word and each["status"] == "True" for each in conditions)


def _available(count: int) -> Any:
    def ready(_: int, found: dict[str, Any]) -> bool:
        status, generation = found["status"], found["metadata"]["generation"]
        told = [status.get(key) for key in ("availableReplicas", "updatedReplicas")]
        return told == [count, count] and bool(status["observedGeneration"] == generation)

    return ready


def _tell(story: Any, count: int = 0) -> None:
    async def run() -> None:
        given = tuple(nodes(f"{count}x8", "NVIDIA-A100-SXM4-80GB"))
        async with served(Settings(nodes=given)) as client:
            await story(client)

    asyncio.run(run())


def test_a_budget_without_a_spec_covers_nothing_and_is_looked_after() -> None:
    async def story() -> None:
        async with served() as client:
            budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
            code, made = await client.post(budgets, {"metadata": {"name": "b"}})
            assert code == 201
            assert made["spec"] == {}
            found = await client.until(
                f"{budgets}/b", lambda _, body: body["status"].get("conditions")
            )
            assert found["status"]["expectedPods"] == 0

    asyncio.run(story())
