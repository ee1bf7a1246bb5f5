"""GPU memory: what pods are charged and nodes have, in GB."""

from typing import Any

import pytest

from aliquot.dialects.configuration import Gpu
from aliquot.dialects.core.nodes import node as read_node
from aliquot.dialects.nos.cards import Cards, cards
from aliquot.dialects.nos.gpu_memory import slice_gb
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import GPU_MEMORY
from aliquot.errors import InputError
from aliquot.json import Body
from tests.build.manifests import node, pod, quota
from tests.dialects.manifests import COUNTED, container, gigabytes, read, shape_of, sidecar

OTHER = "nos.nebuly.com/gpu-memory"
A100, H100 = "NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-80GB-HBM3"


def labelled(name: str = "n", has: Body | None = None, **labels: Any) -> Body:
    """A node with labels: `product`, `memory` are short for those that NVIDIA sets."""
    body = node(name, **(has or {"gpu": 8}))
    body["metadata"]["labels"] = {f"nvidia.com/gpu.{key}": value for key, value in labels.items()}
    return body


@pytest.mark.parametrize(
    ("resource", "gb"),
    [
        ("nvidia.com/mig-1g.10gb", 10),
        ("nvidia.com/mig-7g.80gb", 80),
        ("nvidia.com/mig-1g.10gb.me", 10),
        ("nvidia.com/gpu-10gb", 10),
        ("nvidia.com/gpu", 0),
        ("nvidia.com/mig-1ga1gb", 0),
        ("nvidia.com/mig-1g.1gb15gb", 0),
        ("nvidia.com/mig-1g12agb", 0),
        ("nvidia.com/mig-1g.10gbx", 0),
        ("nvidia.com/gpu-10gb.shared", 0),
        ("foo/1g2gb", 0),
        ("foo.nvidia.com/mig-1g.10gb", 0),
        ("", 0),
    ],
)
def test_the_gb_of_a_slice_are_in_its_name(resource: str, gb: int) -> None:
    assert slice_gb(resource) == gb


def test_the_pod_of_the_design_comes_to_42() -> None:
    assert gigabytes(containers=[container(mig_1g_10gb=1, gpu=1)]) == {"": 42}


@pytest.mark.parametrize(
    ("containers", "gb"),
    [
        ([container(gpu=2)], {"": 64}),
        ([container(gpu=1), container("other", gpu=1)], {"": 64}),
        ([container(mps_10gb=2)], {"": 20}),
        ([container(mig_2g_32gb=3, mps_8gb=1, gpu=1)], {"": 136}),
        ([container(cpu=1, memory="1Gi")], {}),
        ([container(gpu=0, mig_1g_10gb=0)], {}),
    ],
)
def test_cards_and_slices_add_up(containers: list[Body], gb: dict[str, int]) -> None:
    assert gigabytes(containers=containers) == gb


def test_what_is_charged_is_no_room() -> None:
    shape = shape_of(pod("a/p", {"gpu": 1, "cpu": 2}))
    assert shape.requests == (("cpu", 2000), ("nvidia.com/gpu", 1), ("pods", 1))
    assert shape.charges == (("", ((*shape.requests[:1], (GPU_MEMORY, 32), *shape.requests[1:]))),)


@pytest.mark.parametrize(
    ("init", "main", "gb"),
    [
        ([container("i", mig_1g_10gb=1)], container(gpu=1), 32),
        ([container("i", gpu=2)], container(mig_1g_10gb=1), 64),
        ([container("i", mig_1g_10gb=2), container("j", mps_24gb=1)], container(mps_8gb=1), 24),
        ([sidecar("s", mps_8gb=1)], container(gpu=1), 40),
        ([sidecar("s", mps_8gb=1), container("i", gpu=2)], container(gpu=1), 72),
        ([container("i", gpu=2), sidecar("s", mps_8gb=1)], container(gpu=1), 64),
        ([container("i", gpu=2), sidecar("s", mps_48gb=1)], container(gpu=1), 80),
    ],
)
def test_the_peak_of_all_phases_counts(init: list[Body], main: Body, gb: int) -> None:
    assert gigabytes(initContainers=init, containers=[main]) == {"": gb}


