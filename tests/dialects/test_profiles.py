"""Profiles and their root quotas: ids, ratios, what the nodes have, what is kept of an object."""

import json
from typing import Any

import pytest

from aliquot.dialects.core.manifest import Manifest, all_errors
from aliquot.dialects.koordinator import profiles
from aliquot.dialects.koordinator.profiles import Pools, fnv1a, ratio, root_quota
from aliquot.dialects.quota_index import build
from aliquot.json import Body
from tests.build.manifests import KOORDINATOR, profile, tree_quota
from tests.dialects.manifests import read


def node(name: str, zone: str, ready: bool = True, cordoned: bool = False) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": zone}},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {
            "allocatable": {"cpu": 10, "memory": 1000, "storage": 1000},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


NODES = [node("node1", "a"), node("node2", "a", ready=False), node("node3", "b")]


def root(body: Body, *others: Body, nodes: list[Body] = NODES) -> Body:
    """The root quota of a profile over these nodes, given another quota of its name."""
    pools, manifest = Pools(), read(body)
    pools.rebuild([manifest, *map(read, nodes)])
    existing = next((read(each) for each in others), None)
    found: Body = root_quota(manifest, pools.of(manifest), existing).body
    return found


def stated(body: Body, word: str) -> Any:
    return json.loads(body["metadata"]["annotations"][f"{KOORDINATOR}{word}"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/profile1", "2862972692226656278"),
        ("/profile2", "2862971592715028067"),
        ("", "14695981039346656037"),
    ],
)
def test_a_tree_id_is_a_hash(text: str, found: str) -> None:
    assert fnv1a(text) == found


def test_a_profile_has_its_own_tree_unless_it_names_one() -> None:
    assert profiles.profile(read(profile("x/p", "p"))).tree == fnv1a("x/p")
    assert profiles.profile(read(profile("x/p", "p", tree="t"))).tree == "t"


@pytest.mark.parametrize(
    ("zone", "written", "low", "total", "unschedulable"),
    [
        ("a", None, ("20", "2k"), ("20", "2k", "2k"), ("10", "1k", "1k")),
        ("b", None, ("10", "1k"), ("10", "1k", "1k"), None),
        ("a", "0.9", ("18", "1800"), ("18", "1800", "1800"), ("9", "900", "900")),
        ("a", "1.9", ("20", "2k"), ("20", "2k", "2k"), ("10", "1k", "1k")),
        ("a", "0.29", ("5800m", "580"), ("5800m", "580", "580"), ("2900m", "290", "290")),
        ("c", None, ("0", "0"), None, None),
    ],
)
def test_a_root_quota_has_what_the_nodes_have(
    zone: str,
    written: str | None,
    low: tuple[str, ...],
    total: tuple[str, ...] | None,
    unschedulable: tuple[str, ...] | None,
) -> None:
    names = ("cpu", "memory", "storage")
    found = root(profile("x/p", "root", zone, ratio=written))
    assert found["spec"]["min"] == dict(zip(names[:2], low, strict=True))
    assert found["spec"]["max"] == dict.fromkeys(names[:2], "4611686018427387")
    assert stated(found, "total-resource") == dict(zip(names, total or (), strict=False))
    assert stated(found, "unschedulable-resource") == dict(
        zip(names, unschedulable or (), strict=False)
    )


def test_a_cordoned_node_is_reported_and_counts() -> None:
    found = root(profile("x/p", "root", "a"), nodes=[node("n", "a", cordoned=True)])
    assert stated(found, "total-resource") == stated(found, "unschedulable-resource")
    assert found["spec"]["min"] == {"cpu": "10", "memory": "1k"}


def test_resource_keys_choose_what_the_root_is_sure_of() -> None:
    body = profile("x/p", "root", "a", ratio="0.9")
    body["metadata"]["annotations"] = {f"{KOORDINATOR}resource-keys": '["cpu", "gpu"]'}
    found = root(body)
    assert found["spec"]["min"] == {"cpu": "18", "gpu": "0"}
    assert found["spec"]["max"].keys() == {"cpu", "gpu"}
    assert stated(found, "total-resource").keys() == {"cpu", "memory", "storage"}


