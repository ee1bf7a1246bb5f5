"""`tree`, `top`, `queue` say what the simulation of the same objects says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aliquot.cli.main import run
from aliquot.dashboard.still import Still
from aliquot.json import Body
from aliquot.questions.explanation import explain_pod
from aliquot.questions.moment import Moment
from aliquot.questions.overview import top_gpus, top_nodes, top_pods, top_quotas, tree, view
from aliquot.questions.queue import queue
from aliquot.questions.sources.origin import read_files
from aliquot.simulation.outcome import outcome
from tests.build.manifests import limited_pod, quota, ready_node, resource
from tests.questions.test_sources import CLUSTER, NOW, dump, taken

EXAMPLES = Path(__file__).parents[2] / "examples"
RUNNING = {"phase": "Running", "startTime": "2023-11-14T22:00:00Z"}
FULL = [
    ready_node("n-1", gpu=2),
    ready_node("n-2", gpu=1),
    quota("owner/owner", {"gpu": 2}),
    quota("lent/lent", {"gpu": 1}),
    limited_pod("lent/p-1", 2, nodeName="n-1", status=RUNNING),
    limited_pod("lent/p-2", 1, nodeName="n-2", status=RUNNING),
    limited_pod("owner/low", 1),
    limited_pod("owner/high", 1, priority=5),
    limited_pod("lent/more", 1),
]


def test_a_snapshot_is_shown_as_it_was_and_nothing_is_decided(tmp_path: Path) -> None:
    found = view(read_files((taken(tmp_path, FULL),)))
    assert found.simulation.history == []
    quotas = {each["name"]: each for each in tree(found)["quotas"]}
    assert quotas["lent/lent"]["borrowed"]["nvidia.com/gpu"] == "2"
    assert quotas["lent/lent"]["pods"] == {"running": 2, "waiting": 1}
    assert quotas["owner/owner"]["pods"] == {"running": 0, "waiting": 2}


def test_of_manifests_is_shown_what_can_start_at_once(tmp_path: Path) -> None:
    source = read_files((str(EXAMPLES / "kep-9" / "story-1"),))
    simulation = source.simulation()
    simulation.run(2400 * 10**9)
    expected = {each["name"]: each["used"] for each in outcome(simulation)["quotas"]}
    assert {each["name"]: each["used"] for each in tree(view(source))["quotas"]} == expected


@pytest.mark.parametrize(
    ("by", "first"), [("used", "lent/lent"), ("borrowed", "lent/lent"), ("waiting", "owner/owner")]
)
def test_quotas_are_sorted_by_what_is_asked(tmp_path: Path, by: str, first: str) -> None:
    rows = top_quotas(view(read_files((taken(tmp_path, FULL),))), by)["quotas"]
    assert rows[0]["name"] == first
    assert [row["share"][by] for row in rows] == sorted(
        (row["share"][by] for row in rows), reverse=True
    )
    by_name = {row["name"]: row for row in rows}
    assert by_name["lent/lent"]["used"]["nvidia.com/gpu"] == "3"
    assert by_name["owner/owner"]["waiting"]["nvidia.com/gpu"] == "2"
    assert by_name["lent/lent"]["share"]["used"] == 1.0


def test_pods_and_nodes_and_gpus(tmp_path: Path) -> None:
    lease = resource("coordination.k8s.io/v1", "Lease", "kube-node-lease/n-1")
    lease["spec"] = {"renewTime": "2023-11-14T22:13:20.000000Z"}
    found = view(read_files((taken(tmp_path, [*FULL, lease]),)))
    pods = top_pods(found)["pods"]
    assert [each["pod"] for each in pods] == ["lent/p-1", "lent/p-2"]
    assert pods[0]["seconds"] == NOW // 10**9 - 1_699_999_200
    assert pods[0]["capacity"] is None or pods[0]["capacity"] == "over-quota"
    nodes = {each["node"]: each for each in top_nodes(found)["nodes"]}
    assert nodes["n-1"]["free"]["nvidia.com/gpu"] == "0"
    assert (nodes["n-1"]["used"]["pods"], nodes["n-1"]["pods"]) == ("1", 1)
    gpus = top_gpus(found)["gpus"]
    assert [(each["node"], each["total"], each["used"]) for each in gpus] == [
        ("n-1", "2", "2"),
        ("n-2", "1", "1"),
    ]


def test_cards_that_are_shared() -> None:
    source = read_files((str(EXAMPLES / "tensor-fusion" / "fractions"),))
    cards = top_gpus(view(source))["cards"]
    assert [each["pods"] for each in cards] == [2, 4]
    assert cards[0]["capacity"]["vram"] == "40Gi"


def test_the_queue_is_in_the_order_in_which_pods_are_tried(tmp_path: Path) -> None:
    """With room for one after the other, pods start in this order."""
    found = view(read_files((taken(tmp_path, FULL),)))
    rows = queue(found)["pods"]
    assert [row["pod"] for row in rows] == ["owner/high", "owner/low", "lent/more"]
    assert [row["position"] for row in rows] == [1, 2, 3]
    own = queue(found, "owner/owner")["pods"]
    assert [(row["position"], row["pod"]) for row in own] == [(1, "owner/high"), (2, "owner/low")]
    roomy = [*FULL[2:4], *FULL[6:], ready_node("n-3", gpu=8)]
    source = read_files((taken(tmp_path, roomy),))
    rows = queue(view(source))["pods"]
    simulation = source.simulation()
    simulation.run(0)
    assert [each["pod"] for each in outcome(simulation)["bindings"]] == [row["pod"] for row in rows]
    assert {row["message"] for row in rows} == {"would start now"}


def test_reasons_in_the_queue_are_those_of_the_engine(tmp_path: Path) -> None:
    found = view(read_files((dump(tmp_path, FULL),)))
    pending = {each["pod"]: each for each in outcome(found.simulation)["pending"]}
    rows = queue(found)["pods"]
    assert rows
    for row in rows:
        assert row["message"] == pending[row["pod"]]["message"]
        assert row["estimate"] is None


@pytest.mark.parametrize("kept", [dump, taken])
def test_a_nominated_pod_waits_for_its_victims_in_the_queue_as_when_explained(
    tmp_path: Path, kept: Callable[[Path, list[Body]], str]
) -> None:
    """So does the page's list of those that wait; a pod like it that is not nominated does not."""
    leaving = limited_pod("lent/p-1", 1, nodeName="n-1", status=RUNNING)
    leaving["metadata"]["deletionTimestamp"] = "2023-11-14T22:13:30Z"
    leaving["metadata"]["deletionGracePeriodSeconds"] = 600
    nominated = {"phase": "Pending", "nominatedNodeName": "n-1"}
    objects = [ready_node("n-1", gpu=1), quota("owner/owner", {"gpu": 1}), leaving]
    objects += [limited_pod("owner/own", 1, status=nominated), limited_pod("owner/with", 1)]
    source = read_files((kept(tmp_path, objects),))
    rows = {each["pod"]: each for each in queue(view(source))["pods"]}
    explained = explain_pod(Moment(source), "owner/own")
    page = Still(source)
    assert page.watched is not None
    frame = json.loads(page.watched.look(page.clock()).encoded().removeprefix(b"data: "))
    shown = frame["waiting"]["set"]["owner/own"]
    for found in (rows["owner/own"], explained, shown):
        assert found["reason"] == "WaitingForVictims"
        assert found["message"] == "holds n-1 until those who make way are gone"
    assert rows["owner/with"]["reason"] == "BorrowingExhausted"


