"""The demo of `aliquot up --demo`: three teams that borrow from each other, and reclaim.

Each minute one team starts a Job within its min, and pods that borrowed the GPUs are preempted;
when the Job is done, the idle GPUs are borrowed again. It uses the API as any client does.
"""

import asyncio
from http import HTTPStatus
from itertools import count

from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CUSTOM, NAMESPACES, Resource
from aliquot.server.controllers.simulated_nodes import DURATION

NODES = "8x8"
"""The nodes that it is made for: 64 GPUs, as many as the mins of the teams."""

_QUOTAS = CUSTOM["elasticquotas.scheduling.x-k8s.io"]
_DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
_JOBS = Resource("batch", "v1", "jobs", "Job")
_GPU = "nvidia.com/gpu"
_TEAMS = {"research": (24, 64), "product": (24, 48), "batch": (16, 64)}
"""By team, min and max in GPUs."""
_RUNNING = (("research", "notebooks", 2), ("product", "serving", 3), ("batch", "sweep", 11))
"""Team, Deployment and replicas of four GPUs each: the last borrows what the others leave."""
_ROUNDS = (("research", "train", 4), ("product", "evaluate", 3))
"""Team, Job and pods of four GPUs each, in turn."""
_BEGIN, _ROUND, _LASTS = 20.0, 60.0, "30s"
"""Until the first Job, between Jobs, of a Job: time to see the cluster full, and full again."""


async def play(client: Client) -> None:
    """Create the teams, and start one Job after the other, until cancelled."""
    for team in _TEAMS:
        await make(client, NAMESPACES, namespace(team))
    for team, (low, high) in _TEAMS.items():
        await make(client, _QUOTAS, _quota(team, low, high))
    for team, name, pods in _RUNNING:
        await make(client, _DEPLOYMENTS, _deployment(team, name, pods))
    await asyncio.sleep(_BEGIN)
    for number in count():
        team, name, pods = _ROUNDS[number % len(_ROUNDS)]
        await make(client, _JOBS, _job(team, f"{name}-{number + 1}", pods))
        await asyncio.sleep(_ROUND)


async def make(client: Client, resource: Resource, body: Body) -> None:
    """Create an object; one that exists stays as it is."""
    try:
        await client.post(resource.path(body["metadata"].get("namespace")), body)
    except ApiError as error:
        if error.code != HTTPStatus.CONFLICT:
            raise


def namespace(name: str) -> Body:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _quota(team: str, low: int, high: int) -> Body:
    return {
        "apiVersion": _QUOTAS.api_version,
        "kind": _QUOTAS.kind,
        "metadata": {"name": team, "namespace": team},
        "spec": {"min": {_GPU: low}, "max": {_GPU: high}},
    }


def _deployment(team: str, name: str, pods: int) -> Body:
    spec = {
        "replicas": pods,
        "selector": {"matchLabels": {"app": name}},
        "template": _template(name),
    }
    about = {"name": name, "namespace": team}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": spec}


def _job(team: str, name: str, pods: int) -> Body:
    template = _template(name)
    template["metadata"]["annotations"] = {DURATION: _LASTS}
    template["spec"]["restartPolicy"] = "Never"
    spec = {
        "parallelism": pods,
        "completions": pods,
        "template": template,
        "ttlSecondsAfterFinished": 15,
    }
    about = {"name": name, "namespace": team}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": spec}


def _template(name: str) -> Body:
    container = {"name": "main", "image": name, "resources": {"limits": {_GPU: 4}}}
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "schedulerName": "aliquot",
            "terminationGracePeriodSeconds": 2,
            "containers": [container],
        },
    }
