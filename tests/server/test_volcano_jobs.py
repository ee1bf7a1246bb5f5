"""What the embedded cluster does for Volcano: pods of its Jobs, and groups that nobody wrote."""

import asyncio
from pathlib import Path
from typing import Any

from aliquot.server.app import Settings
from aliquot.server.controllers.simulated_nodes import nodes
from tests.build.manifests import GROUP_NAME, gang_job, pod_group
from tests.server.client import PODS, Client, served
from tests.server.volcano import GROUPS, JOBS, MIN_MEMBER, asking, message, phase, task

Body = dict[str, Any]
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
BATCH_JOBS = "/apis/batch/v1/namespaces/default/jobs"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def test_a_job_makes_its_group_and_the_pods_of_its_tasks() -> None:
    async def story(client: Client) -> None:
        await client.post(CLASSES, {"metadata": {"name": "vip"}, "value": 50})
        workers = task("worker", 2, {"cpu": 2}, minAvailable=1)
        job = gang_job("default/j", task("master", 1), workers, queue="q", priorityClassName="vip")
        _, made = await client.post(JOBS, job)
        found = await _count(client, 3)
        assert _names(found) == ["j-master-0", "j-worker-0", "j-worker-1"]
        pod = found["items"][1]
        labels = {
            "volcano.sh/job-name": "j",
            "volcano.sh/queue-name": "q",
            "volcano.sh/task-spec": "worker",
        }
        assert pod["metadata"]["labels"] == labels
        assert pod["metadata"]["annotations"] == {
            GROUP_NAME: "j",
            "scheduling.volcano.sh/queue-name": "q",
            "volcano.sh/task-spec": "worker",
            "volcano.sh/job-name": "j",
        }
        assert (pod["spec"]["schedulerName"], pod["spec"]["priority"]) == ("volcano", 50)
        _, group = await client.get(f"{GROUPS}/j")
        assert group["spec"] == {
            "minMember": 2,
            "minTaskMember": {"master": 1, "worker": 1},
            "minResources": {"cpu": "2"},
            "queue": "q",
            "priorityClassName": "vip",
        }
        for each in (pod, group):
            (owner,) = each["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"]) == ("Job", made["metadata"]["uid"])
            assert owner["controller"]
        told = await client.until(f"{JOBS}/j", lambda _, job: _figures(job)["pending"] == 3)
        assert _figures(told) == {"minAvailable": 2, "pending": 3, "running": 0, "succeeded": 0}

    _tell(story)


def test_the_most_important_pods_count_for_what_a_group_needs() -> None:
    async def story(client: Client) -> None:
        await client.post(CLASSES, {"metadata": {"name": "vip"}, "value": 50})
        first, second = task("small", 2, {"cpu": 1}), task("large", 2, {"cpu": 4})
        second["template"]["spec"]["priorityClassName"] = "vip"
        await client.post(JOBS, gang_job("default/j", first, second, minAvailable=2))
        group = await client.until(f"{GROUPS}/j", _there)
        assert group["spec"]["minResources"] == {"cpu": "8"}

    _tell(story)


def test_the_scheduler_of_a_job_is_that_of_its_pods_unless_they_say_otherwise() -> None:
    async def story(client: Client) -> None:
        own = task("own", 1)
        own["template"]["spec"]["schedulerName"] = "another"
        await client.post(JOBS, gang_job("default/j", task("x", 1), own, schedulerName="aliquot"))
        found = await _count(client, 2)
        said = {each["metadata"]["name"]: each["spec"]["schedulerName"] for each in found["items"]}
        assert said == {"j-own-0": "another", "j-x-0": "aliquot"}

    _tell(story)


