"""The controllers of the embedded cluster and a simulation make the same pods and groups."""

import asyncio
from typing import Any

import pytest

from aliquot.dialects.nos.cards import Cards
from aliquot.json import Body
from aliquot.mirror.store import Change
from aliquot.server.app import Settings
from aliquot.simulation.world import World
from tests.build.manifests import annotated, gang_job, priority_class
from tests.dialects.manifests import read
from tests.server.client import PODS, Client, served
from tests.server.volcano import GROUPS, JOBS, asking, task

VIP = priority_class("vip", 50)
FOLDERS = {
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ReplicaSet": "/apis/apps/v1/namespaces/default/replicasets",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "Job": "/apis/batch/v1/namespaces/default/jobs",
}
NOT_IN_A_SIMULATION = {"controller-uid", "batch.kubernetes.io/controller-uid", "pod-template-hash"}
"""Labels that need a uid, or a ReplicaSet between a Deployment and its pods."""


def plain(kind: str, **spec: Any) -> Body:
    body = asking(kind, "web")
    del body["metadata"]["annotations"]
    body["spec"].update(spec)
    body["spec"]["template"]["metadata"]["annotations"] = {"note": "x"}
    return body


def gang() -> Body:
    own = task("own", 1, {"cpu": 4}, minAvailable=0)
    own["template"]["spec"]["schedulerName"] = "another"
    own["template"]["metadata"] = {"labels": {"app": "x"}, "annotations": {"note": "x"}}
    workers = task("worker", 2, {"cpu": 1})
    return gang_job("default/web", own, workers, queue="q", priorityClassName="vip")


@pytest.mark.parametrize(
    "owner",
    [
        plain("ReplicaSet"),
        plain("Job", parallelism=2, completions=4),
        plain("Job", parallelism=2, completions=4, completionMode="Indexed"),
        asking("ReplicaSet", "web"),
        asking("Deployment", "web"),
        annotated(asking("Job", "web"), queue="q"),
        gang(),
    ],
    ids=["set", "job", "indexed", "set-in-group", "deployment-in-group", "job-in-group", "volcano"],
)
def test_the_same_pods(owner: Body) -> None:
    pods, groups = simulated(owner)
    assert pods
    assert asyncio.run(served_pods(owner, len(pods))) == (pods, groups)


def simulated(owner: Body) -> tuple[list[Body], list[Body]]:
    world = World(lambda _: None, Cards())
    world.change(Change(0, (read(VIP), read(owner))))
    store = world.mirror.store.objects
    groups = [each.body for each in store.values() if each.kind == "PodGroup"]
    return compared([each.body for each in world.mirror.records.values()]), compared(groups)


async def served_pods(owner: Body, count: int) -> tuple[list[Body], list[Body]]:
    async def ask(client: Client) -> tuple[list[Body], list[Body]]:
        folder = JOBS if "volcano" in owner["apiVersion"] else FOLDERS[owner["kind"]]
        await client.post(FOLDERS["PriorityClass"], VIP)
        code, answer = await client.post(folder, owner)
        assert code == 201, answer
        found = await client.until(PODS, lambda _, pods: len(pods["items"]) == count)
        _, groups = await client.get(GROUPS)
        return compared(found["items"]), compared(groups["items"])

    async with served(Settings()) as client:
        return await ask(client)


def compared(made: list[Body]) -> list[Body]:
    """What both say of pods or groups; names, and how a Deployment owns its pods, are their own."""
    return sorted(map(_compared, made), key=repr)


def _compared(body: Body) -> Body:
    metadata, spec = body["metadata"], dict(body["spec"])
    labels = metadata.get("labels") or {}
    (owner,) = metadata["ownerReferences"]
    kept: Body = {
        "labels": {key: labels[key] for key in sorted(labels) if key not in NOT_IN_A_SIMULATION},
        "annotations": dict(sorted((metadata.get("annotations") or {}).items())),
        "owner": (owner["controller"], owner["blockOwnerDeletion"]),
    }
    if "containers" in spec:
        scheduler = spec.get("schedulerName", "default-scheduler")
        return {**kept, "scheduler": scheduler, "class": spec.get("priorityClassName")}
    defaulted = {"queue": "default", **spec}
    return {**kept, "name": metadata["name"], "spec": dict(sorted(defaulted.items()))}
