"""Quotas on GPUs: what they say, and what is wrong with them."""

from typing import Any

import pytest

from aliquot.dialects.tensor_fusion.quota_rules import (
    check_gpu_quota,
    gpu_quota,
    one_gpu_quota_a_namespace,
)
from aliquot.dialects.tensor_fusion.quotas import Defaults, defaults, quota
from aliquot.engine.model.gpu import GpuBound, GpuQuota
from aliquot.errors import InputError
from aliquot.json import Body
from tests.build.manifests import figures
from tests.build.manifests import gpu_quota as written
from tests.dialects.manifests import read

GIB = 2**30
SEED = written(
    "team-a/team-quota",
    {
        "requests": figures("1000", "100Gi"),
        "limits": figures("2000", "200Gi"),
        "maxWorkers": 50,
        "alertThresholdPercent": 90,
    },
    {
        "maxRequests": figures("100", "16Gi"),
        "maxLimits": figures("200", "32Gi"),
        "maxGPUCount": 8,
    },
)


def found(total: Body | None = None, single: Body | None = None) -> list[str]:
    """What is said of a quota: severity, field and problem."""
    each = read(written("a/q", total, single))
    return [f"{x.severity} {x.field}: {x.problem}" for x in check_gpu_quota(each)]


def refused(body: Body) -> str:
    with pytest.raises(InputError) as error:
        quota(read(body))
    return f"{error.value.field}: {error.value.problem}"


def test_the_quota_of_the_design() -> None:
    assert quota(read(SEED)) == GpuQuota(
        "team-a",
        "team-quota",
        GpuBound(1_000_000, 100 * GIB),
        GpuBound(2_000_000, 200 * GIB),
        50,
        90,
        GpuBound(100_000, 16 * GIB),
        GpuBound(200_000, 32 * GIB),
        8,
    )
    assert list(check_gpu_quota(read(SEED))) == []


def test_an_empty_one_bounds_nothing() -> None:
    assert quota(read(written("a/q"))) == GpuQuota("a", "q")
    assert quota(read(written("a/q", {}, {}))).threshold == 95


def test_zero_is_none_in_total_and_no_bound_in_single() -> None:
    nothing = figures(0, "0")
    total = {"requests": nothing, "limits": {"vram": 0}, "maxWorkers": 0}
    single = {"maxRequests": nothing, "maxLimits": nothing, "maxGPUCount": 0}
    read_ = quota(read(written("a/q", total, single)))
    assert (read_.requests, read_.limits, read_.workers) == (GpuBound(0, 0), GpuBound(None, 0), 0)
    assert (read_.single_requests, read_.single_limits) == (GpuBound(), GpuBound())
    assert read_.single_count is None


