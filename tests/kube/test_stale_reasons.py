"""The messages of waiting pods follow the numbers and the time, at a pace that servers bear."""

import pytest

from aliquot.dialects.quota_index import QuotaIndex
from aliquot.engine import Refusal
from aliquot.kube.execution import stale_reasons
from aliquot.kube.execution.stale_reasons import StaleReasons
from tests.kube.workshop import SECOND, Workshop, play


def seconds_said(shop: Workshop, pod: str) -> list[str]:
    """How long until a quota gives back, by each condition that was written of a pod."""
    conditions = (
        each["status"]["conditions"][0]["message"]
        for each in shop.answers.to(f"/pods/{pod}/status")
        if "conditions" in each["status"]
    )
    return [message.partition("gives back in ")[2].partition(" s")[0] for message in conditions]


def test_the_time_that_is_left_is_written_every_thirty_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stale_reasons, "_ROUND_SECONDS", 0.0)
    monkeypatch.setattr(stale_reasons, "_AT_ONCE", 60.0)

    async def story(shop: Workshop) -> None:
        shop.node("n", 4)
        shop.quota("a", 2)
        shop.quota("b", 2)
        shop.pod("x", "a", 4, node="n")
        shop.pod("p", "b", 2)
        shop.decide(0)
        await shop.write()
        checked = StaleReasons(shop.pod_status)
        for second in range(1, 101):
            checked.refresh(shop.engine, QuotaIndex(), second * SECOND)
            await shop.write()
        assert seconds_said(shop, "p") == ["120", "90", "60", "30"]

    play(story, policy="hierarchy")


def test_pods_that_wait_alike_are_looked_into_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stale_reasons, "_AT_ONCE", 60.0)

    async def story(shop: Workshop) -> None:
        shop.node("n", 1)
        for name in ("p", "q", "r"):
            shop.pod(name, "a", 2)
        shop.pod("other", "a", 3)
        shop.decide(0)
        await shop.write()
        asked: list[str] = []
        why = shop.engine.why

        def noted(uid: str, now: int | None = None) -> Refusal | None:
            asked.append(uid)
            return why(uid, now)

        monkeypatch.setattr(shop.engine, "why", noted)
        shop.answers.written.clear()
        shop.node("m", 1)
        StaleReasons(shop.pod_status).refresh(shop.engine, QuotaIndex(), 0)
        await shop.write()
        assert len(asked) == 2
        for name in ("p", "q", "r", "other"):
            (said,) = shop.answers.to(f"/pods/{name}/status")
            assert "0/2 nodes fit" in said["status"]["conditions"][0]["message"]

    play(story)
