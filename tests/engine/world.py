"""A small cluster on the engine: every decision comes true at once.

Its objects are built by `tests.build.values`: a quota is named like the namespace whose pods belong
to it, and a pod's uid is its path.
"""

from dataclasses import replace
from typing import Any

from aliquot.engine import Amounts, Pod
from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind, Decision, Evict, binds_and_evictions
from aliquot.engine.model.events import Event, PodGone, PodSet
from aliquot.engine.model.knobs import SECOND, Knobs
from tests.build import values
from tests.build.engines import books


class World:
    """The engine, and what it has done."""

    def __init__(self, policy: str = "capacity", **knobs: Any) -> None:
        self.engine = Engine(policy, Knobs(**knobs))
        self.state = books(self.engine)
        self.evictions: list[Evict] = []
        self.now = 0

    def apply(self, *events: Event) -> None:
        for event in events:
            self.engine.apply(event)

    def node(self, name: str, has: Amounts, **more: Any) -> None:
        self.apply(values.node_set(name, has, pods=110, **more))

    def quota(self, name: str, low: Amounts = (), high: Amounts = (), **more: Any) -> None:
        self.apply(values.quota_set(name, low, high, **more))

    def gang(self, name: str, members: int, **more: Any) -> None:
        self.apply(values.gang_set(name, members, **more))

    def pod(self, team: str, name: str, asks: Amounts, **more: Any) -> Pod:
        made = values.pod(name, asks, team, uid=f"{team}/{name}", **more)
        self.apply(PodSet(made))
        return made

    def cycle(self, seconds: int | None = None) -> list[Decision]:
        """Decide once, at this second."""
        self.now = self.now if seconds is None else seconds * SECOND
        return self.engine.cycle(self.now)

    def run(self, seconds: int | None = None) -> dict[str, str]:
        """Decide until there is nothing more to decide; where pods have started."""
        started = {}
        for _ in range(20):
            decisions = self.cycle(seconds)
            for each in binds_and_evictions(decisions):
                if isinstance(each, Bind):
                    started[each.pod.path] = each.node
                    self.bound(each)
                else:
                    self.evictions.append(each)
                    self.apply(PodGone(each.pod.uid))
            if not any(binds_and_evictions(decisions)):
                return started
        raise AssertionError("it does not come to rest")

    def bound(self, bind: Bind) -> None:
        """The cluster shows what was decided."""
        self.apply(PodSet(replace(bind.pod, node=bind.node, devices=bind.devices)))

    def gone(self, path: str) -> None:
        """A pod has ended, or was deleted."""
        self.apply(PodGone(path))

    def evicted(self) -> list[str]:
        """Those evicted since this was last asked."""
        gone, self.evictions = self.evictions, []
        return sorted(each.pod.path for each in gone)

    def told(self, path: str) -> str:
        """The message with which a pod waits."""
        refusal = self.engine.why(path)
        assert refusal is not None
        return refusal.message
