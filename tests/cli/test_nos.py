"""Objects of nos: quotas over several namespaces, GPU memory, labels; as commands show them."""

import json
from typing import Any

import pytest
import yaml

from aliquot.engine.policies import POLICIES
from aliquot.json import Body
from tests.build.manifests import composite, container, node, pod, quota, timeline
from tests.cli.conftest import Run
from tests.cli.test_validate import findings, hard, warnings

MEMORY = "nos.nebuly.ai/gpu-memory"
OTHER = "nos.nebuly.com/gpu-memory"
CONFIG = {"apiVersion": "config.aliquot.dev/v1alpha1", "kind": "Configuration"}
CAPACITY = {**CONFIG, "profiles": [{"schedulerName": "aliquot", "policy": "capacity"}]}


def simulate(aliquot: Run, documents: list[Any], *arguments: Any) -> dict[str, Any]:
    ran = aliquot("simulate", documents, "--policy", "capacity", "-o", "json", *arguments)
    assert ran.code == 0, ran.err
    result: dict[str, Any] = json.loads(ran.out)
    return result


def used(result: dict[str, Any]) -> dict[str, Body]:
    return {each["name"]: each["used"] for each in result["quotas"]}


def gpus(name: str, model: str, cards: int = 8) -> Body:
    body = node(name, gpu=cards, cpu=64)
    body["metadata"]["labels"] = {"nvidia.com/gpu.product": model}
    return body


def validated(aliquot: Run, *documents: Any, code: int) -> list[Body]:
    """What there is to say where the policy is no question."""
    ran = aliquot("validate", list(documents), "--config", [CAPACITY], "-o", "json")
    assert ran.code == code, ran.out + ran.err
    found: list[Body] = json.loads(ran.out)["findings"]
    return found


def test_namespaces_of_a_composite_share_one_min_and_max(aliquot: Run) -> None:
    result = simulate(
        aliquot,
        [
            node(gpu=16),
            composite("ops/shared", ["a", "b"], {"gpu": 3}, {"gpu": 4}),
            quota("c", {"gpu": 4}),
            pod("a/p", {"gpu": 2}),
            pod("b/p", {"gpu": 2}),
            pod("b/q", {"gpu": 1}),
        ],
    )
    assert used(result)["ops/shared"] == {"nvidia.com/gpu": "4"}
    assert {each["pod"]: each["capacity"] for each in result["pods"]} == {
        "a/p": "in-quota",
        "b/p": "over-quota",
        "b/q": None,
    }
    assert [(each["pod"], each["reason"]) for each in result["pending"]] == [
        ("b/q", "QuotaMaxExceeded")
    ]
    assert {each["quota"] for each in result["pods"]} == {"ops/shared"}


def test_the_min_of_a_composite_counts_once(aliquot: Run) -> None:
    documents = [
        node(gpu=16),
        composite("ops/shared", ["a", "b", "c"], {"gpu": 2}),
        pod("a/p", {"gpu": 2}),
        pod("b/p", {"gpu": 1}),
    ]
    (waits,) = simulate(aliquot, documents)["pending"]
    assert (waits["pod"], waits["reason"]) == ("b/p", "BorrowingExhausted")
    assert "sum of min 2 nvidia.com/gpu, used 2" in waits["message"]


def test_composites_change_under_running_pods(aliquot: Run) -> None:
    def shared(namespaces: list[str], low: int) -> Body:
        return composite("ops/shared", namespaces, {"gpu": low}, {"gpu": 8})

    documents = [
        node(gpu=16),
        shared(["a"], 4),
        pod("a/p", {"gpu": 2}),
        pod("b/p", {"gpu": 3}, nodeName="n"),
        timeline(
            {"at": 10, "apply": [shared(["a", "b"], 4)]},
            {"at": 20, "apply": [shared(["a", "b"], 5)]},
            {"at": 30, "apply": [shared(["b"], 5), quota("a", {"gpu": 1})]},
            {
                "at": 40,
                "delete": [
                    {"kind": "CompositeElasticQuota", "namespace": "ops", "name": "shared"},
                    {"kind": "ElasticQuota", "namespace": "a", "name": "quota"},
                ],
            },
        ),
    ]

    def at(seconds: int) -> tuple[dict[str, Body], list[Any]]:
        result = simulate(aliquot, documents, "--until", f"{seconds}s")
        assert result["evictions"] == []
        return used(result), [each["capacity"] for each in result["pods"]]

    def of(cards: int) -> Body:
        return {"nvidia.com/gpu": str(cards)}

    assert at(0) == ({"ops/shared": of(2)}, ["in-quota", None])
    assert at(10) == ({"ops/shared": of(5)}, ["in-quota", "over-quota"])
    assert at(20) == ({"ops/shared": of(5)}, ["in-quota", "in-quota"])
    assert at(30) == ({"a/quota": of(2), "ops/shared": of(3)}, ["over-quota", "in-quota"])
    assert at(40) == ({}, [None, None])


