"""Where the page has a cluster from: files as they stand, and what was decided before."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from aliquot.dashboard import story
from aliquot.dashboard.observer import Observer
from aliquot.dashboard.oracle import EngineOracle
from aliquot.dashboard.still import Still
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.times import timestamp
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.questions import history
from aliquot.questions.sources.origin import Origin
from tests.build.manifests import limited_pod, quota, ready_node

BEFORE = "2026-01-02T03:00:00Z"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
EXAMPLES = Path(__file__).parents[2] / "examples"


def test_manifests_stand_as_tree_shows_them_with_the_story_of_it() -> None:
    still = Still(Origin(paths=(str(EXAMPLES / "koordinator" / "pools"),)).read())
    assert still.watched is not None
    whole = still.watched.look(still.clock())
    assert whole.cluster.running > 0
    assert whole.cluster.waiting > 0
    assert {b"start" in entry for _, entry in whole.story} == {True}
    assert len(whole.story) == whole.cluster.running


def test_pods_of_a_snapshot_have_the_ages_of_their_objects(tmp_path: Path) -> None:
    runs, waits = limited_pod("a/runs", 1), limited_pod("a/waits", 9)
    runs["metadata"]["creationTimestamp"] = waits["metadata"]["creationTimestamp"] = BEFORE
    runs["spec"]["nodeName"] = "n"
    runs["status"] = {"phase": "Running", "startTime": "2026-01-02T03:00:30Z"}
    bodies = [runs, waits, quota("a/a", {"gpu": 4}), ready_node("n", gpu=4)]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(bodies))
    read = Origin(paths=(str(tmp_path / "all.yaml"),)).read()
    taken = timestamp("2026-01-02T03:01:00Z", "test", "taken")
    still = Still(replace(read, taken=taken))
    assert still.watched is not None
    frame = json.loads(still.watched.look(still.clock()).encoded().removeprefix(b"data: "))
    (row,) = frame["waiting"]["set"].values()
    assert frame["cluster"]["now"] - row["since"] == 60
    found = still.watched.quota("a/a", still.clock())
    assert found is not None
    assert [each["age"] for each in found["pods"]] == [30]


def test_decisions_are_told_as_the_story_has_them() -> None:
    started = {"what": "started", "pod": "a/p", "quota": "a/a", "node": "n", "uid": "u"}
    assert story.decided(started, 5) == {
        "at": 5,
        "kind": "start",
        "pod": "a/p",
        "quota": "a/a",
        "node": "n",
    }
    evicted = {"what": "evicted", "pod": "a/p", "quota": "a/a", "for": "b/q", "reason": "FairShare"}
    told = story.decided(evicted, 6)
    assert told is not None
    assert (told["kind"], told["for"], told["reason"]) == ("evict", "b/q", "FairShare")
    assert story.decided({"what": "waits", "pod": "a/p"}, 7) is None


async def _past(observer: Observer) -> list[story.Entry]:
    return [each async for each in observer._read_past()]


def test_the_decision_log_tells_what_was_before(monkeypatch: pytest.MonkeyPatch) -> None:
    async def decided(client: object, namespace: str) -> list[Body]:
        assert namespace == "aliquot-system"
        at = "2026-01-02T03:04:05Z"
        return [{"at": at, "what": "started", "pod": "a/p"}, {"at": at, "what": "waits"}]

    monkeypatch.setattr(history, "decided", decided)
    observer = Observer(None, Configuration(), None, "here", "aliquot-system")  # type: ignore[arg-type]
    (entry,) = asyncio.run(_past(observer))
    assert (entry["kind"], entry["at"]) == ("start", 1767323045)


def test_a_decision_log_that_cannot_be_read_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(client: object, namespace: str) -> list[Body]:
        raise ApiError(403, "Forbidden", "may not")

    monkeypatch.setattr(history, "decided", refused)
    observer = Observer(None, Configuration(), None, "here", "aliquot-system")  # type: ignore[arg-type]
    assert asyncio.run(_past(observer)) == []


def test_neither_environment_nor_images_of_pods_are_sent(tmp_path: Path) -> None:
    waits = limited_pod("a/w", 4)
    waits["spec"]["containers"][0] |= {
        "image": "hidden-image",
        "env": [{"name": "TOKEN", "value": "hidden-token"}],
    }
    low = quota("a/a", {"gpu": 1}, {"gpu": 2}, annotations={LAST_APPLIED: "hidden-text"})
    has = {"allocatable": {"nvidia.com/gpu": "8", "cpu": "8", "pods": "9"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": has}
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([waits, low, node]))
    origin = Origin(paths=(str(tmp_path / "all.yaml"),))

    async def answers() -> list[Body]:
        oracle = EngineOracle(origin)
        try:
            change = {"quotas": {"a/a": {"max": {"nvidia.com/gpu": 4}}}}
            return [await oracle.explain("a/w"), await oracle.what_if(change)]
        finally:
            oracle.close()

    explained, supposed = asyncio.run(answers())
    patched = {each["object"]["kind"] for cure in explained["cures"] for each in cure["changes"]}
    assert {"Pod", "ElasticQuota"} <= patched
    assert "nvidia.com/gpu" in supposed["yaml"]
    still = Still(origin.read())
    assert still.watched is not None
    still.watched.look(still.clock())
    sent = [explained, supposed, still.watched.board.whole().encoded().decode()]
    assert "hidden" not in json.dumps(sent)
