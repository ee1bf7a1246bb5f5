"""The live view of `aliquot up --demo`: quotas as bars and the last decisions, redrawn in place."""

import asyncio
import time
from collections import deque
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from aliquot.cli.drawing.quota_bars import quota_tables
from aliquot.cli.show.simulation import decision_row, decisions_table
from aliquot.engine import Bind, Decision, Evict, binds_and_evictions
from aliquot.kube.control.control_plane import ControlPlane
from aliquot.simulation.outcome import quota

_PERIOD = 0.5
"""Seconds between two drawings: short beside the seconds that a pod of the demo runs, and cheap
beside the control plane in the same process."""
_MOST_DECISIONS = 12
"""Decisions on the screen: with the quotas of the demo above them they fit a window of 40 lines."""


class LiveView:
    """The quotas of a control plane in this process, how many pods wait, and what it decided."""

    def __init__(self, plane: ControlPlane, headline: str) -> None:
        self._plane = plane
        self._headline = headline
        self._decided: deque[tuple[float, Bind | Evict]] = deque(maxlen=_MOST_DECISIONS)
        plane.scheduler.listeners.append(self._record)

    async def run(self, console: Console) -> None:
        """Draw twice a second, until cancelled."""
        with Live(console=console, auto_refresh=False) as live:
            while True:
                live.update(self.picture(console.width), refresh=True)
                await asyncio.sleep(_PERIOD)

    def picture(self, width: int) -> RenderableType:
        """Everything, for a console of this width."""
        snapshot = self._plane.metrics.snapshot
        policy = self._plane.scheduler.intake.sharing_mode.policy
        parts: list[RenderableType] = [Text(self._headline), Text("")]
        if snapshot.quotas:
            quotas = [quota(each) for each in snapshot.quotas]
            parts += quota_tables(policy, quotas, width)
        waiting = sum(snapshot.pending.values())
        parts.append(Text(f"\n{waiting} pods wait", style="yellow" if waiting else ""))
        if self._decided:
            parts += [Text("\nWHAT HAPPENED", style="bold"), self._history(width)]
        return Group(*parts)

    def _record(self, decisions: list[Decision]) -> None:
        self._decided.extend((time.time(), each) for each in binds_and_evictions(decisions))

    def _history(self, width: int) -> RenderableType:
        rows = [
            decision_row(datetime.fromtimestamp(at).strftime("%H:%M:%S"), each)
            for at, each in self._decided
        ]
        return decisions_table(width, rows)
