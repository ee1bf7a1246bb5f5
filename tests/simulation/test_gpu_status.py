"""What is said of quotas on GPUs, and written into them and into GPUs."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from aliquot.dialects.core.manifest import convert
from aliquot.dialects.core.times import moment
from aliquot.dialects.tensor_fusion import status as gpu_status
from aliquot.dialects.tensor_fusion.conditions import Conditions
from aliquot.engine.model.gpu import Device, GpuAmount, GpuAsk
from aliquot.engine.model.summaries import Condition, GpuQuotaSummary
from aliquot.simulation.comparison import compare
from aliquot.simulation.expectation import Expect
from aliquot.simulation.outcome import Result, gpu_quota
from tests.build.manifests import gpu
from tests.build.manifests import gpu_quota as written
from tests.dialects.manifests import read

GIB = 2**30
SECOND = 10**9
CALM = Condition("AlertThresholdReached", False, "BelowThreshold", "all is well")
ALERT = Condition("AlertThresholdReached", True, "AboveThreshold", "workers 100%")
READY = Condition("Ready", True, "InForce", "")
PERCENT = {
    "requests.tflops": Fraction(200, 3),
    "requests.vram": Fraction(50),
    "limits.tflops": None,
    "limits.vram": Fraction(-5),
    "workers": Fraction(0),
}
SUMMARY = GpuQuotaSummary(
    "a", "q", GpuAmount(1500, 3 * GIB), GpuAmount(2000, 4 * GIB), 3, PERCENT, [READY, ALERT]
)
USED = {
    "requests": {"tflops": "1500m", "vram": "3Gi"},
    "limits": {"tflops": "2", "vram": "4Gi"},
    "workers": 3,
}
LEFT = {
    "requests.tflops": "66.67",
    "requests.vram": "50.00",
    "limits.tflops": "100",
    "limits.vram": "0.00",
    "workers": "0.00",
}


def test_a_gpu_quota_in_results_has_its_use_and_conditions() -> None:
    assert gpu_quota(SUMMARY) == {
        "name": "a/q",
        "used": USED,
        "availablePercent": LEFT,
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "InForce", "message": ""},
            {
                "type": "AlertThresholdReached",
                "status": "True",
                "reason": "AboveThreshold",
                "message": "workers 100%",
            },
        ],
    }


def test_a_condition_says_since_when_it_holds() -> None:
    conditions = Conditions()
    calm = replace(SUMMARY, conditions=[READY, CALM])
    conditions.note([calm], 0)
    conditions.note([calm], 10 * SECOND)
    conditions.note([SUMMARY], 20 * SECOND)
    conditions.note([replace(SUMMARY, workers=2)], 90 * SECOND)
    status = gpu_status.quota(read(written("a/q")), SUMMARY, conditions)["status"]
    assert (status["used"], status["availablePercent"]) == (USED, LEFT)
    assert [each["lastTransitionTime"] for each in status["conditions"]] == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:20Z",
    ]
    assert status["lastUpdateTime"] == "1970-01-01T00:01:30Z"


def test_a_threshold_that_is_crossed_is_told_once() -> None:
    conditions = Conditions()
    calm = replace(SUMMARY, conditions=[READY, CALM])
    for at, summary in enumerate((calm, SUMMARY, replace(SUMMARY, workers=2), SUMMARY, calm, calm)):
        conditions.note([summary], at * SECOND)
    told = [(each["type"], each["firstTimestamp"]) for each in gpu_status.events(conditions)]
    assert told == [("Warning", "1970-01-01T00:00:01Z"), ("Normal", "1970-01-01T00:00:04Z")]


def test_a_quota_that_comes_again_begins_anew() -> None:
    conditions = Conditions()
    conditions.note([SUMMARY], 0)
    conditions.note([], 10 * SECOND)
    conditions.note([SUMMARY], 20 * SECOND)
    assert conditions.since(SUMMARY, "Ready") == 20 * SECOND
    assert conditions.updated(SUMMARY) == 20 * SECOND


def test_a_gpu_says_what_is_left_of_it() -> None:
    body = gpu("g", "n", runningApps=[{"name": "x"}], gpuModel="A100")
    device = Device("g", "n", GpuAmount(100_000, 10 * GIB), used_elsewhere=GpuAmount(5000, GIB))
    asks = [GpuAsk(GpuAmount(20_000, 2 * GIB)), GpuAsk(GpuAmount(500, 0), count=2)]
    status = gpu_status.gpu(read(body), device, asks)["status"]
    assert status["available"] == {"tflops": "74500m", "vram": "7Gi"}
    assert status["gpuModel"] == "A100"
    assert "runningApps" not in status


def test_virtual_time_begins_in_1970() -> None:
    assert moment(3600 * SECOND + 5) == "1970-01-01T01:00:00Z"


def different(**expected: Any) -> list[str]:
    pods = [{"pod": "a/p", "phase": "Running", "node": "n", "devices": ["g-1", "g-2"]}]
    result: Result = {"pods": pods, "pending": [], "quotas": [], "queues": [], "gangs": []}
    result |= {"gpuQuotas": [gpu_quota(SUMMARY)], "bindings": []}
    return list(compare(convert(expected, Expect, "test"), result, []))


@pytest.mark.parametrize(
    "fields",
    [
        {"used": {"requests": {"tflops": "1.5", "vram": 3 * GIB}, "workers": 3}},
        {"availablePercent": {"requests.vram": "50.00", "workers": 0}},
        {"conditions": {"Ready": True, "AlertThresholdReached": "True"}},
        {"conditions": {"Ready": {"status": "True", "reason": "InForce"}}},
    ],
)
def test_what_a_scenario_expects_of_a_quota(fields: dict[str, Any]) -> None:
    assert different(gpuQuotas={"a/q": fields}) == []


def test_a_gpu_quota_or_device_that_differs_is_named() -> None:
    fields = {"used": {"limits": {"tflops": 3}}, "conditions": {"Ready": False, "Exceeded": True}}
    assert different(gpuQuotas={"a/q": fields, "b/q": {}}) == [
        "quota on GPUs a/q: used limits tflops should be 3, is 2",
        "quota on GPUs a/q: conditions Ready should be False, is True",
        "quota on GPUs a/q: conditions Exceeded should be True, is none",
        "quota on GPUs b/q is not there",
    ]
    assert different(devices={"a/p": ["g-2", "g-1"]}) == []
    assert different(devices={"a/p": ["g-1"], "a/q": ["g-1"]}) == [
        "a/p should be on g-1, is on g-1, g-2",
        "a/q should be on g-1, is on no device",
    ]