def test_asking_changes_no_decision(tmp_path: Path) -> None:
    source = read_files((dump(tmp_path, CLUSTER),))
    asked, plain = source.simulation(), source.simulation()
    asked.feed()
    asked.engine.waiting_order()
    plain.feed()
    for each in (asked, plain):
        each.run(None)
    assert outcome(asked) == outcome(plain)


def test_an_unknown_quota_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["queue", "nowhere", "--from", taken(tmp_path, FULL)]) == 2
    said = capsys.readouterr()
    assert said.err == "aliquot: there is no quota nowhere; there are lent/lent, owner/owner\n"
    assert said.out == ""


@pytest.mark.parametrize("question", ["tree", "top pods", "top nodes", "top gpus", "queue"])
def test_tables_and_json(tmp_path: Path, question: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*question.split(), "--from", taken(tmp_path, FULL)]
    assert run([*words, "-o", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found
    assert run(words) == 0
    assert "lent" in capsys.readouterr().out or question in ("top nodes", "top gpus")


def test_watching_needs_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tree", "--watch", "--from", taken(tmp_path, FULL)]) == 2
    assert "--watch needs a terminal" in capsys.readouterr().err


def test_quotas_of_a_tree_with_nodes_of_its_own_stand_by_themselves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["tree", "--from", str(EXAMPLES / "koordinator/pools")]) == 0
    first, second = capsys.readouterr().out.split("QUOTAS OF TREE a100")
    assert ("students/students" in first, "speech/speech" in first) == (True, False)
    assert "speech/speech" in second
