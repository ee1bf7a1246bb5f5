"""The rules of quota trees, each by itself: what is refused, what is fine, and in which words."""

from typing import Any

import pytest

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.koordinator.rules import check_change, check_member, check_tree
from aliquot.dialects.koordinator.tree_rules import check_pools, check_profile, check_profiles
from aliquot.dialects.quota_index import build
from aliquot.engine import Node
from aliquot.json import Body
from tests.build.manifests import KOORDINATOR, composite, profile, quota, tree_quota
from tests.dialects.manifests import read

PARENT = f"metadata.labels[{KOORDINATOR}parent]"


def parent(path: str, low: Body | None = None, high: Body | None = None, **said: Any) -> Body:
    return tree_quota(path, low, high, is_parent="true", **said)


def found(*bodies: Body, coming: tuple[str, ...] = ()) -> list[Finding]:
    return list(check_tree(build([read(each) for each in bodies]), coming))


def problems(*bodies: Body) -> list[tuple[str, str]]:
    assert {each.severity for each in found(*bodies)} <= {"error"}
    return [(each.field, each.problem) for each in found(*bodies)]


def alone(body: Body) -> list[tuple[str, str, str]]:
    listed = check_member(read(body))
    return [(each.severity, each.field, each.problem) for each in listed]


def changed(before: list[Body], after: list[Body]) -> list[Finding]:
    """What is said of the step from these objects to those."""
    old = {each.key: each for each in map(read, before)}
    new = {each.key: each for each in map(read, after)}
    applied = [each for key, each in new.items() if old.get(key) != each]
    gone = {key: "there" for key in old if key not in new}
    trees = (build(old.values()), build(new.values()))
    return list(check_change(*trees, applied, old, gone))


def test_a_sound_tree_needs_no_word() -> None:
    bodies = [
        parent("a/top", {"cpu": 10}, {"cpu": 20}),
        tree_quota("b/x", {"cpu": 4}, {"cpu": 40}, parent="top"),
        parent("b/y", {"cpu": 6}, {"cpu": 5}, parent="top"),
        tree_quota("c/z", {"cpu": 6}, {"cpu": 20}, **{"parent-quota-name": "y"}),
        tree_quota("c/alone", {"memory": 5}, {"memory": 9}),
    ]
    assert found(*bodies) == []
    assert found(*bodies[::-1]) == []


@pytest.mark.parametrize(
    ("own", "children", "sum_of_min"),
    [
        ({"cpu": 10, "memory": 51200}, [{"cpu": 16, "memory": 12800}], "cpu"),
        ({"cpu": 16, "memory": 12800}, [{"cpu": 16, "memory": 12801}], "memory"),
        ({"cpu": 19, "memory": 51200}, [{"cpu": 16, "memory": 12800}], None),
        ({}, [{"cpu": 19}], "cpu"),
        ({"cpu": 1}, [{"cpu": "500m"}, {"cpu": "600m"}], "cpu"),
        ({"cpu": 1}, [{"cpu": "500m"}, {"cpu": "500m"}], None),
        ({"cpu": 1}, [{"memory": 0}], None),
    ],
)
def test_children_live_on_their_parents_min(
    own: Body, children: list[Body], sum_of_min: str | None
) -> None:
    below = [tree_quota(f"b/c-{i}", low, parent="p") for i, low in enumerate(children)]
    fields = [field for field, _ in problems(parent("a/p", own), *below)]
    assert fields == ([f"spec.min[{sum_of_min}]"] if sum_of_min else [])


def test_a_sum_that_is_too_high_names_everybody_and_the_numbers() -> None:
    bodies = [
        parent("a/p", {"gpu": 4}),
        tree_quota("b/x", {"gpu": 3}, parent="p"),
        tree_quota("b/y", {"gpu": 2}, parent="p"),
    ]
    (finding,) = found(*bodies)
    assert finding.object == "ElasticQuota b/y"
    assert finding.problem == (
        "with this quota, the children of a/p (b/x, b/y) have a min of 5 together, "
        "above its own of 4"
    )


def test_the_first_level_and_the_forced_ones_are_exempt_from_sums() -> None:
    assert found(parent("a/p", {"cpu": 10**6}), parent("a/q", {"cpu": 10**6})) == []
    force: Body = {"allow-force-update": "true"}
    low: Body = {"cpu": 5}
    assert found(parent("a/p", **force), tree_quota("a/x", low, parent="p")) == []
    assert found(parent("a/p"), tree_quota("a/x", low, parent="p", **force)) == []
    root: Body = {"is-root": "true"}
    assert found(parent("a/p", **root), tree_quota("a/x", low, parent="p")) == []


