"""kubectl, changing things: apply, create, delete, label, patch, scale, cordon, taint, drain."""

import pytest

from tests.build.manifests import container
from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.objects import (
    config_map,
    definition,
    deployment,
    node,
    path,
    path_of,
    pod,
    widget,
)
from tests.cluster.api.wire import Body, Wire
from tests.cluster.conftest import Unique


def test_apply_creates_then_leaves_then_changes(kubectl: Kubectl, api: Wire, ns: str) -> None:
    body = deployment(ns, "web", labels={"a": "1"})
    for said in ("created", "unchanged"):
        out = kubectl("apply", "-f", "-", documents=[body]).out
        assert out.strip() == f"deployment.apps/web {said}"
    body["spec"]["replicas"] = 5
    body["spec"]["template"]["spec"]["containers"].append(container("side"))
    del body["metadata"]["labels"]
    out = kubectl("apply", "-f", "-", documents=[body]).out
    assert out.strip() == "deployment.apps/web configured"
    after = api.again(body)
    assert after["spec"]["replicas"] == 5
    assert len(after["spec"]["template"]["spec"]["containers"]) == 2
    assert "labels" not in after["metadata"]
    body["spec"]["template"]["spec"]["containers"].pop(0)
    kubectl("apply", "-f", "-", documents=[body])
    (left,) = api.again(body)["spec"]["template"]["spec"]["containers"]
    assert left["name"] == "side"


def test_apply_several(kubectl: Kubectl, ns: str) -> None:
    documents = [config_map(ns, "c"), pod(ns, "p"), widget(ns, "w")]
    for said in ("created", "unchanged"):
        rows = kubectl("apply", "-f", "-", documents=documents).rows
        assert rows == [
            ["configmap/c", said],
            ["pod/p", said],
            ["widget.suite.aliquot.dev/w", said],
        ]


def test_apply_a_custom_kind(kubectl: Kubectl, api: Wire, ns: str) -> None:
    body = widget(ns, "w", tags=["a"])
    kubectl("apply", "-f", "-", documents=[body])
    body["spec"] = {"size": 4}
    assert "configured" in kubectl("apply", "-f", "-", documents=[body]).out
    spec = api.again(body)["spec"]
    assert spec["size"] == 4
    assert "tags" not in spec


def test_apply_what_is_wrong(kubectl: Kubectl, ns: str) -> None:
    ran = kubectl.run("apply", "-f", "-", documents=[pod(ns, "p", flavour="sweet")])
    assert ran.code == 1
    assert 'strict decoding error: unknown field "spec.flavour"' in ran.err
    ran = kubectl.run("apply", "-f", "-", documents=[widget(ns, "w", size=0)])
    assert 'The Widget "w" is invalid: spec.size' in ran.err
    ran = kubectl.run("apply", "-f", "-", documents=[{"apiVersion": "no.such/v1", "kind": "X"}])
    assert ran.code == 1


def test_apply_prunes_nothing_of_others(kubectl: Kubectl, api: Wire, ns: str) -> None:
    body = config_map(ns, "c", data={"mine": "1"})
    kubectl("apply", "-f", "-", documents=[body])
    api.patch(path_of(body), {"data": {"theirs": "2"}}).done()
    body["data"] = {"mine": "3"}
    kubectl("apply", "-f", "-", documents=[body])
    assert api.again(body)["data"] == {"mine": "3", "theirs": "2"}


def test_dry_run(kubectl: Kubectl, api: Wire, ns: str) -> None:
    body = pod(ns, "p")
    out = kubectl("apply", "--dry-run=server", "-f", "-", documents=[body]).out
    assert out.strip() == "pod/p created (server dry run)"
    assert api.gone(body)


def test_diff(kubectl: Kubectl, ns: str) -> None:
    body = config_map(ns, "c")
    kubectl("apply", "-f", "-", documents=[body])
    assert kubectl("diff", "-f", "-", documents=[body]).out == ""
    ran = kubectl.run("diff", "-f", "-", documents=[{**body, "data": {"key": "new"}}])
    assert ran.code == 1
    assert "+  key: new" in ran.out


def test_create(kubectl: Kubectl, ns: str) -> None:
    body = pod(ns, "p")
    assert kubectl("create", "-f", "-", documents=[body]).out.strip() == "pod/p created"
    ran = kubectl.run("create", "-f", "-", documents=[body])
    assert ran.code == 1
    assert '(AlreadyExists): error when creating "STDIN": pods "p" already exists' in ran.err


