"""What `validate` says of rules that nothing can meet, and of values that make no sense."""

from typing import Any

import pytest

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import all_errors, read
from aliquot.json import Body
from aliquot.mirror.store import Store
from aliquot.validation.inputs import examine
from aliquot.validation.pod_specs import check_pod_specs
from aliquot.validation.unmet_rules import UnmetRules
from tests.build.manifests import node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
SPREAD = {**TERM, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


def warnings(*bodies: Body) -> list[str]:
    rules = UnmetRules()
    documents = [Document(f"object {i}", body) for i, body in enumerate(bodies)]
    examine(documents, Configuration(), (rules.add_state,))
    return [f"{each.field}: {each.problem}" for each in rules.findings()]


def zoned(**labels: str) -> Body:
    return {**node("n"), "metadata": {"name": "n", "labels": {"zone": "a", **labels}}}


def near(*terms: Body, labels: Body | None = None, side: str = "podAffinity") -> Body:
    body = pod("a/p", affinity={side: {REQUIRED: list(terms)}})
    body["metadata"]["labels"] = labels or {}
    return body


def test_a_topology_key_that_no_node_has() -> None:
    term = {**TERM, "topologyKey": "rack"}
    assert warnings(zoned(), near(term, labels={"app": "x"})) == [
        "spec.affinity.podAffinity: can never start: no node has the label rack"
    ]
    assert warnings(zoned(rack="r"), near(term, labels={"app": "x"})) == []
    spread = pod("a/p", topologySpreadConstraints=[{**SPREAD, "topologyKey": "rack"}])
    (said,) = warnings(zoned(), spread)
    assert said == "spec.topologySpreadConstraints: can never start: no node has the label rack"
    preferred = {**SPREAD, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
    assert warnings(zoned(), pod("a/p", topologySpreadConstraints=[preferred])) == []
    assert warnings(near(term)) == [], "without nodes, nothing is said about nodes"
    assert warnings(zoned(), near(term, side="podAntiAffinity")) == []


def test_pods_that_nothing_in_the_input_is_or_makes() -> None:
    waits = "is about pods that nothing in the input is or makes: it waits for them"
    assert warnings(zoned(), near(TERM)) == [f"spec.affinity.podAffinity: {waits}"]
    assert warnings(zoned(), near(TERM, labels={"app": "x"})) == []
    elsewhere = pod("b/q")
    elsewhere["metadata"]["labels"] = {"app": "x"}
    assert warnings(zoned(), near(TERM), elsewhere) == [f"spec.affinity.podAffinity: {waits}"]
    others: list[Body] = [
        {"namespaces": ["b"]},
        {"namespaceSelector": {}},
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "b"}}},
    ]
    for more in others:
        assert warnings(zoned(), near({**TERM, **more}), elsewhere) == []


def test_a_port_of_the_node_twice_in_a_pod() -> None:
    def ports(*each: Body, **spec: Any) -> Body:
        containers = [{"name": f"c{i}", "ports": [port]} for i, port in enumerate(each)]
        return pod("a/p", **{"containers": containers, **spec})

    any_address = {"containerPort": 80, "hostPort": 80}
    one_address = {**any_address, "hostIP": "10.0.0.1"}
    assert warnings(ports(any_address, one_address)) == [
        "spec.containers[1].ports[0].hostPort: the port 80 of the node is asked for in "
        "spec.containers[0].ports[0] already"
    ]
    assert warnings(ports(any_address, {**any_address, "protocol": "UDP"})) == []
    same = ports(any_address, any_address)
    assert warnings(same) == []
    manifest = read(Document("object", same))
    assert manifest is not None
    (error,) = check_pod_specs(manifest)
    assert (error.severity, error.field) == ("error", "spec.containers[1].ports[0].hostPort")


AFFINITY = f"spec.affinity.podAffinity.{REQUIRED}[0]"
SPREADS = "spec.topologySpreadConstraints[0]"


def weighted(weight: int) -> Body:
    return {"podAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": TERM}]}}


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        (f"{AFFINITY}.topologyKey", near({**TERM, "topologyKey": ""})),
        (f"{AFFINITY}.namespaces[0]", near({**TERM, "namespaces": ["A!"]})),
        (
            f"{AFFINITY}.labelSelector.matchExpressions[0].operator",
            near({**TERM, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}),
        ),
        (
            f"{AFFINITY}.labelSelector.matchExpressions[0].values",
            near({**TERM, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
        ),
        (f"{AFFINITY}.matchLabelKeys[0]", near({**TERM, "matchLabelKeys": ["app"]})),
        (
            f"{AFFINITY}.matchLabelKeys",
            near({"topologyKey": "zone", "matchLabelKeys": ["app"]}),
        ),
        (
            f"spec.affinity.podAffinity.{PREFERRED}[0].weight",
            pod("a/p", affinity=weighted(101)),
        ),
        (f"{SPREADS}.maxSkew", pod("a/p", topologySpreadConstraints=[{**SPREAD, "maxSkew": 0}])),
        (
            f"{SPREADS}.whenUnsatisfiable",
            pod("a/p", topologySpreadConstraints=[{**SPREAD, "whenUnsatisfiable": "Never"}]),
        ),
        (
            f"{SPREADS}.minDomains",
            pod(
                "a/p",
                topologySpreadConstraints=[
                    {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}
                ],
            ),
        ),
        (
            f"{SPREADS}.nodeTaintsPolicy",
            pod("a/p", topologySpreadConstraints=[{**SPREAD, "nodeTaintsPolicy": "Maybe"}]),
        ),
        (
            "spec.topologySpreadConstraints[1]",
            pod("a/p", topologySpreadConstraints=[SPREAD, {**SPREAD, "maxSkew": 2}]),
        ),
        (
            "spec.containers[0].ports[0].hostPort",
            pod("a/p", containers=[{"name": "c", "ports": [{"hostPort": 65536}]}]),
        ),
        (
            "spec.containers[0].ports[0].protocol",
            pod("a/p", containers=[{"name": "c", "ports": [{"protocol": "IP"}]}]),
        ),
    ],
    ids=lambda each: each.rpartition(".")[2] if isinstance(each, str) else "",
)
def test_values_that_a_server_refuses(field: str, spec: Body) -> None:
    manifest = read(Document("object", spec))
    assert manifest is not None
    assert [each.field for each in all_errors(manifest, Store().check)] == [field]
