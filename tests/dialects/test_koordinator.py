"""What Koordinator's keys say: of one quota, of a pod, and of all quotas together."""

import json
from typing import Any

import pytest

from aliquot.dialects import configuration
from aliquot.dialects.core.documents import Document
from aliquot.dialects.kep9.quotas import quota as read_quota
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.policy import choose
from aliquot.dialects.quota_index import QuotaIndex, Special, build, built_in, default_queue
from aliquot.engine import SystemNamespaces
from aliquot.engine.model.knobs import HierarchyKnobs
from aliquot.engine.model.quota import Quota
from aliquot.errors import InputError
from aliquot.json import Body
from tests.build.manifests import KOORDINATOR, composite, labelled, pod, queue, quota, tree_quota
from tests.build.manifests import workload as workload_body
from tests.dialects.manifests import read

GROUPS = ["scheduling.x-k8s.io", "scheduling.sigs.k8s.io"]
SYSTEM = "koordinator-system/koordinator-system-quota"
DEFAULT = "koordinator-system/koordinator-default-quota"


def quota_index(*bodies: Body, special: Special = "") -> QuotaIndex:
    return build([read(each) for each in bodies], special)


def home(trees: QuotaIndex, body: Body) -> str | None:
    manifest = read(body)
    return trees.membership.of(trees.requested_quota(manifest), manifest.namespace)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("key", ["parent", "parent-quota-name"])
def test_both_groups_and_both_spellings_are_read(group: str, key: str) -> None:
    child = tree_quota("a/x", {"cpu": 1}, {"cpu": 2}, group, **{key: "top"}, lend="false")
    trees = quota_index(child, tree_quota("b/top", {"cpu": 4}, {"cpu": 8}, group, is_parent="true"))
    assert trees.quotas == {
        "b/top": Quota("b/top", (("cpu", 4000),), (("cpu", 8000),), is_parent=True),
        "a/x": Quota(
            name="a/x",
            min=(("cpu", 1000),),
            max=(("cpu", 2000),),
            parent="b/top",
            lend=False,
            namespaces=frozenset({"a"}),
        ),
    }


def test_the_example_of_the_design_is_read_as_it_stands() -> None:
    """Its map lacks a blank and its booleans lack quotes."""
    said: Body = {"is_parent": False, "parent-quota-name": "parent", "lend": True}
    body = tree_quota("test/test", {}, {}, weight={"cpu:4": None, "memory": "8Gi"}, **said)
    keys = koordinator.keys(read(body))
    assert keys.weight == (("cpu", 4000), ("memory", 8 * 2**30))
    assert (keys.parent, keys.is_parent, keys.lend) == ("parent", False, True)


@pytest.mark.parametrize(
    ("written", "weight"),
    [
        (None, ()),
        ("", ()),
        ('{"cpu": 4, "memory": "1Gi"}', (("cpu", 4000), ("memory", 2**30))),
        ({"cpu": 4}, (("cpu", 4000),)),
        ('{"cpu": 0, "memory": 0}', ()),
        ('{"cpu": 0, "memory": 5}', (("cpu", 0), ("memory", 5))),
        ("{}", ()),
        ("{cpu: 4}", ()),
        ("[4]", ()),
        ('{"cpu": "many"}', ()),
        ('{"nvidia.com/gpu": "0.5"}', ()),
    ],
)
def test_a_weight_that_says_nothing_goes_by_max(written: Any, weight: Any) -> None:
    body = tree_quota("a/x", {}, {"cpu": 96, "memory": 1000, "pods": 1000}, weight=written)
    assert koordinator.keys(read(body)).weight == weight


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(InputError, match="cpu: -1 is negative"):
        koordinator.keys(read(tree_quota("a/x", weight='{"cpu": -1}')))


@pytest.mark.parametrize("written", ['"a"', "a", "[1]", '["Team"]', "{}", [1]])
def test_namespaces_are_a_list_of_names(written: Any) -> None:
    with pytest.raises(InputError) as refused:
        read_quota(read(tree_quota("a/x", namespaces=written)))
    assert refused.value.field == f"metadata.annotations[{KOORDINATOR}namespaces]"


