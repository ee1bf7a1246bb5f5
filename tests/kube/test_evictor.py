"""How long disruption budgets are respected, for which claims, and with which grace periods."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest

from aliquot.engine import SECOND, Evict, Reason
from aliquot.errors import ApiError
from aliquot.kube.api.client import Client
from aliquot.kube.execution.evictor import Evictor, Limits
from aliquot.kube.execution.writer import Write, Writer
from tests.build.values import pod
from tests.kube.workshop import Answers

CAUSE = {"causes": [{"reason": "DisruptionBudget", "message": "The disruption budget web needs 1"}]}


def one_budget() -> ApiError:
    return ApiError(429, "TooManyRequests", "Cannot evict pod", details=CAUSE)


def two_budgets() -> ApiError:
    return ApiError(500, "InternalError", "This pod has more than one PodDisruptionBudget, which")


def busy() -> ApiError:
    return ApiError(500, "InternalError", "etcd is gone for lunch")


class Bench:
    """An evictor whose writes run when the test says so, at the times that it says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, delete_after: float = 60.0) -> None:
        self.answers, self.told, self.owed = Answers(), list[str](), True
        self.now = 0.0
        monkeypatch.setattr("aliquot.kube.execution.evictor.time.monotonic", lambda: self.now)
        self._writes: list[Write] = []
        writer = type("Writes", (), {"add": lambda _, write: self._writes.append(write)})()
        self.evictor = Evictor(
            *(cast("Client", self.answers), cast("Writer", writer), lambda _: True),
            lambda _: self.told.append("evicted"),
            lambda _, why: self.told.append(f"failed: {why}"),
            lambda _, why: self.told.append(f"refused: {why}"),
            *(lambda _: self.owed, lambda _, why: self.told.append(f"deleted: {why}")),
            Limits(delete_after, 100),
        )

    def evict(self, **about: Any) -> None:
        """Decide to evict a pod."""
        victim = pod("victim", 1, node="n", **about)
        self.evictor.evict(Evict(victim, pod("claimant", 1, "b"), Reason.RECLAIMED_FOR_MIN, ""))

    def send(self, at: float) -> None:
        """Try the write at this time; a refusal that is retried is no failure."""
        self.now = at
        with suppress(ApiError):
            asyncio.run(cast("Any", self._writes[-1].run()))

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _, _ in self.answers.written]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


@pytest.mark.parametrize("refusal", [one_budget, two_budgets])
def test_budgets_are_respected_for_a_while(bench: Bench, refusal: Callable[[], ApiError]) -> None:
    bench.answers.refuse["/eviction"] = refusal
    bench.evict()
    for at in (0, 30, 59.9):
        bench.send(at)
    assert bench.verbs == []
    bench.send(60)
    assert bench.verbs == ["DELETE"]
    [(_, _, options)] = bench.answers.written
    assert options["preconditions"] == {"uid": "victim"}
    assert [each.partition(":")[0] for each in bench.told] == ["refused", "deleted", "evicted"]


def test_a_budget_stands_for_a_claim_that_is_not_owed(bench: Bench) -> None:
    bench.owed, bench.answers.refuse["/eviction"] = False, one_budget
    bench.evict()
    for at in (0, 60, 6_000):
        bench.send(at)
    assert bench.verbs == []
    bench.owed = True
    bench.send(6_001)
    assert bench.verbs == ["DELETE"]


def test_without_delete_after_a_budget_stands_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, delete_after=0)
    bench.answers.refuse["/eviction"] = two_budgets
    bench.evict()
    for at in (0, 60, 6_000_000):
        bench.send(at)
    assert bench.verbs == []


def test_a_server_in_trouble_is_no_budget(bench: Bench) -> None:
    bench.answers.refuse["/eviction"] = busy
    bench.evict()
    for at in (0, 600):
        bench.send(at)
    assert bench.verbs == []
    bench.answers.refuse["/eviction"] = one_budget
    for at in (601, 660):
        bench.send(at)
    assert bench.verbs == []
    bench.send(661)
    assert bench.verbs == ["DELETE"]


@pytest.mark.parametrize(("own", "sent"), [(30, None), (100, None), (101, 100), (31_536_000, 100)])
def test_a_grace_period_is_capped(bench: Bench, own: int, sent: int | None) -> None:
    bench.evict(grace_period=own * SECOND)
    bench.send(0)
    [(_, _, body)] = bench.answers.written
    assert body["deleteOptions"].get("gracePeriodSeconds") == sent


def test_a_pod_that_is_deleted_gets_no_longer_either(bench: Bench) -> None:
    bench.answers.refuse["/eviction"] = one_budget
    bench.evict(grace_period=7_200 * SECOND)
    bench.send(0)
    bench.send(60)
    [(verb, _, options)] = bench.answers.written
    assert (verb, options["gracePeriodSeconds"]) == ("DELETE", 100)
