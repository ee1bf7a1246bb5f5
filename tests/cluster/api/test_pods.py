"""Pods: what the server fills in, what stays as it was, who may write the status."""

from typing import Any

import pytest

from tests.build.manifests import container, priority_class
from tests.cluster.api.objects import config_map, job, node, path, path_of, pod, resource_quota
from tests.cluster.api.wire import Body, Wire
from tests.cluster.conftest import Unique


def test_what_is_not_said_is_filled_in(api: Wire, ns: str) -> None:
    spec = api.made(pod(ns, "a"))["spec"]
    wanted = {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "enableServiceLinks": True,
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "securityContext": {},
    }
    assert {key: spec.get(key) for key in wanted} == wanted
    (one,) = spec["containers"]
    assert one["imagePullPolicy"] == "IfNotPresent"
    assert one["resources"] == {}
    assert one["terminationMessagePath"] == "/dev/termination-log"


@pytest.mark.parametrize(
    ("image", "policy"), [("a", "Always"), ("a:latest", "Always"), ("a:1", "IfNotPresent")]
)
def test_when_images_are_pulled(api: Wire, ns: str, image: str, policy: str) -> None:
    made = api.made(pod(ns, "a", containers=[{"name": "a", "image": image}]))
    assert made["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_parts_of_a_container_are_filled_in_too(api: Wire, ns: str) -> None:
    probed = container(
        livenessProbe={"httpGet": {"port": 80}},
        env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    )
    volumes = [{"name": "c", "configMap": {"name": "c"}}]
    spec = api.made(pod(ns, "a", containers=[probed], volumes=volumes))["spec"]
    (one,) = spec["containers"]
    assert one["livenessProbe"] == {
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert one["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert spec["volumes"][0]["configMap"] == {"name": "c", "defaultMode": 420}


def test_a_job_names_its_pods(api: Wire, ns: str) -> None:
    made = api.made(job(ns, "a"))
    labels = {
        "batch.kubernetes.io/controller-uid": made["metadata"]["uid"],
        "batch.kubernetes.io/job-name": "a",
        "controller-uid": made["metadata"]["uid"],
        "job-name": "a",
    }
    assert made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["metadata"]["labels"] == labels
    assert (made["spec"]["parallelism"], made["spec"]["completions"]) == (1, 1)
    assert made["spec"]["backoffLimit"] == 6


def test_tolerations_of_every_pod(api: Wire, ns: str) -> None:
    tolerations = api.made(pod(ns, "a"))["spec"]["tolerations"]
    assert tolerations == [
        {
            "key": f"node.kubernetes.io/{trouble}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for trouble in ("not-ready", "unreachable")
    ]


def test_requests_follow_from_limits(api: Wire, ns: str) -> None:
    limits = {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}
    made = api.made(pod(ns, "a", resources={"limits": limits, "requests": {"cpu": "1"}}))
    resources = made["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [("1000m", "1"), ("0.5", "500m"), ("1.5", "1500m"), ("2e3", "2e3"), ("100m", "100m"), (2, "2")],
)
def test_amounts_are_kept_in_their_short_form(api: Wire, ns: str, given: Any, kept: str) -> None:
    made = api.made(pod(ns, "a", resources={"requests": {"cpu": given}}))
    assert made["spec"]["containers"][0]["resources"]["requests"]["cpu"] == kept


@pytest.mark.parametrize(("given", "kept"), [("1024Mi", "1Gi"), ("1048576", "1048576")])
def test_memory_too(api: Wire, ns: str, given: str, kept: str) -> None:
    made = api.made(pod(ns, "a", resources={"requests": {"memory": given}}))
    assert made["spec"]["containers"][0]["resources"]["requests"]["memory"] == kept


_BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": _BOTH}, "Guaranteed"),
        ({"limits": _BOTH, "requests": _BOTH}, "Guaranteed"),
        ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_the_status_of_a_new_pod(api: Wire, ns: str, resources: Body, quality: str) -> None:
    body = pod(ns, "a", resources=resources)
    body["status"] = {"phase": "Running", "podIP": "10.0.0.9"}
    assert api.made(body)["status"] == {"phase": "Pending", "qosClass": quality}


def test_a_gated_pod_says_so(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "a", schedulingGates=[{"name": "suite/wait"}]))
    (condition,) = made["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
    )


def test_gates_go_but_never_come(api: Wire, ns: str) -> None:
    gated = api.made(pod(ns, "a", schedulingGates=[{"name": "suite/a"}, {"name": "suite/b"}]))
    change: Body = {"spec": {"schedulingGates": [{"name": "suite/b"}]}}
    done = api.patch(path_of(gated), change).done()
    assert done["spec"]["schedulingGates"] == [{"name": "suite/b"}]
    change = {"spec": {"schedulingGates": [{"name": "suite/b"}, {"name": "suite/c"}]}}
    status = api.patch(path_of(gated), change).refused(422, "Invalid")
    assert status["details"]["causes"][0]["field"].startswith("spec.schedulingGates")
    done = api.patch(path_of(gated), {"spec": {"schedulingGates": None}}).done()
    assert "schedulingGates" not in done["spec"]


def test_the_priority_is_that_of_the_class(api: Wire, ns: str, unique: Unique) -> None:
    name = unique("class")
    api.made(priority_class(name, 1234, preemptionPolicy="Never"))
    spec = api.made(pod(ns, "a", priorityClassName=name))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1234, "Never")
    assert api.made(pod(ns, "b", priorityClassName=name, priority=1234))
    status = api.create(pod(ns, "c", priorityClassName=name, priority=5)).refused(403, "Forbidden")
    assert "must not be provided in pod spec" in status["message"]


def test_an_unknown_class(api: Wire, ns: str) -> None:
    status = api.create(pod(ns, "a", priorityClassName="none")).refused(403, "Forbidden")
    assert status["message"] == ('pods "a" is forbidden: no PriorityClass with name none was found')


@pytest.mark.parametrize(
    ("name", "value"),
    [("system-node-critical", 2000001000), ("system-cluster-critical", 2000000000)],
)
def test_the_systems_own_classes(api: Wire, ns: str, name: str, value: int) -> None:
    assert api.get(path("PriorityClass", "", name)).done()["value"] == value
    assert api.made(pod(ns, "a", priorityClassName=name))["spec"]["priority"] == value


def test_a_class_for_all_who_name_none(api: Wire, ns: str, unique: Unique) -> None:
    made = api.made(priority_class(unique("default"), 77, globalDefault=True))
    try:
        spec = api.made(pod(ns, "a"))["spec"]
        assert (spec["priority"], spec["priorityClassName"]) == (77, made["metadata"]["name"])
        answer = api.create(priority_class(unique("default"), 78, globalDefault=True))
        assert "already marked as default" in answer.refused(403, "Forbidden")["message"]
    finally:
        api.delete(path_of(made)).done()


@pytest.mark.parametrize(
    "change",
    [
        {"nodeName": "n2"},
        {"priority": 5},
        {"schedulerName": "other"},
        {"restartPolicy": "Never"},
        {"nodeSelector": {"a": "b"}},
        {"containers": [container(resources={"requests": {"cpu": "2"}})]},
        {"containers": [container(), container("more")]},
        {"containers": [container(command=["other"])]},
        {"tolerations": [{"key": "other", "operator": "Exists"}]},
    ],
)
def test_most_of_a_pod_stays(api: Wire, ns: str, change: Body) -> None:
    tolerations = [{"key": "mine", "operator": "Exists"}]
    made = api.made(pod(ns, "a", nodeName="n1", tolerations=tolerations))
    status = api.patch(path_of(made), {"spec": change}).refused(422, "Invalid")
    assert "spec" in {cause["field"].split(".")[0] for cause in status["details"]["causes"]}
    assert "Forbidden" in status["message"]
    assert api.again(made) == made


def test_some_of_a_pod_may_change(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "a"))
    more = [*made["spec"]["tolerations"], {"key": "more", "operator": "Exists"}]
    change = {
        "containers": [{"name": "main", "image": "image.invalid/main:2"}],
        "tolerations": more,
    }
    done = api.patch(path_of(made), {"spec": change}, "strategic").done()
    assert done["spec"]["containers"][0]["image"] == "image.invalid/main:2"
    assert len(done["spec"]["tolerations"]) == 3
    assert api.patch(path_of(made), {"spec": {"activeDeadlineSeconds": 60}}).done()


def test_the_status_of_a_pod_is_written_apart(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "a"))
    wanted = {**made, "status": {"phase": "Running"}, "spec": {**made["spec"], "nodeName": "n9"}}
    done = api.put(path_of(made) + "/status", wanted).done()
    assert done["status"]["phase"] == "Running"
    assert "nodeName" not in done["spec"]
    labelled = {**done, "status": {"phase": "Failed"}}
    labelled["metadata"] = {**done["metadata"], "labels": {"a": "b"}}
    after = api.put(path_of(made), labelled).done()
    assert after["status"]["phase"] == "Running"
    assert after["metadata"]["labels"] == {"a": "b"}