def test_two_spellings_must_agree() -> None:
    both: Body = {"parent": "a", "parent-quota-name": "b"}
    with pytest.raises(InputError, match=r"is 'b', but .*/parent is 'a'"):
        koordinator.keys(read(tree_quota("a/x", **both)))
    same = {"name": "q", "quota-name": "q"}
    assert koordinator.quota_named(read(labelled(pod("a/p"), **same))) == "q"
    with pytest.raises(InputError, match="must be text"):
        koordinator.keys(read(tree_quota("a/x", parent=["a"])))


def test_a_pod_belongs_to_what_it_names_else_to_its_namespace_else_nowhere() -> None:
    trees = quota_index(
        tree_quota("kube-system/named", lend="true"),
        tree_quota("like/like", parent="root", is_parent="false"),
        tree_quota("like/other"),
        tree_quota("top/lists", namespaces='["listed", "like"]'),
        special="koordinator",
    )
    assert home(trees, labelled(pod("like/p"), name="named")) == "kube-system/named"
    assert home(trees, labelled(pod("like/p"), **{"quota-name": "named"})) == "kube-system/named"
    assert home(trees, pod("like/p")) == "like/like"
    assert home(trees, pod("listed/p")) == "top/lists"
    assert home(trees, pod("elsewhere/p")) == DEFAULT
    assert home(trees, labelled(pod("like/p"), name="missing")) == DEFAULT
    assert home(trees, labelled(pod("like/p"), name="koordinator-root-quota")) == DEFAULT
    owner = workload_body("Deployment", "like/web", {})
    owner["spec"]["template"]["metadata"] = labelled(pod("x/x"), name="named")["metadata"]
    assert home(trees, owner) == "kube-system/named"


def test_the_only_quota_of_a_namespace_is_the_namespaces() -> None:
    """As in every other design; but not where several are, or somebody lists the namespace."""
    only = tree_quota("a/gpus", parent="top")
    top = tree_quota("a/top", is_parent="true")
    assert home(quota_index(only, top), pod("a/p")) == "a/gpus"
    assert home(quota_index(only, top, tree_quota("a/more")), pod("a/p")) is None
    lists = tree_quota("b/lists", namespaces='["a"]')
    assert home(quota_index(only, top, lists), pod("a/p")) == "b/lists"
    assert home(quota_index(quota("a", {}), quota("b", {})), pod("b/p")) == "b/quota"


def test_what_keeps_the_cluster_going_belongs_to_the_system() -> None:
    quotas = [read(tree_quota("kube-system/q")), read(tree_quota("a/a"))]
    trees = build(quotas, "koordinator", SystemNamespaces(frozenset({"infra"})))
    for namespace in ("kube-system", "infra"):
        assert home(trees, pod(f"{namespace}/dns")) == SYSTEM
        for name in ("a", "q", "koordinator-default-quota", "nowhere"):
            assert home(trees, labelled(pod(f"{namespace}/batch"), name=name)) == SYSTEM
    assert home(trees, pod("a/critical", priority=2_000_000_000)) == "a/a"
    assert home(trees, labelled(pod("a/p"), name="koordinator-system-quota")) == "a/a"
    assert home(trees, labelled(pod("b/p"), name="koordinator-system-quota")) == DEFAULT
    elsewhere = build(quotas, "", SystemNamespaces(frozenset({"infra"})))
    assert home(elsewhere, pod("infra/dns")) is None