def test_a_namespace_moves_from_one_composite_to_another(aliquot: Run) -> None:
    for first, second in (("x", "y"), ("y", "x")):
        documents = [
            node(gpu=16),
            composite(f"ops/{first}", ["a", "b"], {"gpu": 4}),
            composite(f"ops/{second}", ["c"], {"gpu": 4}),
            pod("b/p", {"gpu": 3}),
            timeline(
                {
                    "at": 10,
                    "apply": [
                        composite("ops/x", ["a"] if first == "x" else ["c", "b"], {"gpu": 4}),
                        composite("ops/y", ["a"] if first == "y" else ["c", "b"], {"gpu": 4}),
                    ],
                }
            ),
        ]
        figures = used(simulate(aliquot, documents))
        assert figures[f"ops/{second}"] == {"nvidia.com/gpu": "3"}
        assert figures[f"ops/{first}"] == {"nvidia.com/gpu": "0"}


@pytest.mark.parametrize("name", [MEMORY, OTHER])
def test_gpu_memory_is_shown_where_a_quota_names_it(aliquot: Run, name: str) -> None:
    result = simulate(
        aliquot,
        [
            node(gpu=8),
            quota("a", {name: 64}, {name: 96}, group="nos.nebuly.com"),
            quota("b", {"cpu": 1}),
            pod("a/p", {"gpu": 2}),
            pod("b/p", {"gpu": 1}),
            pod("a/q", {"gpu": 2}),
        ],
    )
    a, b = result["quotas"]
    assert a["used"] == {MEMORY: "64", "nvidia.com/gpu": "2"}
    assert a["request"] == {MEMORY: "128", "nvidia.com/gpu": "4"}
    assert (a["idle"], a["borrowed"]) == ({MEMORY: "0"}, {MEMORY: "0"})
    assert a["runtime"] == {MEMORY: "64"}
    assert MEMORY not in {*b["used"], *b["request"], *b["runtime"], *b["borrowed"]}
    waits = {each["pod"]: each["message"] for each in result["pending"]}
    told = f"quota a/quota: max 96 {MEMORY}, used 64, pod asks 64"
    assert waits["a/q"] == f"{told}; also BorrowingExhausted ({MEMORY})"


def test_gpu_memory_is_not_shown_where_no_quota_names_it(aliquot: Run) -> None:
    documents = [gpus("n", "H100"), quota("a", {"gpu": 2}, {"gpu": 4}), pod("a/p", {"gpu": 3})]
    documents.append(quota("b", {"gpu": 2}))
    result = simulate(aliquot, documents)
    assert MEMORY not in json.dumps(result)
    assert result["quotas"][0]["used"] == {"nvidia.com/gpu": "3"}


def test_where_a_pod_runs_decides_what_it_is_charged(aliquot: Run) -> None:
    by_model = {**CONFIG, "gpu": {"memoryGB": 16, "memoryGBByModel": {"H100": 80, "A10": 24}}}
    documents = [
        gpus("large", "H100"),
        gpus("small", "A10"),
        gpus("plain", "T4"),
        quota("a", {MEMORY: 200}),
        *(
            pod(f"a/{name}", {"gpu": 1}, nodeSelector={"kubernetes.io/hostname": name})
            for name in ("large", "small", "plain")
        ),
    ]
    assert used(simulate(aliquot, documents, "--config", [by_model]))["a/quota"][MEMORY] == "120"
    lowered = [*documents[:3], quota("a", {MEMORY: 70}, {MEMORY: 70}), *documents[4:]]
    result = simulate(aliquot, lowered, "--config", [by_model])
    (waits,) = result["pending"]
    assert (waits["pod"], waits["resource"]) == ("a/large", MEMORY)
    assert "pod asks 80" in waits["message"]


def test_a_quota_leaves_a_pod_the_nodes_that_it_can_afford(aliquot: Run) -> None:
    by_model = {**CONFIG, "gpu": {"memoryGBByModel": {"H100": 80}}}
    documents = [gpus("a-large", "H100"), gpus("small", "T4"), quota("a", {MEMORY: 40})]
    result = simulate(aliquot, [*documents, pod("a/p", {"gpu": 1})], "--config", [by_model])
    assert [each["node"] for each in result["bindings"]] == ["small"]
    (waits,) = simulate(
        aliquot, [documents[0], documents[2], pod("a/p", {"gpu": 1})], "--config", [by_model]
    )["pending"]
    assert (waits["reason"], waits["resource"]) == ("BorrowingExhausted", MEMORY)