def test_a_parent_is_there_and_is_a_parent() -> None:
    child = tree_quota("b/x", parent="p")
    assert problems(child) == [(PARENT, "there is no parent quota p")]
    ((field, problem),) = problems(child, tree_quota("a/p", lend="true"))
    assert field == PARENT
    assert problem.startswith("quota a/p is no parent: it lacks the label ")
    assert found(child, parent("a/p")) == []


def test_a_parent_may_come_later_as_long_as_it_comes() -> None:
    (finding,) = found(tree_quota("b/x", parent="p"), coming=("p",))
    assert finding.severity == "warning"
    assert "comes later" in finding.problem


@pytest.mark.parametrize("names", ["a", "ab", "abc"])
def test_circles_are_refused(names: str) -> None:
    above = dict(zip(names, names[1:] + names[0], strict=True))
    bodies = [parent(f"n/{name}", parent=up) for name, up in above.items()]
    said = problems(*bodies, tree_quota("n/below", parent=names[0]))
    assert [field for field, _ in said] == [PARENT] * len(names)
    words = "is its own parent" if names == "a" else "a circle: n/a is below n/b"
    assert said[0][1].startswith(words)


def test_names_are_unique_across_namespaces() -> None:
    bodies = [tree_quota("a/x", lend="true"), quota("b/x", {})]
    ((field, problem),) = problems(*bodies)
    assert (field, problem) == (
        "metadata.name",
        "names are unique across namespaces, and there is ElasticQuota a/x (test)",
    )
    assert found(quota("a", {}), quota("b", {}), tree_quota("c/x", lend="true")) == []


def test_a_namespace_is_listed_once() -> None:
    bodies = [
        tree_quota("a/x", namespaces='["n", "m"]'),
        tree_quota("a/y", namespaces='["n"]'),
    ]
    ((field, problem),) = problems(*bodies)
    assert field == f"metadata.annotations[{KOORDINATOR}namespaces]"
    assert problem == "namespace n is listed already by ElasticQuota a/x (test)"
    assert len(found(composite("ops/shared", ["m"], {}), bodies[0])) == 1
    assert found(bodies[0], tree_quota("n/n", lend="true")) == []


def test_a_child_has_no_resource_that_its_parent_lacks() -> None:
    top = parent("a/p", {}, {"cpu": 10, "memory": 10})
    assert problems(top, tree_quota("a/x", {}, {"cpu": 99, "gpu": 1}, parent="p")) == [
        ("spec.max[nvidia.com/gpu]", "max of its parent a/p does not name it, but only cpu, memory")
    ]
    assert found(top, tree_quota("a/x", {}, {"cpu": 99}, parent="p")) == []
    assert found(parent("a/p"), tree_quota("a/x", {}, {"cpu": 1}, parent="p")) == []


def test_a_key_may_come_to_parent_and_children_in_one_step() -> None:
    before = [
        parent("a/p", {"cpu": 2}, {"cpu": 2}),
        tree_quota("a/x", {"cpu": 1}, {"cpu": 2}, parent="p"),
    ]
    after = [
        parent("a/p", {"cpu": 2, "gpu": 1}, {"cpu": 2, "gpu": 4}),
        tree_quota("a/x", {"cpu": 1, "gpu": 1}, {"cpu": 2, "gpu": 4}, parent="p"),
    ]
    for order in (after, after[::-1]):
        assert found(*order) == changed(before, order) == []
    assert len(problems(before[0], after[1])) == 2
    assert found(after[0], before[1]) == []


@pytest.mark.parametrize(
    ("trees", "wrong"),
    [
        (("t", "t", "t"), []),
        (("t", None, None), []),
        (("t", None, "t"), []),
        (("", "", ""), []),
        (("t", "u", None), ["a/x"]),
        ((None, "t", None), ["a/x"]),
        (("", "t", None), ["a/x"]),
        ((None, "", None), []),
        ((None, None, "t"), []),
        (("t", None, "u"), []),
        (("t", "u", "u"), ["a/x"]),
    ],
)
def test_a_quota_is_in_the_tree_of_its_parent(
    trees: tuple[str | None, ...], wrong: list[str]
) -> None:
    ids: list[Body] = [{} if each is None else {"tree_id": each} for each in trees]
    bodies = [
        parent("a/p", **ids[0]),
        tree_quota("a/x", parent="p", **ids[1]),
        tree_quota("a/other", lend="true", **ids[2]),
    ]
    if trees[2] is None:
        bodies.pop()
    listed = [each for each in found(*bodies) if each.severity == "error"]
    assert [each.object.removeprefix("ElasticQuota ") for each in listed] == wrong


