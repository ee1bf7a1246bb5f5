"""An engine that follows a cluster for which another one decides, as the page in the browser does.

It answers as a fresh engine does, and keeps nothing of what has passed.
"""

from collections.abc import Sequence

import pytest

from aliquot.engine import Decision, Engine, Event
from tests.build.engines import books
from tests.campaign import length
from tests.properties.long_run import LongRun, lost_nodes, without_nomination
from tools.streams.profile import POLICIES

_CYCLES = 40


class _Followed(LongRun):
    """A random history, and an engine beside it that is told of it, and never decides."""

    def __init__(self, seed: int, policy: str) -> None:
        super().__init__(seed, policy)
        self.follower = Engine(policy, self.cluster.knobs)
        self.compared = 0

    def apply(self, event: Event) -> None:
        super().apply(event)
        self.follower.apply(without_nomination(event))

    def decide(self) -> list[Decision]:
        decisions = super().decide()
        self.follower.follow(self.cluster.now)
        assert len(books(self.follower).changes) == 0, "changes that no reader reads"
        if not (self.observer.is_busy() or self.cluster.is_busy() or self._knows_more()):
            self._compare()
        return decisions

    def crash(self) -> None:
        """The one that decides crashes in other histories."""

    def _knows_more(self) -> bool:
        """Is there something that a fresh engine cannot know?"""
        decides = books(self.engine)
        held = bool(decides.ledger.holding or decides.leaving.overdue)
        return held or bool(self.cluster.lost_nodes())

    def _compare(self) -> None:
        fresh = self.rebuilt()
        if lost_nodes(fresh) == lost_nodes(self.follower):  # else the clock was set back
            self.compared += 1
            assert self.follower.summarise() == fresh.summarise()
            assert self.follower.over_quota_pods() == fresh.over_quota_pods()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_follower_answers_as_a_fresh_engine_and_keeps_no_changes(policy: str) -> None:
    runs: Sequence[_Followed] = [_Followed(seed, policy) for seed in range(length(2, 100))]
    for run in runs:
        run.play(_CYCLES)
    assert sum(run.compared for run in runs) > len(runs)
