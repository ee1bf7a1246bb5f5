"""The checker itself: it must notice each thing that it is there to notice, and nothing else."""

import json
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from aliquot.engine import QueueSummary, QuotaSummary
from aliquot.json import Body
from aliquot.kube.observe import catalogue
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.observe.metrics_snapshot import MetricsSnapshot
from tests.build.manifests import ready_node
from tests.cluster.chaos.campaign import Round, describe, differences, save, table
from tests.cluster.chaos.checker import Checker
from tests.cluster.chaos.faults import FAULTS, MIXABLE
from tests.cluster.chaos.world import PRIORITIES, World

_UIDS = count(1)


class _Cluster:
    """Tells a checker of a cluster: two nodes of 16 cpus, and the quotas of a world."""

    def __init__(self, name: Any = "kep9") -> None:
        self.world, self.now = World(name), 100.0
        self.deleted: set[str] = set()
        self.checker = Checker(self.world, self.deleted)
        for node in ("n-1", "n-2"):
            self._tell("ADDED", {"spec": {}, **ready_node(node, cpu=16)})
        for body in self.world.objects():
            if body["kind"] in ("ElasticQuota", "Queue"):
                self._tell("ADDED", body)

    def _tell(self, type_: str, body: Body) -> None:
        self.now += 0.01
        self.checker.hear(type_, body["kind"], body, self.now)

    def pod(self, team: str, cpus: int = 1, node: str | None = None, **how: Any) -> Body:
        """A pod that waits, or is bound to this node."""
        uid, priority = f"uid-{next(_UIDS)}", how.get("priority", "low")
        body = self.world.pod(team, f"p-{uid}", cpus, priority, how.get("gang"))
        body["metadata"]["uid"] = uid
        body["spec"]["priority"] = PRIORITIES[priority]
        body["status"] = {"phase": "Pending"}
        self._tell("ADDED", body)
        return self.bind(body, node) if node else body

    def fill(self, team: str, pods: int, node: str) -> list[Body]:
        """So many pods of one cpu."""
        return [self.pod(team, node=node) for _ in range(pods)]

    def bind(self, pod: Body, node: str) -> Body:
        return self._change(pod, spec={**pod["spec"], "nodeName": node})

    def evict(self, pod: Body) -> Body:
        about = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        return self._change(pod, metadata=about)

    def gone(self, pod: Body) -> None:
        self._tell("DELETED", pod)

    def bound(self, team: str, low: int, high: int) -> None:
        """A quota comes to have these bounds."""
        for body in self.world.objects():
            if body["metadata"]["name"] == team:
                spec = {**body["spec"], "min": {"cpu": low}, "max": {"cpu": high}}
                self._tell("MODIFIED", {**body, "spec": spec})

    def words(self) -> list[str]:
        return [each.word for each in self.checker.wrong]

    def _change(self, pod: Body, **fields: Any) -> Body:
        changed = {**pod, **fields}
        self._tell("MODIFIED", changed)
        return changed


def test_a_cluster_that_is_in_order_has_nothing_wrong() -> None:
    cluster = _Cluster()
    pods = cluster.fill("t-1", 16, "n-1")
    cluster.deleted.add(pods[0]["metadata"]["uid"])
    cluster.gone(cluster.evict(pods[0]))
    cluster.pod("t-2", node="n-1")
    assert cluster.words() == []
    assert list(cluster.checker.startable()) == []
    assert cluster.checker.evictions == []
    assert len(cluster.checker.binds) == 17


def test_a_node_that_holds_more_than_it_has() -> None:
    cluster = _Cluster()
    cluster.fill("t-1", 16, "n-1")
    cluster.pod("t-2", node="n-1")
    assert cluster.words() == ["double-booked"]


def test_what_is_leaving_holds_its_room_until_it_is_gone() -> None:
    cluster = _Cluster()
    first, *_ = cluster.fill("t-1", 16, "n-1")
    cluster.deleted.add(first["metadata"]["uid"])
    cluster.evict(first)
    cluster.pod("t-2", node="n-1")
    assert cluster.words() == ["double-booked"]


