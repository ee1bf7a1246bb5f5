"""A report as a whole, and the pieces that all reports have: tiles, sections, tables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aliquot.cli.report.markup import Html, joined, tag
from aliquot.cli.report.style import STYLE
from aliquot.errors import InputError
from aliquot.version import __version__

MOST_ROWS = 30
"""Rows of a table: what is beyond is counted, and -o json has all of it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of a table: as people read it, and exactly."""

    shown: str
    exact: object = None
    best: bool = False


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure that stands alone."""

    name: str
    shown: str
    exact: object
    note: str = ""


def page(title: str, verdict: str, *sections: Html | None, about: str = "") -> str:
    """The whole file."""
    head = joined(
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", f"Aliquot: {title}"),
        tag("style", Html(STYLE)),
    )
    body = joined(
        tag("main", tag("h1", title), tag("p", verdict, class_="verdict"), *sections),
        tag("footer", f"Aliquot {__version__}. {about}".strip()),
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"


def named(sources: Iterable[str]) -> str:
    """What was simulated, as a title has it: files and folders by their own names."""
    found = []
    for source in sources:
        kind, colon, files = source.partition(":")
        names = [Path(each).name or each for each in (files if colon else source).split(",")]
        found.append("standard input" if names == ["-"] else ", ".join(names))
        if colon:
            found[-1] += f" ({kind})"
    return ", ".join(found) or "the cluster"


def write(file: Path, text: str) -> None:
    """Write a report."""
    try:
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(str(file), "", (error.strerror or str(error)).lower()) from None


def tiles(found: Iterable[Tile]) -> Html:
    """Figures side by side."""
    made = [
        tag(
            "div",
            tag("dt", each.name),
            tag("dd", each.shown, tag("small", each.note) if each.note else None),
            data_name=each.name,
            data_value=each.exact,
        )
        for each in found
    ]
    return tag("dl", made, class_="tiles")


def section(title: str, words: str, *content: Html | None) -> Html:
    """A part of the report under a heading."""
    return tag("section", tag("h2", title), tag("p", words) if words else None, *content)


def table(name: str, columns: Sequence[str], rows: Sequence[Sequence[Html | Cell | str]]) -> Html:
    """A table: text and bars on the left, figures on the right; rows beyond some are counted."""
    numeric = [
        bool(rows) and all(isinstance(row[place], Cell) for row in rows)
        for place in range(len(columns))
    ]
    head = [
        tag("th", column, class_="number" if right else None, scope="col")
        for column, right in zip(columns, numeric, strict=True)
    ]
    body = [tag("tr", [_cell(each) for each in row]) for row in rows[:MOST_ROWS]]
    more = len(rows) - MOST_ROWS
    drawn = any(isinstance(each, Html) for row in rows for each in row)
    return joined(
        tag(
            "div",
            tag(
                "table",
                tag("thead", tag("tr", head)),
                tag("tbody", body),
                class_=None if drawn else "plain",
                data_name=name,
            ),
            class_="table",
        ),
        tag("p", f"and {more:,} more", class_="unit") if more > 0 else None,
    )


def _cell(found: Html | Cell | str) -> Html:
    if isinstance(found, Cell):
        word = "number best" if found.best else "number"
        return tag("td", found.shown, class_=word, data_value=found.exact)
    if isinstance(found, Html):
        return tag("td", found, class_="wide")
    return tag("td", found)


def key(*items: tuple[str, str]) -> Html:
    """What the spans and marks of bars mean."""
    return tag(
        "ul", [tag("li", tag("i", class_=word), text) for word, text in items], class_="legend"
    )
