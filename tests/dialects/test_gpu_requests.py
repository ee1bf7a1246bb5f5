"""What pods ask for of GPUs: by annotation, as cards, as slices."""

from typing import Any

import pytest

from aliquot.dialects.core.pods import pod as read_pod
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.tensor_fusion.annotations import devices
from aliquot.dialects.tensor_fusion.gpu_rules import check_gpu_requests
from aliquot.dialects.tensor_fusion.quotas import NO_DEFAULTS, Defaults
from aliquot.engine.model.gpu import WHOLE_GPU, GpuAmount, GpuAsk, GpuBound
from aliquot.errors import InputError
from aliquot.json import Body
from tests.build.manifests import asking, pod, workload
from tests.dialects.manifests import container, read, sidecar

GIB = 2**30
SHARED = Cards(shared=True)
ALL = GpuAmount(WHOLE_GPU, WHOLE_GPU)


def ask(body: Body, defaults: Defaults = NO_DEFAULTS, cards: Cards = SHARED) -> GpuAsk | None:
    return read_pod(read(body), "u", (0, True), 0, cards, defaults).shape.gpu


def by_annotation(defaults: Defaults = NO_DEFAULTS, **said: Any) -> GpuAsk:
    found = ask(asking(pod("a/p"), **said), defaults)
    assert found is not None
    return found


def by_cards(*containers: Body, init: list[Body] | None = None) -> GpuAsk | None:
    return ask(pod("a/p", containers=list(containers), initContainers=init or []))


def refused(**said: Any) -> str:
    with pytest.raises(InputError) as error:
        by_annotation(**said)
    return f"{error.value.field}: {error.value.problem}"


def warned(body: Body) -> list[str]:
    return [f"{each.field}: {each.problem}" for each in check_gpu_requests(read(body))]


def test_all_that_can_be_said() -> None:
    assert by_annotation(
        tflops_request="500m",
        tflops_limit="1.5",
        vram_request="1Gi",
        vram_limit="2Gi",
        gpu_count="2",
        gpu_indices="3, 1",
        gpu_model="A100",
        vendor="NVIDIA",
        gpupool="east",
        qos="high",
        isolation="hard",
    ) == GpuAsk(
        request=GpuAmount(500, GIB),
        limit=GpuAmount(1500, 2 * GIB),
        count=2,
        model="A100",
        vendor="NVIDIA",
        pool="east",
        indices=(1, 3),
    )


def test_requests_and_limits_stand_for_each_other() -> None:
    both = GpuAmount(10_000, GIB)
    assert by_annotation(tflops_request=10, vram_request="1Gi") == GpuAsk(both, both)
    assert by_annotation(tflops_limit=10, vram_limit="1Gi") == GpuAsk(both, both)
    assert by_annotation(tflops_request=10, vram_limit="1Gi") == GpuAsk(both, both)
    assert by_annotation(gpu_count=3) == GpuAsk(count=3)


@pytest.mark.parametrize(
    ("said", "tflops"),
    [
        ({}, (20_000, 40_000)),
        ({"tflops_request": 10}, (10_000, 40_000)),
        ({"tflops_request": 50}, (50_000, 50_000)),
        ({"tflops_limit": 30}, (20_000, 30_000)),
        ({"tflops_limit": 10}, (10_000, 10_000)),
        ({"tflops_request": 1, "tflops_limit": 2}, (1000, 2000)),
    ],
)
def test_the_quota_says_what_the_pod_does_not(said: Body, tflops: tuple[int, int]) -> None:
    by_default = Defaults(GpuBound(20_000, None), GpuBound(40_000, None))
    found = by_annotation(by_default, vram_request="1Gi", **said)
    assert (found.request.tflops, found.limit.tflops) == tflops
    assert found.limit.vram == GIB


def test_a_default_without_the_other_half() -> None:
    found = by_annotation(Defaults(GpuBound(None, GIB)), gpu_count=1)
    assert (found.request, found.limit) == (GpuAmount(0, GIB), GpuAmount(0, GIB))


def test_percentages_are_parts_of_a_device() -> None:
    by_default = Defaults(GpuBound(20_000, GIB), GpuBound(40_000, GIB))
    found = by_annotation(by_default, compute_percent_request="12.5", compute_percent_limit="100")
    assert found == GpuAsk(
        GpuAmount(0, GIB), GpuAmount(0, GIB), GpuAmount(WHOLE_GPU // 8), GpuAmount(WHOLE_GPU)
    )


def test_whole_devices() -> None:
    said = by_annotation(isolation="shared", vram_request="1Gi")
    assert said == GpuAsk(GpuAmount(0, GIB), GpuAmount(0, GIB), whole=True)
    silent = by_annotation(isolation="shared", gpu_count="2")
    assert silent == GpuAsk(request_part=ALL, limit_part=ALL, count=2, whole=True)
    dedicated = by_annotation(dedicated_gpu="true", gpu_model="A100", tflops_request=5)
    assert dedicated == GpuAsk(request_part=ALL, limit_part=ALL, whole=True, model="A100")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"tflops_request": "much"}, "tflops-request]: 'much' is not a quantity"),
        ({"vram_limit": "-1Gi"}, "vram-limit]: -1Gi is negative"),
        ({"vram_limit": ["1Gi"]}, "vram-limit]: must be text"),
        ({"vram_request": "2Gi", "vram_limit": "1Gi"}, "vram-request]: is above its limit"),
        ({"gpu_count": "0"}, "gpu-count]: '0' is no whole number from 1 to 128"),
        ({"gpu_count": "129"}, "gpu-count]: '129' is no whole number"),
        ({"gpu_count": "1.5"}, "gpu-count]: '1.5' is no whole number"),
        ({"gpu_indices": "0,x"}, "gpu-indices]: 'x' is no whole number"),
        ({"gpu_indices": "1,1"}, "gpu-indices]: names a GPU twice"),
        ({"gpu_indices": "1", "gpu_count": 2}, "gpu-indices]: names 1 GPUs"),
        ({"compute_percent_request": "101"}, "compute-percent-request]: 101 is not between"),
        (
            {"compute_percent_limit": "50", "tflops_limit": "5"},
            "tflops-limit]: compute is asked for in TFLOPs or in percent, not both",
        ),
        ({"isolation": "none", "gpu_count": 1}, "isolation]: 'none' is none of shared, soft"),
        ({"qos": "best", "gpu_count": 1}, "qos]: 'best' is none of low, medium"),
        ({"dedicated_gpu": "yes"}, "dedicated-gpu]: 'yes' is none of true, false"),
    ],
)
def test_what_makes_no_sense_is_refused(said: Body, words: str) -> None:
    assert refused(**said).startswith(f"metadata.annotations[tensor-fusion.ai/{words}")