def test_the_status_is_read_apart(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "a"))
    assert api.again(made, "status") == made


def test_a_stale_status_is_refused(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "a"))
    api.patch(path_of(made) + "/status", {"status": {"phase": "Running"}}).done()
    api.put(path_of(made) + "/status", made).refused(409, "Conflict")


def test_nodes_come_with_a_status_and_keep_it_apart(api: Wire, unique: Unique) -> None:
    made = api.made(node(unique("node")))
    assert made["status"]["allocatable"]["cpu"] == "8"
    wanted = {**made, "spec": {"unschedulable": True}, "status": {}}
    done = api.put(path_of(made), wanted).done()
    assert done["spec"]["unschedulable"] is True
    assert done["status"]["allocatable"]["cpu"] == "8"
    change = {"status": {"capacity": {"cpu": "9"}}, "spec": {"unschedulable": None}}
    done = api.patch(path_of(made) + "/status", change).done()
    assert done["status"]["capacity"]["cpu"] == "9"
    assert done["spec"]["unschedulable"] is True


def test_quotas_begin_without_a_status(api: Wire, ns: str) -> None:
    body = {
        **resource_quota(ns, "q", **{"requests.cpu": "1000m"}),
        "status": {"hard": {"pods": "7"}},
    }
    made = api.made(body)
    assert "pods" not in made.get("status", {}).get("hard", {})
    assert made["spec"]["hard"] == {"requests.cpu": "1"}


def test_kinds_without_a_status_have_none_to_write(api: Wire, ns: str) -> None:
    made = api.made(config_map(ns, "a"))
    assert api.put(path_of(made) + "/status", made).code == 404


def test_a_scheduler_may_have_any_name(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "a", schedulerName="Peaks"))
    assert made["spec"]["schedulerName"] == "Peaks"
