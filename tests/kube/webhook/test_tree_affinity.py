"""The node affinity that pods of a tree get: what selects its nodes, in each of their terms."""

from typing import Any

import pytest

from tests.build.manifests import limited_pod, profile
from tests.kube.webhook.test_defaults import filled
from tests.kube.webhook.writes import cluster, member

Body = dict[str, Any]

ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
OTHER = {"key": "zone", "operator": "In", "values": ["b"]}
DISK = {"key": "disk", "operator": "Exists"}
NAMED = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
TREE = (profile("x/p", "root", "a", tree="t"), member("m", "root"), member("alone"))
TWO_POOLS = (*TREE, profile("x/q", "more", "b", tree="t"))


def terms(body: Body) -> Any:
    affinity = body["spec"].get("affinity", {}).get("nodeAffinity", {})
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get(
        "nodeSelectorTerms"
    )


def with_terms(path: str, own: list[Body] | None) -> Body:
    body = limited_pod(path)
    if own is not None:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": own}}
        body["spec"]["affinity"] = {"nodeAffinity": required}
    return body


@pytest.mark.parametrize(
    ("objects", "own", "wanted"),
    [
        (TREE, None, [{"matchExpressions": [ZONE]}]),
        (TREE, [{"matchExpressions": [DISK]}], [{"matchExpressions": [DISK, ZONE]}]),
        (TREE, [{"matchExpressions": [ZONE]}], [{"matchExpressions": [ZONE]}]),
        (TREE, [NAMED], [{**NAMED, "matchExpressions": [ZONE]}]),
        (TREE, [{}, NAMED], [{}, {**NAMED, "matchExpressions": [ZONE]}]),
        (TWO_POOLS, None, [{"matchExpressions": [ZONE]}, {"matchExpressions": [OTHER]}]),
        (
            TWO_POOLS,
            [{"matchExpressions": [DISK]}],
            [{"matchExpressions": [DISK, ZONE]}, {"matchExpressions": [DISK, OTHER]}],
        ),
    ],
)
def test_pods_of_a_tree_stay_on_its_nodes(
    objects: tuple[Body, ...], own: list[Body] | None, wanted: list[Body]
) -> None:
    whole = filled(cluster(*objects), with_terms("m/p", own))
    assert terms(whole) == wanted
    assert terms(filled(cluster(*objects), whole)) == wanted, "filling in twice is the same"
    assert terms(filled(cluster(*objects), with_terms("alone/p", own))) == own
    assert terms(filled(cluster(*objects), with_terms("m/p", own), is_new=False)) == own
    assert terms(filled(cluster(*objects[1:]), with_terms("m/p", own))) in (
        own,
        [
            {**each, "matchExpressions": [*each.get("matchExpressions", []), OTHER]}
            for each in own or [{}]
        ],
    )