def test_a_pod_that_goes_is_replaced_under_its_name() -> None:
    async def story(client: Client) -> None:
        await client.post(JOBS, gang_job("default/j", task("x", 2)))
        first = await _count(client, 2)
        await _run_all(client)
        await client.until(f"{JOBS}/j", lambda _, job: phase(job) == "Running")
        await client.post(f"{PODS}/j-x-0/eviction", {"metadata": {"name": "j-x-0"}})
        gone = first["items"][0]["metadata"]["uid"]
        again = await client.until(
            f"{PODS}/j-x-0", lambda code, pod: code == 200 and pod["metadata"]["uid"] != gone
        )
        assert again["metadata"]["annotations"][GROUP_NAME] == "j"
        told = await client.until(f"{JOBS}/j", lambda _, job: phase(job) == "Pending")
        assert (_figures(told)["pending"], _figures(told)["running"]) == (1, 1)

    _tell(story, 1)


def test_a_job_follows_edits() -> None:
    async def story(client: Client) -> None:
        await client.post(JOBS, gang_job("default/j", task("x", 0)))
        await client.until(f"{JOBS}/j", lambda _, job: phase(job) == "Pending")
        await client.merge(f"{JOBS}/j", {"spec": {"tasks": [task("x", 3), task("y", 1)]}})
        await _count(client, 4)
        _, job = await client.get(f"{JOBS}/j")
        job["spec"]["tasks"] = [task("x", 1), task("z", 1)]
        code, _ = await client.put(f"{JOBS}/j", job)
        assert code == 200
        await client.until(PODS, lambda _, found: _names(found) == ["j-x-0", "j-z-0"])
        await client.until(f"{GROUPS}/j", lambda _, group: group["spec"]["minMember"] == 2)

    _tell(story)


def test_a_group_follows_the_queue_of_its_job_but_not_a_queue_that_nobody_named() -> None:
    async def story(client: Client) -> None:
        await client.post(JOBS, gang_job("default/named", task("x", 2), queue="a"))
        await client.post(JOBS, gang_job("default/silent", task("x", 2)))
        await _count(client, 4)
        await client.merge(f"{GROUPS}/silent", {"spec": {"queue": "of-namespace"}})
        for name, spec in (("named", {"queue": "b"}), ("silent", {"minAvailable": 1})):
            await client.merge(f"{JOBS}/{name}", {"spec": spec})
        await client.until(f"{GROUPS}/named", lambda _, group: group["spec"]["queue"] == "b")
        group = await client.until(f"{GROUPS}/silent", lambda _, o: o["spec"]["minMember"] == 1)
        assert group["spec"]["queue"] == "of-namespace"

    _tell(story)


def test_many_pods_come_in_several_goes() -> None:
    async def story(client: Client) -> None:
        await client.post(JOBS, gang_job("default/j", task("x", 150), task("y", 100)))
        await _count(client, 250)
        await client.until(f"{JOBS}/j", lambda _, job: _figures(job)["pending"] == 250)

    _tell(story)


def test_a_job_of_before_a_restart_gets_its_pods(tmp_path: Path) -> None:
    async def run() -> None:
        async with served(Settings(data=tmp_path, controllers=False)) as client:
            await client.post(JOBS, gang_job("default/j", task("x", 2)))
            await client.post(SETS, asking("ReplicaSet", "web"))
        async with served(Settings(data=tmp_path)) as client:
            await _count(client, 4)
            assert _names((await client.get(GROUPS))[1]) == ["j", "podgroup-web"]

    asyncio.run(run())


def test_without_the_kind_of_groups_there_are_pods_all_the_same() -> None:
    async def story(client: Client) -> None:
        await client.delete(f"{DEFINITIONS}/podgroups.scheduling.volcano.sh")
        await client.until(GROUPS, lambda code, _: code == 404)
        await client.post(JOBS, gang_job("default/j", task("x", 2)))
        await _count(client, 2)
        await client.delete(f"{DEFINITIONS}/jobs.batch.volcano.sh")
        await client.until(PODS, lambda _, found: not found["items"])

    _tell(story)