def test_a_node_that_comes_later_has_its_class(aliquot: Run) -> None:
    late = gpus("late", "H100")
    late["metadata"]["labels"]["nvidia.com/gpu.memory"] = "81559"
    documents = [
        quota("a", {MEMORY: 200}),
        pod("a/p", {"gpu": 2}),
        timeline({"at": 60, "apply": [late]}),
    ]
    before = simulate(aliquot, documents, "--until", "30s")
    assert before["quotas"][0]["request"][MEMORY] == "64"
    assert used(simulate(aliquot, documents))["a/quota"][MEMORY] == "160"


def test_free_gpu_memory_can_be_lent(aliquot: Run) -> None:
    config = {**CONFIG, "capacity": {"borrow": "freeCapacity"}}
    documents = [node(gpu=2), quota("a", {MEMORY: 32}), pod("a/p", {"gpu": 2})]
    assert simulate(aliquot, documents)["pending"]
    assert simulate(aliquot, documents, "--config", [config])["pending"] == []


def objects(aliquot: Run, documents: list[Any]) -> dict[str, Body]:
    ran = aliquot("simulate", documents, "--policy", "capacity", "-o", "objects")
    assert ran.code == 0, ran.err
    found = list(yaml.safe_load_all(ran.out))
    return {f"{each['kind']} {each['metadata']['name']}": each for each in found}


def test_objects_carry_status_and_labels(aliquot: Run) -> None:
    stale = pod("d/none", {"cpu": 1})
    stale["metadata"]["labels"] = {"nos.nebuly.com/capacity": "over-quota", "app": "x"}
    other = pod("a/first", {"gpu": 1})
    other["metadata"]["labels"] = {"nos.nebuly.ai/capacity": "over-quota"}
    found = objects(
        aliquot,
        [
            node(gpu=8, cpu=8, memory=8),
            composite("ops/shared", ["a", "b"], {OTHER: 32}, {"gpu": 2}),
            quota("c/plain", {"cpu": 4}),
            quota("e/own", {"cpu": 1, MEMORY: 64}, group="nos.nebuly.ai"),
            other,
            pod("b/second", {"gpu": 1}),
            pod("b/third", {"gpu": 1}),
            pod("c/fourth", {"cpu": 1, "memory": 1}),
            pod("e/fifth", {"cpu": 1, "memory": 1}),
            stale,
        ],
    )
    status = found["CompositeElasticQuota shared"]["status"]
    assert status == {"used": {OTHER: "64", "nvidia.com/gpu": "2"}}
    assert found["ElasticQuota plain"]["status"] == {"used": {"cpu": "1", "memory": "1"}}
    assert found["ElasticQuota own"]["status"] == {"used": {"cpu": "1", MEMORY: "0"}}
    labels = {name: each["metadata"].get("labels") for name, each in found.items()}
    assert labels["Pod first"] == {"nos.nebuly.com/capacity": "in-quota"}
    assert labels["Pod second"] == {"nos.nebuly.com/capacity": "over-quota"}
    assert labels["Pod third"] is None
    assert labels["Pod fourth"] == {"nos.nebuly.ai/capacity": "in-quota"}
    assert labels["Pod fifth"] == {"nos.nebuly.ai/capacity": "in-quota"}
    assert labels["Pod none"] == {"app": "x"}


def test_a_namespace_has_one_quota_of_any_kind(aliquot: Run) -> None:
    single, shared = quota("a", {}), composite("ops/shared", ["b", "a"], {})
    other = composite("ops/other", ["c", "b"], {})
    for documents, blamed, field, named in (
        ([single, shared], "CompositeElasticQuota ops/shared", "[1]", "ElasticQuota a/quota"),
        ([shared, single], "ElasticQuota a/quota", "metadata.namespace", "ElasticQuota ops/shared"),
        ([shared, other], "CompositeElasticQuota ops/other", "[1]", "ElasticQuota ops/shared"),
    ):
        (found,) = validated(aliquot, *documents, code=1)
        assert (found["severity"], found["object"]) == ("error", blamed)
        assert found["field"].endswith(field)
        assert (
            f"has a quota already: {'Composite' if 'ops' in named else ''}{named} ("
            in (found["problem"])
        )
        ran = aliquot("simulate", documents, "--policy", "capacity")
        assert (ran.code, found["problem"] in ran.err) == (2, True)