def test_a_quota_above_its_max_by_a_bind() -> None:
    cluster = _Cluster()
    cluster.bound("t-1", 2, 4)
    cluster.now += 60
    cluster.fill("t-1", 4, "n-1")
    assert cluster.words() == []
    cluster.pod("t-1", node="n-2")
    assert cluster.words() == ["above max"]


def test_a_max_that_was_lowered_just_now_binds_no_earlier_decision() -> None:
    cluster = _Cluster()
    cluster.fill("t-1", 4, "n-1")
    cluster.bound("t-1", 2, 4)
    cluster.pod("t-1", node="n-2")
    assert cluster.words() == []
    cluster.now += 60
    cluster.pod("t-1", node="n-2")
    assert cluster.words() == ["above max"]


def test_parents_have_a_max_too() -> None:
    cluster = _Cluster("hierarchy")
    cluster.bound("left", 2, 4)
    cluster.now += 60
    cluster.fill("t-1", 2, "n-1")
    cluster.fill("t-2", 3, "n-2")
    assert cluster.words() == ["above max"]


def test_a_pod_that_is_bound_twice() -> None:
    cluster = _Cluster()
    cluster.bind(cluster.pod("t-1", node="n-1"), "n-2")
    assert cluster.words() == ["bound twice"]


def test_an_eviction_out_of_a_team_within_its_min() -> None:
    cluster = _Cluster()
    cluster.bound("t-1", 4, 60)
    pods = cluster.fill("t-1", 5, "n-1")
    cluster.now += 60
    cluster.evict(pods[0])
    assert cluster.words() == [], "it held more than its min"
    cluster.evict(pods[1])
    assert cluster.words() == ["needless"], "of the first eviction the scheduler knew"
    assert [each.team for each in cluster.checker.evictions] == ["t-1"] * 2


def test_news_of_a_team_that_scaled_down_take_a_moment() -> None:
    cluster = _Cluster()
    cluster.bound("t-1", 4, 60)
    pods = cluster.fill("t-1", 5, "n-1")
    cluster.now += 60
    cluster.deleted.add(pods[0]["metadata"]["uid"])
    cluster.evict(pods[0])
    cluster.evict(pods[1])
    assert cluster.words() == []
    cluster.now += 60
    cluster.evict(pods[2])
    assert cluster.words() == ["needless"]


def test_a_scheduler_that_cannot_see_may_be_wrong_about_a_team() -> None:
    cluster = _Cluster()
    cluster.bound("t-1", 4, 60)
    pods = cluster.fill("t-1", 5, "n-1")
    cluster.checker.stale_since = cluster.now
    cluster.deleted.add(pods[0]["metadata"]["uid"])
    cluster.gone(cluster.evict(pods[0]))
    cluster.now += 30
    cluster.evict(pods[1])
    assert cluster.words() == []


def test_a_higher_priority_of_its_own_team_may_evict_within_min() -> None:
    cluster = _Cluster()
    pods = cluster.fill("t-1", 2, "n-1")
    cluster.now += 60
    cluster.pod("t-1", priority="high")
    cluster.evict(pods[0])
    assert cluster.words() == []


def test_the_members_of_a_gang_go_together() -> None:
    cluster = _Cluster()
    cluster.bound("t-1", 4, 60)
    cluster.fill("t-1", 4, "n-1")
    gang = [cluster.pod("t-1", 2, "n-2", gang="g") for _ in range(3)]
    cluster.now += 60
    for each in gang:
        cluster.evict(each)
        cluster.now += 2.5
    assert cluster.words() == []


@pytest.mark.parametrize("world", ["kep9", "nos", "hierarchy", "queues"])
def test_a_pod_that_waits_although_it_could_start(world: str) -> None:
    cluster = _Cluster(world)
    waiting = cluster.pod("t-1")
    (said,) = cluster.checker.startable()
    assert waiting["metadata"]["name"] in said
    cluster.bind(waiting, "n-1")
    assert list(cluster.checker.startable()) == []


