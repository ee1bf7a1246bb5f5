"""Draws the pictures of the documentation anew: `make pictures`."""

import io
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME

from aliquot.cli.tables import tables
from aliquot.cluster import inputs
from aliquot.cluster.simulation import Simulation
from aliquot.dialects.configuration import Configuration
from aliquot.engine.config import SECOND

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


def draw(example: str, name: str, policy: str, why: str, *moments: int | None) -> None:
    """Simulate an example and keep what a terminal would show, at each of these moments."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
    simulation = Simulation(
        inputs.load([str(ROOT / "examples" / example)], Configuration()), policy
    )
    for number, moment in enumerate(moments):
        simulation.run(moment)
        console.print("\n" if number else "", tables(simulation, why, WIDTH), sep="", end="")
    picture = console.export_svg(
        title=f"$ aliquot simulate examples/{example}",
        code_format=FRAME,
        theme=SVG_EXPORT_THEME,
        unique_id="aliquot",
    )
    (ROOT / "docs" / "images" / f"{name}.svg").write_text(picture)


if __name__ == "__main__":
    draw("kep-9/story-1", "story-1", "capacity", "all quotas are ElasticQuotas", None)
    minutes = 60 * SECOND
    draw("nos/fair-share", "fair-share", "fair", "quotas of nos", 5 * minutes, 15 * minutes)
