"""A pod whose volumes are bound first: assumed meanwhile, and bound, or sent back, after that."""

import asyncio
from dataclasses import replace

import pytest

from aliquot.engine import SECOND, Bind, VolumeBinding
from aliquot.engine.model.reasons import Reason
from aliquot.kube.api.resource import CLAIMS
from aliquot.kube.execution import volume_binder
from tests.kube.workshop import Workshop, always, play

CLAIM = "a/data"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pod waits for is said at once, and looked at in every round."""
    monkeypatch.setattr(volume_binder, "_LOOK_SECONDS", 0.0)


def decide_with_volume(shop: Workshop) -> Bind:
    """The engine decides to bind a pod, and to have a volume provisioned for it."""
    shop.now += SECOND
    shop.settle()
    (decision,) = shop.engine.cycle(shop.now)
    assert isinstance(decision, Bind)
    decision = replace(decision, volumes=(VolumeBinding(CLAIM),))
    shop.executor.execute([decision])
    return decision


async def check(shop: Workshop) -> None:
    """A round: look at the volumes, and write what follows."""
    shop.executor.check_volumes()
    await shop.write()


def conditions(shop: Workshop) -> list[tuple[str, str]]:
    said = (body["status"].get("conditions") for body in shop.answers.to("/pods/p/status"))
    return [(each[0]["reason"], each[0]["message"]) for each in said if each]


def ready(shop: Workshop) -> None:
    shop.node("n1")
    shop.claim(CLAIM)
    shop.pod("p", "a", 2)


def test_the_pod_waits_for_its_volume_and_keeps_its_room() -> None:
    async def story(shop: Workshop) -> None:
        ready(shop)
        decide_with_volume(shop)
        await shop.write()
        await check(shop)
        assert len(shop.answers.to("/persistentvolumeclaims/data")) == 1
        (said,) = conditions(shop)
        assert said[0] == "WaitingForVolume"
        shop.pod("q", "a", 1)
        shop.decide()
        assert shop.engine.booked_node("p") == "n1"
        why = shop.engine.why("q")
        assert why is not None
        assert why.reason is Reason.NO_NODE_FITS
        assert shop.answers.to("/binding") == []
        shop.claim(CLAIM, "pv-made")
        await check(shop)
        (binding,) = shop.answers.to("/binding")
        assert binding["target"]["name"] == "n1"

    play(story)


def test_a_pod_whose_volume_is_given_up_backs_off_and_its_room_is_free() -> None:
    async def story(shop: Workshop) -> None:
        ready(shop)
        decide_with_volume(shop)
        await shop.write()
        shop.intake.shown_volumes.gone(CLAIMS, "a", "data")
        await check(shop)
        assert shop.engine.booked_node("p") is None
        reason, message = conditions(shop)[-1]
        assert reason == "BindingFailed"
        assert "claim a/data is gone; tried again in 1 s" in message
        assert shop.answers.to("/binding") == []
        await asyncio.sleep(1.2)
        shop.settle()
        assert [type(each) for each in shop.engine.cycle(shop.now + SECOND)] == [Bind]

    play(story)


def test_a_claim_that_may_not_be_written_sends_the_pod_back() -> None:
    async def story(shop: Workshop) -> None:
        ready(shop)
        shop.answers.refuse["/persistentvolumeclaims/data"] = always(403)
        decide_with_volume(shop)
        await shop.write()
        assert shop.engine.booked_node("p") is None
        assert [each[0] for each in conditions(shop)] == ["BindingFailed"]

    play(story)


def test_nothing_is_written_after_leadership_is_lost() -> None:
    async def story(shop: Workshop) -> None:
        ready(shop)
        decide_with_volume(shop)
        shop.leads = False
        await shop.write()
        assert shop.answers.written == []
        shop.leads = True
        shop.executor.stop()
        shop.claim(CLAIM, "pv-made")
        await check(shop)
        assert shop.answers.to("/binding") == []

    play(story)


def test_a_pod_that_is_deleted_meanwhile_leaves_nothing() -> None:
    async def story(shop: Workshop) -> None:
        ready(shop)
        decide_with_volume(shop)
        await shop.write()
        shop.intake.pods.gone("p")
        await check(shop)
        assert shop.engine.pod_count() == 0
        assert shop.answers.to("/binding") == []

    play(story)
