"""The official client, with its classes, its watch and its dynamic half, as programs use it."""

import threading

import pytest
from kubernetes import client, dynamic, watch
from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException

from tests.cluster.api.objects import WIDGETS, pod
from tests.cluster.conftest import Unique


def _pod(name: str, **spec: object) -> client.V1Pod:
    resources = client.V1ResourceRequirements(limits={"cpu": "1", "nvidia.com/gpu": "1"})
    one = client.V1Container(name="main", image="image.invalid/main:1", resources=resources)
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels={"app": "web"}),
        spec=client.V1PodSpec(containers=[one], **spec),
    )


def test_a_pod_from_birth_to_end(kube: ApiClient, ns: str) -> None:
    core = client.CoreV1Api(kube)
    made = core.create_namespaced_pod(ns, _pod("a"))
    assert made.metadata.uid
    assert made.spec.containers[0].resources.requests == {"cpu": "1", "nvidia.com/gpu": "1"}
    target = client.V1ObjectReference(api_version="v1", kind="Node", name="n1")
    body = client.V1Binding(metadata=client.V1ObjectMeta(name="a"), target=target)
    core.create_namespaced_pod_binding("a", ns, body, _preload_content=False)
    bound = core.read_namespaced_pod("a", ns)
    assert bound.spec.node_name == "n1"
    core.patch_namespaced_pod_status("a", ns, {"status": {"phase": "Running"}})
    (running,) = core.list_namespaced_pod(ns, field_selector="status.phase=Running").items
    assert running.metadata.name == "a"
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="a", namespace=ns))
    core.create_namespaced_pod_eviction("a", ns, eviction, _preload_content=False)
    assert core.read_namespaced_pod("a", ns).metadata.deletion_grace_period_seconds == 30
    core.delete_namespaced_pod("a", ns, grace_period_seconds=0)
    with pytest.raises(ApiException) as caught:
        core.read_namespaced_pod("a", ns)
    assert (caught.value.status, caught.value.reason) == (404, "Not Found")


def test_what_is_refused_is_an_exception(kube: ApiClient, ns: str) -> None:
    core = client.CoreV1Api(kube)
    core.create_namespaced_pod(ns, _pod("a"))
    with pytest.raises(ApiException) as caught:
        core.create_namespaced_pod(ns, _pod("a"))
    assert caught.value.status == 409
    with pytest.raises(ApiException) as caught:
        core.create_namespaced_pod(ns, _pod("B!"))
    assert caught.value.status == 422


def test_a_watch(kube: ApiClient, ns: str) -> None:
    core = client.CoreV1Api(kube)
    version = core.list_namespaced_pod(ns).metadata.resource_version
    later = threading.Timer(0.2, lambda: core.create_namespaced_pod(ns, _pod("b")))
    core.create_namespaced_pod(ns, _pod("a"))
    later.start()
    seen = []
    watcher = watch.Watch()
    for event in watcher.stream(
        core.list_namespaced_pod, ns, resource_version=version, timeout_seconds=10
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 2:
            watcher.stop()
    later.join()
    assert seen == [("ADDED", "a"), ("ADDED", "b")]


def test_nodes_and_classes(kube: ApiClient, unique: Unique) -> None:
    core, scheduling = client.CoreV1Api(kube), client.SchedulingV1Api(kube)
    name = unique("node")
    status = client.V1NodeStatus(capacity={"cpu": "4"}, allocatable={"cpu": "4"})
    node = client.V1Node(metadata=client.V1ObjectMeta(name=name), status=status)
    assert core.create_node(node).status.allocatable == {"cpu": "4"}
    core.patch_node(name, {"spec": {"unschedulable": True}})
    assert core.read_node(name).spec.unschedulable is True
    high = client.V1PriorityClass(metadata=client.V1ObjectMeta(name=name), value=9)
    assert scheduling.create_priority_class(high).value == 9
    core.delete_node(name)


def test_a_deployment_is_scaled(kube: ApiClient, ns: str) -> None:
    apps = client.AppsV1Api(kube)
    labels = {"app": "web"}
    body = client.V1Deployment(
        metadata=client.V1ObjectMeta(name="web"),
        spec=client.V1DeploymentSpec(
            selector=client.V1LabelSelector(match_labels=labels),
            template=client.V1PodTemplateSpec(
                metadata=client.V1ObjectMeta(labels=labels), spec=_pod("x").spec
            ),
        ),
    )
    assert apps.create_namespaced_deployment(ns, body).spec.replicas == 1
    apps.patch_namespaced_deployment_scale("web", ns, {"spec": {"replicas": 3}})
    assert apps.read_namespaced_deployment_scale("web", ns).spec.replicas == 3


def test_a_lease_changes_hands(kube: ApiClient, ns: str) -> None:
    leases = client.CoordinationV1Api(kube)
    spec = client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=15)
    body = client.V1Lease(metadata=client.V1ObjectMeta(name="l"), spec=spec)
    mine = leases.create_namespaced_lease(ns, body)
    theirs = leases.read_namespaced_lease("l", ns)
    theirs.spec.holder_identity = "them"
    leases.replace_namespaced_lease("l", ns, theirs)
    with pytest.raises(ApiException) as caught:
        leases.replace_namespaced_lease("l", ns, mine)
    assert caught.value.status == 409


def test_custom_kinds(kube: ApiClient, ns: str) -> None:
    custom = client.CustomObjectsApi(kube)
    where = ("suite.aliquot.dev", "v1", ns, "widgets")
    body = {"apiVersion": "suite.aliquot.dev/v1", "kind": "Widget", "metadata": {"name": "a"}}
    custom.create_namespaced_custom_object(*where, {**body, "spec": {"size": 1}})
    custom.patch_namespaced_custom_object_status(*where, "a", {"status": {"phase": "Up"}})
    assert custom.get_namespaced_custom_object(*where, "a")["status"] == {"phase": "Up"}
    assert len(custom.list_namespaced_custom_object(*where)["items"]) == 1
    custom.delete_namespaced_custom_object(*where, "a")
    assert custom.list_namespaced_custom_object(*where)["items"] == []


def test_the_dynamic_client_finds_its_way(kube: ApiClient, ns: str) -> None:
    found = dynamic.DynamicClient(kube)
    pods = found.resources.get(api_version="v1", kind="Pod")
    made = pods.create(namespace=ns, body=pod(ns, "a"))
    assert made.metadata.uid
    widgets = found.resources.get(group="suite.aliquot.dev", kind=WIDGETS["spec"]["names"]["kind"])
    assert widgets.get(namespace=ns).items == []


def test_chunks(kube: ApiClient, ns: str) -> None:
    core = client.CoreV1Api(kube)
    for name in "abc":
        core.create_namespaced_pod(ns, _pod(name))
    first = core.list_namespaced_pod(ns, limit=2)
    rest = core.list_namespaced_pod(ns, limit=2, _continue=first.metadata._continue)
    assert [item.metadata.name for item in (*first.items, *rest.items)] == ["a", "b", "c"]
