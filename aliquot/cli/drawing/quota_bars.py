"""Quotas as bars: a line for each quota and resource, to one scale, children below their parent."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from aliquot.cli.drawing.bars import BarRow, Segment, bar_table, depth_first
from aliquot.cli.drawing.grid import titled
from aliquot.dialects.core.gpu_models import is_model
from aliquot.engine import quantity
from aliquot.simulation.outcome import Result

_SEGMENTS: tuple[Segment, ...] = (
    ("█", "green", "used within min"),
    ("▓", "yellow", "borrowed"),
    ("░", "cyan", "idle min, to lend"),
    ("+", "magenta", ""),
    ("·", "bright_black", "up to max"),
)
_POLICY_FIGURES = {
    "fair": ("guaranteed", "its part of what is idle"),
    "hierarchy": ("runtime", "up to its runtime"),
}
"""The figure that a policy adds to used, min and max, and the legend of its `+` segment."""


def quota_tables(policy: str, quotas: list[Result], width: int) -> Iterator[RenderableType]:
    """A table for the quotas that share all nodes, and one for each tree with nodes of its own."""
    trees: dict[str, list[Result]] = {}
    for each in quotas:
        trees.setdefault(each["tree"] or "", []).append(each)
    for name, members in sorted(trees.items()):
        if len(trees) > 1 and not any(each["min"] or each["max"] for each in members):
            continue  # the quotas that Koordinator always has, of which there is nothing to show
        title = f"QUOTAS OF TREE {name}" if name else "QUOTAS"
        yield titled(title, *quota_bars(policy, members, width))


def quota_bars(policy: str, quotas: list[Result], width: int) -> Iterator[RenderableType]:
    """The table and its legend; bars are as long as the words leave room for."""
    figure, meaning = _POLICY_FIGURES.get(policy, ("", ""))
    segments = tuple((sign, style, words or meaning) for sign, style, words in _SEGMENTS)
    named = {resource for each in quotas for word in ("min", "max") for resource in each[word]}
    scale = {resource: _largest(quotas, resource, figure) for resource in named}
    headings = ("quota", "resource", "used", "min", "max", *([figure] if figure else []))
    rows = [
        BarRow(
            _cells(quota, resource, name if number == 0 else "", figure),
            segments,
            _ends(quota, resource, figure),
            scale[resource],
            _remark(quota, resource),
        )
        for name, quota in _tree(quotas)
        for number, resource in enumerate(sorted(named & set(quota["used"])))
    ]
    more = [_idle(quotas, sorted(named))] if policy == "fair" else []
    yield from bar_table(width, headings, rows, more)


def _tree(quotas: list[Result]) -> Iterator[tuple[str, Result]]:
    """Each quota after its parent, its name indented by its depth."""
    by_name = {quota["name"]: quota for quota in quotas}
    for name, depth in depth_first({quota["name"]: quota["parent"] for quota in quotas}):
        yield "  " * depth + name, by_name[name]


def _cells(quota: Result, resource: str, name: str, figure: str) -> tuple[str, ...]:
    used, low = quota["used"][resource], quota["min"].get(resource, "0")
    if _is_only_a_part(quota, resource):
        return (name, resource, used, "", "", *([""] if figure else []))
    high = quota["max"].get(resource, "∞")
    of_policy = (quota[figure].get(resource, ""),) if figure else ()
    return (name, resource, used, low, high, *of_policy)


def _is_only_a_part(quota: Result, resource: str) -> bool:
    """Are these cards of a model that the quota does not name? Then it has neither min nor max."""
    named = resource in quota["min"] or resource in quota["max"]
    return is_model(resource) and not named


def _idle(quotas: list[Result], resources: list[str]) -> Text:
    """The idle min of all quotas together, which `fair` shares, and how much of it is borrowed."""
    words = []
    for resource in resources:
        idle = sum(quantity.amount(resource, quota["idle"].get(resource, "0")) for quota in quotas)
        borrowed = sum(
            quantity.amount(resource, quota["borrowed"].get(resource, "0")) for quota in quotas
        )
        lent = quantity.text(resource, borrowed)
        words.append(f"{quantity.text(resource, idle)} {resource}, {lent} of it borrowed")
    return Text(f"available over-quota: {'; '.join(words)}")


def _largest(quotas: list[Result], resource: str, figure: str) -> int:
    """The largest figure of any quota in this resource: what a full bar stands for."""
    ends = (_ends(quota, resource, figure) for quota in quotas)
    return max((end for each in ends for end in each), default=0) or 1


def _ends(quota: Result, resource: str, figure: str) -> tuple[int, ...]:
    """Where each segment of the bar ends; `figure` is the one that the policy adds, if any."""
    if _is_only_a_part(quota, resource):
        return (0, 0, 0, 0, 0)
    used, low, high, added = (
        quantity.amount(resource, quota.get(word, {}).get(resource, "0"))
        for word in ("used", "min", "max", figure)
    )
    of_policy = low + added if figure == "guaranteed" else added
    ends = min(used, low), used, max(used, low), max(used, low, of_policy)
    return (*ends, max(*ends, high))


def _remark(quota: Result, resource: str) -> Text:
    """What the quota borrows, a min that is scaled down, and what its waiting pods ask for."""
    borrowed = quota["borrowed"].get(resource, "0")
    waiting = quantity.amount(resource, quota["request"][resource]) - quantity.amount(
        resource, quota["used"][resource]
    )
    words = [Text(f"borrows {borrowed}", style="yellow")] if borrowed != "0" else []
    if resource in quota.get("scaledMin", {}):
        words.append(Text(f"min in force {quota['scaledMin'][resource]}", style="red"))
    if waiting > 0:
        words.append(Text(f"wants {quota['request'][resource]}", style="bright_black"))
    return Text(", ").join(words)
