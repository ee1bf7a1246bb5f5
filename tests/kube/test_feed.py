"""What came of writes reaches the engine by the feed, after what the watch has shown meanwhile."""

import asyncio

import pytest

from aliquot.engine.model.decisions import Evict, Nominate, evictions
from aliquot.engine.model.events import Event, EvictFailed
from aliquot.engine.model.reasons import Reason
from aliquot.kube.exchange.write_results import BindRefused, EvictionRefused
from aliquot.kube.intake import bind_backoff
from aliquot.kube.observe.audit import violations
from tests.kube.workshop import Workshop, always, lent, nominations, play


def refused_pod(shop: Workshop) -> None:
    """A pod whose binding will be refused is decided to start."""
    shop.node("n1")
    shop.quota("a", 2)
    shop.pod("p", "a", 2)
    shop.answers.refuse["/binding"] = always(403)
    shop.decide()


def said(shop: Workshop) -> list[str]:
    """The reasons that were written to the condition of pod p."""
    bodies = shop.answers.to("/pods/p/status")
    return [each["status"]["conditions"][0]["reason"] for each in bodies]


def test_a_refused_binding_is_known_to_the_engine_once_it_is_settled() -> None:
    async def story(shop: Workshop) -> None:
        refused_pod(shop)
        await shop.send()
        assert shop.engine.booked_node("p") == "n1"
        shop.settle()
        assert shop.engine.pod_count() == 0, "it backs off"
        await shop.send()
        assert said(shop) == ["BindingFailed"]

    play(story)


@pytest.mark.parametrize("node", ["n1", ""], ids=["bound", "deleted"])
def test_what_the_watch_has_shown_meanwhile_is_newer_than_a_refusal(node: str) -> None:
    async def story(shop: Workshop) -> None:
        refused_pod(shop)
        await shop.send()
        if node:
            shop.pod("p", "a", 2, node=node)
        else:
            shop.intake.pods.gone("p")
        shop.settle()
        await shop.send()
        assert shop.engine.booked_node("p") == (node or None)
        assert said(shop) == []
        assert not any(violations(shop.engine, shop.intake.mirror))

    play(story)


def test_a_pod_waits_again_once_its_backoff_is_over_and_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bind_backoff, "_FIRST", 0.02)

    async def story(shop: Workshop) -> None:
        refused_pod(shop)
        await shop.write()
        shop.pod("p", "a", 2)
        assert shop.engine.waiting_pod("p") is None, "it is kept back, however often it is shown"
        await asyncio.sleep(0.05)
        assert shop.engine.waiting_pod("p") is None
        shop.settle()
        assert shop.engine.waiting_pod("p") is not None

    play(story)


def test_a_pod_that_was_bound_while_it_backed_off_does_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bind_backoff, "_FIRST", 0.02)

    async def story(shop: Workshop) -> None:
        refused_pod(shop)
        await shop.write()
        shop.pod("p", "a", 2, node="n1")
        await asyncio.sleep(0.05)
        shop.settle()
        assert shop.engine.waiting_pod("p") is None
        assert shop.engine.booked_node("p") == "n1"

    play(story)


def test_without_leadership_all_that_came_of_writes_is_dropped() -> None:
    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.pod("p", "a", 2)
        (victim,) = evictions(shop.decide())
        feed = shop.intake.feed
        feed.report(EvictionRefused(victim))
        feed.disconnect()
        feed.report(BindRefused(victim.pod, "too late"))
        feed.connect(shop.engine, shop.intake.mirror)
        assert feed.settle() == []
        assert shop.engine.is_wanted(victim), "the refusal was for another engine"

    play(story)


def test_a_nomination_is_never_written_if_an_eviction_for_it_was_refused() -> None:
    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.pod("p", "a", 2)
        shop.answers.refuse["/eviction"] = always(403)
        (first,) = evictions(shop.decide())
        await shop.write()
        assert shop.intake.feed.settle() == []
        assert nominations(shop, "p") == []
        shop.answers.refuse.clear()
        (held,) = [each for each in shop.decide() if isinstance(each, Nominate)]
        (then,) = held.victims
        assert then.pod != first.pod, "another one can go"
        await shop.write()
        assert nominations(shop, "p")[-1] == held.nodes[0]

    play(story)


def test_a_victim_that_no_claim_waits_for_any_longer_can_be_evicted_another_time() -> None:
    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.pod("p", "a", 2)
        (first,) = evictions(shop.decide())
        shop.intake.pods.gone("p")
        await shop.write()
        assert shop.answers.to("/eviction") == []
        shop.pod("q", "a", 2)
        assert [each.pod for each in evictions(shop.decide())] == [first.pod]

    play(story)


def test_a_node_that_returns_before_anything_else_happens_has_its_pods() -> None:
    async def story(shop: Workshop) -> None:
        shop.node("n1")
        shop.quota("b", 2)
        shop.pod("x", "b", 2, node="n1")
        shop.no_node("n1")
        (lost,) = shop.decide()
        assert isinstance(lost, Evict)
        assert lost.reason is Reason.NODE_LOST
        shop.node("n1")
        assert not shop.engine.is_wanted(lost)
        assert not any(violations(shop.engine, shop.intake.mirror))

    play(story)


def test_an_engine_that_fails_over_a_refusal_gets_nothing_more() -> None:
    async def story(shop: Workshop) -> None:
        heard: list[Event] = []

        def fail(event: Event) -> None:
            heard.append(event)
            raise RuntimeError("a defect")

        lent(shop)
        shop.pod("p", "a", 2)
        (victim,) = evictions(shop.decide())
        shop.engine.apply = fail  # type: ignore[method-assign]
        shop.intake.feed.report(EvictionRefused(victim))
        shop.intake.feed.report(EvictionRefused(victim))
        shop.intake.feed.settle()
        shop.pod("q", "a", 2)
        assert heard == [EvictFailed(victim.pod.uid)]
        assert shop.intake.feed.failed
        shop.intake.feed.disconnect()
        assert not shop.intake.feed.failed

    play(story)