def test_a_root_quota_keeps_what_others_have_written() -> None:
    old = tree_quota("x/root", {"cpu": 1}, {"cpu": 2}, lend="false")
    old["metadata"]["annotations"] = {"note": "ours", f"{KOORDINATOR}total-resource": "{}"}
    more = {"team": "ml", f"{KOORDINATOR}is-parent": "true"}
    found = root(profile("x/p", "root", "b", tree="t", quota_labels=more), old)
    assert found["metadata"]["labels"] == {
        f"{KOORDINATOR}allow-lent-resource": "false",
        f"{KOORDINATOR}profile": "p",
        f"{KOORDINATOR}is-parent": "true",
        "team": "ml",
        f"{KOORDINATOR}tree-id": "t",
        f"{KOORDINATOR}is-root": "true",
    }
    assert found["metadata"]["annotations"]["note"] == "ours"
    assert found["spec"]["min"] == {"cpu": "10", "memory": "1k"}
    assert old["spec"]["min"] == {"cpu": 1}, "the object itself is not changed"


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("0.9", (9, 10)),
        ("1", (1, 1)),
        ("1e-1", (1, 10)),
        (".5", (1, 2)),
        ("0", None),
        ("1.0001", None),
        ("-0.5", None),
        ("9/10", None),
        ("half", None),
        ("", None),
        (".", None),
        ("1e-999999999", None),
        (None, None),
    ],
)
def test_a_ratio_is_exact(written: str | None, found: tuple[int, int] | None) -> None:
    assert ratio(written) == found


def test_a_profile_without_quota_or_nodes_is_refused() -> None:
    body = profile("x/p", "")
    del body["spec"]["nodeSelector"]

    def check(manifest: Manifest) -> None:
        profiles.profile(manifest)

    errors = all_errors(read(body), check)
    assert [(each.field, each.problem) for each in errors] == [
        ("spec.quotaName", "is missing"),
        ("spec.nodeSelector", "is missing"),
    ]


def test_sums_follow_nodes_that_change() -> None:
    """Nodes that come, change and go one by one leave the sums that a new count has."""
    first, second = read(profile("x/p", "p", "a")), read(profile("x/q", "q", "b"))
    pools = Pools()
    pools.rebuild([first, second])
    history = [node("m", "a"), node("n", "a"), node("m", "b"), node("n", "a", ready=False)]
    for body in history:
        assert pools.put(read(body).key, read(body))
    assert not pools.put(read(history[-1]).key, read(history[-1]))
    fresh = Pools()
    fresh.rebuild([first, second, read(history[2]), read(history[3])])
    for each in (first, second):
        assert pools.of(each) == fresh.of(each)
    assert pools.put(("Node", "", "m"), None)
    assert (pools.of(second).total, pools.of(second).nodes) == ({}, 0)


def test_the_index_has_a_tree_for_every_id() -> None:
    """Several profiles of one id are pools of one tree, each apart from the default one or not."""
    ignored = {f"{KOORDINATOR}ignore-default-tree": "true"}
    bodies = [
        profile("x/p", "p", "a", tree="t"),
        profile("x/q", "q", "b", tree="t", ratio="0.5", quota_labels=ignored),
        profile("x/r", "r", "c"),
        tree_quota("y/team", {}, {"cpu": 9}, parent="p"),
    ]
    index = build([read(each) for each in (*bodies, *NODES)], "koordinator")
    assert set(index.trees) == {"t", fnv1a("x/r")}
    assert [(each.ratio, each.apart) for each in index.trees["t"].pools] == [
        ((1, 1), True),
        ((1, 2), False),
    ]
    assert index.quotas["x/p"].min == (("cpu", 20_000), ("memory", 2000))
    assert index.quotas["x/p"].max == (), "its max says that it has none"
    assert index.quotas["y/team"].parent == "x/p"
    assert build([read(each) for each in (*bodies, *NODES)]).trees == {}, "under other policies"


def test_a_root_quota_is_not_the_quota_of_its_namespace() -> None:
    bodies = [profile("x/p", "p", "a", quota_labels={}), *NODES]
    index = build([read(each) for each in bodies], "koordinator")
    assert index.membership.of(None, "x") == "koordinator-system/koordinator-default-quota"
