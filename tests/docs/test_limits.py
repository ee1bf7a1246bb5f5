"""The page of what is not looked at is true: it is not looked at, and what warns does warn."""

import json
from typing import Any

import pytest
import yaml

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core import documents
from aliquot.simulation.outcome import outcome
from aliquot.simulation.simulation import Simulation
from aliquot.validation.inputs import collect, examine
from tests.docs.test_examples import ROOT

PAGE = (ROOT / "docs" / "reference" / "limits.md").read_text()
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "8", "pods": "10"}},
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
POD_FIELDS: dict[str, dict[str, Any]] = {
    "runtimeClassName": {"runtimeClassName": "is-not-there"},
}
"""By what the page calls it, a field by which kube-scheduler would not start two such pods on a
node."""


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "a", "labels": {"app": "x"}},
        "spec": {"containers": [CONTAINER], **spec},
    }


@pytest.mark.parametrize("field", POD_FIELDS)
def test_a_field_of_pods_has_no_effect(field: str) -> None:
    assert f"`{field}`" in PAGE
    bodies = [NODE, pod("one", **POD_FIELDS[field]), pod("two", **POD_FIELDS[field])]
    given = collect(documents.parse(yaml.safe_dump_all(bodies), "objects"), Configuration())
    simulation = Simulation(given, "capacity")
    simulation.run(3600 * 10**9)
    phases = {each["pod"]: each["phase"] for each in outcome(simulation)["pods"]}
    assert phases == {"a/one": "Running", "a/two": "Running"}


def other(version: str, kind: str, **content: Any) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "a", **content.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


GROUP = {"minMember": 1}
QUEUE = ("scheduling.volcano.sh/v1beta1", "Queue")
JOB = {"tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": [CONTAINER]}}}]}
WARNED = {
    "resourceClaims": pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}]),
    "scheduleTimeoutSeconds": other(
        "scheduling.x-k8s.io/v1alpha1", "PodGroup", spec={**GROUP, "scheduleTimeoutSeconds": 9}
    ),
    "isolation: partitioned": other(
        "v1",
        "Pod",
        metadata={
            "annotations": {
                "tensor-fusion.ai/isolation": "partitioned",
                "tensor-fusion.ai/tflops-request": "1",
                "tensor-fusion.ai/vram-request": "1Gi",
            }
        },
        spec={"containers": [CONTAINER]},
    ),
    "affinity": other(*QUEUE, spec={"affinity": {"nodeGroupAffinity": {REQUIRED: ["g"]}}}),
    "extendClusters": other(*QUEUE, spec={"extendClusters": [{"name": "c", "weight": 1}]}),
    "dequeueStrategy: fifo": other(*QUEUE, spec={"dequeueStrategy": "fifo"}),
    "subGroupPolicy": other(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        spec={**GROUP, "subGroupPolicy": [{"name": "workers"}]},
    ),
    "policies": other(
        "batch.volcano.sh/v1alpha1",
        "Job",
        spec={**JOB, "policies": [{"event": "PodEvicted", "action": "RestartJob"}]},
    ),
}


@pytest.mark.parametrize("word", WARNED)
def test_what_warns_does(word: str) -> None:
    assert f"`{word}`" in PAGE
    row = next(line for line in PAGE.splitlines() if f"`{word}`" in line)
    assert "*warns*" in row
    body = WARNED[word]
    if body["kind"] == "Queue":
        del body["metadata"]["namespace"]
    found = examine(documents.parse(json.dumps(body), "objects"), Configuration()).findings
    said = [each.problem for each in found if each.severity == "warning"]
    assert any("not considered" in each or "can never start" in each for each in said), found