def test_create_by_words(kubectl: Kubectl, api: Wire, ns: str, unique: Unique) -> None:
    name = unique("made")
    kubectl("create", "namespace", name)
    kubectl("create", "configmap", "c", "--from-literal=a=b")
    kubectl("create", "deployment", "d", "--image=image.invalid/a:1", "--replicas=1")
    kubectl("create", "quota", "q", "--hard=pods=30")
    kubectl("create", "priorityclass", name, "--value=5")
    kubectl("run", "r", "--image=image.invalid/a:1")
    assert api.get(path("ConfigMap", ns, "c")).done()["data"] == {"a": "b"}
    assert api.get(path("Deployment", ns, "d")).done()["spec"]["replicas"] == 1
    assert api.get(path("Pod", ns, "r")).done()["metadata"]["labels"] == {"run": "r"}


def test_replace(kubectl: Kubectl, api: Wire, ns: str) -> None:
    body = config_map(ns, "c")
    api.made(body)
    body["data"] = {"b": "2"}
    assert "replaced" in kubectl("replace", "-f", "-", documents=[body]).out
    assert api.again(body)["data"] == {"b": "2"}


def test_delete(kubectl: Kubectl, api: Wire, ns: str) -> None:
    for name in "abc":
        api.made(pod(ns, name, labels={"l": name}))
    assert kubectl("delete", "pod", "a").out.startswith('pod "a" deleted')
    kubectl("delete", "pods", "-l", "l=b")
    kubectl("delete", "-f", "-", documents=[pod(ns, "c")])
    assert api.get(path("Pod", ns)).done()["items"] == []
    assert kubectl.run("delete", "pod", "a").code == 1
    kubectl("delete", "pod", "a", "--ignore-not-found")


def test_delete_all_at_once(kubectl: Kubectl, api: Wire, ns: str) -> None:
    for name in "ab":
        api.made(pod(ns, name, nodeName="n1"))
    kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    assert api.get(path("Pod", ns)).done()["items"] == []


def test_delete_waits(kubectl: Kubectl, api: Wire, ns: str) -> None:
    made = api.made(config_map(ns, "held", finalizers=["suite/hold"]))
    ran = kubectl.run("delete", "configmap", "held", "--timeout=1s")
    assert ran.code == 1
    api.patch(path_of(made), {"metadata": {"finalizers": None}}).done()
    kubectl("wait", "--for=delete", "configmap/held", "--timeout=60s")


def test_label_and_annotate(kubectl: Kubectl, api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "p", labels={"a": "1", "b": "2"}))
    assert kubectl("label", "pod", "p", "c=3", "b-").out.strip() == "pod/p labeled"
    assert kubectl("annotate", "pod", "p", "suite/note=hello").out.strip() == "pod/p annotated"
    assert kubectl.run("label", "pod", "p", "a=9").code == 1
    kubectl("label", "pod", "p", "a=9", "--overwrite")
    meta = api.again(made)["metadata"]
    assert meta["labels"] == {"a": "9", "c": "3"}
    assert meta["annotations"] == {"suite/note": "hello"}


@pytest.mark.parametrize(
    ("form", "change"),
    [
        ("merge", '{"spec":{"replicas":7}}'),
        ("json", '[{"op":"replace","path":"/spec/replicas","value":7}]'),
        ("strategic", '{"spec":{"replicas":7}}'),
    ],
)
def test_patch(kubectl: Kubectl, api: Wire, ns: str, form: str, change: str) -> None:
    made = api.made(deployment(ns, "web"))
    kubectl("patch", "deployment", "web", f"--type={form}", "-p", change)
    assert api.again(made)["spec"]["replicas"] == 7
    again = kubectl("patch", "deployment", "web", f"--type={form}", "-p", change)
    assert again.out.strip() == "deployment.apps/web patched (no change)"


def test_patch_a_status(kubectl: Kubectl, api: Wire, ns: str) -> None:
    made = api.made(widget(ns, "w"))
    words = ["--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Up"}}']
    kubectl("patch", "widget", "w", *words)
    assert api.again(made)["status"] == {"phase": "Up"}


def test_set_image(kubectl: Kubectl, api: Wire, ns: str) -> None:
    made = api.made(deployment(ns, "web"))
    kubectl("set", "image", "deployment/web", "main=image.invalid/new:2")
    spec = api.again(made)["spec"]["template"]["spec"]
    assert spec["containers"][0]["image"] == "image.invalid/new:2"


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "Widget"])
def test_scale(kubectl: Kubectl, api: Wire, ns: str, kind: str) -> None:
    made = api.made(widget(ns, "a") if kind == "Widget" else deployment(ns, "a", kind))
    assert "scaled" in kubectl("scale", f"{kind.lower()}/a", "--replicas=4").out
    assert api.again(made)["spec"]["replicas"] == 4