def test_a_job_completes_and_expires() -> None:
    async def story(client: Client) -> None:
        short = task("x", 2)
        short["template"]["metadata"] = {"annotations": {"sim.aliquot.dev/duration": "1s"}}
        await client.post(JOBS, gang_job("default/j", short, ttlSecondsAfterFinished=2))
        await _count(client, 2)
        await _run_all(client)
        done = await client.until(f"{JOBS}/j", lambda _, job: phase(job) == "Completed")
        assert _figures(done) == {"minAvailable": 2, "pending": 0, "running": 0, "succeeded": 2}
        await client.delete(f"{PODS}/j-x-0")
        await client.until(f"{JOBS}/j", lambda code, _: code == 404)
        for path in (PODS, GROUPS):
            await client.until(path, lambda _, found: not found["items"])

    _tell(story, 1)


def test_a_pod_that_failed_is_counted_and_not_tried_again() -> None:
    async def story(client: Client) -> None:
        await client.post(JOBS, gang_job("default/j", task("x", 2), minAvailable=1))
        await client.post(JOBS, gang_job("default/k", task("x", 2)))
        await _count(client, 4)
        for name in ("j-x-0", "k-x-0"):
            await client.merge(f"{PODS}/{name}/status", {"status": {"phase": "Failed"}})
        told = await client.until(f"{JOBS}/j", lambda _, job: _figures(job).get("failed") == 1)
        assert (phase(told), _figures(told)["pending"]) == ("Pending", 1)
        for name in ("j-x-1", "k-x-1"):
            await client.merge(f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}})
        await client.until(f"{JOBS}/j", lambda _, job: phase(job) == "Completed")
        await client.until(f"{JOBS}/k", lambda _, job: phase(job) == "Failed")

    _tell(story)


def test_a_job_takes_its_pods_and_its_group_along_and_can_come_again() -> None:
    async def story(client: Client) -> None:
        job = gang_job("default/j", task("x", 2))
        await client.post(JOBS, job)
        first = await _count(client, 2)
        await client.delete(f"{JOBS}/j")
        _, again = await client.post(JOBS, job)
        uid = again["metadata"]["uid"]

        def of_the_new_one(_: int, found: Body) -> bool:
            owners = [each["metadata"]["ownerReferences"][0]["uid"] for each in found["items"]]
            return bool(owners) and set(owners) == {uid}

        await client.until(GROUPS, of_the_new_one)
        found = await client.until(
            PODS, lambda code, found: of_the_new_one(code, found) and len(found["items"]) == 2
        )
        assert not {_uid(each) for each in first["items"]} & {_uid(each) for each in found["items"]}
        await client.delete(f"{JOBS}/j")
        for path in (PODS, GROUPS):
            await client.until(path, lambda _, found: not found["items"])

    _tell(story)


def test_a_job_says_what_is_in_its_way() -> None:
    async def story(client: Client) -> None:
        await client.post(JOBS, gang_job("default/twice", task("x", 1), task("x", 1)))
        await client.post(JOBS, gang_job("default/odd", task("Upper", 1)))
        await client.post(JOBS, gang_job("default/much", task("x", 1), minAvailable=2))
        await client.post(JOBS, gang_job("default/vip", task("x", 1), priorityClassName="vip"))
        for name, word in {
            "twice": "spec.tasks[1].name: 'x' stands here already",
            "odd": "odd-Upper-0",
            "much": "spec.minAvailable: 2 is not between 0 and the 1 pods of its tasks",
            "vip": "there is no PriorityClass vip",
        }.items():
            told = await client.until(f"{JOBS}/{name}", lambda _, job: message(job))
            assert word in message(told)
            assert phase(told) == "Pending"
        assert (await client.get(PODS))[1]["items"] == []
        await client.post(CLASSES, {"metadata": {"name": "vip"}, "value": 50})
        await client.until(f"{JOBS}/vip", lambda _, job: not message(job))
        assert _names((await client.get(PODS))[1]) == ["vip-x-0"]

    _tell(story)


def test_a_group_that_somebody_wrote_is_used_as_it_is() -> None:
    async def story(client: Client) -> None:
        await client.post(GROUPS, pod_group("default/j", minMember=1))
        await client.post(JOBS, gang_job("default/j", task("x", 2)))
        await _count(client, 2)
        _, group = await client.get(f"{GROUPS}/j")
        assert group["spec"]["minMember"] == 1
        await client.delete(f"{GROUPS}/j")
        await client.delete(f"{PODS}/j-x-0")
        made = await client.until(f"{GROUPS}/j", _there)
        assert made["spec"]["minMember"] == 2

    _tell(story)


