"""Tables: what kubectl shows of each kind, durations and all."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from aliquot.dialects.crds import DEFINITIONS
from aliquot.server.rendering import json_paths
from aliquot.server.rendering.columns import selector_text
from aliquot.server.rendering.durations import human
from aliquot.server.rendering.tables import table

NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)
Body = dict[str, Any]


def ago(**parts: int) -> str:
    return (NOW - timedelta(**parts)).strftime("%Y-%m-%dT%H:%M:%SZ")


def thing(**parts: Any) -> Body:
    return {"metadata": {"name": "a", "creationTimestamp": ago(minutes=5)}, **parts}


def shown(kind: str, body: Body, columns: list[Body] | None = None) -> dict[str, Any]:
    made = table(kind, [body], NOW, columns)
    names = [each["name"] for each in made["columnDefinitions"]]
    (row,) = made["rows"]
    return dict(zip(names, row["cells"], strict=True))


def first(kind: str, body: Body, columns: list[Body] | None = None) -> list[Any]:
    """What is shown without `-o wide`."""
    made = table(kind, [body], NOW, columns)
    heads = made["columnDefinitions"]
    cells = zip(heads, made["rows"][0]["cells"], strict=True)
    return [cell for head, cell in cells if head["priority"] == 0]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (130, "2m10s"),
        (599, "9m59s"),
        (600, "10m"),
        (659, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (51 * 3600, "2d3h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (800 * 86400, "2y70d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_durations(seconds: int, text: str) -> None:
    assert human(seconds) == text


def test_a_table_is_one_kubectl_reads() -> None:
    body = thing(spec={"containers": [{}]}, status={"phase": "Pending"})
    made = table("Pod", [body, body], NOW)
    assert (made["kind"], made["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert made["columnDefinitions"][0] == {
        "name": "Name",
        "type": "string",
        "format": "name",
        "description": "",
        "priority": 0,
    }
    assert len(made["rows"]) == 2
    assert made["rows"][0]["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": body["metadata"],
    }


def test_nothing_makes_a_table_of_heads() -> None:
    made = table("Pod", [], NOW)
    assert made["rows"] == []
    assert [each["name"] for each in made["columnDefinitions"]] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
        "IP",
        "Node",
        "Nominated Node",
        "Readiness Gates",
    ]


def running(**more: Any) -> Body:
    return {"ready": True, "restartCount": 0, "state": {"running": {}}, **more}


def pod(*statuses: Body, **status: Any) -> Body:
    containers = [{"name": str(index)} for index in range(max(len(statuses), 1))]
    return thing(
        spec={"containers": containers, "nodeName": "n1"},
        status={"phase": "Running", "containerStatuses": list(statuses), **status},
    )


def test_a_running_pod() -> None:
    body = pod(running(), running(ready=False), podIPs=[{"ip": "10.0.0.1"}])
    assert shown("Pod", body) == {
        "Name": "a",
        "Ready": "1/2",
        "Status": "Running",
        "Restarts": "0",
        "Age": "5m",
        "IP": "10.0.0.1",
        "Node": "n1",
        "Nominated Node": "<none>",
        "Readiness Gates": "<none>",
    }


def test_a_waiting_pod() -> None:
    body = thing(spec={"containers": [{}]}, status={"phase": "Pending", "nominatedNodeName": "n2"})
    cells = shown("Pod", body)
    assert (cells["Ready"], cells["Status"], cells["Node"]) == ("0/1", "Pending", "<none>")
    assert cells["Nominated Node"] == "n2"


ENDED = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
FAILED = {"state": {"terminated": {"exitCode": 3}}}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (pod({"state": {"waiting": {"reason": "CrashLoopBackOff"}}}), "CrashLoopBackOff"),
        (pod(ENDED, phase="Succeeded"), "Completed"),
        (pod(FAILED, phase="Failed"), "ExitCode:3"),
        (pod({"state": {"terminated": {"signal": 9, "exitCode": 137}}}), "Signal:9"),
        (pod(phase="Failed", reason="Evicted"), "Evicted"),
        (pod(ENDED, running()), "NotReady"),
        (pod(ENDED, running(), conditions=[{"type": "Ready", "status": "True"}]), "Running"),
        (pod(ENDED, {"state": {"terminated": {"exitCode": 1, "reason": "Error"}}}), "Error"),
        (
            pod(
                phase="Pending", conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]
            ),
            "SchedulingGated",
        ),
        ({**pod(), "metadata": {"name": "a", "deletionTimestamp": ago(minutes=1)}}, "Terminating"),
        (
            {**pod(phase="Succeeded"), "metadata": {"deletionTimestamp": ago(minutes=1)}},
            "Succeeded",
        ),
        (
            {**pod(reason="NodeLost"), "metadata": {"deletionTimestamp": ago(minutes=1)}},
            "Unknown",
        ),
    ],
)
def test_the_word_for_a_pod(body: Body, word: str) -> None:
    assert shown("Pod", body)["Status"] == word


def starting(*statuses: Body, sidecar: bool = False) -> Body:
    inits = [{"name": str(index)} for index in range(len(statuses))]
    if sidecar:
        inits[0]["restartPolicy"] = "Always"
    named = [{"name": str(index), **each} for index, each in enumerate(statuses)]
    return thing(
        spec={"containers": [{"name": "main"}], "initContainers": inits},
        status={"phase": "Pending", "initContainerStatuses": named},
    )


@pytest.mark.parametrize(
    ("body", "ready", "word"),
    [
        (starting(ENDED, {"state": {"running": {}}}), "0/1", "Init:1/2"),
        (starting(FAILED), "0/1", "Init:ExitCode:3"),
        (starting({"state": {"waiting": {"reason": "ErrImagePull"}}}), "0/1", "Init:ErrImagePull"),
        (starting({"state": {"waiting": {"reason": "PodInitializing"}}}), "0/1", "Init:0/1"),
        (starting(ENDED, ENDED), "0/1", "Pending"),
        (starting({"started": True, "ready": True}, sidecar=True), "1/2", "Pending"),
    ],
)
def test_a_pod_that_is_starting(body: Body, ready: str, word: str) -> None:
    cells = shown("Pod", body)
    assert (cells["Ready"], cells["Status"]) == (ready, word)


def test_restarts_say_when_the_last_one_was() -> None:
    last = {"terminated": {"finishedAt": ago(minutes=3)}}
    body = pod(running(restartCount=2, lastState=last))
    assert shown("Pod", body)["Restarts"] == "2 (3m ago)"


def test_readiness_gates() -> None:
    body = pod(running(), conditions=[{"type": "x", "status": "True"}])
    body["spec"]["readinessGates"] = [{"conditionType": "x"}, {"conditionType": "y"}]
    assert shown("Pod", body)["Readiness Gates"] == "1/2"


def test_a_pod_that_has_ended_says_so_beside_its_row() -> None:
    (row,) = table("Pod", [pod(phase="Succeeded")], NOW)["rows"]
    assert row["conditions"][0]["reason"] == "Succeeded"
    assert "conditions" not in table("Pod", [pod()], NOW)["rows"][0]


TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "j"}]}}
READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("kind", "body", "cells"),
    [
        ("Node", thing(status={"conditions": READY}), ["a", "Ready", "<none>", "5m", ""]),
        (
            "Node",
            {
                "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/control-plane": ""}},
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "False"}],
                    "nodeInfo": {"kubeletVersion": "v1.32.0"},
                },
            },
            ["n", "NotReady,SchedulingDisabled", "control-plane", "<unknown>", "v1.32.0"],
        ),
        ("Node", thing(), ["a", "Unknown", "<none>", "5m", ""]),
        ("Namespace", thing(status={"phase": "Active"}), ["a", "Active", "5m"]),
        (
            "Deployment",
            thing(
                spec={"replicas": 3},
                status={"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
            ),
            ["a", "1/3", 2, 1, "5m"],
        ),
        (
            "ReplicaSet",
            thing(spec={"replicas": 3}, status={"replicas": 2}),
            ["a", 3, 2, 0, "5m"],
        ),
        ("StatefulSet", thing(spec={"replicas": 3}), ["a", "0/3", "5m"]),
        (
            "Job",
            thing(
                spec={"completions": 3},
                status={"succeeded": 1, "startTime": ago(minutes=4)},
            ),
            ["a", "Running", "1/3", "4m", "5m"],
        ),
        (
            "Job",
            thing(
                spec={"parallelism": 4},
                status={
                    "succeeded": 1,
                    "startTime": ago(minutes=4),
                    "completionTime": ago(minutes=1),
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            ),
            ["a", "Complete", "1/1 of 4", "3m", "5m"],
        ),
        (
            "Job",
            thing(
                spec={"parallelism": 1},
                status={"conditions": [{"type": "Suspended", "status": "True"}]},
            ),
            ["a", "Suspended", "0/1", "", "5m"],
        ),
        (
            "Event",
            thing(
                lastTimestamp=ago(seconds=30),
                type="Warning",
                reason="FailedScheduling",
                involvedObject={"kind": "Pod", "name": "train"},
                message="no room\n",
            ),
            ["30s", "Warning", "FailedScheduling", "pod/train", "no room"],
        ),
        (
            "Event",
            thing(
                eventTime=ago(seconds=50),
                series={"count": 4, "lastObservedTime": ago(seconds=10)},
                regarding={"kind": "Node"},
                note="n",
            ),
            ["10s", "", "", "node", "n"],
        ),
        ("Lease", thing(spec={"holderIdentity": "me"}), ["a", "me", "5m"]),
        ("ConfigMap", thing(data={"a": ""}, binaryData={"b": ""}), ["a", 2, "5m"]),
        ("Secret", thing(type="Opaque", data={"a": ""}), ["a", "Opaque", 1, "5m"]),
        ("ServiceAccount", thing(), ["a", "5m"]),
        (
            "PriorityClass",
            thing(value=5, preemptionPolicy="Never"),
            ["a", 5, "false", "5m", "Never"],
        ),
        (
            "PodDisruptionBudget",
            thing(spec={"minAvailable": "50%"}, status={"disruptionsAllowed": 2}),
            ["a", "50%", "N/A", 2, "5m"],
        ),
        (
            "ResourceQuota",
            thing(
                status={
                    "hard": {"limits.cpu": "4", "requests.cpu": "2", "pods": "9"},
                    "used": {"pods": "3"},
                }
            ),
            ["a", "pods: 3/9, requests.cpu: 0/2", "limits.cpu: 0/4", "5m"],
        ),
        ("ValidatingWebhookConfiguration", thing(webhooks=[{}, {}]), ["a", 2, "5m"]),
        ("MutatingWebhookConfiguration", thing(), ["a", 0, "5m"]),
        ("CustomResourceDefinition", thing(), ["a", ago(minutes=5)]),
        ("LimitRange", thing(), ["a", ago(minutes=5)]),
        (
            "Service",
            thing(spec={"type": "ClusterIP", "clusterIP": "1.2.3.4", "ports": [{"port": 80}]}),
            ["a", "ClusterIP", "1.2.3.4", "<none>", "80/TCP", "5m"],
        ),
    ],
)
def test_kinds_of_kubernetes(kind: str, body: Body, cells: list[Any]) -> None:
    assert first(kind, body) == cells


@pytest.mark.parametrize("kind", ["Pod", "Node", "Job", "Event", "ResourceQuota", "Deployment"])
def test_an_object_that_says_nothing_has_a_row_all_the_same(kind: str) -> None:
    made = table(kind, [{}], NOW)
    assert len(made["rows"][0]["cells"]) == len(made["columnDefinitions"])


def test_wide_columns_of_workloads() -> None:
    selector = {"matchLabels": {"app": "web"}}
    cells = shown("Deployment", thing(spec={"template": TEMPLATE, "selector": selector}))
    assert (cells["Containers"], cells["Images"], cells["Selector"]) == ("c,d", "i:1,j", "app=web")


def test_selectors_as_text() -> None:
    assert selector_text(None) == "<none>"
    assert selector_text({}) == "<none>"
    lines = [
        {"key": "tier", "operator": "In", "values": ["b", "a"]},
        {"key": "old", "operator": "DoesNotExist"},
        {"key": "new", "operator": "Exists"},
    ]
    text = selector_text({"matchLabels": {"app": "web"}, "matchExpressions": lines})
    assert text == "app=web,new,!old,tier in (a,b)"


BODY = {
    "metadata": {"labels": {"example.com/team": "a"}, "creationTimestamp": ago(hours=5)},
    "spec": {"min": {"memory": "1Gi", "cpu": 4}, "list": [{"n": 1}, {"n": 2}], "yes": True},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "False", "n": 1},
            {"type": "Done", "status": "True", "n": 2},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.min.cpu", [4]),
        ("spec.min.cpu", [4]),
        ("{.spec.min.cpu}", [4]),
        ("$.spec.min.cpu", [4]),
        (r".metadata.labels.example\.com/team", ["a"]),
        (".metadata.labels['example.com/team']", ["a"]),
        ('.metadata.labels["example.com/team"]', ["a"]),
        (".spec.list[0].n", [1]),
        (".spec.list[-1].n", [2]),
        (".spec.list[*].n", [1, 2]),
        (".spec.min.*", ["1Gi", 4]),
        (".spec.list[7].n", []),
        ('.status.conditions[?(@.type=="Ready")].status', ["False"]),
        (".status.conditions[?(@.type == 'Done')].status", ["True"]),
        ('.status.conditions[?(@.type!="Done")].status', ["False"]),
        (".status.conditions[?(@.n==2)].type", ["Done"]),
        ('.status.conditions[?(@.type=="Gone")].status', []),
        (".spec.nothing.there", []),
        (".spec.min.cpu.deeper", []),
        (".spec[", []),
        (".spec.list[?(@.n)]", []),
        ("", [BODY]),
    ],
)
def test_json_paths(path: str, found: list[Any]) -> None:
    assert json_paths.find(path, BODY) == found


@pytest.mark.parametrize(
    ("kind", "path", "cell"),
    [
        ("string", ".spec.min", '{"cpu":4,"memory":"1Gi"}'),
        ("string", ".spec.min.cpu", "4"),
        ("string", ".spec.yes", "true"),
        ("integer", ".spec.min.cpu", 4),
        ("integer", ".spec.min.memory", None),
        ("integer", ".spec.yes", None),
        ("number", ".spec.min.cpu", 4),
        ("boolean", ".spec.yes", True),
        ("boolean", ".spec.min.cpu", None),
        ("date", ".metadata.creationTimestamp", "5h"),
        ("date", ".spec.min.memory", "<invalid>"),
        ("date", ".spec.min.cpu", None),
        ("string", ".spec.nothing", None),
    ],
)
def test_cells_have_the_type_of_their_column(kind: str, path: str, cell: Any) -> None:
    column = {"name": "X", "type": kind, "jsonPath": path}
    assert shown("Thing.example.com", BODY, [column])["X"] == cell


def test_a_custom_kind_without_columns_shows_its_age() -> None:
    assert shown("Thing.example.com", thing(), []) == {"Name": "a", "Age": "5m"}
    assert shown("Thing.example.com", thing()) == {"Name": "a", "Age": "5m"}


def columns(kind: str, group: str) -> list[Body]:
    (found,) = [each for each in DEFINITIONS if (each.kind, each.group) == (kind, group)]
    listed: list[Body] = found.body()["spec"]["versions"][0]["additionalPrinterColumns"]
    return listed


def test_a_quota_shows_what_it_has_and_uses() -> None:
    body = thing(
        spec={"min": {"nvidia.com/gpu": 4}, "max": {"nvidia.com/gpu": "8"}},
        status={"used": {"nvidia.com/gpu": "5"}},
    )
    body["metadata"]["labels"] = {"quota.scheduling.koordinator.sh/parent": "root"}
    name = "ElasticQuota.scheduling.x-k8s.io"
    cells = shown(name, body, columns("ElasticQuota", "scheduling.x-k8s.io"))
    assert cells == {
        "Name": "a",
        "GPU Used": "5",
        "GPU Min": "4",
        "GPU Max": "8",
        **{f"{name} {word}": None for name in ("CPU", "Memory") for word in ("Used", "Min", "Max")},
        "Age": "5m",
        "Min": '{"nvidia.com/gpu":4}',
        "Max": '{"nvidia.com/gpu":"8"}',
        "Used": '{"nvidia.com/gpu":"5"}',
        "Parent": "root",
        "Runtime": None,
    }


def test_a_gpu_quota_shows_whether_it_is_ready() -> None:
    body = thing(status={"conditions": [{"type": "Ready", "status": "True"}]})
    cells = shown("GPUResourceQuota.x", body, columns("GPUResourceQuota", "tensor-fusion.ai"))
    assert cells["Ready"] == "True"
