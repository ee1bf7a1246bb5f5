"""GPU objects, and the devices of nodes of which no GPU object speaks."""

from typing import Any

import pytest

from aliquot.dialects.configuration import Gpu
from aliquot.dialects.core.nodes import node as read_node
from aliquot.dialects.nos.cards import Cards, cards
from aliquot.dialects.tensor_fusion.derived_gpus import MOST, devices, domains
from aliquot.dialects.tensor_fusion.gpu_rules import check_gpus
from aliquot.dialects.tensor_fusion.gpus import device, outside_use, taken
from aliquot.dialects.tensor_fusion.models import tflops
from aliquot.engine.model.gpu import WHOLE_GPU, Device, GpuAmount, GpuAsk
from aliquot.errors import InputError
from aliquot.json import Body
from tests.build.manifests import A100, asking, gpu, gpu_quota, model, node, pod, workload
from tests.dialects.manifests import read

GIB = 2**30
SHARED = Cards(shared=True, compute=True)


def derived(body: Body, settings: Cards = SHARED) -> list[Device]:
    return devices(read_node(read(body), settings), settings)


def warnings(*bodies: Body) -> list[str]:
    return [f"{x.object}: {x.field}: {x.problem}" for x in check_gpus([*map(read, bodies)], SHARED)]


def test_a_gpu_as_it_is_written() -> None:
    said = {"gpuModel": "A100", "vendor": "NVIDIA", "index": 3}
    body = gpu("g-1", "node-1", ("312", "40Gi"), ("100", "10Gi"), pool="east", **said)
    assert device(read(body)) == Device(
        name="g-1",
        node="node-1",
        capacity=GpuAmount(312_000, 40 * GIB),
        used_elsewhere=GpuAmount(212_000, 30 * GIB),
        model="A100",
        vendor="NVIDIA",
        pool="east",
        index=3,
    )


def test_which_gpus_are_near_each_other() -> None:
    body = gpu("g-1", "node-1", ("312", "40Gi"), ("100", "10Gi"), numaNode=1)
    assert device(read(body)).domain == "numa-1"
    body["metadata"].setdefault("labels", {})["aliquot.dev/gpu-domain"] = "nvlink-0"
    assert device(read(body)).domain == "nvlink-0", "what a label says comes first"


def test_which_cards_of_a_node_are_near_each_other() -> None:
    body = node("n", cpu=8, gpu=4)
    body["metadata"]["annotations"] = {"aliquot.dev/gpu-domains": "0-1,2-3"}
    settings, manifest = SHARED, read(body)
    found = devices(read_node(manifest, settings), settings, domains(manifest))
    assert [each.domain for each in found] == ["0-1", "0-1", "2-3", "2-3"]
    for wrong in ("0-1,1-2", "3-1", "a", "0-1,"):
        body["metadata"]["annotations"] = {"aliquot.dev/gpu-domains": wrong}
        with pytest.raises(InputError, match="is no list of ranges of cards"):
            domains(read(body))


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({}, True),
        ({"phase": None}, True),
        ({"phase": "Pending"}, False),
        ({"phase": "Migrating"}, False),
        ({"usedBy": "tensor-fusion"}, True),
        ({"usedBy": "nvidia-device-plugin"}, False),
    ],
)
def test_only_some_take_pods(status: Body, ready: bool) -> None:
    assert device(read(gpu("g", **status))).ready is ready


def test_a_gpu_that_says_little() -> None:
    body = {"apiVersion": "tensor-fusion.ai/v1", "kind": "GPU", "metadata": {"name": "g"}}
    assert device(read(body)) == Device("g", "", GpuAmount())
    assert (
        device(read({**body, "status": {"capacity": {"tflops": 5}}})).used_elsewhere == GpuAmount()
    )


@pytest.mark.parametrize(
    ("available", "held", "others"),
    [
        ((100, 10), (0, 0), (0, 0)),
        ((60, 4), (0, 0), (40, 6)),
        ((60, 4), (40, 2), (0, 4)),
        ((60, 4), (50, 9), (0, 0)),
        ((200, 20), (0, 0), (0, 0)),
    ],
)
def test_what_others_have_is_what_nobody_here_holds(available: Any, held: Any, others: Any) -> None:
    amounts = (GpuAmount(100, 10), GpuAmount(*available), GpuAmount(*held))
    assert outside_use(*amounts) == GpuAmount(*others)


