"""How a simulation looks on a terminal: quotas as bars, what happened when, what waits and why."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

import click
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from aliquot.cluster.outcome import Result, outcome
from aliquot.cluster.simulation import Simulation
from aliquot.engine.quantity import amount, text

_SHORTEST_BAR, _LONGEST_BAR = 8, 32
_MOST_ROWS = 24
_PIPE_WIDTH = 160
_WRAPPING = ("why", "quota", "pod", "pods")
_CELLS = (
    ("█", "green", "used within min"),
    ("▓", "yellow", "borrowed"),
    ("░", "cyan", "idle min, to lend"),
    ("+", "magenta", "its part of what is idle"),
    ("·", "bright_black", "up to max"),
)
_PART = _CELLS[3]


def print_tables(simulation: Simulation, why: str) -> None:
    """Print everything a person wants to know, in colour where it goes to a terminal."""
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(tables(simulation, why, console.width))
        return
    console.width = _PIPE_WIDTH
    with console.capture() as capture:
        console.print(tables(simulation, why, console.width))
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def tables(simulation: Simulation, why: str, width: int) -> RenderableType:
    """The tables, to be printed on a console of this width."""
    return Group(*_parts(outcome(simulation), why, width))


def _parts(result: Result, why: str, width: int) -> Iterator[RenderableType]:
    yield _headline(result, why)
    if result["quotas"]:
        yield _titled("QUOTAS", *_quotas(result["quotas"], width))
    if result["bindings"] or result["evictions"]:
        yield _titled("WHAT HAPPENED", _history(result))
    if result["pending"]:
        yield _titled("WAITING", _waiting(result["pending"]))


def _titled(title: str, *parts: RenderableType) -> RenderableType:
    return Group(Text(f"\n{title}", style="bold"), *parts)


def _headline(result: Result, why: str) -> Text:
    count = Counter(pod["phase"] for pod in result["pods"])
    line = Text.assemble("policy ", (result["policy"], "bold"), f" ({why}), ")
    line.append(f"simulated to {_time(result['until'])}: ")
    parts = [
        (f"{count['Running']} running", "green"),
        (f"{count['Pending']} waiting", "yellow" if count["Pending"] else ""),
        (f"{count['Evicted']} evicted", "red" if count["Evicted"] else ""),
    ]
    others = {"Succeeded": "ended", "Failed": "failed", "Deleted": "deleted"}
    parts += [(f"{count[phase]} {word}", "") for phase, word in others.items() if count[phase]]
    return line.append(Text(", ").join(Text(*part) for part in parts))


def _table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bright_black", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=column not in _WRAPPING,
            overflow="fold" if column in _WRAPPING else "ellipsis",
        )
    return table


def _quotas(quotas: list[Result], width: int) -> Iterator[RenderableType]:
    """A line for each quota and resource; the bars take what width the words leave."""
    shares = any("guaranteed" in quota for quota in quotas)
    named = {resource for each in quotas for word in ("min", "max") for resource in each[word]}
    scale = {resource: _longest(quotas, resource) for resource in named}
    rows = [
        (
            quota["name"] if number == 0 else "",
            resource,
            quota["used"][resource],
            quota["min"].get(resource, "0"),
            quota["max"].get(resource, "∞"),
            quota.get("guaranteed", {}).get(resource, ""),
            _remark(quota, resource),
        )
        for quota in quotas
        for number, resource in enumerate(sorted(named & set(quota["used"])))
    ]
    headings = ("quota", "resource", "used", "min", "max", "guaranteed" if shares else "", "")
    words = sum(
        max(len(str(cell)) for cell in column) + 2 for column in zip(*rows, headings, strict=True)
    )
    bar = min(max(width - words - 4, _SHORTEST_BAR), _LONGEST_BAR)
    by_name = {quota["name"]: quota for quota in quotas}
    columns = headings[:6] if shares else headings[:5]
    table = _table(*columns, "bar", "", right=("used", "min", "max", "guaranteed"))
    table.columns[len(columns)].header = ""
    quota: Result = {}
    for name, resource, used, low, high, part, remark in rows:
        quota = by_name.get(name, quota)
        drawn = _bar(quota, resource, scale[resource], bar)
        figures = (used, low, high, part) if shares else (used, low, high)
        table.add_row(Text(name, style="bold"), resource, *figures, drawn, remark)
    yield Padding(table, (0, 0, 0, 2))
    if shares:
        yield Padding(_idle(quotas, sorted(named)), (0, 0, 0, 2))
    yield _legend(shares)


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
    used, low, high, part = (
        amount(resource, quota.get(word, {}).get(resource, "0"))
        for word in ("used", "min", "max", "guaranteed")
    )
    sure = low + part if part else 0
    return min(used, low), used, max(used, low), max(used, low, sure), max(used, low, sure, high)


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
    if waiting > 0:
        words.append(Text(f"wants {quota['request'][resource]}", style="bright_black"))
    return Text(", ").join(words)


def _legend(shares: bool) -> RenderableType:
    cells = [each for each in _CELLS if shares or each != _PART]
    legend = Text("   ").join(Text(f"{cell} {words}", style=style) for cell, style, words in cells)
    return Padding(legend, (0, 0, 0, 2))


def _history(result: Result) -> RenderableType:
    table = _table("at", "", "pod", "node", "why", right=("at",))
    started = [(each["at"], 1, each) for each in result["bindings"]]
    evicted = [(each["at"], 0, each) for each in result["evictions"]]
    rows = sorted(started + evicted, key=lambda row: row[:2])
    for at, is_start, each in islice(rows, _MOST_ROWS):
        if is_start:
            table.add_row(_time(at), Text("starts", style="green"), each["pod"], each["node"], "")
        else:
            why = f"{each['reason']}: {each['message']}"
            table.add_row(_time(at), Text("evicted", style="red"), each["pod"], each["node"], why)
    return Padding(Group(table, *_more(len(rows) - _MOST_ROWS)), (0, 0, 0, 2))


def _waiting(pending: list[Result]) -> RenderableType:
    table = _table("pods", "reason", "why")
    groups: dict[tuple[str, str], list[str]] = {}
    for each in pending:
        groups.setdefault((each["reason"], each["message"]), []).append(each["pod"])
    for (reason, message), pods in islice(groups.items(), _MOST_ROWS):
        others = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
        table.add_row(f"{pods[0]}{others}", Text(reason, style="yellow"), message)
    return Padding(Group(table, *_more(len(groups) - _MOST_ROWS)), (0, 0, 0, 2))


def _more(rows: int) -> Iterable[Text]:
    return (
        [Text(f"... and {rows} more; -o json has them all", style="bright_black")]
        if rows > 0
        else []
    )


def _time(seconds: float) -> str:
    """`1h30m`, `45s`: the way durations are written in manifests."""
    if seconds != int(seconds) or seconds == 0:
        return f"{seconds:g}s"
    hours, rest = divmod(int(seconds), 3600)
    parts = ((hours, "h"), (rest // 60, "m"), (rest % 60, "s"))
    return "".join(f"{value}{unit}" for value, unit in parts if value)
