"""Draws the pictures of the documentation anew: `make pictures`."""

import asyncio
import io
from functools import partial
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from aliquot.cli.drawing.quota_bars import quota_bars
from aliquot.cli.show.live_view import LiveView
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


RACK, BLOCK = "example.com/rack", "example.com/block"
COLOURS = {"red": "#d9534f", "blue": "#3b7dd8", "green": "#3f9c5a", "notebook": "#9a8f80"}
RACKS = """<svg viewBox="0 0 {width} 330" xmlns="http://www.w3.org/2000/svg">
<style>
text {{ font-family: system-ui, sans-serif; fill: #222222; }}
.name {{ font-size: 15px; font-weight: 600; }}
.small {{ font-size: 12px; }}
.frame {{ fill: none; stroke: #8a8a8a; }}
.card {{ stroke: #b5b5b5; }}
</style>
<rect width="100%" height="100%" fill="#ffffff"/>
{drawn}
</svg>
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


def racks(example: str, name: str) -> None:
    """The nodes of an example in their racks and blocks, with the gangs that run there."""
    simulation = load(example, "capacity")
    simulation.run()
    result = outcome(simulation)
    running = {each["pod"]: each["node"] for each in result["pods"] if each["node"]}
    nodes = [each for each in simulation.world.mirror.store.objects.values() if each.kind == "Node"]
    drawn: list[str] = []
    for manifest in nodes:
        labels = manifest.metadata.labels or {}
        rack, place = int(labels[RACK][1:]), int(manifest.name.partition("-")[2])
        here = sorted(pod for pod, node in running.items() if node == manifest.name)
        drawn += _node(40 + 220 * rack, 86 + 62 * place, manifest.name, here)
    ranks = sorted({(each.metadata.labels or {})[RACK] for each in nodes})
    for number, rack in enumerate(ranks):
        drawn += _frame(28 + 220 * number, 50, 200, 226, rack)
    blocks = sorted({(each.metadata.labels or {})[BLOCK] for each in nodes})
    wide = 220 * len(ranks) // len(blocks)
    for number, block in enumerate(blocks):
        drawn += _frame(18 + wide * number, 14, wide, 274, block)
    waiting = sorted({each["pod"].rpartition("-")[0] for each in result["pending"]})
    told = "".join(f"{gang} waits: no rack holds it" for gang in waiting)
    drawn.append(f'<text x="18" y="312" class="name">{told}</text>')
    picture = RACKS.format(width=220 * len(ranks) + 36, drawn="\n".join(drawn))
    (ROOT / "docs" / "images" / f"{name}.svg").write_text(picture)


def _frame(x: int, y: int, width: int, height: int, title: str) -> list[str]:
    box = f'<rect x="{x}" y="{y}" width="{width - 4}" height="{height}" rx="8" class="frame"/>'
    return [box, f'<text x="{x + 10}" y="{y + 22}" class="name">{title}</text>']


def _node(x: int, y: int, name: str, pods: list[str]) -> list[str]:
    """A node: eight squares for its GPUs, in the colour of the gang that has them."""
    parts = [f'<text x="{x}" y="{y + 14}" class="small">{name}</text>']
    used = [(pod.partition("/")[2], 8 if "-" in pod else 4) for pod in pods]
    colours = [COLOURS[pod.partition("-")[0]] for pod, cards in used for _ in range(cards)]
    for card in range(8):
        fill = colours[card] if card < len(colours) else "#ffffff"
        at = f'x="{x + 22 * card}" y="{y + 20}"'
        parts.append(f'<rect {at} width="18" height="18" rx="3" fill="{fill}" class="card"/>')
    words = ", ".join(pod for pod, _ in used) or "idle"
    parts.append(f'<text x="{x + 38}" y="{y + 14}" class="small">{words}</text>')
    return parts


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
    racks("topology/racks.yaml", "topology")
    asyncio.run(demonstration("demo", 24))
