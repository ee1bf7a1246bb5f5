"""Quotas as bars: a line for each quota and resource, to one scale, children below their parent."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from aliquot.cli.grid import table
from aliquot.cluster.outcome import Result
from aliquot.engine.quantity import amount, text

_SHORTEST_BAR, _LONGEST_BAR = 8, 32
_CELLS = (
    ("█", "green", "used within min"),
    ("▓", "yellow", "borrowed"),
    ("░", "cyan", "idle min, to lend"),
    ("+", "magenta", ""),
    ("·", "bright_black", "up to max"),
)
_MORE = {
    "fair": ("guaranteed", "its part of what is idle"),
    "hierarchy": ("runtime", "up to its runtime"),
}
"""What a policy shows beside the rest: the figure, and the part of the bar that stands for it."""


def bars(policy: str, quotas: list[Result], width: int) -> Iterator[RenderableType]:
    """The table, and what its signs mean; the bars take what width the words leave."""
    figure, meaning = _MORE.get(policy, ("", ""))
    named = {resource for each in quotas for word in ("min", "max") for resource in each[word]}
    scale = {resource: _longest(quotas, resource) for resource in named}
    headings = ("quota", "resource", "used", "min", "max", *([figure] if figure else []))
    lines = [
        (quota, resource, _cells(quota, resource, name if number == 0 else "", figure))
        for name, quota in _tree(quotas)
        for number, resource in enumerate(sorted(named & set(quota["used"])))
    ]
    texts = [headings, *(cells for _, _, cells in lines)]
    words = sum(max(len(cell) for cell in column) + 2 for column in zip(*texts, strict=True))
    words += max((len(_remark(quota, resource)) for quota, resource, _ in lines), default=0)
    length = min(max(width - words - 6, _SHORTEST_BAR), _LONGEST_BAR)
    drawn = table(width, *headings, "bar", "", right=headings[2:])
    drawn.columns[len(headings)].header = ""
    for quota, resource, (name, *cells) in lines:
        bar = _bar(quota, resource, scale[resource], length)
        drawn.add_row(Text(name, style="bold"), *cells, bar, _remark(quota, resource))
    yield _indented(drawn)
    if policy == "fair":
        yield _indented(_idle(quotas, sorted(named)))
    yield _indented(_legend(meaning))


def _tree(
    quotas: list[Result], parent: str | None = None, depth: int = 0
) -> Iterator[tuple[str, Result]]:
    """Each quota after its parent, set in by its depth."""
    for quota in quotas:
        if quota["parent"] == parent:
            yield "  " * depth + quota["name"], quota
            yield from _tree(quotas, quota["name"], depth + 1)


def _cells(quota: Result, resource: str, name: str, figure: str) -> tuple[str, ...]:
    used, low = quota["used"][resource], quota["min"].get(resource, "0")
    high = quota["max"].get(resource, "∞")
    more = (quota[figure].get(resource, ""),) if figure else ()
    return (name, resource, used, low, high, *more)


def _idle(quotas: list[Result], resources: list[str]) -> Text:
    """What all quotas together leave idle of their min: what can be borrowed, and is shared."""
    words = []
    for resource in resources:
        idle = sum(amount(resource, quota["idle"].get(resource, "0")) for quota in quotas)
        borrowed = sum(amount(resource, quota["borrowed"].get(resource, "0")) for quota in quotas)
        words.append(
            f"{text(resource, idle)} {resource}, {text(resource, borrowed)} of it borrowed"
        )
    return Text(f"available over-quota: {'; '.join(words)}")


def _longest(quotas: list[Result], resource: str) -> int:
    """The largest figure of any quota in this resource: what a full bar stands for."""
    return max((figure for quota in quotas for figure in _ends(quota, resource)), default=0) or 1


def _ends(quota: Result, resource: str) -> tuple[int, ...]:
    """Where each part of the bar ends."""
    used, low, high, part, share = (
        amount(resource, quota.get(word, {}).get(resource, "0"))
        for word in ("used", "min", "max", "guaranteed", "runtime")
    )
    sure = low + part if "guaranteed" in quota else share
    ends = min(used, low), used, max(used, low), max(used, low, sure)
    return (*ends, max(*ends, high))


def _bar(quota: Result, resource: str, scale: int, length: int) -> Text:
    """The parts of the bar, to one scale for all quotas."""
    bar, drawn = Text(), 0
    for end, (cell, style, _) in zip(_ends(quota, resource), _CELLS, strict=True):
        cells = round(end * length / scale)
        bar.append(cell * (cells - drawn), style=style)
        drawn = max(cells, drawn)
    return bar


def _remark(quota: Result, resource: str) -> Text:
    borrowed = quota["borrowed"].get(resource, "0")
    waiting = amount(resource, quota["request"][resource]) - amount(
        resource, quota["used"][resource]
    )
    words = [Text(f"borrows {borrowed}", style="yellow")] if borrowed != "0" else []
    if resource in quota.get("scaledMin", {}):
        words.append(Text(f"min in force {quota['scaledMin'][resource]}", style="red"))
    if waiting > 0:
        words.append(Text(f"wants {quota['request'][resource]}", style="bright_black"))
    return Text(", ").join(words)


def _legend(meaning: str) -> Text:
    cells = [(cell, style, words or meaning) for cell, style, words in _CELLS]
    return Text("   ").join(
        Text(f"{cell} {words}", style=style) for cell, style, words in cells if words
    )


def _indented(part: RenderableType) -> RenderableType:
    return Padding(part, (0, 0, 0, 2))
