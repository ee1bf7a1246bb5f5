"""Pods that are left alone: after a refusal, and until their gang is known."""

import asyncio
from dataclasses import replace

import pytest

from aliquot.engine.model.pod import Pod, Shape
from aliquot.kube.control import bind_backoff
from aliquot.kube.control.bind_backoff import BindBackoff

POD = Pod("uid", "team-a", "p", Shape(()))


def test_a_refused_pod_rests_longer_each_time() -> None:
    async def story() -> list[float]:
        rests = BindBackoff(lambda uid: None)
        seconds = [rests.refuse("uid") for _ in range(12)]
        assert rests.keeps(POD, None)
        assert not rests.keeps(replace(POD, node="n"), None), "somebody has bound it"
        rests.bound("uid")
        again = rests.refuse("uid")
        rests.stop()
        return [*seconds, again]

    *seconds, again = asyncio.run(story())
    assert 0.5 <= seconds[0] <= 1 < seconds[4] <= 16
    assert 150 <= seconds[-1] <= 300
    assert again <= 1


def test_a_pod_waits_for_its_gang_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bind_backoff, "_FOR_A_GANG", 0.02)

    async def story() -> list[str]:
        over: list[str] = []
        rests = BindBackoff(over.append)
        assert rests.keeps(POD, "gang")
        assert rests.keeps(POD, "gang"), "however often it is heard of"
        assert not rests.keeps(replace(POD, gang="team-a/gang"), "gang"), "there it is"
        await asyncio.sleep(0.04)
        assert over == []
        assert rests.keeps(POD, "gang"), "it is gone again"
        await asyncio.sleep(0.04)
        assert not rests.keeps(POD, "gang"), "it never came"
        rests.gone("uid")
        assert rests.keeps(POD, "gang"), "another pod"
        rests.stop()
        return over

    assert asyncio.run(story()) == ["uid"]