@pytest.fixture
def worker(api: Wire, unique: Unique) -> Body:
    return api.made(node(unique("node")))


def test_cordon(kubectl: Kubectl, api: Wire, worker: Body) -> None:
    name = worker["metadata"]["name"]
    assert kubectl("cordon", name).out.strip() == f"node/{name} cordoned"
    assert api.again(worker)["spec"]["unschedulable"] is True
    assert kubectl("get", "node", name).rows[1][1] == "Ready,SchedulingDisabled"
    kubectl("uncordon", name)
    assert "unschedulable" not in api.again(worker)["spec"]


def test_taint(kubectl: Kubectl, api: Wire, worker: Body) -> None:
    name = worker["metadata"]["name"]
    kubectl("taint", "node", name, "dedicated=gpu:NoSchedule", "other:NoExecute")
    assert {taint["key"] for taint in api.again(worker)["spec"]["taints"]} == {"dedicated", "other"}
    kubectl("taint", "node", name, "dedicated-")
    assert [taint["key"] for taint in api.again(worker)["spec"]["taints"]] == ["other"]


def test_drain(kubectl: Kubectl, api: Wire, ns: str, worker: Body) -> None:
    name = worker["metadata"]["name"]
    for pod_name in "ab":
        api.made(pod(ns, pod_name, nodeName=name, terminationGracePeriodSeconds=0))
    elsewhere = api.made(pod(ns, "c", nodeName="other"))
    refused = kubectl.run("drain", name)
    assert refused.code == 1
    assert "cannot delete Pods that declare no controller" in refused.err
    kubectl("drain", name, "--force", "--timeout=60s")
    (left,) = api.get(path("Pod", ns)).done()["items"]
    assert left["metadata"]["uid"] == elsewhere["metadata"]["uid"]
    assert "deletionTimestamp" not in left["metadata"]
    assert api.again(worker)["spec"]["unschedulable"] is True


def test_a_drain_that_a_budget_stops(kubectl: Kubectl, api: Wire, ns: str, worker: Body) -> None:
    name = worker["metadata"]["name"]
    made = api.made(pod(ns, "a", nodeName=name, labels={"app": "web"}))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    api.patch(path_of(made) + "/status", {"status": ready}).done()
    kubectl("create", "pdb", "tight", "--selector=app=web", "--min-available=1")
    counted = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    where = path("PodDisruptionBudget", ns, "tight", "status")
    api.patch(where, {"status": {**counted, "disruptionsAllowed": 0}}).done()
    ran = kubectl.run("drain", name, "--force", "--timeout=1s")
    assert ran.code == 1
    assert "Cannot evict pod as it would violate the pod's disruption budget." in ran.err
    assert "deletionTimestamp" not in api.again(made)["metadata"]


def test_a_kind_that_comes_while_kubectl_knows_others(kubectl: Kubectl, api: Wire) -> None:
    kubectl("get", "widgets")
    body = definition("comers", "Comer")
    kubectl("apply", "-f", "-", documents=[body])
    kubectl(
        "wait", "--for=condition=Established", f"crd/{body['metadata']['name']}", "--timeout=60s"
    )
    one = {"apiVersion": "suite.aliquot.dev/v1", "kind": "Comer", "metadata": {"name": "a"}}
    kubectl("apply", "--validate=false", "-f", "-", documents=[one])
    assert kubectl("get", "comers").rows[1][0] == "a"
    kubectl("delete", "crd", body["metadata"]["name"])


def test_server_side_apply(kubectl: Kubectl, api: Wire, ns: str) -> None:
    body = config_map(ns, "c", data={"a": "1"})
    out = kubectl("apply", "--server-side", "-f", "-", documents=[body]).out
    assert out.strip() == "configmap/c serverside-applied"
    body["data"] = {"b": "2"}
    kubectl("apply", "--server-side", "-f", "-", documents=[body])
    assert api.again(body)["data"] == {"b": "2"}


def test_edit_of_a_stale_object(kubectl: Kubectl, api: Wire, ns: str) -> None:
    stale = api.made(config_map(ns, "c"))
    api.patch(path_of(stale), {"data": {"key": "new"}}).done()
    ran = kubectl.run("replace", "-f", "-", documents=[stale])
    assert ran.code == 1
    assert "(Conflict)" in ran.err
    assert "the object has been modified" in ran.err
