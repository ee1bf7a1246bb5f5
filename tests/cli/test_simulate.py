"""`aliquot simulate` keeps its contract: input, time, outputs."""

import json
from typing import Any

import pytest
import yaml

from tests.build.manifests import node, pod, quota, timeline, workload
from tests.cli.conftest import Run

STORY = [
    node(gpu=10, cpu=64),
    quota("a", {"gpu": 4}, {"gpu": 6}),
    quota("b", {"gpu": 6}, {"gpu": 8}),
    workload("Deployment", "a/web", {"gpu": 1, "cpu": "500m"}, replicas=7),
    pod("b/train", {"gpu": 3}),
]


def simulate(aliquot: Run, documents: list[Any], *arguments: str) -> dict[str, Any]:
    ran = aliquot("simulate", documents, "-o", "json", *arguments)
    assert ran.code == 0, ran.err
    result: dict[str, Any] = json.loads(ran.out)
    return result


def test_json_has_every_section_of_the_result(aliquot: Run) -> None:
    result = simulate(aliquot, STORY)
    assert list(result) == [
        "policy",
        "until",
        "bindings",
        "evictions",
        "pending",
        "pods",
        "quotas",
        "queues",
        "gangs",
        "gpuQuotas",
    ]
    assert result["policy"] == "capacity"
    assert result["until"] == 0
    assert result["bindings"][0] == {"at": 0, "pod": "a/web-0", "node": "n"}
    assert len(result["bindings"]) == 7
    assert result["pending"] == [
        {
            "pod": "a/web-6",
            "reason": "QuotaMaxExceeded",
            "message": "quota a/quota: max 6 nvidia.com/gpu, used 6, pod asks 1",
            "quota": "a/quota",
            "resource": "nvidia.com/gpu",
        }
    ]
    assert result["pods"][4] == {
        "pod": "a/web-4",
        "phase": "Running",
        "node": "n",
        "quota": "a/quota",
        "capacity": "over-quota",
    }
    assert result["quotas"][0] == {
        "name": "a/quota",
        "parent": None,
        "tree": None,
        "min": {"nvidia.com/gpu": "4"},
        "max": {"nvidia.com/gpu": "6"},
        "used": {"cpu": "3", "nvidia.com/gpu": "6"},
        "request": {"cpu": "3500m", "nvidia.com/gpu": "7"},
        "runtime": {"nvidia.com/gpu": "6"},
        "weight": {"cpu": "1", "nvidia.com/gpu": "6"},
        "borrowed": {"nvidia.com/gpu": "2"},
        "idle": {"nvidia.com/gpu": "0"},
    }


def test_yaml_says_the_same(aliquot: Run) -> None:
    ran = aliquot("simulate", STORY, "-o", "yaml")
    assert yaml.safe_load(ran.out) == simulate(aliquot, STORY)


def test_objects_can_be_simulated_again(aliquot: Run) -> None:
    ran = aliquot("simulate", STORY, "-o", "objects")
    objects = list(yaml.safe_load_all(ran.out))
    quotas = [each for each in objects if each["kind"] == "ElasticQuota"]
    used = {each["metadata"]["namespace"]: each["status"]["used"] for each in quotas}
    assert used["a"] == {"cpu": "3", "nvidia.com/gpu": "6"}
    assert used["b"] == {"nvidia.com/gpu": "3"}
    waiting = next(o for o in objects if o["metadata"]["name"] == "web-6")
    assert waiting["status"]["phase"] == "Pending"
    assert waiting["status"]["conditions"][0]["reason"] == "QuotaMaxExceeded"
    again = json.loads(aliquot("simulate", "-", "-o", "json", stdin=ran.out).out)
    before = simulate(aliquot, STORY)
    assert again["bindings"] == []
    assert (again["pods"], again["quotas"]) == (before["pods"], before["quotas"])