def test_a_pod_that_waits_for_room_or_right_is_not_lost() -> None:
    cluster = _Cluster()
    cluster.fill("t-1", 16, "n-1")
    cluster.fill("t-2", 14, "n-2")
    cluster.pod("t-3", cpus=4)
    assert list(cluster.checker.startable()) == [], "no node has four cpus free"
    for team in ("t-1", "t-2", "t-3", "t-4"):
        cluster.bound(team, 8, 60)
    cluster.pod("t-1")
    assert [each for each in cluster.checker.startable() if "t-1/" in each], "room and right"
    cluster.pod("t-4", 2, "n-2")
    assert not [each for each in cluster.checker.startable() if "t-1/" in each], "no right"


def test_a_pod_within_its_min_that_waits_while_others_borrow() -> None:
    cluster = _Cluster()
    for team in ("t-1", "t-2", "t-3", "t-4"):
        cluster.bound(team, 8, 60)
    cluster.fill("t-1", 16, "n-1")
    cluster.fill("t-2", 16, "n-2")
    owed = cluster.pod("t-3")
    (said,) = cluster.checker.startable()
    assert owed["metadata"]["name"] in said
    assert "within min" in said


def test_room_that_is_reserved_for_a_passed_claim_may_stay_idle_within_a_tenth() -> None:
    cluster = _Cluster("queues")
    cluster.fill("t-1", 15, "n-1")
    cluster.fill("t-2", 15, "n-2")
    big, small = cluster.pod("t-3", 4), cluster.pod("t-4")
    (said,) = cluster.checker.startable()
    assert small["metadata"]["name"] in said
    waits = {"type": "PodScheduled", "status": "False", "reason": "Reserved", "message": "room"}
    cluster._change(big, status={"phase": "Pending", "conditions": [waits]})
    assert list(cluster.checker.startable()) == [], "2 of 32 cpus are idle, less than a tenth"
    other = _Cluster("queues")
    other.fill("t-1", 15, "n-1")
    other.fill("t-2", 12, "n-2")
    big, small = other.pod("t-3", 5), other.pod("t-4")
    other._change(big, status={"phase": "Pending", "conditions": [waits]})
    (said,) = other.checker.startable()
    assert small["metadata"]["name"] in said, "5 of 32 cpus are idle, more than a tenth"


def test_a_gang_waits_as_a_whole() -> None:
    cluster = _Cluster()
    cluster.fill("t-1", 12, "n-1")
    cluster.fill("t-2", 14, "n-2")
    gang = [cluster.pod("t-3", 2, gang="g") for _ in range(4)]
    assert list(cluster.checker.startable()) == [], "three of four have room"
    cluster.gone(gang[0])
    assert len(list(cluster.checker.startable())) == 1


def test_an_eviction_whose_claimant_did_not_start() -> None:
    cluster = _Cluster()
    cluster.bound("t-1", 4, 60)
    victim, *_ = cluster.fill("t-1", 16, "n-1")
    since, claimant = cluster.now, cluster.pod("t-2")
    cluster.evict(victim)
    whom = f"t-2/{claimant['metadata']['name']}"
    event = {
        "reason": "Preempted",
        "message": f"ReclaimedForMin: evicted for {whom}: quota t-2 min 24",
        "involvedObject": {"uid": victim["metadata"]["uid"]},
    }
    (said,) = cluster.checker.judge_evictions(since, cluster.now, [event])
    assert whom in said, "it is within its min, whatever else changes"
    assert cluster.checker.unexplained(since, [event]) == 0
    assert cluster.checker.unexplained(since, []) == 1
    cluster.bound("t-2", 0, 60)
    assert list(cluster.checker.judge_evictions(since, cluster.now, [event])) == []
    (said,) = cluster.checker.judge_evictions(since, since, [event])
    assert whom in said, "nothing changed since the load rests"
    cluster.bind(claimant, "n-2")
    assert list(cluster.checker.judge_evictions(since, since, [event])) == []


def test_a_claimant_whose_room_a_more_important_pod_of_its_team_took() -> None:
    cluster = _Cluster()
    cluster.bound("t-1", 4, 60)
    victim, *_ = cluster.fill("t-1", 16, "n-1")
    since, claimant = cluster.now, cluster.pod("t-2")
    cluster.evict(victim)
    event = {
        "reason": "Preempted",
        "message": f"ReclaimedForMin: evicted for t-2/{claimant['metadata']['name']}: min 24",
        "involvedObject": {"uid": victim["metadata"]["uid"]},
    }
    cluster.pod("t-2", node="n-2", priority="high")
    assert list(cluster.checker.judge_evictions(since, cluster.now, [event])) == []


