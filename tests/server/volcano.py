"""Volcano's objects, whole enough for an API server to take."""

from typing import Any

from aliquot.json import Body
from tests.build.manifests import amounts, annotated, workload

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"


def task(name: str, replicas: int, asks: Body | None = None, **said: Any) -> Body:
    template = {"spec": {"containers": [container(asks or {})], "restartPolicy": "Never"}}
    return {"name": name, "replicas": replicas, "template": template, **said}


def container(asks: Body) -> Body:
    resources = {"requests": amounts(asks), "limits": amounts(asks)}
    return {"name": "main", "image": "none", "resources": resources}


def asking(kind: str, name: str, min_member: str = "2") -> Body:
    """An owner of two pods that asks for a group."""
    count = {"parallelism": 2} if kind == "Job" else {"replicas": 2}
    body = annotated(workload(kind, f"default/{name}", {}, **count), **{MIN_MEMBER: min_member})
    template = body["spec"]["template"]
    template["spec"]["containers"] = [container({})]
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    else:
        body["spec"]["selector"] = {"matchLabels": {"app": name}}
        template["metadata"] = {"labels": {"app": name}}
    return body


def phase(job: Body) -> str:
    """How far a Job is, by its own word."""
    return str(_state(job).get("phase", ""))


def message(job: Body) -> str:
    """What is in its way."""
    return str(_state(job).get("message", ""))


def _state(job: Body) -> Body:
    status = job.get("status")
    state: Body = status.get("state") or {} if isinstance(status, dict) else {}
    return state