def test_output_is_the_same_byte_for_byte(aliquot: Run) -> None:
    runs = {
        aliquot("simulate", STORY, "-o", "json", PYTHONHASHSEED=seed).out
        for seed in ("0", "1", "7")
    }
    assert len(runs) == 1
    assert aliquot("simulate", STORY[::-1], "-o", "json").out in runs


def test_the_table_has_bars_and_reasons_and_no_colour_in_a_pipe(aliquot: Run) -> None:
    out = aliquot("simulate", STORY).out
    assert "████████████████▓▓▓▓▓▓▓▓" in out
    assert "QuotaMaxExceeded" in out
    assert "\x1b" not in out


def test_pods_come_run_and_end_in_virtual_time(aliquot: Run) -> None:
    result = simulate(
        aliquot,
        [
            node(cpu=2),
            pod("a/first", {"cpu": 2}, {"duration": "10m"}),
            pod("a/second", {"cpu": 2}, {"arrival": "1m", "duration": "90s"}),
        ],
    )
    assert [(b["pod"], b["at"]) for b in result["bindings"]] == [("a/first", 0), ("a/second", 600)]
    assert result["until"] == 690
    assert {p["phase"] for p in result["pods"]} == {"Succeeded"}


def test_until_stops_the_clock(aliquot: Run) -> None:
    documents = [node(cpu=2), pod("a/p", {"cpu": 2}, {"arrival": "1h"})]
    assert simulate(aliquot, documents, "--until", "30m")["pods"] == []
    result = simulate(aliquot, documents, "--until", "2h")
    assert result["until"] == 7200
    assert result["pods"][0]["phase"] == "Running"


def test_a_timeline_changes_quotas_nodes_and_pods(aliquot: Run) -> None:
    result = simulate(
        aliquot,
        [
            node(gpu=8),
            quota("a", {"gpu": 1}, {"gpu": 1}),
            pod("a/p-1", {"gpu": 1}),
            pod("a/p-2", {"gpu": 1}),
            pod("a/p-3", {"gpu": 1}),
            timeline(
                {"at": "10s", "apply": [quota("a", {"gpu": 2}, {"gpu": 2})]},
                {"at": "20s", "delete": [{"kind": "Pod", "namespace": "a", "name": "p-1"}]},
                {
                    "at": "30s",
                    "apply": [node("n2", gpu=1)],
                    "delete": [{"kind": "Node", "name": "n"}],
                },
            ),
        ],
    )
    started = [(b["pod"], b["at"], b["node"]) for b in result["bindings"]]
    assert started == [("a/p-1", 0, "n"), ("a/p-2", 10, "n"), ("a/p-3", 20, "n")]
    lost = [(e["pod"], e["at"], e["reason"], e["for"]) for e in result["evictions"]]
    assert lost == [("a/p-2", 30, "NodeLost", None), ("a/p-3", 30, "NodeLost", None)]
    assert [p["phase"] for p in result["pods"]] == ["Deleted", "Evicted", "Evicted"]


def test_owners_replace_what_is_lost_under_the_next_index(aliquot: Run) -> None:
    result = simulate(
        aliquot,
        [
            node("n1", cpu=2),
            workload("ReplicaSet", "a/web", {"cpu": 1}, replicas=2),
            timeline(
                {"at": 5, "delete": [{"kind": "Node", "name": "n1"}], "apply": [node("n2", cpu=2)]},
                {"at": 9, "apply": [workload("ReplicaSet", "a/web", {"cpu": 1}, replicas=1)]},
            ),
        ],
    )
    phases = {p["pod"]: p["phase"] for p in result["pods"]}
    assert phases == {
        "a/web-0": "Evicted",
        "a/web-1": "Evicted",
        "a/web-2": "Running",
        "a/web-3": "Deleted",
    }


