"""The fast way and the slow way to judge an object by its schema always agree.

A schema inside `allOf` is one that only the slow way knows.
"""

from typing import Any

import pytest

from aliquot.dialects.crds import definitions
from aliquot.server.schema.check import check
from aliquot.server.schema.core_schemas import schema
from aliquot.server.schema.quick_check import compiled
from tests.server.test_core_rules import WHOLE, twisted

QUOTA: dict[str, Any] = {
    "metadata": {"name": "a"},
    "spec": {
        "min": {"cpu": 1, "memory": "1Gi"},
        "namespaces": ["a"],
        "weight": 1,
        "queue": "q",
        "minMember": 2,
        "tasks": [{"name": "t", "replicas": 1, "template": {"spec": {}}}],
        "total": {"requests": {"tflops": 1, "vram": "1Gi"}, "alertThresholdPercent": 5},
    },
    "status": {"used": {"cpu": "1"}, "conditions": [{"type": "Ready", "status": "True"}]},
}
CUSTOM = {
    each["metadata"]["name"]: each["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for each in definitions()
}


def differences(shape: Any, good: Any) -> list[Any]:
    """What only one of the two ways refuses."""
    whole = {"allOf": [shape]}
    fast = compiled(shape, lambda part, value: not check({"allOf": [part]}, value))
    return [odd for odd in twisted(good) if fast(odd) != (not check(whole, odd))]


@pytest.mark.parametrize("kind", WHOLE)
def test_kinds_of_kubernetes(kind: str) -> None:
    assert differences(schema(kind), WHOLE[kind]) == []


@pytest.mark.parametrize("name", CUSTOM)
def test_custom_kinds(name: str) -> None:
    assert differences(CUSTOM[name], QUOTA) == []