def test_amounts_are_exact() -> None:
    total = {"requests": figures("1.5", "1.5Gi"), "limits": figures("500m", 7)}
    read_ = quota(read(written("a/q", total)))
    assert read_.requests == GpuBound(1500, 3 * GIB // 2)
    assert read_.limits == GpuBound(500, 7)


def test_defaults() -> None:
    single = {"defaultRequests": figures("10", "1Gi"), "defaultLimits": figures(0, "2Gi")}
    each = read(written("a/q", None, single))
    assert defaults(each) == Defaults(GpuBound(10_000, GIB), GpuBound(None, 2 * GIB))


@pytest.mark.parametrize(
    ("total", "single", "words"),
    [
        ({"requests": figures("-10")}, None, "spec.total.requests.tflops: -10 is negative"),
        ({"limits": figures(1, "-1Gi")}, None, "spec.total.limits.vram: -1Gi is negative"),
        ({"requests": figures("much")}, None, "spec.total.requests.tflops: 'much' is not"),
        ({"requests": figures([])}, None, "spec.total.requests.tflops: [] is not a quantity"),
        ({"maxWorkers": -1}, None, "spec.total.maxWorkers: -1 is not between 0 and"),
        (
            {"alertThresholdPercent": 150},
            None,
            "spec.total.alertThresholdPercent: 150 is not between 0 and 100",
        ),
        (None, {"maxLimits": figures(vram=True)}, "spec.single.maxLimits.vram: True is not"),
        (None, {"maxGPUCount": -1}, "spec.single.maxGPUCount: -1 is not between 0 and"),
        (None, {"defaultLimits": figures("-5")}, "spec.single.defaultLimits.tflops: -5 is"),
    ],
)
def test_what_makes_no_sense_is_refused(
    total: Body | None, single: Body | None, words: str
) -> None:
    assert refused(written("a/q", total, single)).startswith(words)


def test_limits_below_requests() -> None:
    low, high = figures(100, "1Gi"), figures(50, "2Gi")
    assert found({"requests": low, "limits": high}) == [
        "error spec.total.limits.tflops: 50 is below requests.tflops 100"
    ]
    assert found({"requests": low, "limits": {"vram": "2Gi"}}) == []
    assert found({"requests": low, "limits": figures(0, "2Gi")}) == [
        "warning spec.total.limits.tflops: 0 is below requests.tflops 100"
    ]
    assert found(None, {"maxRequests": low, "maxLimits": high}) == [
        "warning spec.single.maxLimits.tflops: 50 is below maxRequests.tflops 100"
    ]
    assert found(None, {"defaultRequests": low, "defaultLimits": high}) == [
        "warning spec.single.defaultLimits.tflops: 50 is below defaultRequests.tflops 100"
    ]


def test_compute_in_percent_bounds_nothing() -> None:
    """TensorFusion's quotas have the field, and do not look at it."""
    assert found({"requests": {"compute": 50, "vram": "1Gi"}}) == [
        "warning spec.total.requests.compute: bounds nothing; state tflops"
    ]


def test_what_bounds_nothing_or_lets_nobody_start_is_worth_a_word() -> None:
    assert found({"requests": figures(100)}, {"maxRequests": figures(200, "1Gi")}) == [
        "warning spec.single.maxRequests.tflops: 200 is above total.requests.tflops 100, "
        "which holds anyway"
    ]
    assert found(None, {"maxLimits": figures(10), "defaultLimits": figures(20)}) == [
        "warning spec.single.defaultLimits.tflops: 20 is above maxLimits.tflops 10: "
        "nobody can start with it"
    ]


def test_slips_in_the_names_of_bounds() -> None:
    body = written("a/q", {"maxWorker": 3, "requests": {"memory": 1}}, {"maxGpuCount": 1})
    body["spec"]["sum"] = {}
    assert [each.field for each in check_gpu_quota(read(body))] == [
        "spec.sum",
        "spec.total.maxWorker",
        "spec.single.maxGpuCount",
        "spec.total.requests.memory",
    ]


def test_one_a_namespace() -> None:
    first, other, second = (read(written(path)) for path in ("a/q", "b/q", "a/r"))
    (finding,) = one_gpu_quota_a_namespace([first, other, second])
    assert (finding.severity, finding.object) == ("error", "GPUResourceQuota a/r")
    assert finding.problem == "the namespace has a quota already: GPUResourceQuota a/q (test)"


@pytest.mark.parametrize(
    ("total", "problem"),
    [
        ({"maxWorkers": -1}, "spec.total.maxWorkers: -1 is not between"),
        (
            {"requests": figures(2), "limits": figures(1)},
            "spec.total.limits.tflops: 1 is below requests.tflops 2",
        ),
    ],
)
def test_the_last_good_one_stays_in_force(total: Any, problem: str) -> None:
    good = gpu_quota(read(written("a/q", {"maxWorkers": 3})))
    assert good == GpuQuota("a", "q", workers=3)
    bad = gpu_quota(read(written("a/q", total)), good)
    assert bad.problem.startswith(problem)
    assert bad.workers == 3
    again = gpu_quota(read(written("a/q", {"maxWorkers": 4})), bad)
    assert again == GpuQuota("a", "q", workers=4)


def test_without_a_good_one_nothing_is_allowed() -> None:
    bad = gpu_quota(read(written("a/q", {"maxWorkers": -1})))
    assert (bad.requests, bad.limits, bad.workers) == (GpuBound(0, 0), GpuBound(0, 0), 0)
    assert bad.problem
