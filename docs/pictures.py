"""Draws the pictures of the documentation anew: `make pictures`."""

import asyncio
import io
from functools import partial
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from aliquot.cli.show.live_view import LiveView
from aliquot.cli.show.quota_bars import quota_bars
from aliquot.cli.show.simulation import tables
from aliquot.dialects.configuration import Configuration
from aliquot.engine import SECOND
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.control import control_plane as plane
from aliquot.kube.control import scheduler
from aliquot.kube.control.control_plane import control_plane
from aliquot.local import demo
from aliquot.server.app import Settings, running
from aliquot.server.controllers import simulated_nodes
from aliquot.simulation.outcome import outcome
from aliquot.simulation.simulation import Simulation
from aliquot.validation import inputs

ROOT = Path(__file__).parent.parent
WIDTH = 104
FRAME = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, Consolas, monospace; }}
.{unique_id}-title {{ font: bold 18px system-ui, sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g></svg>
"""


def story(example: str, name: str) -> None:
    """Simulate an example to the end and keep what a terminal would show."""
    simulation = load(example, "capacity")
    simulation.run()
    draw(
        f"aliquot simulate examples/{example}",
        name,
        tables(simulation, "all quotas are ElasticQuotas", WIDTH),
    )


def before_and_after(example: str, name: str, policy: str, *minutes: int) -> None:
    """The bars of an example at several moments."""
    simulation = load(example, policy)
    parts: list[RenderableType] = []
    for minute in minutes:
        simulation.run(minute * 60 * SECOND)
        pictured = quota_bars(policy, outcome(simulation)["quotas"], WIDTH)
        parts += [Text(f"after {minute} minutes", style="bold"), *pictured, Text()]
    draw(f"aliquot simulate examples/{example}", name, Group(*parts[:-1]))


def load(example: str, policy: str) -> Simulation:
    """An example, ready to be played."""
    return Simulation(inputs.load([str(ROOT / "examples" / example)], Configuration()), policy)


async def demonstration(name: str, seconds: float) -> None:
    """What `aliquot up --demo` shows after so many seconds."""
    nodes = tuple(simulated_nodes.nodes(demo.NODES, simulated_nodes.MODEL))
    async with running(Settings(nodes=nodes)) as server:
        reach = partial(access.find, server.kubeconfig)
        deciding = scheduler.Settings(Configuration())
        async with (
            control_plane(reach, plane.Settings(deciding, lease=None)) as made,
            Client(reach()) as client,
        ):
            view = LiveView(made, "three teams share 64 GPUs")
            playing = asyncio.create_task(demo.play(client))
            await asyncio.sleep(seconds)
            draw("aliquot up --demo", name, view.picture(WIDTH))
            playing.cancel()


def draw(command: str, name: str, shown: RenderableType) -> None:
    """Keep what a terminal would show."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
    console.print(shown)
    picture = console.export_svg(
        title=f"$ {command}",
        code_format=FRAME,
        theme=SVG_EXPORT_THEME,
        unique_id="aliquot",
    )
    (ROOT / "docs" / "images" / f"{name}.svg").write_text(picture)


if __name__ == "__main__":
    story("kep-9/story-1", "story-1")
    before_and_after("nos/fair-share", "fair-share", "fair", 5, 15)
    before_and_after("koordinator/guarantee", "guarantee", "hierarchy", 11, 12)
    asyncio.run(demonstration("demo", 24))