def test_a_job_runs_its_completions_a_few_at_a_time(aliquot: Run) -> None:
    job = workload("Job", "a/job", {"cpu": 1}, parallelism=2, completions=5)
    job["metadata"]["annotations"] = {"sim.aliquot.dev/duration": "10s"}
    result = simulate(aliquot, [node(cpu=8), job])
    assert [b["at"] for b in result["bindings"]] == [0, 0, 10, 10, 20]
    assert result["until"] == 30
    assert len(result["pods"]) == 5


def test_a_dump_of_a_cluster_is_not_counted_twice(aliquot: Run) -> None:
    deployment = workload("Deployment", "a/web", {"cpu": 1}, replicas=1)
    replicas = workload("ReplicaSet", "a/web-5d9", {"cpu": 1}, replicas=1)
    owner = {"kind": "Deployment", "name": "web", "controller": True}
    replicas["metadata"]["ownerReferences"] = [owner]
    running = pod("a/web-5d9-x7k2p", {"cpu": 1}, nodeName="n")
    running["metadata"]["ownerReferences"] = [
        {"kind": "ReplicaSet", "name": "web-5d9", "controller": True}
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": [deployment, replicas, running]}
    result = simulate(aliquot, [node(cpu=8), listed])
    assert [p["pod"] for p in result["pods"]] == ["a/web-5d9-x7k2p"]


def test_other_kinds_are_skipped_and_counted_on_stderr(aliquot: Run) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    ran = aliquot("simulate", [node(), service, service], "-o", "json")
    assert ran.code == 0
    assert "2 Service" in ran.err


def test_auto_says_which_policy_and_why(aliquot: Run) -> None:
    first = aliquot("simulate", STORY).out.splitlines()[0]
    assert "policy capacity (all quotas are ElasticQuotas of scheduling.x-k8s.io)" in first


def test_free_capacity_can_be_lent_too(aliquot: Run) -> None:
    documents = [node(gpu=8), quota("a", {"gpu": 2}), pod("a/p", {"gpu": 6})]
    assert simulate(aliquot, documents)["pending"][0]["reason"] == "BorrowingExhausted"
    config = {
        "apiVersion": "config.aliquot.dev/v1alpha1",
        "kind": "Configuration",
        "capacity": {"borrow": "freeCapacity"},
    }
    ran = aliquot("simulate", documents, "--config", [config], "-o", "json")
    assert json.loads(ran.out)["pods"][0]["phase"] == "Running"


def test_pods_are_packed_or_spread(aliquot: Run) -> None:
    documents = [node("n1", cpu=8), node("n2", cpu=8), pod("a/p-1", {"cpu": 1})]
    documents.append(pod("a/p-2", {"cpu": 1}))
    packed = simulate(aliquot, documents)
    assert {b["node"] for b in packed["bindings"]} == {"n1"}
    config = {"placement": {"score": "spread"}}
    header = {"apiVersion": "config.aliquot.dev/v1alpha1", "kind": "Configuration"}
    ran = aliquot("simulate", documents, "--config", [{**header, **config}], "-o", "json")
    assert {b["node"] for b in json.loads(ran.out)["bindings"]} == {"n1", "n2"}


def test_what_pods_outside_give_back_can_be_lent(aliquot: Run) -> None:
    config = {
        "apiVersion": "config.aliquot.dev/v1alpha1",
        "kind": "Configuration",
        "capacity": {"borrow": "freeCapacity"},
    }
    documents = [
        node(cpu=8),
        quota("t", {"cpu": 1}),
        pod("free/out", {"cpu": 4}, {"duration": "10s"}, nodeName="n"),
        pod("t/in", {"cpu": 6}),
    ]
    ran = aliquot("simulate", documents, "--config", [config], "-o", "json")
    assert json.loads(ran.out)["bindings"] == [{"at": 10, "pod": "t/in", "node": "n"}]


def test_a_large_workload_scales_down_newest_first(aliquot: Run) -> None:
    def web(replicas: int) -> dict[str, Any]:
        return workload("Deployment", "a/web", {"cpu": "1m"}, replicas=replicas)

    result = simulate(aliquot, [node(cpu=8), web(700), timeline({"at": 1, "apply": [web(2)]})])
    running = [p["pod"] for p in result["pods"] if p["phase"] == "Running"]
    assert running == ["a/web-0", "a/web-1"]


def test_a_pod_applied_again_is_the_same_pod(aliquot: Run) -> None:
    result = simulate(
        aliquot,
        [
            node(cpu=8),
            quota("a", {"cpu": 8}),
            pod("a/p", {"cpu": 2}, {"duration": "100s"}),
            timeline({"at": 5, "apply": [pod("a/p", {"cpu": 4}, {"duration": "10s"})]}),
        ],
        "--until",
        "7s",
    )
    assert result["quotas"][0]["used"] == {"cpu": "4"}
    assert len(result["pods"]) == 1


def test_a_workload_is_as_old_as_it_says(aliquot: Run) -> None:
    young = workload("Deployment", "x/a", {"cpu": 1}, replicas=1)
    old = workload("Deployment", "x/z", {"cpu": 1}, replicas=1)
    young["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z"
    old["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    result = simulate(aliquot, [node(cpu=1), young, old])
    assert [b["pod"] for b in result["bindings"]] == ["x/z-0"]


def test_unquoted_labels_are_read_as_written_with_a_warning(aliquot: Run) -> None:
    labelled = node(cpu=1)
    labelled["metadata"]["labels"] = {"gpu": True}
    documents = [labelled, pod("a/p", {"cpu": 1}, nodeSelector={"gpu": "true"})]
    ran = aliquot("simulate", documents, "-o", "json")
    assert json.loads(ran.out)["pods"][0]["phase"] == "Running"
    assert "metadata.labels[gpu]" in ran.err


def test_what_is_not_considered_is_said(aliquot: Run) -> None:
    claimed = pod("a/p", {"cpu": 1}, resourceClaims=[{"name": "gpu", "resourceClaimName": "x"}])
    slip = {"apiVersion": "v1", "kind": "pod", "metadata": {"name": "p"}}
    ran = aliquot("simulate", [node(), claimed, slip], "-o", "json")
    assert "spec.resourceClaims: can never start" in ran.err
    assert "did you mean Pod of v1?" in ran.err


def test_emoji_escapes_in_json_are_read(aliquot: Run) -> None:
    documents = {"apiVersion": "v1", "kind": "List", "items": [node(), pod("a/p", {"cpu": 1})]}
    documents["items"][1]["metadata"]["annotations"] = {"mood": "😀"}  # type: ignore[index]
    ran = aliquot("simulate", "-", "-o", "json", stdin=json.dumps(documents))
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["pods"][0]["phase"] == "Running"


def test_objects_survive_odd_statuses(aliquot: Run) -> None:
    odd = {**pod("a/p", {"cpu": 1}), "status": None}
    assert aliquot("simulate", [node(), odd], "-o", "objects").code == 0


@pytest.mark.parametrize("ready", ["True", "False"])
def test_it_ends_while_a_pod_waits_for_one_that_terminates(aliquot: Run, ready: str) -> None:
    """On a node that is not ready it never leaves; nothing more can happen then."""
    full = node(gpu=1)
    full["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    leaves = pod("a/leaves", {"gpu": 1}, nodeName="n", terminationGracePeriodSeconds=90)
    leaves["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    result = simulate(aliquot, [full, leaves, pod("a/waits", {"gpu": 1})])
    started = [(each["at"], each["pod"]) for each in result["bindings"]]
    assert started == ([(90, "a/waits")] if ready == "True" else [])
    assert [each["pod"] for each in result["pending"]] == ([] if started else ["a/waits"])
    phases = {each["pod"]: each["phase"] for each in result["pods"]}
    assert phases["a/leaves"] == ("Deleted" if started else "Running")