def test_a_timeline_cannot_make_two_quotas_of_one_namespace(aliquot: Run) -> None:
    joins = timeline({"at": 60, "apply": [composite("ops/shared", ["a", "b"], {})]})
    (found,) = validated(aliquot, quota("a", {}), joins, code=1)
    assert (found["object"], found["at"]) == ("CompositeElasticQuota ops/shared", 60)
    gone = [{"kind": "ElasticQuota", "namespace": "a", "name": "quota"}]
    takes_over = timeline({"at": 60, **joins["steps"][0], "delete": gone})
    assert validated(aliquot, quota("a", {}), takes_over, code=0) == []


def test_quotas_of_two_kinds_cannot_have_one_name(aliquot: Run) -> None:
    (found,) = validated(aliquot, quota("a", {}), composite("a/quota", ["b"], {}), code=1)
    assert (found["object"], found["field"]) == ("CompositeElasticQuota a/quota", "metadata.name")
    assert "goes by this name already: ElasticQuota a/quota (" in found["problem"]


def _asking(resource: str) -> Body:
    """A pod whose request is no limit as well, so that it is named once."""
    return pod("a/p", containers=[container(resources={"requests": {resource: 10}})])


@pytest.mark.parametrize(
    ("document", "field", "problem"),
    [
        (composite("ops/q", [], {}), "spec.namespaces", "at least one namespace"),
        (composite("ops/q", None, {}), "spec.namespaces", "at least one namespace"),
        (composite("ops/q", "a", {}), "spec.namespaces", "expected a list"),
        (composite("ops/q", ["A"], {}), "spec.namespaces[0]", "'A' must be made of"),
        (composite("ops/q", ["a"], {"cpu": 2}, {"cpu": 1}), "spec.min[cpu]", "min 2 is above max"),
        (quota("a", {OTHER: 2}, {MEMORY: 1}), f"spec.min[{OTHER}]", "min 2 is above max 1"),
        (quota("a", {OTHER: "1500m"}), f"spec.min[{OTHER}]", "not a whole number"),
        (quota("a", {MEMORY: 1, OTHER: 1}), "gpu-memory]", "once more, in its other spelling"),
        (_asking(OTHER), f"requests[{OTHER}]", "a unit of quotas that no node has"),
    ],
)
def test_a_quota_that_breaks_a_rule_is_refused_by_both_commands(
    aliquot: Run, document: Body, field: str, problem: str
) -> None:
    (found,) = validated(aliquot, document, code=1)
    assert found["severity"] == "error"
    assert found["field"].endswith(field)
    assert problem in found["problem"]
    ran = aliquot("simulate", [document], "--policy", "capacity")
    assert (ran.code, ran.out, problem in ran.err) == (2, "", True)


def test_a_namespace_that_is_listed_twice_is_refused_as_by_a_server(aliquot: Run) -> None:
    (twice,) = validated(aliquot, composite("ops/q", ["a", "b", "a"], {}), code=1)
    assert (twice["field"], twice["problem"]) == ("spec.namespaces[2]", "'a' stands here already")


def test_what_is_odd_about_a_quota_or_node_is_a_warning(aliquot: Run) -> None:
    ((_, field, problem),) = warnings(aliquot, quota("a", {OTHER: "40Gi"}))
    assert field == f"spec.min[{OTHER}]"
    assert problem.startswith("40Gi is 42949672960 GB")
    assert warnings(aliquot, quota("a", {OTHER: "1k"}, {OTHER: "12E"})) == []
    bad = node(gpu=2)
    bad["metadata"]["labels"] = {"nvidia.com/gpu.memory": "much"}
    ((_, field, problem),) = warnings(aliquot, bad, quota("a", {MEMORY: 64}))
    assert field == "metadata.labels[nvidia.com/gpu.memory]"
    assert problem == "'much' is no number of MiB; its cards count as 32 GB each"
    assert warnings(aliquot, bad, quota("a", {"gpu": 2})) == []


def test_guarantees_are_compared_with_the_capacity_of_the_nodes(aliquot: Run) -> None:
    documents = [gpus("n", "H100", 2), node("m", **{"nvidia.com/mig-1g.10gb": 2})]
    low = quota("a", {MEMORY: 84})
    assert warnings(aliquot, *documents, low) == []
    ((_, _, problem),) = warnings(aliquot, *documents, quota("a", {OTHER: 85}))
    assert problem.endswith(f"add up to 85 of 84 {MEMORY} that the nodes have")
    config = {**CONFIG, "gpu": {"memoryGBByModel": {"H100": 40}}}
    ran = aliquot("validate", [*documents, quota("a", {OTHER: 100})], "--config", [config])
    assert ran.out == "3 objects in 1 file: no errors, no warnings\n"


