"""kubectl apply --server-side, and what kubectl reads of OpenAPI, as users see them."""

import copy
from typing import Any

from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.objects import config_map, deployment, path_of, pod, widget
from tests.cluster.api.polling import eventually
from tests.cluster.api.test_server_side_apply import fields, owned
from tests.cluster.api.wire import Body, Wire

SERVER = ("apply", "--server-side")


def on_stdin(kubectl: Kubectl, *words: str, body: Body) -> Any:
    return kubectl.run(*words, "-f", "-", documents=[body])


def test_a_conflict_and_its_force(kubectl: Kubectl, api: Wire, ns: str) -> None:
    body = config_map(ns, "c", data={"a": "1"})
    kubectl(*SERVER, "-f", "-", documents=[body])
    kubectl("patch", "configmap", "c", "-p", '{"data":{"a":"2"}}')
    ran = on_stdin(kubectl, *SERVER, body=body)
    assert ran.code == 1
    conflict = 'Apply failed with 1 conflict: conflict with "kubectl-patch" using v1: .data.a'
    assert conflict in ran.err
    assert "--force-conflicts" in ran.err
    out = kubectl(*SERVER, "--force-conflicts", "-f", "-", documents=[body]).out
    assert out.strip() == "configmap/c serverside-applied"
    assert owned(api.again(body)) == {"kubectl": {"f:data": fields("a")}}


def test_from_the_clients_side_to_the_servers(kubectl: Kubectl, api: Wire, ns: str) -> None:
    body = deployment(ns, "d")
    kubectl("apply", "-f", "-", documents=[body])
    wanted = copy.deepcopy(body)
    wanted["spec"]["replicas"] = 3
    kubectl(*SERVER, "-f", "-", documents=[wanted])
    now = owned(api.again(body))
    assert "f:replicas" in now["kubectl"]["f:spec"]
    assert "kubectl-client-side-apply/Update" not in now
    shown = kubectl("apply", "view-last-applied", "deployment/d").out
    assert "replicas: 3" in shown
    wanted["spec"]["replicas"] = 4
    kubectl("apply", "-f", "-", documents=[wanted])
    assert api.again(body)["spec"]["replicas"] == 4


def test_diff_on_the_servers_side(kubectl: Kubectl, ns: str) -> None:
    body = config_map(ns, "c", data={"a": "1"})
    kubectl(*SERVER, "-f", "-", documents=[body])
    assert kubectl("diff", "--server-side", "-f", "-", documents=[body]).out == ""
    body["data"] = {"a": "2"}
    ran = on_stdin(kubectl, "diff", "--server-side", body=body)
    assert ran.code == 1
    assert '+  a: "2"' in ran.out


def test_managed_fields_are_shown_on_request(kubectl: Kubectl, ns: str) -> None:
    kubectl(*SERVER, "-f", "-", documents=[config_map(ns, "c")])
    assert "managedFields" not in kubectl("get", "configmap", "c", "-o", "yaml").out
    out = kubectl("get", "configmap", "c", "-o", "yaml", "--show-managed-fields").out
    assert "f:key: {}" in out


def test_an_unknown_kind_is_called_one(kubectl: Kubectl) -> None:
    for version, kind in (("no.such/v1", "X"), ("apps/v9", "Deployment"), ("v1", "Pods")):
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}
        ran = on_stdin(kubectl, "apply", body=body)
        assert ran.code == 1
        assert f'no matches for kind "{kind}" in version "{version}"' in ran.err
        assert "ensure CRDs are installed first" in ran.err
        assert "--validate=false" not in ran.err


def _wait_for_widgets(kubectl: Kubectl) -> None:
    """kube-apiserver describes a new custom kind a while after it serves it."""
    version_2 = ("explain", "widgets.spec", "--output=plaintext-openapiv2")
    for words in (("explain", "widgets.spec"), version_2):
        eventually(lambda words=words: kubectl.run(*words).code == 0)  # type: ignore[misc]


