"""Quota objects as the engine sees them, and the policy and knobs they are shared by."""

from typing import Any

import pytest

from aliquot.dialects import configuration
from aliquot.dialects.core.documents import Document
from aliquot.dialects.kep9.quotas import quota as read_quota
from aliquot.dialects.policy import choose
from aliquot.engine.model.knobs import FairKnobs
from aliquot.engine.model.pod import GPU_MEMORY
from aliquot.errors import InputError
from tests.build.manifests import composite, quota
from tests.dialects.manifests import read

GROUPS = ["nos.nebuly.com", "nos.nebuly.ai"]


@pytest.mark.parametrize("group", GROUPS)
def test_a_composite_is_one_quota_over_its_namespaces(group: str) -> None:
    body = composite("ops/shared", ["b", "a", "b"], {"gpu": 4}, {"gpu": 8}, group=group)
    found = read_quota(read(body))
    assert found.name == "ops/shared"
    assert found.namespaces == {"a", "b"}
    assert (found.min, found.max) == ((("nvidia.com/gpu", 4),), (("nvidia.com/gpu", 8),))


@pytest.mark.parametrize("group", GROUPS)
def test_both_spellings_are_one_resource(group: str) -> None:
    found = read_quota(read(quota("a", {f"{group}/gpu-memory": 40}, {f"{group}/gpu-memory": 80})))
    assert (found.min, found.max) == (((GPU_MEMORY, 40),), ((GPU_MEMORY, 80),))


@pytest.mark.parametrize(
    ("namespaces", "field"),
    [
        (None, "spec.namespaces"),
        ([], "spec.namespaces"),
        (["a", "Team B"], "spec.namespaces[1]"),
        ([""], "spec.namespaces[0]"),
    ],
)
def test_a_composite_needs_namespaces(namespaces: Any, field: str) -> None:
    with pytest.raises(InputError) as refused:
        read_quota(read(composite("ops/shared", namespaces, {})))
    assert refused.value.field == field


def test_a_lending_group_is_a_label() -> None:
    body = composite("ops/shared", ["a"], {})
    assert read_quota(read(body)).group == ""
    body["metadata"]["labels"] = {"aliquot.dev/lending-group": "research", "app": ["no", "text"]}
    assert read_quota(read(body)).group == "research"
    body["metadata"]["labels"] = {"aliquot.dev/lending-group": ["research"]}
    with pytest.raises(InputError, match="must be text"):
        read_quota(read(body))


@pytest.mark.parametrize("group", GROUPS)
def test_quotas_of_nos_ask_for_fair(group: str) -> None:
    for body in (composite("ops/q", ["a"], {}, group=group), quota("a", {}, group=group)):
        choice = choose([read(quota("b", {})), read(body)])
        assert (choice.policy, choice.field) == ("fair", "apiVersion")
        assert choice.why == f"{read(body).title} is of {group}"
    assert choose([read(quota("b", {}))]).policy == "capacity"


def test_knobs_of_fair_reach_the_engine() -> None:
    body = {
        "apiVersion": configuration.API_VERSION,
        "kind": "Configuration",
        "fair": {"borrow": "freeCapacity", "overQuotaOrder": ["-priority", "name"]},
    }
    knobs = configuration.knobs(configuration.read(Document("test", body)))
    assert knobs.fair == FairKnobs("freeCapacity", ("-priority", "name"))
    assert configuration.knobs(configuration.Configuration()).fair == FairKnobs()