def test_guarantees_of_one_card_in_two_units_are_a_warning(aliquot: Run) -> None:
    in_cards, in_slices = quota("a", {"gpu": 1}), quota("b", {"nvidia.com/mig-1g.10gb": 1})
    in_memory, nothing = quota("c", {OTHER: 32}), quota("d", {"gpu": 0, "cpu": 1}, {"gpu": 4})
    ((name, field, problem),) = warnings(aliquot, in_cards, in_slices, in_memory, nothing)
    assert (name, field) == ("ElasticQuota c/quota", f"spec.min[{OTHER}]")
    assert problem.startswith("a card may be guaranteed twice, here and as nvidia.com/gpu in ")
    assert "ElasticQuota a/quota (" in problem
    assert len(warnings(aliquot, in_memory, in_slices, in_cards)) == 2
    assert warnings(aliquot, in_cards, in_slices, nothing) == []
    assert warnings(aliquot, in_memory, nothing) == []
    both = warnings(aliquot, quota("a", {"gpu": 1, MEMORY: 32}))
    assert [each[2] for each in both] == [f"a card may be guaranteed twice, here and as {MEMORY}"]


def test_hard_limits_of_all_namespaces_count_together(aliquot: Run) -> None:
    shared = composite("ops/shared", ["a", "b"], {"cpu": 1}, {"cpu": 5})
    assert validated(aliquot, shared, hard("a", cpu=1), code=0) == []
    assert validated(aliquot, shared, hard("a", cpu=1), hard("b", cpu=4), code=0) == []
    (found,) = validated(aliquot, shared, hard("a", cpu=1), hard("b", cpu=3), code=1)
    assert found["problem"] == "max 5 is above hard 4 of ResourceQuotas a/rq, b/rq together"


def test_a_pod_above_the_max_of_its_quota_on_every_node_is_a_warning(aliquot: Run) -> None:
    small, large = gpus("small", "T4"), gpus("large", "H100")
    large["metadata"]["labels"]["nvidia.com/gpu.memory"] = "81559"
    low = quota("a", {}, {MEMORY: 40})
    assert warnings(aliquot, small, large, low, pod("a/p", {"gpu": 1})) == []
    for documents, asks in (
        ([small, large], f"64 {MEMORY}, max is 40"),
        ([large, node("cpus", cpu=64)], f"160 {MEMORY}, max is 40"),
        ([], f"64 {MEMORY}, max is 40"),
    ):
        ((_, _, problem),) = warnings(aliquot, *documents, low, pod("a/p", {"gpu": 2}))
        assert problem == f"can never start: asks for {asks} in quota a/quota"
    shared = composite("ops/shared", ["a", "b"], {}, {"cpu": 1})
    (found,) = validated(aliquot, node(), shared, pod("b/p", {"cpu": 2}), code=0)
    assert found["object"] == "Pod b/p"


def test_validate_knows_the_configured_policy(aliquot: Run) -> None:
    nos = quota("a", {"gpu": 1}, group="nos.nebuly.ai")
    assert validated(aliquot, nos, code=0) == []
    assert len(findings(aliquot, nos, code=0 if "fair" in POLICIES else 1)) == (
        0 if "fair" in POLICIES else 1
    )
    missing = {**CONFIG, "profiles": [{"schedulerName": "x", "policy": "best"}]}
    ran = aliquot("validate", [nos], "--config", [missing])
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(("model", "gb"), [("T4", 32), ("H100", 80)])
def test_guaranteed_memory_is_taken_back(aliquot: Run, model: str, gb: int) -> None:
    by_model = {**CONFIG, "gpu": {"memoryGBByModel": {"H100": 80}}}
    documents = [
        gpus("n", model, 4),
        node("cpus", cpu=64),
        quota("a", {MEMORY: 2 * gb}),
        quota("b", {MEMORY: 2 * gb}),
        *(pod(f"b/p-{number}", {"gpu": 1}) for number in range(4)),
        pod("a/owner", {"gpu": 2}, {"arrival": "1m"}),
    ]
    result = simulate(aliquot, documents, "--config", [by_model])
    evicted = [(each["pod"], each["reason"]) for each in result["evictions"]]
    assert sorted(evicted) == [("b/p-2", "ReclaimedForMin"), ("b/p-3", "ReclaimedForMin")]
    assert {name: each[MEMORY] for name, each in used(result).items()} == {
        "a/quota": str(2 * gb),
        "b/quota": str(2 * gb),
    }