def test_what_pods_take_of_a_device() -> None:
    capacity = GpuAmount(300, 40)
    asks = [GpuAsk(GpuAmount(50, 8), count=2), GpuAsk(request_part=GpuAmount(WHOLE_GPU // 4))]
    assert taken(asks, capacity) == GpuAmount(125, 8)
    assert taken([GpuAsk(GpuAmount(1, 1), whole=True)], capacity) == capacity
    assert taken([GpuAsk(GpuAmount(200, 30))] * 2, capacity) == capacity
    assert taken([], capacity) == GpuAmount()


def test_a_negative_index_is_refused() -> None:
    with pytest.raises(InputError, match=r"status.index: -1 is negative"):
        device(read(gpu("g", index=-1)))


@pytest.mark.parametrize(
    ("product", "known"),
    [
        (A100, "312"),
        ("NVIDIA-H100-80GB-HBM3", "989"),
        ("NVIDIA-H100-PCIe", "756"),
        ("NVIDIA-A10", "125"),
        ("NVIDIA-A10G", "70"),
        ("NVIDIA-L40S", "362"),
        ("NVIDIA-L4", "121"),
        ("Tesla-T4", "65"),
        ("Tesla-V100-SXM2-16GB", "125"),
        ("Tesla-V100-PCIE-32GB", "112"),
        ("NVIDIA-GeForce-RTX-4090", "165.2"),
        ("RTX4090", "165.2"),
        ("NVIDIA-RTX-A6000", "154.8"),
        ("NVIDIA-A100-SXM4-40GB-SHARED", "312"),
        ("NVIDIA-A1000", ""),
        ("", ""),
    ],
)
def test_models(product: str, known: str) -> None:
    assert tflops(product) == known


def test_devices_follow_from_a_nodes_cards() -> None:
    first, second = derived(model(node("n", gpu=2)))
    assert first == Device(
        name="n/0",
        node="n",
        capacity=GpuAmount(312_000, 40 * GIB),
        model=A100,
        vendor="NVIDIA",
    )
    assert (second.name, second.index) == ("n/1", 1)
    assert derived(model(node("n", cpu=8))) == []
    assert len(derived(node("n", gpu=10**9))) == MOST


def test_the_memory_of_a_card() -> None:
    def vram(body: Body, **settings: Any) -> int:
        return derived(body, Cards(shared=True, **settings))[0].capacity.vram

    assert vram(model(node("n", gpu=1), memory="81559")) == 81559 * 2**20
    assert vram(node("n", gpu=1)) == 32 * GIB
    assert vram(model(node("n", gpu=1), memory="much"), default=8) == 8 * GIB
    assert vram(model(node("n", gpu=1)), by_model={A100: 80}) == 80 * GIB


@pytest.mark.parametrize(
    ("bodies", "shared", "compute"),
    [
        ([node(), pod("a/p", {"gpu": 1})], False, False),
        ([gpu("g")], True, False),
        ([gpu_quota("a/q")], True, False),
        ([gpu_quota("a/q", {"limits": {"tflops": 1}})], True, True),
        ([gpu_quota("a/q", None, {"defaultLimits": {"vram": 1}})], True, False),
        ([asking(pod("a/p"), vram_request="1Gi")], True, False),
        ([asking(pod("a/p"), tflops_limit="1")], True, True),
        ([asking(pod("a/p"), gpu_ids="g", qos="low")], False, False),
        ([asking(workload("Job", "a/j", {}), vram_limit=1)], False, False),
    ],
)
def test_who_shares(bodies: list[Body], shared: bool, compute: bool) -> None:
    found = cards(Gpu(), map(read, bodies))
    assert (found.shared, found.compute) == (shared, compute)


def test_templates_share_too() -> None:
    job = workload("Job", "a/j", {})
    job["spec"]["template"] = asking(job["spec"]["template"], gpu_count=2)
    assert cards(Gpu(), [read(job)]).shared


def test_cards_that_nobody_knows() -> None:
    unknown = model(node("n", gpu=2), "Riva-128")
    (warning,) = warnings(unknown)
    assert "'Riva-128' is no model that is known here: its GPUs count 0 TFLOPs" in warning
    assert "is missing: its GPUs count 0 TFLOPs" in warnings(node("n", gpu=1))[0]
    assert warnings(unknown, gpu("g", "n")) == []
    assert warnings(model(node("n", gpu=2)), node("m", cpu=1)) == []
    assert f"only {MOST} of them" in warnings(model(node("n", gpu=5000)))[0]


def test_gpus_that_are_nowhere() -> None:
    assert warnings(gpu("g", "gone")) == [
        "GPU g: status.nodeSelector[kubernetes.io/hostname]: there is no node gone; "
        "nobody runs on this GPU until it comes"
    ]
    assert "is missing: nobody can run" in warnings(gpu("g", nodeSelector={}))[0]
