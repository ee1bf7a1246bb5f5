"""TensorFusion's quotas, GPUs and pods, as commands show them."""

import json
from typing import Any

import pytest
import yaml

from aliquot.json import Body
from tests.build.manifests import (
    asking,
    figures,
    gpu,
    gpu_quota,
    model,
    node,
    pod,
    timeline,
    workload,
)
from tests.cli.conftest import Run
from tests.docs.test_examples import ROOT


def refused(aliquot: Run, *documents: Any) -> str:
    ran = aliquot("simulate", list(documents), "-o", "json")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
    return ran.err


def template(**said: Any) -> Body:
    job = workload("Job", "a/j", {})
    job["spec"]["template"] = asking(job["spec"]["template"], **said)
    return job


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (gpu_quota("a/q", {"maxWorkers": -1}), ["GPUResourceQuota a/q", "spec.total.maxWorkers"]),
        (gpu_quota("a/q", {"maxWorkers": "x"}), ["spec.total.maxWorkers", "whole number"]),
        (
            gpu_quota("a/q", {"requests": figures(2), "limits": figures(1)}),
            ["spec.total.limits.tflops", "1 is below requests.tflops 2"],
        ),
        (gpu("g", capacity=("x", 1)), ["GPU g", "status.capacity.tflops", "'x'"]),
        (gpu("g", index="first"), ["GPU g", "status.index", "whole number"]),
        (
            asking(pod("a/p"), vram_request="lots"),
            ["Pod a/p", "metadata.annotations[tensor-fusion.ai/vram-request]", "'lots'"],
        ),
        (
            template(gpu_count="none"),
            ["Job a/j", "spec.template.metadata.annotations[tensor-fusion.ai/gpu-count]"],
        ),
    ],
)
def test_what_is_wrong_is_named(aliquot: Run, document: Body, words: list[str]) -> None:
    message = refused(aliquot, node(), document)
    for word in ["document 2", *words]:
        assert word in message


def test_objects_of_a_timeline_are_checked_too(aliquot: Run) -> None:
    good, bad = gpu_quota("a/q"), gpu_quota("a/q", {"alertThresholdPercent": 101})
    message = refused(aliquot, node(), good, timeline({"at": 9, "apply": [bad]}))
    assert "steps[0].apply[0]: GPUResourceQuota a/q: spec.total.alertThresholdPercent" in message


def test_a_second_quota_names_the_first(aliquot: Run) -> None:
    message = refused(aliquot, gpu_quota("a/q"), gpu_quota("b/q"), gpu_quota("a/r"))
    assert "GPUResourceQuota a/r: metadata.namespace" in message
    assert "has a quota already: GPUResourceQuota a/q" in message
    step = {"at": 9, "delete": [{"kind": "GPUResourceQuota", "namespace": "a", "name": "q"}]}
    moved = timeline({**step, "apply": [gpu_quota("a/r")]})
    assert aliquot("simulate", [gpu_quota("a/q"), moved]).code == 0


def test_what_is_odd_about_a_node_pod_or_gpu_quota_is_a_warning(aliquot: Run) -> None:
    documents = [
        node("n", gpu=1),
        gpu_quota("a/q", {"requests": figures(1)}, {"maxRequests": figures(2)}),
        asking(pod("a/p"), tflops_request="1", vram_requests="1Gi"),
    ]
    ran = aliquot("validate", documents, "-o", "json")
    found = json.loads(ran.out)["findings"]
    assert ran.code == 0
    assert [(each["severity"], each["field"]) for each in found] == [
        ("warning", "metadata.labels[nvidia.com/gpu.product]"),
        ("warning", "spec.single.maxRequests.tflops"),
        ("warning", "metadata.annotations[tensor-fusion.ai/vram-requests]"),
    ]


def test_the_devices_of_a_pod_are_written_into_it(aliquot: Run) -> None:
    runs = asking(pod("a/p", nodeName="n"), gpu_ids="g-1,g-2", tflops_request=40, gpu_count=2)
    documents = [node("n"), gpu("g-1", available=(50, "8Gi")), gpu("g-2"), runs]
    objects = list(yaml.safe_load_all(aliquot("simulate", documents, "-o", "objects").out))
    found = {each["metadata"]["name"]: each for each in objects}
    assert found["p"]["metadata"]["annotations"]["tensor-fusion.ai/gpu-ids"] == "g-1,g-2"
    assert found["g-1"]["status"]["available"] == {"tflops": "50", "vram": "8Gi"}
    assert found["g-2"]["status"]["available"] == {"tflops": "60", "vram": "10Gi"}
    result = json.loads(aliquot("simulate", documents, "-o", "json").out)
    assert result["pods"][0]["devices"] == ["g-1", "g-2"]


def test_the_policy_says_which_quotas_there_are(aliquot: Run) -> None:
    ran = aliquot("simulate", [model(node("n", gpu=1)), gpu_quota("a/q"), pod("a/p", {"gpu": 1})])
    assert ran.out.startswith("policy capacity (there are no quotas but those on GPUs)")


def test_every_bound_of_a_gpu_quota_that_refuses_a_pod_is_named(aliquot: Run) -> None:
    ran = aliquot("simulate", str(ROOT / "examples/tensor-fusion/refusals"), "-o", "json")
    (waits,) = json.loads(ran.out)["pending"]
    assert waits["resource"] == "single.max.tflops.request"
    assert waits["message"].endswith("; also GPUQuotaExceeded (total.max.tflops.request)")