def test_the_right_of_a_gang_is_that_of_all_its_pods() -> None:
    cluster = _Cluster()
    cluster.bound("t-1", 4, 60)
    cluster.bound("t-2", 4, 60)
    victim, *_ = cluster.fill("t-1", 16, "n-1")
    since = cluster.now
    first, *_ = [cluster.pod("t-2", 2, gang="g") for _ in range(3)]
    cluster.evict(victim)
    event = {
        "reason": "Preempted",
        "message": f"FairShare: evicted for t-2/{first['metadata']['name']}: min 4",
        "involvedObject": {"uid": victim["metadata"]["uid"]},
    }
    rested = cluster.now + 1
    assert list(cluster.checker.judge_evictions(since, rested, [event])) == [], "6 above 4"
    cluster.bound("t-2", 6, 60)
    assert len(list(cluster.checker.judge_evictions(since, rested, [event]))) == 1


def test_what_quotas_hold_is_what_their_pods_ask_for() -> None:
    cluster = _Cluster("hierarchy")
    cluster.pod("t-1", 4, "n-1")
    cluster.pod("t-2", 2, "n-1")
    used = cluster.checker.used()
    assert {name: int(used[name]) for name in ("left", "right", "t-1", "t-2")} == {
        "left": 6,
        "right": 0,
        "t-1": 4,
        "t-2": 2,
    }


def _round(fault: str, recovered: float | None, *wrong: tuple[str, str]) -> Round:
    return Round("real", "kep9", 1, fault, None, recovered, 3.0, 10, 2, 0, 0, wrong)


def test_the_table_has_a_row_for_each_fault(tmp_path: Path) -> None:
    rounds = [
        _round("leader killed", 16.0),
        _round("leader killed", 18.0, ("above max", "quota")),
        _round("mass deletion", None, ("lost", "a pod"), ("needless", "a pod")),
    ]
    rows = [line.split("  ") for line in table(rounds).splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells[1] == ["leader killed", "2", "17.0", "18.0", "20", "4", "0", "1", "0", "0"]
    assert cells[2] == ["mass deletion", "1", "-", "never", "10", "2", "1", "0", "1", "0"]
    assert cells[3][:2] == ["all", "3"]
    assert "lost: a pod" in describe(rounds[2])
    save(rounds, tmp_path / "chaos.json")
    saved = json.loads((tmp_path / "chaos.json").read_text())
    assert saved["wrong"] == {"above max": 1, "lost": 1, "needless": 1}
    assert [each["fault"] for each in saved["rounds"]] == [each.fault for each in rounds]


def test_what_may_be_mixed_is_a_fault() -> None:
    assert set(MIXABLE) <= FAULTS.keys()


@pytest.mark.parametrize("word", ["quota", "queue"])
def test_the_books_of_a_scheduler_are_read_from_its_metrics(word: str) -> None:
    metric = {"quota": catalogue.QUOTA_USED, "queue": catalogue.QUEUE_USED}[word]
    metrics, used = Metrics(), {"cpu": 2500}
    quota = QuotaSummary("t-1/t-1", None, {}, {}, used, used, {}, {}, {}, {})
    queue = QueueSummary("t-1", 1, {}, used, {})
    metrics.snapshot = MetricsSnapshot([quota], [queue] if word == "queue" else [])
    said = generate_latest(metrics.registry).decode()
    assert list(differences(said, {"t-1": Fraction(5, 2), "t-2": Fraction(0)}, metric)) == []
    wrong = {"t-1": Fraction(2), "t-2": Fraction(1)}
    assert list(differences(said, wrong, metric)) == [
        f"{word} t-1 holds 2 cpu, the scheduler says 2.5",
        f"{word} t-2 holds 1 cpu, the scheduler says None",
    ]
    metrics.invariant_violations.set(3)
    said = generate_latest(metrics.registry).decode()
    assert list(differences(said, {}, metric)) == ["3 violations of invariants"]
