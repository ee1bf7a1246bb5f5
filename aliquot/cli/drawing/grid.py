"""The one look of tables on a terminal: no box, dim headings, no number ever cut.

Every table of a simulation, of the live view and of the quotas is made here. A table is as wide as
its words; where the console is narrower, columns of names wrap, and where that is not enough, each
row is a paragraph: every number with its heading, then the words.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import click
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from aliquot.cli.drawing.signs import console as make_console
from aliquot.cli.drawing.signs import for_stdout

MOST_ROWS = 24
"""Rows of a list before the rest is only counted: as many as the lines of the smallest common
terminal, so that no list alone fills more than one window."""

Cell = str | Text

_LEAST_WIDTH = {
    **dict.fromkeys(("quota", "queue", "gang", "pod", "pods"), 16),
    **dict.fromkeys(("resource", "figure"), 11),
}
"""How far names may be wrapped: `nvidia.com/gpu` breaks after its slash at 11, a `namespace/pod` of
32 characters takes two lines at 16."""
_LEAST_WORDS = 44
"""The narrowest column of words, such as why a pod waits: narrower, a sentence takes five lines and
more, and is read more easily as a paragraph below its row."""
_GAP = 2
INDENT = 2
_PIPE_WIDTH = 160
"""Columns where the output is no terminal: wide enough that the messages of examples/ stand on one
or two lines, and the same on every machine, so that outputs can be compared."""


def print_drawn(draw: Callable[[int], RenderableType]) -> None:
    """Print what is drawn for a width: in colour on a terminal, plain and fixed anywhere else."""
    console = make_console()
    if console.is_terminal:
        console.print(draw(console.width))
        return
    console.width = _PIPE_WIDTH
    with console.capture() as capture:
        console.print(draw(console.width))
    click.echo(for_stdout("\n".join(line.rstrip() for line in capture.get().splitlines())))


def titled(title: str, *parts: RenderableType) -> RenderableType:
    """Parts below a title."""
    return Group(Text(f"\n{title}", style="bold"), *parts)


def indented(part: RenderableType, by: int = INDENT) -> RenderableType:
    """Indented below its title."""
    return Padding(part, (0, 0, 0, by))


def omitted(rows: int) -> list[Text]:
    """The line that counts the rows left out, if there are any."""
    words = f"... and {rows} more; -o json has them all"
    return [Text(words, style="bright_black")] if rows > 0 else []


def table(
    width: int, columns: Sequence[str], rows: Sequence[Sequence[Cell]], right: tuple[str, ...] = ()
) -> RenderableType:
    """These rows on a console of this width; the columns in `right` hold numbers.

    If the last column is `why`, it has the words of each row.
    """
    has_words = columns[-1] == "why"
    widths = fitting(width - INDENT, columns[:-1] if has_words else columns, rows)
    words = max((len(row[-1]) for row in rows), default=0) if has_words else 0
    if widths is None or (words and _rest(width, widths) < min(words, _LEAST_WORDS)):
        found = _paragraphs(width, columns, rows, right) if has_words else _plain(columns, rows)
        return indented(found)
    if has_words:
        widths = [*widths, max(min(words, _rest(width, widths)), len("why"))]
    return indented(drawn(columns, rows, widths, right))


def drawn(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    widths: Sequence[int],
    right: tuple[str, ...] = (),
) -> Table:
    """The table, with each column as wide as that."""
    made = Table(box=None, pad_edge=False, header_style="bright_black", padding=(0, _GAP, 0, 0))
    for column, width in zip(columns, widths, strict=True):
        heading = "" if column == "bar" else column
        made.add_column(
            heading,
            width=width,
            overflow="fold",
            justify="right" if column in right else "left",
        )
    for row in rows:
        made.add_row(*(_broken(cell, width) for cell, width in zip(row, widths, strict=True)))
    return made


def _broken(cell: Cell, width: int) -> Cell:
    """A name too long for its column on several lines, broken after slashes where it has any."""
    text = _text(cell)
    indent = len(text.plain) - len(text.plain.lstrip())
    if len(text) <= width or " " in text.plain.strip() or "\n" in text.plain:
        return cell
    slash = text.plain.rfind("/", indent, width) + 1
    if not slash:
        return cell
    head, rest = text.divide([slash])
    return Text("\n" + " " * indent).join([head, rest])


def fitting(
    width: int,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    wrapped: Mapping[str, int] | None = None,
) -> list[int] | None:
    """The widths of columns that fit this width, names wrapped where they must; None if none do.

    `wrapped` has further columns that may be wrapped, and how far.
    """
    may_wrap = {**_LEAST_WIDTH, **(wrapped or {})}
    widths = [len(column) for column in columns]
    for row in rows:
        widths = [max(each, len(cell)) for each, cell in zip(widths, row, strict=False)]
    least = [
        min(each, may_wrap.get(column, each)) for column, each in zip(columns, widths, strict=True)
    ]
    over = sum(widths) + _GAP * (len(widths) - 1) - width
    while over > 0:
        spare = [each - low for each, low in zip(widths, least, strict=True)]
        if max(spare) <= 0:
            return None
        widths[spare.index(max(spare))] -= 1
        over -= 1
    return widths


def _rest(width: int, widths: Sequence[int]) -> int:
    """What is left beside these columns for one more."""
    return width - INDENT - sum(widths) - _GAP * len(widths)


def _paragraphs(
    width: int,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    right: tuple[str, ...],
) -> RenderableType:
    """Each row on a line of its own, with its words below it."""
    widths = fitting(width - INDENT, columns[:-1], rows)
    parts: list[RenderableType] = []
    for *cells, words in rows:
        row: RenderableType = _sentence(cells)
        if widths is not None:
            row = drawn(columns[:-1], [cells], widths, right)
            row.show_header = False
        parts += [
            row,
            *([indented(Text(str(words), overflow="fold"), 2 * INDENT)] if words else []),
        ]
    return Group(*parts)


def _plain(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> RenderableType:
    """Rows that wrap like sentences, below the names of their columns: the last resort."""
    named = (each for each in columns if each not in ("", "bar"))
    heading = Text("  ".join(named), style="bright_black", overflow="fold")
    return Group(heading, *map(_sentence, rows))


def _sentence(row: Iterable[Cell]) -> Text:
    """The cells of a row, one after the other."""
    line = Text("  ").join(_text(cell) for cell in row if len(cell))
    return Text.assemble(line, overflow="fold")


def _text(cell: Cell) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def packed(width: int, entries: Iterable[Text], gap: int) -> Iterator[Text]:
    """The entries on as few lines as they need, none of them broken if it fits a line."""
    line = Text(overflow="fold")
    for entry in entries:
        if line and len(line) + gap + len(entry) > width:
            yield line
            line = Text(overflow="fold")
        line = Text.assemble(line, " " * gap if line else "", entry, overflow="fold")
    if line:
        yield line


def elapsed(seconds: float) -> str:
    """A time as durations are written in manifests: `45s`, `2m18.5s`, `1h30m`.

    To the millisecond; from an hour on to the second, since people read it.
    """
    exact = round(seconds * 1000)
    minutes, rest = divmod(exact if exact < 3_600_000 else round(seconds) * 1000, 60_000)
    hours, minutes = divmod(minutes, 60)
    words = [f"{hours}h"] * bool(hours) + [f"{minutes}m"] * bool(minutes)
    return "".join([*words, f"{rest / 1000:g}s"] if rest or not words else words)
