"""Pods that are kept back: after a refused binding, and until their gang is known."""

import asyncio
from dataclasses import replace

import pytest

from aliquot.engine import Pod, Shape
from aliquot.kube.intake import bind_backoff
from aliquot.kube.intake.bind_backoff import BindBackoff

POD = Pod("uid", "team-a", "p", Shape(()))


def test_a_refused_pod_backs_off_longer_each_time() -> None:
    async def story() -> list[float]:
        backoff = BindBackoff(lambda uid: None)
        seconds = [backoff.bind_failed("uid") for _ in range(12)]
        assert backoff.keeps_back(POD, None)
        assert not backoff.keeps_back(replace(POD, node="n"), None), "somebody has bound it"
        again = backoff.bind_failed("uid")
        backoff.stop()
        return [*seconds, again]

    *seconds, again = asyncio.run(story())
    assert 0.5 <= seconds[0] <= 1 < seconds[4] <= 16
    assert 150 <= seconds[-1] <= 300
    assert again <= 1


def test_a_pod_waits_for_its_gang_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bind_backoff, "_GANG_SECONDS", 0.02)

    async def story() -> list[str]:
        over: list[str] = []
        backoff = BindBackoff(over.append)
        assert backoff.keeps_back(POD, "gang")
        assert backoff.keeps_back(POD, "gang"), "however often it is heard of"
        assert not backoff.keeps_back(replace(POD, gang="team-a/gang"), "gang"), "there it is"
        await asyncio.sleep(0.04)
        assert over == []
        assert backoff.keeps_back(POD, "gang"), "it is gone again"
        await asyncio.sleep(0.04)
        assert not backoff.keeps_back(POD, "gang"), "it never came"
        backoff.gone("uid")
        assert backoff.keeps_back(POD, "gang"), "another pod"
        backoff.stop()
        return over

    assert asyncio.run(story()) == ["uid"]
