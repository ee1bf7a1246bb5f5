"""What is carried out, and what becomes of it when the cluster has other ideas."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import generate_latest

from aliquot.engine.model.decisions import Bind, Nominate, evictions
from aliquot.errors import ApiError
from aliquot.kube.observe.audit import violations
from aliquot.kube.observe.metrics_snapshot import MetricsSnapshot
from tests.build.engines import books, nominated
from tests.kube.workshop import Workshop, always, lent, nominations, play, watched_pod


def test_a_pod_that_somebody_else_has_bound_is_not_forgotten() -> None:
    async def story(shop: Workshop) -> None:
        shop.node("n1")
        shop.node("n2")
        shop.quota("a", 4)
        shop.pod("p", "a", 2)
        shop.answers.refuse["/binding"] = always(409)
        assert [type(each) for each in shop.decide()] == [Bind]
        shop.pod("p", "a", 2, node="n2")
        await shop.write()

    shop = play(story)
    assert not any(violations(shop.engine, shop.intake.mirror))
    assert books(shop.engine).ledger.entries["p"].booking.node == "n2"


def test_a_pod_waits_again_although_nobody_can_look_why_its_binding_was_refused() -> None:
    async def story(shop: Workshop) -> None:
        shop.node("n1")
        shop.pod("p", "a")
        shop.answers.refuse = {"/binding": always(409), "/pods/p": always(403)}
        shop.decide()
        await shop.write()

    (said,) = play(story).answers.to("/pods/p/status")
    assert said["status"]["conditions"][0]["reason"] == "BindingFailed"


def test_a_pod_that_is_gone_before_its_binding_is_refused_leaves_nothing() -> None:
    async def story(shop: Workshop) -> None:
        shop.node("n1")
        shop.pod("p", "a")
        shop.answers.refuse["/binding"] = always(404)
        shop.decide()
        shop.intake.pods.gone("p")
        await shop.write()

    shop = play(story)
    assert books(shop.engine).pods == {}
    assert shop.answers.written == [], "there is nobody to write to, or about"


def test_room_is_not_said_to_be_held_once_a_binding_was_refused() -> None:
    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.pod("p", "a", 2)
        (held,) = [each for each in shop.decide() if isinstance(each, Nominate)]
        ((victim,), (node,)) = (held.victims, held.nodes)
        await shop.write()
        shop.pod("p", "a", 2, nominatedNodeName=node)
        shop.intake.pods.gone(victim.pod.uid)
        shop.answers.refuse["/binding"] = always(403)
        shop.decide()
        await shop.write()
        assert nominations(shop, "p") == [node, None]

    play(story)


def test_a_pod_is_nominated_where_room_is_held_now_and_not_where_it_was() -> None:
    """The first victim never goes; by the time that is clear, another one makes way."""

    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.pod("p", "a", 2)
        shop.answers.refuse["/eviction"] = always(429)
        (first,) = evictions(shop.decide())
        await shop.write()
        shop.answers.refuse = {f"{first.pod.name}/eviction": always(429)}
        (held,) = [each for each in shop.decide(331) if isinstance(each, Nominate)]
        (then,) = held.victims
        assert then.pod.name != first.pod.name
        await shop.again()
        assert nominations(shop, "p")[-1] == held.nodes[0]

    play(story)


def test_who_waits_for_nobody_is_nominated_whoever_others_wait_for() -> None:
    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.node("n3", gpus=1)
        shop.quota("c", 1)
        leaving = watched_pod("y", "c", 1, node="n3")
        leaving.metadata.deletion_timestamp = "2026-01-01T00:01:00Z"
        shop.intake.pods.put(leaving)
        shop.pod("p", "a", 2)
        shop.pod("q", "c", 1)
        shop.answers.refuse["/eviction"] = always(429)
        found = shop.decide()
        assert list(evictions(found)) != []
        assert {"p", "q"} <= set(nominated(found))
        await shop.write()
        assert (nominations(shop, "p"), nominations(shop, "q")) == ([], ["n3"])

    play(story)


def test_an_eviction_that_met_another_write_is_tried_again() -> None:
    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.pod("p", "a", 2)
        shop.answers.refuse["/eviction"] = always(409)
        (victim,) = [each.pod for each in evictions(shop.decide())]
        there = {"metadata": {"uid": victim.uid}}
        shop.answers.objects[f"/api/v1/namespaces/b/pods/{victim.name}"] = there
        await shop.write()
        assert shop.answers.to("/events") == []
        shop.answers.refuse.clear()
        await shop.again()
        assert len(shop.answers.to(f"{victim.name}/eviction")) == 1

    play(story)


def test_an_eviction_is_over_when_another_pod_has_the_name() -> None:
    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.pod("p", "a", 2)
        shop.answers.refuse["/eviction"] = always(409)
        (victim,) = [each.pod for each in evictions(shop.decide())]
        another = {"metadata": {"uid": "another"}}
        shop.answers.objects[f"/api/v1/namespaces/b/pods/{victim.name}"] = another
        await shop.write()
        assert shop.writer.idle

    play(story)


def test_pods_of_a_node_that_comes_back_stay_and_can_be_asked_to_go() -> None:
    async def story(shop: Workshop) -> None:
        shop.node("n1")
        shop.quota("a", 2)
        shop.quota("b", 0)
        shop.pod("x", "b", 2, node="n1")
        shop.no_node("n1")
        shop.decide()
        shop.node("n1")
        shop.pod("p", "a", 2)
        assert [each.pod.name for each in evictions(shop.decide())] == ["x"]

    play(story)


def test_who_makes_way_for_one_is_still_asked_for_the_other() -> None:
    """What the lesser one's victim left, the other took: now the lesser one waits for the rest."""

    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.pod("p1", "a", 2)
        shop.pod("p2", "a", 2)
        found = shop.decide()
        held = nominated(found)
        stubborn = f"x{held['p1'][1:]}"
        shop.answers.refuse[f"{stubborn}/eviction"] = always(429)
        await shop.write()
        shop.intake.pods.gone(f"x{held['p2'][1:]}")
        (bind,) = shop.decide()
        assert isinstance(bind, Bind)
        assert bind.pod.name == "p1"
        shop.answers.refuse.clear()
        await shop.again()
        assert len(shop.answers.to(f"{stubborn}/eviction")) == 1
        assert nominations(shop, "p2")[-1] == held["p1"]

    play(story)