def test_a_pods_own_figures_and_a_resize_count() -> None:
    assert gigabytes(
        containers=[container(gpu=1)], resources={"requests": {"nvidia.com/gpu": 2}}
    ) == {"": 64}
    assert gigabytes(containers=[container(gpu=1)], overhead={"nvidia.com/gpu-8gb": 1}) == {"": 40}
    resized = pod("a/p", {"nvidia.com/gpu-8gb": 1})
    given = [{"name": "main", "allocatedResources": {"nvidia.com/gpu-24gb": 1}}]
    charge = dict(shape_of({**resized, "status": {"containerStatuses": given}}).charges)[""]
    assert dict(charge)[GPU_MEMORY] == 32


def test_one_charge_for_each_class_on_which_it_differs() -> None:
    by_class = Cards(default=32, sizes=(40, 80), counted=True)
    assert gigabytes(by_class, containers=[container(gpu=2)]) == {"": 64, "40GB": 80, "80GB": 160}
    assert gigabytes(by_class, containers=[container(mig_1g_10gb=1)]) == {"": 10}
    init = [container("i", mps_48gb=1)]
    peaks = gigabytes(by_class, initContainers=init, containers=[container(gpu=1)])
    assert peaks == {"": 48, "80GB": 80}


def test_nobody_is_charged_where_no_quota_names_it() -> None:
    bare = cards(Gpu(), [read(quota("a", {"gpu": 1})), read(labelled(memory="81920"))])
    assert (bare.counted, bare.sizes) == (False, ())
    assert shape_of(pod("a/p", {"gpu": 1}), bare).charges == ()
    read_anyhow = read_node(read(labelled(memory="81920")), bare)
    assert (read_anyhow.node_class, dict(read_anyhow.allocatable).get(GPU_MEMORY)) == ("", None)


@pytest.mark.parametrize(
    ("labels", "gb", "node_class"),
    [
        ({}, 32, ""),
        ({"product": A100}, 40, "40GB"),
        ({"product": A100, "memory": "81920"}, 40, "40GB"),
        ({"product": H100, "memory": "81559"}, 80, "80GB"),
        ({"memory": "32768"}, 32, ""),
        ({"memory": 81920}, 80, "80GB"),
        ({"memory": "4864"}, 5, "5GB"),
        ({"memory": "lots"}, 32, ""),
        ({"memory": "٣"}, 32, ""),
        ({"memory": "-81920"}, 32, ""),
        ({"memory": "100"}, 32, ""),
        ({"memory": "9" * 300}, 32, ""),
        ({"product": None, "memory": None}, 32, ""),
    ],
)
def test_the_gb_of_a_nodes_cards(labels: Body, gb: int, node_class: str) -> None:
    found = read_node(read(labelled(**labels)), Cards(by_model={A100: 40}, counted=True))
    assert (memory_of(found), found.node_class) == (8 * gb, node_class)


def test_a_node_has_what_its_cards_and_slices_come_to() -> None:
    slices: Body = {"nvidia.com/mig-1g.10gb": 4, "nvidia.com/gpu-8gb": 2, "gpu": 1, "cpu": 8}
    assert memory_of(read_node(read(node(**slices)), COUNTED)) == 88
    assert memory_of(read_node(read(node(cpu=8)), COUNTED)) is None
    claimed: Body = {GPU_MEMORY: 500, "gpu": 1}
    assert memory_of(read_node(read(node(**claimed)), COUNTED)) == 32


def test_all_nodes_that_ever_come_make_the_classes() -> None:
    quotas = [quota("a", {OTHER: 40}), quota("a", {}, {GPU_MEMORY: 40})]
    nodes = [labelled("a", memory="81920"), labelled("b", product=A100), labelled("c")]
    for each in quotas:
        manifests = [read(body) for body in (each, *nodes)]
        found = cards(Gpu(memory_gb=24, memory_gb_by_model={A100: 40}), manifests)
        assert (found.default, found.sizes, found.counted) == (24, (40, 80), True)


@pytest.mark.parametrize("name", [GPU_MEMORY, OTHER])
@pytest.mark.parametrize("field", ["containers", "initContainers", "overhead", "resources"])
def test_a_pod_cannot_ask_for_it(name: str, field: str) -> None:
    asks: Any = {"requests": {name: 10}}
    asks = [{"name": "x", "resources": asks}] if field.endswith("ontainers") else asks
    spec = {field: {name: 10} if field == "overhead" else asks}
    with pytest.raises(InputError, match="unit of quotas that no node has") as refused:
        shape_of(pod("a/p", **spec))
    assert refused.value.field.endswith(f"[{name}]")


def memory_of(found: Node) -> int | None:
    return dict(found.allocatable).get(GPU_MEMORY)
