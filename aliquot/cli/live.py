"""What a running control plane does, redrawn again and again: quotas as bars, what happened."""

import asyncio
import time
from collections import deque
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from aliquot.cli.bars import bars
from aliquot.cli.grid import indented, table
from aliquot.engine import Bind, Decision, Evict
from aliquot.kube.control.control_plane import ControlPlane
from aliquot.simulation.outcome import quota

_EVERY = 0.5
_MOST = 12


class Watching:
    """The last decisions, and how quotas stand."""

    def __init__(self, plane: ControlPlane, headline: str) -> None:
        self._plane = plane
        self._headline = headline
        self._happened: deque[tuple[float, Bind | Evict]] = deque(maxlen=_MOST)
        plane.scheduler.listeners.append(self._note)

    async def run(self, console: Console) -> None:
        """Draw again and again, until cancelled."""
        with Live(console=console, auto_refresh=False) as live:
            while True:
                live.update(self.picture(console.width), refresh=True)
                await asyncio.sleep(_EVERY)

    def picture(self, width: int) -> RenderableType:
        """Everything, for a console of this width."""
        snapshot = self._plane.metrics.snapshot
        policy = self._plane.scheduler.intake.sharing_mode.policy
        parts: list[RenderableType] = [Text(self._headline), Text("")]
        if snapshot.quotas:
            quotas = [quota(each) for each in snapshot.quotas]
            parts += [
                Text("QUOTAS", style="bold"),
                *bars(policy, quotas, width),
            ]
        waiting = sum(snapshot.pending.values())
        parts.append(Text(f"\n{waiting} pods wait", style="yellow" if waiting else ""))
        if self._happened:
            parts += [Text("\nWHAT HAPPENED", style="bold"), self._history(width)]
        return Group(*parts)

    def _note(self, decisions: list[Decision]) -> None:
        for each in decisions:
            if isinstance(each, Bind | Evict):
                self._happened.append((time.time(), each))

    def _history(self, width: int) -> RenderableType:
        drawn = table(width, "at", "", "pod", "node", "why")
        for at, each in self._happened:
            clock = datetime.fromtimestamp(at).strftime("%H:%M:%S")
            if isinstance(each, Bind):
                drawn.add_row(clock, Text("starts", style="green"), each.pod.path, each.node, "")
            else:
                why = f"{each.reason}: {each.message}"
                evicted = Text("evicted", style="red")
                drawn.add_row(clock, evicted, each.pod.path, each.pod.node, why)
        return indented(drawn)
