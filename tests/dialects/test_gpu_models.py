"""GPU models: which resource the cards of a node are of, and what quotas name of it."""

from typing import Any

import pytest

from aliquot.dialects.configuration import Gpu
from aliquot.dialects.core.gpu_models import AMD, NVIDIA, GpuModels, gpu_models
from aliquot.dialects.core.nodes import node as read_node
from aliquot.dialects.nos.cards import Cards, cards
from aliquot.dialects.quota_index import build
from aliquot.errors import InputError
from aliquot.json import Body
from tests.build.manifests import node, pod, queue, quota
from tests.dialects.manifests import read, shape_of

PRODUCT, AMD_PRODUCT = "nvidia.com/gpu.product", "amd.com/gpu.product-name"
A100 = "gpu.aliquot.dev/a100"
GROUPS = {"a100": ["NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-PCIE-40GB"]}


def labelled(has: dict[str, Any] | None = None, **labels: str) -> Body:
    body = node("n", **(has or {"gpu": 8}))
    body["metadata"]["labels"] = {
        {"product": PRODUCT, "amd": AMD_PRODUCT}[key]: value for key, value in labels.items()
    }
    return body


def models_of(body: Body, *named: str, groups: dict[str, list[str]] | None = None) -> Any:
    names = [f"gpu.aliquot.dev/{each}" for each in named]
    labels = [body["metadata"]["labels"]]
    found = read_node(read(body), Cards(models=gpu_models(groups or {}, names, labels)))
    has = dict(found.allocatable)
    assert all(has[model] == has[kind] for kind, model in found.models)
    return found.models


@pytest.mark.parametrize("value", GROUPS["a100"])
def test_the_model_is_the_group_that_lists_the_label(value: str) -> None:
    assert models_of(labelled(product=value), "a100", groups=GROUPS) == ((NVIDIA, A100),)


def test_a_value_in_no_group_is_its_own_model() -> None:
    found = models_of(labelled(product="Tesla-T4"), "Tesla-T4", groups=GROUPS)
    assert found == ((NVIDIA, "gpu.aliquot.dev/Tesla-T4"),)


def test_only_models_that_a_quota_names_count() -> None:
    assert models_of(labelled(product="Tesla-T4"), "a100", groups=GROUPS) == ()
    assert models_of(labelled(product="NVIDIA-A100-SXM4-80GB"), groups=GROUPS) == ()


@pytest.mark.parametrize("value", ["", "Tesla T4", "-T4", "x" * 64])
def test_a_value_that_is_no_label_is_no_model(value: str) -> None:
    every = GpuModels(named=None)
    assert every.of_node({NVIDIA: 8}, {PRODUCT: value}) == ()


def test_amd_counts_likewise_with_its_own_label() -> None:
    body = labelled({"amd.com/gpu": 8}, amd="AMD_Instinct_MI300X_OAM")
    found = models_of(body, "mi300x", groups={"mi300x": ["AMD_Instinct_MI300X_OAM"]})
    assert found == ((AMD, "gpu.aliquot.dev/mi300x"),)
    assert models_of(labelled(amd="AMD_Instinct_MI300X_OAM"), "AMD_Instinct_MI300X_OAM") == ()


@pytest.mark.parametrize(
    ("model", "labels", "kind"),
    [
        ("a100", {}, NVIDIA),
        ("mi250", {}, AMD),
        ("AMD_Instinct_MI300X", {}, AMD),
        ("big", {AMD_PRODUCT: "big"}, AMD),
        ("mi250", {PRODUCT: "mi250"}, NVIDIA),
    ],
)
def test_a_model_is_of_the_cards_that_have_it_else_by_its_name(
    model: str, labels: dict[str, str], kind: str
) -> None:
    named = f"gpu.aliquot.dev/{model}"
    assert gpu_models({}, [named], [labels]).cards_of(named) == kind


def test_the_min_in_cards_is_at_least_the_sum_of_mins_by_model() -> None:
    low = {A100: 3, "gpu.aliquot.dev/v100": 4, "gpu.aliquot.dev/mi250": 2}
    manifests = [
        read(quota("few", {**low, "gpu": 5})),
        read(quota("many", {**low, "gpu": 9})),
        read(queue("q", deserved=low)),
    ]
    index = build(manifests)
    least = {name: dict(each.min or each.deserved) for name, each in index.quotas.items()}
    assert {name: (each[NVIDIA], each[AMD]) for name, each in least.items()} == {
        "few/quota": (7, 2),
        "many/quota": (9, 2),
        "q": (7, 2),
    }


@pytest.mark.parametrize("where", ["min", "max", "weight", "queue"])
def test_a_model_counts_wherever_a_quota_names_it(where: str) -> None:
    named = {A100: 1}
    body = {
        "min": quota("a", named),
        "max": quota("a", {}, named),
        "weight": quota("a", {}, {}),
        "queue": queue("a", capability=named),
    }[where]
    if where == "weight":
        key = "quota.scheduling.koordinator.sh/shared-weight"
        body["metadata"]["annotations"] = {key: f'{{"{A100}": 2}}'}
    found = cards(Gpu(models=GROUPS), [read(body), read(labelled(product=GROUPS["a100"][0]))])
    assert found.models.named == frozenset({A100})


def test_a_value_in_the_status_of_a_node_is_ignored() -> None:
    body = labelled({"gpu": 8, A100: 99}, product="Tesla-T4")
    found = read_node(read(body), Cards(models=gpu_models(GROUPS, [A100], [])))
    assert A100 not in dict(found.allocatable)


def test_a_pod_cannot_ask_for_a_model() -> None:
    with pytest.raises(InputError, match="select nodes of the model"):
        shape_of(pod("a/p", {A100: 1}))


def test_gpu_memory_and_models_are_told_apart_together() -> None:
    models = gpu_models(GROUPS, [A100], [])
    body = labelled(product=GROUPS["a100"][0])
    found = read_node(read(body), Cards(32, {GROUPS["a100"][0]: 80}, (80,), True, models=models))
    assert (found.node_class, found.models) == ("80GB", ((NVIDIA, A100),))
    assert found.charge_class == f"80GB {A100}"
