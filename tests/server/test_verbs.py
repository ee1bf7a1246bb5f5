"""What clients do to objects, and what they are told."""

import asyncio
from typing import Any

from tests.build.manifests import pod
from tests.server.client import MAPS, PODS, Client, config, served


def test_an_object_lives_and_goes() -> None:
    async def story(client: Client) -> None:
        code, made = await client.post(MAPS, config("a", x="1"))
        assert code == 201
        about = made["metadata"]
        assert about["uid"]
        assert about["creationTimestamp"]
        assert about["namespace"] == "default"
        assert "generation" not in about
        assert await client.get(f"{MAPS}/a") == (200, made)
        code, changed = await client.merge(f"{MAPS}/a", {"data": {"y": "2"}})
        assert changed["data"] == {"x": "1", "y": "2"}
        assert int(changed["metadata"]["resourceVersion"]) > int(about["resourceVersion"])
        code, again = await client.merge(f"{MAPS}/a", {"data": {"y": "2"}})
        assert again["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
        code, gone = await client.delete(f"{MAPS}/a")
        assert (code, gone["status"], gone["details"]["uid"]) == (200, "Success", about["uid"])
        code, missing = await client.get(f"{MAPS}/a")
        assert (code, missing["reason"]) == (404, "NotFound")
        assert missing["message"] == 'configmaps "a" not found'

    _tell(story)


def test_a_stale_version_is_a_conflict() -> None:
    async def story(client: Client) -> None:
        _, made = await client.post(MAPS, config("a"))
        await client.merge(f"{MAPS}/a", {"data": {"x": "1"}})
        code, refused = await client.put(f"{MAPS}/a", made)
        assert (code, refused["reason"]) == (409, "Conflict")
        del made["metadata"]["resourceVersion"]
        assert (await client.put(f"{MAPS}/a", made))[0] == 200
        code, refused = await client.post(MAPS, config("a"))
        assert (code, refused["reason"]) == (409, "AlreadyExists")

    _tell(story)


def test_racing_patches_all_count() -> None:
    async def story(client: Client) -> None:
        await client.post(MAPS, config("a"))
        keys = [f"k{number}" for number in range(50)]
        done = [client.merge(f"{MAPS}/a", {"data": {key: "1"}}) for key in keys]
        assert {code for code, _ in await asyncio.gather(*done)} == {200}
        _, found = await client.get(f"{MAPS}/a")
        assert set(found["data"]) == set(keys)

    _tell(story)


def test_of_racing_writers_with_a_version_one_wins() -> None:
    async def story(client: Client) -> None:
        _, made = await client.post(MAPS, config("a"))
        bodies = [{**made, "data": {"by": str(number)}} for number in range(20)]
        answers = await asyncio.gather(*(client.put(f"{MAPS}/a", body) for body in bodies))
        assert sorted(code for code, _ in answers) == [200] + [409] * 19

    _tell(story)


def test_lists_come_in_pages_of_one_moment() -> None:
    async def story(client: Client) -> None:
        for number in range(7):
            await client.post(MAPS, config(f"m{number}"))
        _, first = await client.get(MAPS, limit="3")
        assert first["metadata"]["remainingItemCount"] == 4
        await client.delete(f"{MAPS}/m4")
        await client.post(MAPS, config("m45"))
        names, page = [each["metadata"]["name"] for each in first["items"]], first
        while token := page["metadata"].get("continue"):
            _, page = await client.get(MAPS, **{"limit": "3", "continue": token})
            assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
            names += [each["metadata"]["name"] for each in page["items"]]
        assert names == [f"m{number}" for number in range(7)]
        code, refused = await client.get(MAPS, **{"continue": "page-long-gone"})
        assert (code, refused["reason"]) == (410, "Expired")

    _tell(story)


def test_lists_go_by_selectors() -> None:
    async def story(client: Client) -> None:
        for number in range(4):
            body = pod(f"p{number}")
            body["metadata"]["labels"] = {"half": str(number % 2)}
            await client.post(PODS, body)
        await client.post(f"{PODS}/p0/binding", {"target": {"name": "node-0"}})
        _, found = await client.get(PODS, labelSelector="half=0")
        assert [each["metadata"]["name"] for each in found["items"]] == ["p0", "p2"]
        _, found = await client.get(PODS, fieldSelector="spec.nodeName=node-0")
        assert [each["metadata"]["name"] for each in found["items"]] == ["p0"]
        _, found = await client.get(PODS, fieldSelector="spec.nodeName=,metadata.name!=p3")
        assert [each["metadata"]["name"] for each in found["items"]] == ["p1", "p2"]
        assert (await client.get(PODS, labelSelector="a in ("))[0] == 400

    _tell(story)


def test_a_pod_is_bound_once() -> None:
    async def story(client: Client) -> None:
        await client.post(PODS, pod("p"))
        target = {"target": {"kind": "Node", "name": "node-0"}}
        code, done = await client.post(f"{PODS}/p/binding", target)
        assert (code, done["status"]) == (201, "Success")
        _, found = await client.get(f"{PODS}/p")
        assert found["spec"]["nodeName"] == "node-0"
        scheduled = [each["type"] for each in found["status"]["conditions"]]
        assert scheduled == ["PodScheduled"]
        code, refused = await client.post(f"{PODS}/p/binding", target)
        assert (code, refused["reason"]) == (409, "Conflict")
        assert 'already assigned to node "node-0"' in refused["message"]

    _tell(story)


def test_finalizers_and_grace_put_a_deletion_off() -> None:
    async def story(client: Client) -> None:
        body = config("a")
        body["metadata"]["finalizers"] = ["example.com/hold"]
        await client.post(MAPS, body)
        _, left = await client.delete(f"{MAPS}/a")
        assert left["metadata"]["deletionTimestamp"]
        await client.merge(f"{MAPS}/a", {"metadata": {"finalizers": None}})
        assert (await client.get(f"{MAPS}/a"))[0] == 404
        await client.post(PODS, pod("p", nodeName="somewhere"))
        _, left = await client.delete(f"{PODS}/p", gracePeriodSeconds="20")
        assert left["metadata"]["deletionGracePeriodSeconds"] == 20
        assert (await client.get(f"{PODS}/p"))[0] == 200
        await client.delete(f"{PODS}/p", gracePeriodSeconds="0")
        assert (await client.get(f"{PODS}/p"))[0] == 404

    _tell(story)


def test_preconditions_protect_from_deleting_another() -> None:
    async def story(client: Client) -> None:
        await client.post(MAPS, config("a"))
        code, refused = await client.delete(f"{MAPS}/a", {"preconditions": {"uid": "other"}})
        assert (code, refused["reason"]) == (409, "Conflict")
        assert (await client.get(f"{MAPS}/a"))[0] == 200

    _tell(story)


def test_a_dry_run_changes_nothing() -> None:
    async def story(client: Client) -> None:
        assert (await client.post(MAPS, config("a"), dryRun="All"))[0] == 201
        assert (await client.get(f"{MAPS}/a"))[0] == 404

    _tell(story)


def test_status_and_spec_are_written_apart() -> None:
    async def story(client: Client) -> None:
        await client.post(PODS, pod("p"))
        await client.merge(f"{PODS}/p", {"status": {"phase": "Failed"}})
        _, found = await client.get(f"{PODS}/p")
        assert found["status"]["phase"] == "Pending"
        change = {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}}
        code, _ = await client.merge(f"{PODS}/p/status", change)
        _, found = await client.get(f"{PODS}/p")
        assert code == 200
        assert found["status"]["phase"] == "Running"
        assert "nodeName" not in found["spec"]

    _tell(story)


def test_nothing_without_the_token() -> None:
    async def story(client: Client) -> None:
        client.token = "wrong"
        for path in (MAPS, "/api", "/livez", "/openapi/v3", "/nowhere"):
            code, refused = await client.get(path)
            assert (code, refused["reason"]) == (401, "Unauthorized")

    _tell(story)


def test_events_are_one_thing_under_two_names() -> None:
    async def story(client: Client) -> None:
        body = {
            "metadata": {"name": "e"},
            "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
            "note": "hello",
            "reason": "Scheduled",
            "action": "Binding",
            "type": "Normal",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "aliquot",
            "reportingInstance": "one",
        }
        path = "/apis/events.k8s.io/v1/namespaces/default/events"
        code, made = await client.post(path, body)
        assert code == 201, made
        assert (made["apiVersion"], made["note"]) == ("events.k8s.io/v1", "hello")
        _, core = await client.get("/api/v1/namespaces/default/events/e")
        assert (core["apiVersion"], core["message"]) == ("v1", "hello")
        assert core["involvedObject"]["name"] == "p"

    _tell(story)


def _tell(story: Any) -> None:
    async def run() -> None:
        async with served() as client:
            await story(client)

    asyncio.run(run())
