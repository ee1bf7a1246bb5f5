"""Weights of namespaces, out of ResourceQuotas."""

from typing import Any

import pytest

from aliquot.dialects.volcano.namespace_weights import KEY, readable_namespace_weight, weights
from aliquot.engine.model.quantity import LIMIT
from aliquot.json import Body
from tests.build.manifests import resource_quota
from tests.dialects.manifests import read


def weight(*bodies: Body, namespace: str = "a") -> int:
    return weights([read(each) for each in bodies]).get(namespace, 1)


def weighed(name: str, value: Any) -> Body:
    return resource_quota(f"a/{name}", **{KEY: value})


def test_nothing_is_one() -> None:
    assert weight() == 1
    assert weight(resource_quota("a/rq", cpu=4)) == 1


@pytest.mark.parametrize(
    ("value", "counts"),
    [(7, 7), ("7", 7), ("2k", 2000), ("2000m", 2), (3.0, 3), (1, 1), (10**30, LIMIT)],
)
def test_whole_numbers_count(value: Any, counts: int) -> None:
    body = weighed("rq", value)
    assert weight(body) == counts
    assert list(readable_namespace_weight(read(body))) == []


@pytest.mark.parametrize(
    "value", [0, "0", -3, "-1", "1500m", 1.5, "0.5", "many", "", None, True, [2], {"a": 1}]
)
def test_anything_else_is_one(value: Any) -> None:
    body = weighed("rq", value)
    assert weight(body) == 1
    (found,) = readable_namespace_weight(read(body))
    assert (found.severity, found.field) == ("warning", f"spec.hard[{KEY}]")
    assert found.problem.endswith("is no whole number of at least 1, and counts as 1")


def test_the_highest_counts_while_it_is_there() -> None:
    quotas = [weighed("abc", 456), resource_quota("a/def"), weighed("def", 16), weighed("ghi", 0)]
    assert weight(*quotas) == 456
    assert weight(*quotas[1:]) == 16
    assert weight(quotas[3]) == 1
    assert weight(weighed("abc", 9), namespace="b") == 1


def test_what_a_controller_says_of_it_does_not_count() -> None:
    assert weight({**weighed("rq", 7), "status": {"hard": {KEY: "3"}}}) == 7