def test_a_quota_is_open_to_its_namespace_and_to_those_that_it_lists() -> None:
    trees = quota_index(
        tree_quota("b/own", lend="true"),
        tree_quota("b/lists", namespaces='["a"]'),
        tree_quota("kube-system/all", lend="true"),
        tree_quota("koordinator-system/also", lend="true"),
        tree_quota("kube-system/few", namespaces='["c"]'),
        composite("ops/shared", ["a"], {}),
        special="koordinator",
    )
    open_to = {name.partition("/")[2]: each.open_to for name, each in trees.quotas.items()}
    assert open_to["own"] == frozenset("b")
    assert open_to["lists"] == frozenset("ab")
    assert open_to["few"] == frozenset({"c", "kube-system"})
    assert open_to["all"] is open_to["also"] is open_to["koordinator-default-quota"] is None
    assert open_to["koordinator-system-quota"] == frozenset({"kube-system"})
    names = ("own", "lists", "all", "also", "few", "koordinator-system-quota")
    closed = {space: {name for name in names if trees.closed_quota(name, space)} for space in "abc"}
    assert closed == {
        "a": {"own", "few", "koordinator-system-quota"},
        "b": {"few", "koordinator-system-quota"},
        "c": {"own", "lists", "koordinator-system-quota"},
    }
    assert "namespace a, only to those of b; name a quota of a" in trees.quotas["b/own"].refuse("a")


def test_of_several_quotas_of_one_name_the_pods_own_is_meant() -> None:
    """Names should be unique; a quota elsewhere takes nothing from a team that has its own."""
    trees = quota_index(
        *(tree_quota(f"{space}/q", lend="true") for space in ("a", "b", "kube-system")),
        tree_quota("x/q", namespaces='["c"]'),
        special="koordinator",
    )
    found = {space: trees.find_quota("q", space) for space in "abcd"}
    assert found == {"a": "a/q", "b": "b/q", "c": "x/q", "d": "kube-system/q"}


@pytest.mark.parametrize("special", ["", "volcano"])
def test_a_label_counts_in_trees_only(special: Special) -> None:
    trees = quota_index(tree_quota("b/b", lend="true"), tree_quota("a/a"), special=special)
    assert home(trees, labelled(pod("a/p"), name="b")) == "a/a"
    assert trees.closed_quota("b", "a") is None


def test_special_quotas_are_there_unless_somebody_wrote_them() -> None:
    trees = quota_index(special="koordinator")
    assert trees.quotas == {
        SYSTEM: Quota(SYSTEM, unshared=True, open_to=frozenset({"kube-system"})),
        DEFAULT: Quota(DEFAULT, fallback=True),
    }
    edited = tree_quota(DEFAULT, {"cpu": 2}, {"cpu": 4})
    written = quota_index(edited, tree_quota(SYSTEM, {}, {"cpu": 1}), special="koordinator")
    assert written.quotas[SYSTEM] == trees.quotas[SYSTEM]
    assert written.quotas[DEFAULT] == Quota(
        DEFAULT, (("cpu", 2000),), (("cpu", 4000),), fallback=True
    )
    elsewhere = quota_index(tree_quota("ops/koordinator-default-quota"), special="koordinator")
    assert set(elsewhere.quotas) == {SYSTEM, "ops/koordinator-default-quota"}
    assert home(elsewhere, pod("x/p")) == "ops/koordinator-default-quota"


def test_without_trees_only_what_was_written_counts() -> None:
    assert quota_index().quotas == {}
    trees = quota_index(
        tree_quota(SYSTEM), tree_quota(DEFAULT), tree_quota("x/koordinator-root-quota")
    )
    assert list(trees.quotas) == [DEFAULT]


def test_what_aliquot_wrote_bounds_no_pod_once_the_policy_is_another() -> None:
    """A default quota without bounds would hold every pod without a quota to the sum of min."""
    by_aliquot = {"app.kubernetes.io/managed-by": "aliquot"}
    ours = tree_quota(DEFAULT)
    ours["metadata"]["labels"] = by_aliquot
    assert quota_index(ours).quotas == {}
    assert DEFAULT in quota_index(ours, special="koordinator").quotas
    edited = tree_quota(DEFAULT, {}, {"cpu": 4})
    edited["metadata"]["labels"] = by_aliquot
    assert list(quota_index(edited).quotas) == [DEFAULT]


