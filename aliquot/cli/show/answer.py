"""An answer to a question: printed once as a table or JSON, or watched."""

from collections.abc import Callable
from typing import Any

import click
from rich.console import RenderableType

from aliquot.cli.drawing.grid import print_drawn
from aliquot.cli.drawing.watch import Picture
from aliquot.cli.drawing.watch import watch as watch_picture
from aliquot.cli.show import documents
from aliquot.cli.show.source import print_left_out, print_notes
from aliquot.questions.overview import View, view
from aliquot.questions.sources.origin import Origin

Result = dict[str, Any]
Ask = Callable[[View], Result]
Draw = Callable[[View, Result, int, int | None], RenderableType]
"""The picture for a width, and for so many rows if the height is bounded."""
_AROUND = 6
"""Lines around the rows of a list: headings, legends and what is left out."""


def listed(draw: Callable[[Result, int, int | None], RenderableType]) -> Draw:
    """A picture that is made of the answer alone."""
    return lambda _, result, width, most: draw(result, width, most)


def show(origin: Origin, output: str, watch: bool, ask: Ask, draw: Draw) -> None:
    """Ask, and show the answer."""
    if watch:
        watch_picture(lambda: _picture(origin, ask, draw))
        return
    found = view(origin.read())
    result = ask(found)
    print_notes(found.source)
    print_left_out(found.inputs.findings)
    if output == "json":
        click.echo(documents.as_json(result))
    else:
        print_drawn(lambda width: draw(found, result, width, None))


def _picture(origin: Origin, ask: Ask, draw: Draw) -> Picture:
    found = view(origin.read())
    result = ask(found)
    return lambda width, height: draw(found, result, width, max(height - _AROUND, 1))
