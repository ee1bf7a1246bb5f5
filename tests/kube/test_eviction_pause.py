"""Evictions are paused by an annotation: read, obeyed by what is to be written, and shown."""

import pytest

from aliquot.engine import EvictionsPaused, EvictionsResumed, Reason, Wait
from aliquot.engine.model.decisions import evictions
from aliquot.engine.model.events import Event
from aliquot.json import Body
from aliquot.kube.api.resource import NAMESPACES
from aliquot.kube.intake.eviction_pause import ANNOTATION, Pause, PauseSwitch, pause_of
from tests.kube.workshop import Workshop, lent, nominations, play

NOON = 1_767_268_800 * 10**9
"""2026-01-01T12:00:00Z"""


def namespace(value: object) -> Body:
    return {"metadata": {"name": "home", "annotations": {ANNOTATION: value}}}


@pytest.mark.parametrize(
    ("value", "words", "ends_at"),
    [
        ('{"by":"alice","since":"2026-01-01T11:00:00Z"}', "by alice since 2026-01-01T11:", None),
        ('{"by":"alice","reason":"why"}', "by alice: why", None),
        ('{"until":"2026-01-01T12:00:00Z","reason":"why"}', "why", NOON),
        ('{"until":"soon"}', "", None),
        ("{}", "", None),
        ("true", "", None),
        ("ask bob", "ask bob", None),
        ("[1]", "[1]", None),
        ("x" * 10_000, "xxx", None),
    ],
)
def test_whatever_is_written_pauses(value: str, words: str, ends_at: int | None) -> None:
    found = pause_of(namespace(value))
    assert found is not None
    assert found.words.startswith(words)
    assert len(found.words) < 500
    assert found.ends_at == ends_at


@pytest.mark.parametrize("body", [namespace(""), namespace("false"), {"metadata": {}}, {}])
def test_without_the_annotation_nothing_is_paused(body: Body) -> None:
    assert pause_of(body) is None


def test_a_pause_is_read_as_it_was_written() -> None:
    pause = Pause("alice", "2026-01-01T11:00:00Z", "2026-01-01T12:00:00Z", 'a "quote"')
    assert pause_of(namespace(pause.annotation())) == pause
    assert not pause.is_over(NOON - 1)
    assert pause.is_over(NOON)


def test_the_engine_is_told_of_changes_of_the_own_namespace_only() -> None:
    sent: list[Event] = []
    switch = PauseSwitch("home", sent.append)
    switch.put("elsewhere", namespace("true"))
    switch.put("home", {"metadata": {"name": "home"}})
    assert sent == []
    switch.put("home", namespace("true"))
    switch.put("home", namespace("true"))
    assert sent == [EvictionsPaused("")]
    switch.put("home", None)
    assert sent[1:] == [EvictionsResumed()]
    assert switch.active(NOON) is None


def pause(shop: Workshop, value: object) -> None:
    """The watch shows the namespace of Aliquot with this annotation."""
    body = {"metadata": {"name": "", "annotations": {ANNOTATION: value}}}
    shop.intake._news.append((NAMESPACES, body))
    shop.intake.settle()


def test_an_eviction_that_was_not_sent_is_not_sent_and_its_hold_stays() -> None:
    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.pod("p", "a", 2)
        (victim,) = [each.pod for each in evictions(shop.decide())]
        pause(shop, "true")
        await shop.write()
        assert shop.answers.to("/eviction") == []
        assert shop.writer.idle
        assert shop.engine.nominated_node("p") is not None
        shop.decide()
        await shop.write()
        assert shop.answers.to("/eviction") == []
        pause(shop, "false")
        shop.decide()
        await shop.write()
        assert len(shop.answers.to(f"{victim.name}/eviction")) == 1
        assert len(nominations(shop, "p")) == 1

    play(story)


def test_an_eviction_that_is_not_needed_after_a_pause_is_never_sent() -> None:
    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.pod("p", "a", 2)
        (victim,) = [each.pod for each in evictions(shop.decide())]
        pause(shop, "true")
        await shop.write()
        shop.intake.pods.gone("p")
        shop.decide()
        await shop.write()
        pause(shop, "false")
        shop.decide()
        await shop.write()
        assert shop.answers.to("/eviction") == []
        assert victim.uid not in shop.engine._state.leaving

    play(story)


def test_a_new_engine_knows_that_evictions_are_paused() -> None:
    async def story(shop: Workshop) -> None:
        pause(shop, "true")
        shop.intake.feed.connect(shop.engine, shop.intake.mirror)
        lent(shop)
        shop.pod("p", "a", 2)
        told = [each for each in shop.decide() if isinstance(each, Wait)]
        assert [each.refusal.reason for each in told] == [Reason.EVICTIONS_PAUSED]

    play(story)
