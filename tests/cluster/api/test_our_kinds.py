"""Our own CustomResourceDefinitions, and our own examples, as a real server judges them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from aliquot.dialects.crds import definitions
from aliquot.dialects.frameworks.table import FRAMEWORKS
from aliquot.json import Body
from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.objects import thing
from tests.cluster.api.polling import eventually
from tests.cluster.api.wire import Wire
from tests.cluster.conftest import Unique, established

DUMPED_KINDS = "nodes,namespaces,pods,priorityclasses,resourcequotas,poddisruptionbudgets,aliquot"
_EXAMPLES = Path(__file__).parents[3] / "examples"
_NOT_SERVED = {"aliquot.dev", *(each.group for each in FRAMEWORKS if each.group != "batch")}
"""Groups of kinds that no server has of us: those of simulations, and of job frameworks."""
_OURS = {body["metadata"]["name"]: body for body in definitions()}


@pytest.fixture
def defined(api: Wire) -> None:
    """All that we define is served: by the embedded server anyway, by the real one from now on."""
    for body in _OURS.values():
        if api.gone(body):
            api.made(body)
    eventually(lambda: all(established(api, body) for body in _OURS.values()))


@pytest.mark.usefixtures("defined")
@pytest.mark.parametrize("name", sorted(_OURS))
def test_a_definition_is_taken_as_it_is(api: Wire, name: str) -> None:
    kept = api.again(_OURS[name])
    conditions = {one["type"]: one["status"] for one in kept["status"]["conditions"]}
    assert conditions.get("NonStructuralSchema", "False") == "False"
    assert conditions["NamesAccepted"] == "True"
    for said, found in zip(_OURS[name]["spec"]["versions"], kept["spec"]["versions"], strict=True):
        assert _without_empty(found["schema"]) == _without_empty(said["schema"])


@pytest.mark.usefixtures("defined")
def test_the_category_has_all_our_kinds_beside_those_of_kubernetes(kubectl: Kubectl) -> None:
    """The recipe of docs/tasks/simulate.md for a dump: one command, one list."""
    shown = kubectl("api-resources", "--categories=aliquot", "-o", "name").out
    assert sorted(shown.split()) == sorted(_OURS)
    quota = {
        "apiVersion": "nos.nebuly.com/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "q", "namespace": kubectl.namespace},
        "spec": {"min": {"cpu": 1}},
    }
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": f"of-{kubectl.namespace}"},
        "spec": {"weight": 1},
    }
    kubectl("apply", "-f", "-", documents=[quota, queue])
    dumped = yaml.safe_load(kubectl("get", DUMPED_KINDS, "-A", "-o", "yaml").out)
    found = {(each["kind"], each["metadata"]["name"]) for each in dumped["items"]}
    assert {("ElasticQuota", "q"), ("Queue", f"of-{kubectl.namespace}")} <= found
    assert ("Namespace", kubectl.namespace) in found


def _without_empty(schema: Any) -> Any:
    """A schema as a server keeps it, which may forget that there are no properties."""
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if (key, value) != ("properties", {})}
    return {key: _without_empty(value) for key, value in kept.items()}


def _documents() -> dict[str, list[Body]]:
    found: dict[str, list[Body]] = {}
    for file in sorted(_EXAMPLES.rglob("*.yaml")):
        found[str(file.relative_to(_EXAMPLES))] = [
            body
            for body in yaml.safe_load_all(file.read_text())
            if body and body["apiVersion"].partition("/")[0] not in _NOT_SERVED
        ]
    return {name: bodies for name, bodies in found.items() if bodies}


_DOCUMENTS = _documents()


def _where(body: Body, plural: str, namespace: str) -> str:
    version = body["apiVersion"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{base}/namespaces/{namespace}/{plural}" if namespace else f"{base}/{plural}"


@pytest.mark.usefixtures("defined")
@pytest.mark.parametrize("name", sorted(_DOCUMENTS))
def test_an_example_is_accepted_to_the_letter(api: Wire, unique: Unique, name: str) -> None:
    spaces: dict[str, str] = {}
    for body in _DOCUMENTS[name]:
        resource = _resource(api, body)
        namespace = ""
        if resource["namespaced"]:
            given = body["metadata"].get("namespace", "default")
            if given not in spaces:
                spaces[given] = unique("example")
                api.made(thing("Namespace", "", spaces[given]))
            namespace = spaces[given]
        sent = {**body, "metadata": {**body["metadata"], "namespace": namespace}}
        if not namespace:
            del sent["metadata"]["namespace"]
        if sent.get("spec", {}).get("priorityClassName"):
            sent = {**sent, "spec": {**sent["spec"], "priorityClassName": "system-node-critical"}}
        where = _where(sent, resource["name"], namespace)
        api.post(where, sent, fieldValidation="Strict", dryRun="All").done(201)


def _resource(api: Wire, body: Body) -> dict[str, Any]:
    version = body["apiVersion"]
    where = f"/apis/{version}" if "/" in version else f"/api/{version}"
    (found,) = (
        one
        for one in api.get(where).done()["resources"]
        if one["kind"] == body["kind"] and "/" not in one["name"]
    )
    return dict(found)


@pytest.mark.usefixtures("defined")
def test_a_quota_of_ours_is_checked(api: Wire, ns: str) -> None:
    body = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "q", "namespace": ns},
        "spec": {"min": "much"},
    }
    where = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{ns}/elasticquotas"
    api.post(where, body).refused(422, "Invalid")