def listed(*bodies: Body) -> Body:
    return {"apiVersion": "v1", "kind": "List", "items": list(bodies)}


def test_kubectl_itself_validates_the_items_of_a_list(kubectl: Kubectl, ns: str) -> None:
    good = listed(
        pod(ns, "p", resources={"limits": {"cpu": 1}}),
        widget(ns, "w", port=80, anything={"a": [1]}, amounts={"a": "1"}, tags=["a"]),
        {"apiVersion": "suite.aliquot.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}, "x": 1},
    )
    out = kubectl("apply", "--dry-run=server", "-f", "-", documents=[good]).out
    assert out.count("created (server dry run)") == 3
    _wait_for_widgets(kubectl)
    bad = listed(pod(ns, "p", flavour="x"), widget(ns, "w", flavour="x"))
    err = on_stdin(kubectl, "apply", body=bad).err
    where = 'unknown field "flavour" in'
    assert f"ValidationError(Pod.spec): {where} io.k8s.api.core.v1.PodSpec" in err
    assert f"ValidationError(Widget.spec): {where} dev.aliquot.suite.v1.Widget.spec" in err


def test_kubectl_itself_finds_wrong_types_and_missing_fields(kubectl: Kubectl, ns: str) -> None:
    wrong = deployment(ns, "d")
    wrong["spec"] |= {"replicas": "x", "selector": []}
    empty = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
    err = on_stdin(kubectl, "apply", body=listed(wrong, empty)).err
    replicas = 'io.k8s.api.apps.v1.DeploymentSpec.replicas: got "string", expected "integer"'
    assert f"invalid type for {replicas}" in err
    selector = 'io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector: got "array", expected "map"'
    assert f"invalid type for {selector}" in err
    assert 'missing required field "containers" in io.k8s.api.core.v1.PodSpec' in err


def test_unknown_fields_are_refused_in_the_servers_words(
    kubectl: Kubectl, api: Wire, ns: str
) -> None:
    ran = on_stdin(kubectl, "apply", "--validate=strict", body=pod(ns, "p", flavour="x"))
    words = 'cannot be handled as a Pod: strict decoding error: unknown field "spec.flavour"'
    assert f'Pod in version "v1" {words}' in ran.err
    body = config_map(ns, "c")
    kubectl("apply", "-f", "-", documents=[body])
    ran = on_stdin(kubectl, "apply", body={**body, "flavour": "x"})
    assert "The request is invalid: patch: Invalid value: " in ran.err
    assert 'strict decoding error: unknown field "flavour"' in ran.err
    ran = on_stdin(kubectl, "apply", "--validate=warn", body={**body, "flavour": "x"})
    assert ran.code == 0
    assert 'Warning: unknown field "flavour"' in ran.err
    assert "flavour" not in api.get(path_of(body)).done()


def test_explain(kubectl: Kubectl) -> None:
    out = kubectl("explain", "pods.spec.containers").out
    for line in (
        "env\t<[]EnvVar>",
        "name\t<string> -required-",
        "resources\t<ResourceRequirements>",
    ):
        assert line in out
    out = kubectl("explain", "pods.spec.containers.resources").out
    assert "limits\t<map[string]Quantity>" in out
    _wait_for_widgets(kubectl)
    out = kubectl("explain", "widgets.spec").out
    assert "size\t<integer> -required-" in out
    out = kubectl("explain", "crd.spec.names").out
    assert "plural\t<string> -required-" in out
    assert kubectl.run("explain", "pods.spec.flavour").code == 1


def test_explain_by_version_2(kubectl: Kubectl) -> None:
    out = kubectl("explain", "deployments.spec", "--output=plaintext-openapiv2").out
    assert "replicas\t<integer>" in out
    _wait_for_widgets(kubectl)
    out = kubectl("explain", "widgets.spec", "--output=plaintext-openapiv2").out
    assert "size\t<integer> -required-" in out