def test_a_tree_id_that_no_profile_has_is_a_warning() -> None:
    def found(*bodies: Body) -> list[Finding]:
        return list(check_tree(build([read(each) for each in bodies], "koordinator")))

    bodies = [parent("a/p", tree_id="t"), tree_quota("a/x", parent="p")]
    (finding,) = found(*bodies)
    assert (finding.severity, finding.object) == ("warning", "ElasticQuota a/p")
    assert finding.problem == (
        "no ElasticQuotaProfile has the tree 't', so it has no nodes and its pods wait"
    )
    assert found(*bodies, profile("a/fast", "root", tree="t")) == []
    (other,) = found(*bodies, profile("a/fast", "root", tree="u"))
    assert other.problem.endswith("its pods wait; there are u")


def test_profiles_that_promise_what_is_not_there() -> None:
    def said(*bodies: Body) -> list[tuple[str, str]]:
        nodes = [Node(name, (), (("zone", zone),)) for name, zone in (("m", "a"), ("n", "b"))]
        profiles = [read(each) for each in bodies]
        listed = [*check_profiles(profiles), *check_pools(profiles, nodes)]
        assert {each.severity for each in listed} <= {"warning"}
        return [(each.object, each.problem) for each in listed]

    assert said(profile("x/p", "p", zone="a"), profile("x/q", "q", zone="b")) == []
    assert said(profile("x/p", "p", zone="c")) == [
        ("ElasticQuotaProfile x/p", "selects no node, so its tree has nothing to share")
    ]
    assert said(profile("x/p", "p", zone="a"), profile("x/q", "q", zone="a")) == [
        (
            "ElasticQuotaProfile x/q",
            "selects m, as ElasticQuotaProfile x/p (test) does: both trees share what is there "
            "but once",
        )
    ]
    same = profile("x/p", "p", zone="a", tree="t"), profile("x/q", "q", zone="a", tree="t")
    assert said(*same) == []
    assert said(profile("x/p", "p", zone="a"), profile("x/q", "p", zone="b")) == [
        (
            "ElasticQuotaProfile x/q",
            "p is kept already by ElasticQuotaProfile x/p (test); this profile only adds nodes",
        )
    ]


def test_what_of_a_profile_cannot_be_read_is_a_warning() -> None:
    body = profile("x/p", "p", zone="a", ratio="1.5")
    body["metadata"]["annotations"] = {f"{KOORDINATOR}resource-keys": "cpu"}
    assert [(each.severity, each.problem) for each in check_profile(read(body))] == [
        ("warning", "'1.5' is no number above 0 and at most 1; all that the nodes have counts"),
        ("warning", 'is not a JSON list of names, such as ["cpu"]; cpu and memory count instead'),
    ]
    assert list(check_profile(read(profile("x/p", "p", zone="a", ratio="0.5")))) == []


def test_a_tree_id_below_a_parent_without_one_is_refused_at_every_depth() -> None:
    bodies = [parent("a/p"), parent("a/m", parent="p"), tree_quota("a/x", parent="m", tree_id="t")]
    (finding,) = found(*bodies)
    assert finding.problem == "is 't', but there is none in ElasticQuota a/m (test), above it"
    bodies[0] = parent("a/p", tree_id="t")
    assert found(*bodies) == [], "the webhook copies the id to what is between them"


def test_nobody_moves_between_trees() -> None:
    (finding,) = changed([tree_quota("a/x", tree_id="t")], [tree_quota("a/x", tree_id="u")])
    assert finding.problem == "was 't' and cannot become 'u'"
    assert (
        changed([tree_quota("a/x", tree_id="t")], [tree_quota("a/x", {"cpu": 1}, tree_id="t")])
        == []
    )


def test_quotas_change_their_parents_and_their_kind() -> None:
    """Freely, as long as what comes of it is a sound tree."""
    before = [
        parent("a/p", {"cpu": 4}),
        parent("a/q", {"cpu": 1}),
        tree_quota("a/x", {"cpu": 2}, parent="p"),
    ]
    moved = tree_quota("a/x", {"cpu": 2}, parent="q")
    assert changed(before, [*before[:2], moved]) == []
    assert len(found(*before[:2], moved)) == 1
    assert found(before[0], parent("a/q", {"cpu": 2}), moved) == []
    leaf = tree_quota("a/p", {"cpu": 4}, is_parent="false")
    assert [field for field, _ in problems(leaf, *before[1:])] == [PARENT]
    assert found(leaf, before[1]) == changed(before, [leaf, before[1]]) == []


def test_a_parent_is_not_deleted_before_its_children() -> None:
    both = [parent("a/p"), tree_quota("a/x", parent="p")]
    (finding,) = changed(both, both[1:])
    assert (finding.place, finding.object) == ("there", "ElasticQuota a/p")
    assert finding.problem == "cannot be deleted: it is the parent of a/x"
    assert changed(both, both[:1]) == changed(both, []) == []