def test_parents_come_first_whatever_the_order() -> None:
    bodies = [
        tree_quota("a/leaf", parent="middle"),
        tree_quota("a/middle", parent="top", is_parent="true"),
        tree_quota("a/top", is_parent="true"),
    ]
    for order in (bodies, bodies[::-1]):
        assert list(quota_index(*order).quotas) == ["a/top", "a/middle", "a/leaf"]


def test_what_does_not_fit_together_is_left_out() -> None:
    trees = quota_index(
        tree_quota("a/x", parent="y", is_parent="true"),
        tree_quota("a/y", parent="x", is_parent="true"),
        tree_quota("a/below", parent="x"),
        tree_quota("a/self", parent="self"),
        tree_quota("a/orphan", parent="nobody"),
        tree_quota("a/first", parent="koordinator-root-quota"),
    )
    parents = {name: each.parent for name, each in trees.quotas.items()}
    assert parents == {
        **dict.fromkeys(("a/x", "a/y", "a/self", "a/orphan", "a/first")),
        "a/below": "a/x",
    }


def test_koordinator_reads_only_its_own_groups() -> None:
    body = composite("ops/shared", ["a"], {})
    body["metadata"]["labels"] = {f"{KOORDINATOR}parent": "top"}
    trees = quota_index(body, tree_quota("b/top", is_parent="true"))
    assert trees.quotas["ops/shared"].parent is None
    assert home(trees, labelled(pod("x/p"), name="shared")) is None


def test_quotas_with_its_keys_ask_for_hierarchy_and_pods_do_not() -> None:
    plain = read(quota("a", {}))
    for body in (tree_quota("b/q", tree_id="t"), tree_quota("b/q", namespaces="[]")):
        choice = choose([plain, read(body)])
        assert (choice.policy, choice.field) == ("hierarchy", "metadata")
    named = read(labelled(pod("a/p"), name="quota"))
    assert choose([named, plain]).policy == "capacity"
    owner = workload_body("Deployment", "a/web", {})
    owner["spec"]["template"]["metadata"] = labelled(pod("x/x"), name="quota")["metadata"]
    assert choose([read(owner), plain]).policy == "capacity"


def test_what_aliquot_wrote_does_not_choose_the_policy() -> None:
    written = [*built_in(), default_queue()]
    assert choose(written).why == "there are no quotas"
    assert choose([*written, read(queue("q"))]).conflict == ""
    figures = quota("a", {"cpu": 1})
    figures["metadata"]["annotations"] = {f"{KOORDINATOR}runtime": '{"cpu":"1"}'}
    assert choose([*written, read(figures)]).policy == "capacity"
    by_a_user = tree_quota(DEFAULT, is_parent="false")
    assert choose([read(by_a_user)]).policy == "hierarchy"


def test_knobs_of_hierarchy_reach_the_engine() -> None:
    body = {
        "apiVersion": configuration.API_VERSION,
        "kind": "Configuration",
        "hierarchy": {
            "revokeAfter": "1m",
            "recycle": "always",
            "scaleMin": False,
            "surplus": False,
            "parentPods": "implicitChild",
        },
    }
    knobs = configuration.knobs(configuration.read(Document("test", body)))
    assert knobs.hierarchy == HierarchyKnobs(60 * 10**9, "always", False, False, "implicitChild")
    assert configuration.knobs(configuration.Configuration()).hierarchy == HierarchyKnobs()
    for key, value in (("revokeAfter", "soon"), ("parentPods", "allow"), ("surplus", "yes")):
        with pytest.raises(InputError) as refused:
            configuration.read(Document("test", {**body, "hierarchy": {key: value}}))
        assert refused.value.field == f"hierarchy.{key}"


def test_a_json_list_in_text_is_read() -> None:
    body = tree_quota("a/x", namespaces=json.dumps(["b", "c"]))
    assert read_quota(read(body)).namespaces == {"b", "c"}