def test_whole_cards() -> None:
    assert by_cards(container(gpu=2)) == GpuAsk(
        request_part=ALL, limit_part=ALL, count=2, whole=True
    )
    assert by_cards(container(cpu=1)) is None
    assert by_cards(container(gpu=0)) is None


def test_slices_of_one_size() -> None:
    memory, compute = GpuAmount(0, 10 * GIB), GpuAmount(285_715)
    assert by_cards(container(mig_2g_10gb=1)) == GpuAsk(
        memory, memory, compute, compute, sliced=True
    )
    memory = GpuAmount(0, 8 * GIB)
    assert by_cards(container(mps_8gb=3)) == GpuAsk(memory, memory, count=3, sliced=True)
    seven = by_cards(container(mig_1g_5gb=7))
    assert seven is not None
    assert (seven.count, seven.request_part) == (7, GpuAmount(142_858))


def test_slices_of_several_sizes_add_up() -> None:
    found = by_cards(container(mig_1g_10gb=1, mps_20gb=1))
    assert found is not None
    assert (found.count, found.request.vram, found.sliced) == (2, 15 * GIB, True)


@pytest.mark.parametrize(
    ("init", "main", "count", "whole", "vram"),
    [
        ([container("i", mig_1g_10gb=1)], container(gpu=1), 1, True, 0),
        ([container("i", gpu=2)], container(mps_8gb=1), 2, True, 0),
        ([container("i", mps_8gb=2)], container(mps_24gb=1), 1, False, 24),
        ([container("i", mps_24gb=2)], container(mps_8gb=3), 2, False, 24),
        ([sidecar("s", mps_8gb=1)], container(gpu=1), 1, True, 8),
        ([container("i", gpu=2), sidecar("s", mps_48gb=1)], container(gpu=1), 2, True, 8),
    ],
)
def test_the_peak_of_all_phases_counts(
    init: list[Body], main: Body, count: int, whole: bool, vram: int
) -> None:
    found = by_cards(main, init=init)
    assert found is not None
    assert (found.count, found.whole, found.request.vram) == (count, whole, vram * GIB)


def test_nothing_changes_for_others() -> None:
    assert ask(pod("a/p", {"gpu": 1}), cards=Cards()) is None
    assert ask(asking(pod("a/p"), tflops_request=1), cards=Cards()) is None


def test_annotations_speak_for_the_whole_pod() -> None:
    body = asking(pod("a/p", {"gpu": 2}), vram_request="1Gi")
    assert ask(body) == GpuAsk(GpuAmount(0, GIB), GpuAmount(0, GIB))
    (warning,) = warned(body)
    assert warning.startswith("spec.containers[0].resources: nvidia.com/gpu takes room on")


def test_the_devices_of_a_pod_that_runs() -> None:
    body = asking(pod("a/p", nodeName="n"), gpu_ids="g-2, g-1,g-2", gpu_count=2)
    made = read_pod(read(body), "u", (0, True), 0, SHARED)
    assert made.devices == ("g-2", "g-1")
    del body["spec"]["nodeName"]
    assert read_pod(read(body), "u", (0, True), 0, SHARED).devices == ()
    each = read(asking(pod("a/p"), gpu_ids=["g"]))
    with pytest.raises(InputError, match="gpu-ids]: must be text"):
        devices(each.metadata, each)


def test_keys_that_look_like_a_request() -> None:
    body = asking(pod("a/p"), vram_requests="1Gi", tflop_request=1, gpus=2, autoscale="on", foo=1)
    where = "metadata.annotations[tensor-fusion.ai/"
    assert warned(body) == [
        f"{where}vram-requests]: is not known here and has no effect; "
        "did you mean tensor-fusion.ai/vram-request?",
        f"{where}tflop-request]: is not known here and has no effect; "
        "did you mean tensor-fusion.ai/tflops-request?",
        f"{where}gpus]: is not known here and has no effect; "
        "did you mean tensor-fusion.ai/gpu-ids?",
    ]
    job = workload("Job", "a/j", {})
    job["spec"]["template"] = asking(job["spec"]["template"], vramm=1, isolation="partitioned")
    assert [each.split("[")[0] for each in warned(job)] == [
        "spec.template.metadata.annotations"
    ] * 2


def test_gangs_by_annotation_are_understood_and_unknown_words_of_them_named() -> None:
    job = workload("Job", "a/j", {})
    job["spec"]["template"] = asking(
        job["spec"]["template"], vram_request="1Gi", gang_enabled="true", gang_mode="Strict"
    )
    (said,) = [each for each in warned(job) if "gang-" in each]
    assert "tensor-fusion.ai/gang-mode" in said
    assert "is not considered" in said