@pytest.mark.parametrize("name", ["root", "system", "default"])
def test_special_quotas_stay(name: str) -> None:
    body = tree_quota(f"koordinator-system/koordinator-{name}-quota")
    assert [each.problem for each in changed([body], [])] == ["cannot be deleted"]


def test_only_the_default_quota_may_be_edited() -> None:
    path = "koordinator-system/koordinator-{}-quota"
    for name, said in (
        ("root", ["cannot be changed"]),
        ("system", ["cannot be changed"]),
        ("default", []),
    ):
        before, after = tree_quota(path.format(name)), tree_quota(path.format(name), {"cpu": 1})
        assert [each.problem for each in changed([before], [after])] == said


def test_bounds_of_the_system_have_no_effect() -> None:
    body = tree_quota("koordinator-system/koordinator-system-quota", {}, {"cpu": 4})
    assert alone(body) == [("warning", "spec.max", "has no effect on this quota")]
    huge = {"cpu": "1844674407370955161", "memory": "1844674407370955161"}
    assert alone(tree_quota("koordinator-system/koordinator-system-quota", {}, huge)) == []


def test_a_guarantee_is_of_what_max_names() -> None:
    ((severity, field, _),) = alone(
        tree_quota("a/x", {"cpu": 1, "gpu": 1}, {"cpu": 2}, lend="true")
    )
    assert (severity, field) == ("error", "spec.min[nvidia.com/gpu]")
    assert alone(tree_quota("a/x", {"cpu": 1}, lend="true")) == []
    assert alone(quota("a", {"gpu": 1}, {"cpu": 2})) == []


@pytest.mark.parametrize(
    ("keys", "high", "used", "field"),
    [
        (
            ["cpu", "memory"],
            {"cpu": 0, "memory": "1Mi"},
            {"cpu": 0, "memory": "10Mi"},
            "spec.max[memory]",
        ),
        (["cpu"], {"cpu": 0, "memory": "1Mi"}, {"cpu": 0, "memory": "10Mi"}, None),
        (["cpu", "memory"], {"cpu": 0, "memory": "1Mi"}, {"cpu": 0}, None),
        (["cpu", "memory"], {"cpu": 0}, {"cpu": 0, "memory": "10Mi"}, "metadata.annotations"),
        (["cpu"], {"cpu": 1}, {"cpu": "x"}, "status.used[cpu]"),
        (["cpu"], {"cpu": 1}, "nonsense", None),
    ],
)
def test_strict_keys_are_not_bounded_below_what_is_used(
    keys: list[str], high: Body, used: Any, field: str | None
) -> None:
    body = {**tree_quota("a/x", {}, high), "status": {"used": used}}
    body["metadata"]["annotations"] = {f"{KOORDINATOR}max-strict-check-resource-keys": keys}
    listed = alone(body)
    assert len(listed) == (field is not None)
    assert all(
        severity == "error" and where.startswith(str(field)) for severity, where, _ in listed
    )


def test_what_cannot_be_read_is_a_warning() -> None:
    listed = alone(tree_quota("a/x", {}, {"cpu": 1}, is_parent="yes", lend="no", weight="{cpu: 4}"))
    assert [(severity, problem) for severity, _, problem in listed] == [
        ("warning", "'yes' is neither true nor false, and counts as false"),
        ("warning", "'no' is neither true nor false, and counts as true"),
        ("warning", "is not JSON; max is the weight instead"),
    ]
    ((_, _, problem),) = alone(tree_quota("a/x", weight='{"cpu": "many"}'))
    assert problem.startswith("cpu: 'many' is not a quantity")
    body = tree_quota("a/x")
    body["metadata"]["annotations"] = {f"{KOORDINATOR}admission": "{}"}
    assert alone(body) == []
    body["metadata"]["annotations"] = {f"{KOORDINATOR}admission": "{cpu: 1}"}
    assert [problem for _, _, problem in alone(body)] == ["is not JSON; max is the limit instead"]
    body["metadata"]["annotations"] = {f"{KOORDINATOR}total-resource": "[]"}
    body["metadata"]["labels"] = {f"{KOORDINATOR}is-root": "true"}
    ((_, _, problem),) = alone(body)
    assert problem == 'is not a JSON map, such as {"cpu": 4}; it is as if it were not written'


def test_quotas_that_take_pods_from_everywhere_stand_alone() -> None:
    default = "koordinator-system/koordinator-default-quota"
    (below,) = problems(parent("a/top"), tree_quota(default, parent="top"))
    assert below == (PARENT, "belongs at the first level: it takes pods from everywhere")
    (above,) = problems(parent(default))
    assert above[0] == f"metadata.labels[{KOORDINATOR}is-parent]"
    assert above[1].startswith("cannot be a parent")
    assert problems(tree_quota(default, {"cpu": 1}, {"cpu": 9})) == []
