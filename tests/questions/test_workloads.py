"""Traces and generated workloads, and the comparison of policies on them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aliquot.cli.main import cli, run
from aliquot.errors import InputError
from aliquot.questions.plays import comparison
from aliquot.questions.plays.comparison import compare, sides
from aliquot.questions.sources.origin import read_all, read_files
from aliquot.questions.workloads import generators, traces
from aliquot.simulation.outcome import outcome
from tests.build.manifests import limited_pod, quota, ready_node
from tests.cluster.api import binaries
from tests.questions.test_sources import dump

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,262144,2,T4\nn-1,64000,262144,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
    "p-0,12000,16384,1,1000,T4,LS,Running,0,100,0\n"
    "p-1,6000,12288,1,600,,LS,Running,10,110,20\n"
    "p-2,6000,12288,1,500,,LS,Running,10,60,10\n"
    "p-3,6000,12288,0,0,,LS,Pending,30,40,\n"
)


def openb(folder: Path, pods: str = PODS) -> str:
    (folder / "nodes.csv").write_text(NODES)
    (folder / "pods.csv").write_text(pods)
    return f"openb:{folder}/nodes.csv,{folder}/pods.csv"


def test_a_trace_with_whole_cards_and_parts_of_them(tmp_path: Path) -> None:
    """p-0 has a card to itself; 600 and 500 thousandths do not fit the other one together."""
    simulation = read_all((), openb(tmp_path)).simulation()
    simulation.run(None)
    result = outcome(simulation)
    started = {each["pod"]: each["at"] for each in result["bindings"]}
    assert started["openb/p-0"] == 0
    parts = sorted((started["openb/p-1"], started["openb/p-2"]))
    assert parts[0] == 10
    assert parts[1] in (60, 100)  # when the first of the two, or p-0, has ended
    assert started["openb/p-3"] == 30
    assert {each["phase"] for each in result["pods"]} == {"Succeeded"}
    assert result["until"] == max(parts[1] + (90 if started["openb/p-1"] > 10 else 50), 100)


def test_a_plain_table_beside_manifests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "jobs.csv"
    table.write_text(
        "namespace,name,arrival,duration,priority,cpu,nvidia.com/gpu\n"
        "a,first,0,10m,,1,1\nb,urgent,5m,60,7,1,1\nb,free,1,,,500m,\n"
    )
    nodes = dump(tmp_path, [ready_node("n", gpu=1)])
    assert run(["simulate", nodes, "--trace", f"csv:{table}", "-o", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [(each["pod"], each["at"]) for each in result["bindings"]] == [
        ("a/first", 0),
        ("b/free", 1),
        ("b/urgent", 300),
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("12000", "12k", "pods.csv, line 2: cpu_milli: '12k' is not a whole number"),
        ("num_gpu", "cards", "pods.csv, line 1: lacks the column num_gpu"),
        (",100,0\np-1", ",100\np-1", "pods.csv, line 2: must have 11 cells"),
    ],
)
def test_a_table_that_makes_no_sense(tmp_path: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        traces.read(openb(tmp_path, PODS.replace(old, new, 1)))


@pytest.mark.parametrize("trace", ["openb:a", "csv:a,b", "swf:a", "openb", ""])
def test_what_is_no_trace_is_refused(trace: str) -> None:
    with pytest.raises(InputError, match=r"neither openb:NODES.csv,PODS.csv nor csv:PODS.csv"):
        traces.read(trace)


def test_the_baseline_is_that_of_kueue() -> None:
    bodies = list(generators.baseline())
    kinds = [each["kind"] for each in bodies]
    assert kinds.count("Job") == 15_000
    queues = [each for each in bodies if each["kind"] == "ElasticQuota"]
    leaves = [each for each in queues if "is-parent" not in str(each["metadata"]["labels"])]
    assert (len(queues), len(leaves)) == (35, 30)
    assert {str(each["spec"]) for each in leaves} == {
        str({"min": {"cpu": "20"}, "max": {"cpu": "120"}})
    }
    large = [each for each in bodies if each["metadata"]["name"] == "large-49"]
    assert len(large) == 30
    assert large[0]["metadata"]["annotations"]["sim.aliquot.dev/arrival"] == "58800ms"


def test_a_small_baseline_ends_and_evicts(tmp_path: Path) -> None:
    (side,) = sides(read_files((dump_list(tmp_path, list(generators.baseline(0.02))),)), [], [])
    found = compare(side)
    assert found["policy"] == "hierarchy"
    assert found["pods"]["waiting"] == 0
    assert set(found["sizes"]) == {"1 cpu", "5 cpu", "20 cpu"}


def dump_list(folder: Path, items: list[Any]) -> str:
    file = folder / "generated.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def test_a_seed_makes_the_same_file(capsys: pytest.CaptureFixture[str]) -> None:
    def made(*words: str) -> str:
        assert run(["generate", "poisson", "--jobs", "20", *words]) == 0
        return capsys.readouterr().out

    assert made("--seed", "3") == made("--seed", "3") != made("--seed", "4")


@pytest.mark.parametrize("text", ["50:1", "100:-1", "50:2,100:1", "0:1,0:2,100:3", "a", "200:1"])
def test_quantiles_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="quantiles"):
        generators.quantiles(text, "--gpus")


def test_quantiles_are_linear_between_points() -> None:
    found = generators.quantiles("50:10,100:20", "--gpus")
    assert [found.at(each) for each in (0, 50, 75, 100)] == [10, 10, 15, 20]


def test_figures_of_a_comparison_by_hand(tmp_path: Path) -> None:
    """One card: lent's pod runs 10 s of its 100 and is evicted; the owner's waits for nothing."""
    bodies = [
        ready_node("n", gpu=1, cpu=4),
        quota("owner/owner", {"gpu": 1}),
        quota("lent/lent", {"gpu": 0}),
        limited_pod("lent/p", 1, annotations={"sim.aliquot.dev/duration": "100s"}),
        limited_pod(
            "owner/o",
            1,
            annotations={"sim.aliquot.dev/arrival": "10s", "sim.aliquot.dev/duration": "30s"},
        ),
    ]
    source = read_files((dump_list(tmp_path, bodies),))
    (side,) = sides(source, ["capacity"], [])
    found = compare(side)
    assert (found["evictions"], found["makespan"]) == (1, 40)
    assert found["utilisation"]["nvidia.com/gpu"] == 1.0
    assert found["lostWork"]["nvidia.com/gpu"] == round(10 / 3600, 3)
    assert found["teams"]["owner"]["mean"] == 0
    assert found["fairness"] == 1.0


def test_jains_index() -> None:
    assert comparison.jain([1, 1, 1]) == 1.0
    assert comparison.jain([1, 0, 0, 0]) == 0.25


def test_each_policy_under_each_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(
            "apiVersion: config.aliquot.dev/v1alpha1\nkind: Configuration\n"
        )
        files.append(str(tmp_path / name))
    words = ["compare", openb_free(tmp_path), "--policy", "capacity,fair", "--config", *files]
    assert run([*words, "-o", "json"]) == 0
    names = [each["name"] for each in json.loads(capsys.readouterr().out)["sides"]]
    assert names == ["capacity, a.yaml", "capacity, b.yaml", "fair, a.yaml", "fair, b.yaml"]
    assert run(words) == 0
    assert "fairness (Jain)" in capsys.readouterr().out


def openb_free(folder: Path) -> str:
    return dump_list(folder, [ready_node("n", gpu=1), quota("a/a", {"gpu": 1}), limited_pod("a/p")])


def test_an_unknown_policy_and_no_input_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "x", "--policy", "fair,best"]) == 2
    assert "'best' is none of auto, capacity, fair" in capsys.readouterr().err
    assert run(["compare", "--policy", "fair"]) == 2
    assert "name a PATH or a --trace" in capsys.readouterr().err
    assert run(["simulate"]) == 2
    assert "Missing argument 'PATH...'" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_completes_our_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_ALIQUOT_COMPLETE" in script
    assert "_KUBECTL_ALIQUOT_COMPLETE" in script
    assert set(cli.commands) >= {"tree", "top", "queue", "snapshot", "history"}


def test_kubectl_finds_the_plugin(tmp_path: Path) -> None:
    kubectl = binaries.kubectl()
    if kubectl is None:
        pytest.skip(binaries.NO_KUBECTL)
    plugin = tmp_path / "kubectl-aliquot"
    code = "from aliquot.cli.main import kubectl_plugin; kubectl_plugin()"
    plugin.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
    plugin.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    words = [str(kubectl), "aliquot", "tree", "--from", openb_free(tmp_path)]
    ran = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    assert "a/a" in ran.stdout
