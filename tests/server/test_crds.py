"""The custom kinds: whatever Aliquot reads or writes, their schemas keep; nonsense they refuse."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aliquot.dialects.core.documents import parse
from aliquot.dialects.crds import DEFINITIONS, definitions
from aliquot.dialects.kep9 import objects as quota_wire
from aliquot.dialects.nos import objects as nos_wire
from aliquot.dialects.tensor_fusion import objects as gpu_wire
from aliquot.dialects.volcano import objects as volcano_wire
from aliquot.json import Body
from aliquot.server.rules.core_rules import check_create, fill_defaults
from aliquot.server.schema.check import check, unknown
from aliquot.server.schema.check import fill_defaults as fill_by_schema

EXAMPLES = Path(__file__).parents[2] / "examples"


def schema(kind: str, group: str) -> Any:
    (found,) = [each for each in DEFINITIONS if (each.kind, each.group) == (kind, group)]
    return found.body()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_every_kind_of_the_designs_is_there() -> None:
    assert {(each.kind, each.group, each.version) for each in DEFINITIONS} == {
        ("ElasticQuota", "scheduling.x-k8s.io", "v1alpha1"),
        ("ElasticQuota", "scheduling.sigs.k8s.io", "v1alpha1"),
        ("ElasticQuota", "nos.nebuly.com", "v1alpha1"),
        ("ElasticQuota", "nos.nebuly.ai", "v1alpha1"),
        ("CompositeElasticQuota", "nos.nebuly.com", "v1alpha1"),
        ("CompositeElasticQuota", "nos.nebuly.ai", "v1alpha1"),
        ("PodGroup", "scheduling.x-k8s.io", "v1alpha1"),
        ("PodGroup", "scheduling.sigs.k8s.io", "v1alpha1"),
        ("GPUResourceQuota", "tensor-fusion.ai", "v1"),
        ("GPU", "tensor-fusion.ai", "v1"),
        ("Queue", "scheduling.volcano.sh", "v1beta1"),
        ("PodGroup", "scheduling.volcano.sh", "v1beta1"),
        ("Job", "batch.volcano.sh", "v1alpha1"),
        ("HyperNode", "topology.volcano.sh", "v1alpha1"),
        ("ElasticQuotaProfile", "quota.koordinator.sh", "v1alpha1"),
    }


@pytest.mark.parametrize("body", definitions(), ids=lambda body: body["metadata"]["name"])
def test_a_definition_is_one_an_api_server_takes(body: Body) -> None:
    kind = "CustomResourceDefinition"
    assert check_create(kind, fill_defaults(kind, body)) == []
    (version,) = body["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    assert body["spec"]["names"]["categories"] == ["aliquot"]
    assert list(structural_problems(version["schema"]["openAPIV3Schema"], "")) == []


def structural_problems(shape: Any, place: str) -> Iterator[str]:
    """Every part has a type, or is a number or a text; no part says the same thing twice over."""
    if "type" not in shape and not shape.get("x-kubernetes-int-or-string"):
        yield f"{place} has no type"
    if "properties" in shape and "additionalProperties" in shape:
        yield f"{place} is both an object and a map"
    for key in shape.get("required", ()):
        if key not in shape["properties"]:
            yield f"{place} requires {key}, which it does not know"
    for key, each in shape.get("properties", {}).items():
        yield from structural_problems(each, f"{place}.{key}")
    for word in ("items", "additionalProperties"):
        if isinstance(shape.get(word), dict):
            yield from structural_problems(shape[word], f"{place}[]")
    if "default" in shape and check(shape, shape["default"]):
        yield f"{place} has a default that it refuses"


@pytest.mark.parametrize(
    ("kind", "group", "part", "read_as"),
    [
        ("ElasticQuota", "scheduling.x-k8s.io", "spec", quota_wire.QuotaSpec),
        ("ElasticQuota", "nos.nebuly.ai", "spec", quota_wire.QuotaSpec),
        ("CompositeElasticQuota", "nos.nebuly.com", "spec", nos_wire.CompositeQuotaSpec),
        ("Queue", "scheduling.volcano.sh", "spec", volcano_wire.QueueSpec),
        ("Queue", "scheduling.volcano.sh", "status", volcano_wire.QueueStatus),
        ("Job", "batch.volcano.sh", "spec", volcano_wire.GangJobSpec),
        ("GPUResourceQuota", "tensor-fusion.ai", "spec", gpu_wire.GpuQuotaSpec),
        ("GPU", "tensor-fusion.ai", "status", gpu_wire.GpuStatus),
    ],
)
def test_what_is_read_is_known(kind: str, group: str, part: str, read_as: Any) -> None:
    known = schema(kind, group)["properties"][part]["properties"]
    assert {each.encode_name for each in msgspec.structs.fields(read_as)} <= set(known)


def test_what_is_read_of_both_sorts_of_group_is_known_to_one() -> None:
    groups = ("scheduling.volcano.sh", "scheduling.x-k8s.io")
    known = [set(schema("PodGroup", group)["properties"]["spec"]["properties"]) for group in groups]
    fields = msgspec.structs.fields(volcano_wire.PodGroupSpec)
    assert {each.encode_name for each in fields} <= known[0] | known[1]


def examples() -> Iterator[Any]:
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for document in parse(path.read_text(), str(path.relative_to(EXAMPLES))):
            group = str(document.body.get("apiVersion", "")).rpartition("/")[0]
            kind = document.body["kind"]
            if any((each.kind, each.group) == (kind, group) for each in DEFINITIONS):
                yield pytest.param(kind, group, document.body, id=document.place)


@pytest.mark.parametrize(("kind", "group", "body"), list(examples()))
def test_the_examples_fit(kind: str, group: str, body: Body) -> None:
    shape = schema(kind, group)
    assert check(shape, body) == []
    assert unknown(shape, body) == []


@pytest.mark.parametrize(
    ("kind", "group", "spec", "words"),
    [
        ("ElasticQuota", "nos.nebuly.ai", {"min": {"cpu": "lots"}}, "spec.min.cpu: Invalid value"),
        ("ElasticQuota", "nos.nebuly.ai", {"min": {"cpu": 1.5}}, "must be of type integer,string"),
        ("ElasticQuota", "nos.nebuly.ai", {"max": ["cpu"]}, "spec.max in body must be of type obj"),
        ("CompositeElasticQuota", "nos.nebuly.com", {}, "spec.namespaces: Required value"),
        (
            "CompositeElasticQuota",
            "nos.nebuly.com",
            {"namespaces": []},
            "spec.namespaces in body should have at least 1 items",
        ),
        (
            "CompositeElasticQuota",
            "nos.nebuly.com",
            {"namespaces": ["a", "a"]},
            'spec.namespaces[1]: Duplicate value: "a"',
        ),
        ("Queue", "scheduling.volcano.sh", {"weight": 0}, "should be greater than or equal to 1"),
        ("Queue", "scheduling.volcano.sh", {"weight": 65536}, "should be less than or equal to"),
        (
            "Queue",
            "scheduling.volcano.sh",
            {"dequeueStrategy": "lifo"},
            'supported values: "fifo", "traverse"',
        ),
        ("PodGroup", "scheduling.x-k8s.io", {"minMember": 0}, "greater than or equal to 1"),
        (
            "GPUResourceQuota",
            "tensor-fusion.ai",
            {"total": {"alertThresholdPercent": 101}},
            "spec.total.alertThresholdPercent in body should be less than or equal to 100",
        ),
        (
            "Job",
            "batch.volcano.sh",
            {"tasks": [{"replicas": -1}]},
            "spec.tasks[0].replicas in body should be greater than or equal to 0",
        ),
    ],
)
def test_nonsense_is_refused(kind: str, group: str, spec: Body, words: str) -> None:
    causes = [str(each) for each in check(schema(kind, group), {"spec": spec})]
    assert any(words in each for each in causes), causes


@pytest.mark.parametrize(
    ("kind", "group", "spec", "filled"),
    [
        ("Queue", "scheduling.volcano.sh", {}, {"weight": 1}),
        ("PodGroup", "scheduling.volcano.sh", {}, {"queue": "default"}),
        (
            "Job",
            "batch.volcano.sh",
            {"tasks": [{}]},
            {
                "tasks": [{"replicas": 1, "maxRetry": 3}],
                "schedulerName": "volcano",
                "queue": "default",
                "maxRetry": 3,
            },
        ),
        (
            "GPUResourceQuota",
            "tensor-fusion.ai",
            {"total": {}},
            {"total": {"maxWorkers": 32768, "alertThresholdPercent": 95}},
        ),
        ("ElasticQuota", "nos.nebuly.com", {}, {}),
    ],
)
def test_defaults(kind: str, group: str, spec: Body, filled: Body) -> None:
    assert fill_by_schema(schema(kind, group), {"spec": spec})["spec"] == filled


def test_two_calls_share_nothing() -> None:
    one, other = definitions(), definitions()
    one[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clear()
    assert other[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