def test_a_group_of_ours_that_is_deleted_is_made_again() -> None:
    async def story(client: Client) -> None:
        await client.post(JOBS, gang_job("default/j", task("x", 2)))
        first = await client.until(f"{GROUPS}/j", _there)
        await client.delete(f"{GROUPS}/j")
        await client.until(f"{GROUPS}/j", lambda code, o: code == 200 and _uid(o) != _uid(first))

    _tell(story)


def test_owners_that_ask_for_a_group_get_one_with_all_their_pods_in_it() -> None:
    async def story(client: Client) -> None:
        for path, kind, name in (
            (DEPLOYMENTS, "Deployment", "web"),
            (SETS, "ReplicaSet", "alone"),
            (BATCH_JOBS, "Job", "work"),
        ):
            code, made = await client.post(path, asking(kind, name))
            assert code == 201, made
        found = await _count(client, 6)
        groups = ["podgroup-alone", "podgroup-web", "podgroup-work"]
        said = [each["metadata"]["annotations"][GROUP_NAME] for each in found["items"]]
        assert sorted(said) == sorted(groups * 2)
        _, there = await client.get(GROUPS)
        assert _names(there) == groups
        assert {each["spec"]["minMember"] for each in there["items"]} == {2}
        await client.delete(f"{DEPLOYMENTS}/web")
        await client.until(GROUPS, lambda _, found: _names(found) == [groups[0], groups[2]])

    _tell(story)


def test_a_group_that_is_asked_for_no_more_goes() -> None:
    async def story(client: Client) -> None:
        await client.post(DEPLOYMENTS, asking("Deployment", "web"))
        await client.until(f"{GROUPS}/podgroup-web", _there)
        more = {"metadata": {"annotations": {MIN_MEMBER: "3"}}}
        await client.merge(f"{DEPLOYMENTS}/web", more)
        await client.until(f"{GROUPS}/podgroup-web", lambda _, o: o["spec"]["minMember"] == 3)
        less = {"metadata": {"annotations": {MIN_MEMBER: None}}}
        await client.merge(f"{DEPLOYMENTS}/web", less)
        await client.until(f"{GROUPS}/podgroup-web", lambda code, _: code == 404)

    _tell(story)


def test_a_wish_for_a_group_that_makes_no_sense_is_told() -> None:
    async def story(client: Client) -> None:
        await client.post(SETS, asking("ReplicaSet", "web", "many"))
        told = await client.until(f"{SETS}/web", lambda _, o: o["status"].get("conditions"))
        assert "'many' is no whole number" in told["status"]["conditions"][0]["message"]
        assert (await client.get(PODS))[1]["items"] == []

    _tell(story)


async def _count(client: Client, number: int) -> Any:
    return await client.until(PODS, lambda _, found: len(found["items"]) == number)


async def _run_all(client: Client) -> None:
    """What a scheduler would do."""
    _, found = await client.get(PODS, fieldSelector="spec.nodeName=")
    for name in _names(found):
        await client.post(f"{PODS}/{name}/binding", {"target": {"name": "node-0"}})


def _names(found: Body) -> list[str]:
    return [each["metadata"]["name"] for each in found["items"]]


def _uid(body: Body) -> str:
    return str(body["metadata"]["uid"])


def _there(code: int, _: object) -> bool:
    return code == 200


def _figures(job: Body) -> Body:
    status = job.get("status") or {}
    return {"pending": 0, **{key: value for key, value in status.items() if key != "state"}}


def _tell(story: Any, count: int = 0) -> None:
    async def run() -> None:
        given = tuple(nodes(f"{count}x8", "NVIDIA-A100-SXM4-80GB"))
        async with served(Settings(nodes=given)) as client:
            await story(client)

    asyncio.run(run())
