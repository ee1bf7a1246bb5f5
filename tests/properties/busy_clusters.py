"""Dumps of busy clusters: pods that run, wait and terminate, owners that replace them, sick nodes.

Objects as they are written, so that a simulation reads them as a user's. Quotas are those of one
design each, so that every policy has its own.
"""

from typing import Any

from hypothesis import strategies as st

from aliquot.json import Body
from tests.build.manifests import (
    annotated,
    budget,
    gang_job,
    node,
    pod,
    queue,
    quota,
    task,
    timeline,
    tree_quota,
    workload,
)

TEAMS = ("a", "b", "c")
TIMES = ("0s", "7s", "40s", "3m", "6m", "20m")
KNOBS: dict[str, dict[str, tuple[str | int, ...]]] = {
    "eviction": {
        "minRuntime": ("0s", "50s"),
        "holdFor": ("0s", "1s", "5m"),
        "onQuotaLowered": ("keep", "evict"),
        "quotaless": ("protected", "lowest"),
        "maxPerMinute": (0, 0, 1, 3),
        "maxShare": (0, 0, 10, 50),
    },
    "hierarchy": {"revokeAfter": ("0s", "120s"), "recycle": ("demand", "always")},
    "capacity": {"borrow": ("unusedMin", "freeCapacity")},
}


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


@st.composite
def configurations(draw: st.DrawFn) -> Body:
    knobs = {
        part: {word: draw(st.sampled_from(values)) for word, values in words.items()}
        for part, words in KNOBS.items()
    }
    return {"apiVersion": "config.aliquot.dev/v1alpha1", "kind": "Configuration", **knobs}


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Body:
    body = node(name, gpu=draw(st.integers(1, 4)), cpu=8)
    body["status"]["conditions"] = [
        {"type": "Ready", "status": draw(one_of("True", "True", "True", "False", "Unknown"))}
    ]
    return body


@st.composite
def annotations(draw: st.DrawFn) -> Body:
    keys = ("sim.aliquot.dev/duration", "sim.aliquot.dev/grace", "aliquot.dev/expected-duration")
    written = {key: draw(one_of(None, None, *TIMES)) for key in keys}
    return {key: value for key, value in written.items() if value is not None}


@st.composite
def pods(draw: st.DrawFn, name: str, node_names: list[str], made: list[Body]) -> Body:
    team = draw(st.sampled_from(TEAMS))
    body = pod(f"{team}/{name}", {"gpu": draw(st.integers(0, 3))})
    body["metadata"]["annotations"] = draw(annotations())
    body["metadata"]["labels"] = {"app": "x"}
    if draw(st.booleans()):
        body["spec"]["nodeName"] = draw(st.sampled_from(node_names))
        body["status"] = {"startTime": f"2026-01-01T0{draw(st.integers(0, 9))}:00:00Z"}
    if draw(one_of(True, False, False)):
        body["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        if draw(st.booleans()):
            body["metadata"]["deletionGracePeriodSeconds"] = draw(one_of(0, 45, 900))
    if draw(st.booleans()):
        body["spec"]["priority"] = draw(one_of(0, 5))
    of_team = [each for each in made if each["metadata"]["namespace"] == team]
    owner = draw(one_of(None, *of_team))
    if owner is not None:
        reference = {"kind": owner["kind"], "name": owner["metadata"]["name"], "controller": True}
        body["metadata"]["ownerReferences"] = [{"apiVersion": owner["apiVersion"], **reference}]
    return body


@st.composite
def owners(draw: st.DrawFn, name: str) -> Body:
    path, asks = f"{draw(st.sampled_from(TEAMS))}/{name}", {"gpu": draw(st.integers(1, 2))}
    count = draw(st.integers(1, 3))
    kind = draw(one_of("Deployment", "ReplicaSet", "StatefulSet", "Job", "Volcano Job"))
    if kind == "Volcano Job":
        body = gang_job(path, task("t", count, asks), minAvailable=draw(st.integers(1, count)))
    elif kind == "Job":
        body = workload(kind, path, asks, parallelism=count, completions=draw(one_of(None, 2, 4)))
    else:
        body = workload(kind, path, asks, replicas=count)
    return annotated(body, **draw(annotations()))


@st.composite
def quotas(draw: st.DrawFn, policy: str) -> list[Body]:
    """The quotas of the teams, of the design that the policy is for; a team may have none."""
    found = []
    for team in TEAMS:
        low, more = draw(st.integers(0, 3)), draw(one_of(None, 0, 2))
        high = None if more is None else {"gpu": low + more}
        if policy == "queues":
            found.append(queue(team, {"gpu": low}, high, weight=draw(st.integers(1, 3))))
        elif policy == "hierarchy":
            found.append(tree_quota(f"{team}/q", {"gpu": low}, high or {"gpu": 8}))
        elif draw(one_of(True, True, False)):
            found.append(quota(team, {"gpu": low}, high))
    return found


@st.composite
def changes(draw: st.DrawFn, objects: list[Body]) -> Body:
    """Nodes that get sick and well, objects that are deleted and come back."""
    steps: list[Body] = []
    there = dict.fromkeys(range(len(objects)), True)
    for at in sorted(draw(st.sets(one_of(5, 31, 90, 400), max_size=3))):
        number = draw(st.integers(0, len(objects) - 1))
        body = objects[number]
        if there[number] and draw(st.booleans()):
            named = {key: body["metadata"].get(key) for key in ("name", "namespace")}
            gone = {key: name for key, name in named.items() if name is not None}
            steps.append({"at": at, "delete": [{"kind": body["kind"], **gone}]})
            there[number] = False
            continue
        there[number] = True
        if body["kind"] == "Node":
            ready = {"type": "Ready", "status": draw(one_of("True", "False"))}
            body = {**body, "status": {**body["status"], "conditions": [ready]}}
        steps.append({"at": at, "apply": [body]})
    return timeline(*steps)


@st.composite
def dumps(draw: st.DrawFn, policy: str) -> list[Body]:
    """All objects of a busy cluster, and what changes in it."""
    node_names = [f"n{number}" for number in range(draw(st.integers(1, 3)))]
    made = [draw(owners(f"owner-{number}")) for number in range(draw(st.integers(0, 3)))]
    objects = [draw(nodes(name)) for name in node_names] + draw(quotas(policy)) + made
    count = draw(st.integers(1, 7))
    objects += [draw(pods(f"p{number}", node_names, made)) for number in range(count)]
    if policy == "queues":
        objects = [_in_queue(body) for body in objects]
    if draw(st.booleans()):
        objects.append(budget("a/x", minAvailable=draw(st.integers(0, 2))))
    return [*objects, draw(changes(objects))]


def _in_queue(body: Body) -> Body:
    """A pod or workload in the queue of its team."""
    team = body["metadata"].get("namespace")
    if body["kind"] == "Pod":
        return annotated(body, queue=team)
    if "tasks" in body.get("spec", {}):
        return {**body, "spec": {**body["spec"], "queue": team}}
    if "template" in body.get("spec", {}):
        template = annotated(body["spec"]["template"], queue=team)
        return {**body, "spec": {**body["spec"], "template": template}}
    return body