def failures(shop: Workshop, pod: str) -> list[str]:
    """The messages of the FailedScheduling events about a pod."""
    return [
        each["message"]
        for each in shop.answers.to("/events")
        if each["reason"] == "FailedScheduling" and each["involvedObject"]["name"] == pod
    ]


def test_the_event_of_a_refusal_begins_with_its_word_and_the_condition_has_it_apart() -> None:
    async def story(shop: Workshop) -> None:
        shop.node("n1")
        shop.pod("p", "a", 3)
        shop.decide()
        await shop.write()

    shop = play(story)
    (said,) = shop.answers.to("/pods/p/status")
    (condition,) = said["status"]["conditions"]
    assert condition["reason"] == "Unschedulable"
    assert condition["message"].startswith("0/1 nodes fit")
    assert failures(shop, "p") == [f"NoNodeFits: {condition['message']}"]


def test_so_does_the_event_of_a_binding_that_was_refused() -> None:
    async def story(shop: Workshop) -> None:
        shop.node("n1")
        shop.pod("p", "a")
        shop.answers.refuse["/binding"] = always(403)
        shop.decide()
        await shop.write()

    (message,) = failures(play(story), "p")
    assert message.startswith("BindingFailed: binding was refused")


def test_a_pod_is_told_once_that_a_budget_keeps_its_victim() -> None:
    causes = [{"reason": "DisruptionBudget", "message": "It needs 1 healthy pod and has 1."}]
    refused = ApiError(429, "TooManyRequests", "Cannot evict pod.", details={"causes": causes})

    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.pod("p", "a", 2)
        shop.answers.refuse["/eviction"] = lambda: refused
        (eviction,) = evictions(shop.decide())
        await shop.write()
        await shop.again()
        assert failures(shop, "p") == [
            f"WaitingForVictims: {eviction.pod.path} is not evicted yet: Cannot evict pod. "
            "It needs 1 healthy pod and has 1."
        ]

    play(story)


@pytest.mark.parametrize("gone", [False, True])
def test_what_an_evicted_pod_has_run_is_counted_as_lost(
    gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it has gone from the books by the time that the eviction is answered."""
    began = datetime.now(UTC) - timedelta(hours=2)

    async def story(shop: Workshop) -> None:
        lent(shop)
        shop.pod("x1", "b", 2, node="n1", startTime=began.isoformat())
        shop.pod("x2", "b", 2, node="n2", startTime=began.isoformat())
        shop.pod("p", "a", 2)
        (eviction,) = evictions(shop.decide())
        if gone:
            monkeypatch.setattr(shop.engine, "is_wanted", lambda _: True)
            shop.intake.pods.gone(eviction.pod.uid)
        await shop.write()
        quotas = tuple(shop.engine.summarise())
        shop.metrics.snapshot = MetricsSnapshot(quotas=quotas)

    metrics = play(story).metrics
    labels = {"quota": "b/q", "tree": "", "resource": "nvidia.com/gpu"}
    name = "aliquot_evicted_resource_seconds_total"
    lost = metrics.registry.get_sample_value(name, labels)
    assert lost == pytest.approx(2 * 7200, abs=60)


def test_what_was_not_evicted_is_not_lost() -> None:
    began = datetime.now(UTC) - timedelta(hours=2)

    async def story(shop: Workshop) -> None:
        lent(shop)
        for number in (1, 2):
            shop.pod(f"x{number}", "b", 2, node=f"n{number}", startTime=began.isoformat())
        shop.pod("p", "a", 2)
        shop.answers.refuse["/eviction"] = always(403)
        assert evictions(shop.decide())
        await shop.write()
        shop.metrics.snapshot = MetricsSnapshot(quotas=tuple(shop.engine.summarise()))

    found = generate_latest(play(story).metrics.registry).decode()
    lines = re.findall(r"^aliquot_evicted_resource_seconds_total\{.*\} (.*)$", found, re.MULTILINE)
    assert set(lines) == {"0.0"}
