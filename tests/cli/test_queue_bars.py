"""How queues and gangs look on a terminal."""

import io
from collections.abc import Iterable
from fractions import Fraction

import pytest
from rich.console import Console, RenderableType

from aliquot.cli.drawing.queue_bars import gang_bars, queue_bars
from aliquot.engine import GangSummary, NamespaceFigures, QueueSummary, Quota
from aliquot.simulation.outcome import gangs, queue

TREE = {
    "idle": Quota("idle"),
    "top": Quota("top", max=(("cpu", 16000),), is_parent=True),
    "low": Quota("low", parent="top", priority=5, closed=True),
}
SUMMARIES = [
    QueueSummary("idle", 1, {"cpu": 0}, {}, {}),
    QueueSummary("low", 2, {"cpu": 4000}, {"cpu": 6000}, {}),
    QueueSummary(
        "top",
        3,
        {"cpu": 12000},
        {"cpu": 6000},
        {
            "team": NamespaceFigures(4, Fraction(3, 8), {"cpu": 6000}),
            "rest": NamespaceFigures(1, Fraction(0), {}),
        },
    ),
]
REQUESTS = {"top": {"cpu": "9"}, "low": {"cpu": "6"}}


def lines(parts: Iterable[RenderableType], width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return [line.rstrip() for line in capture.get().splitlines()]


def shown(width: int = 160) -> list[str]:
    return lines(queue_bars([queue(each) for each in SUMMARIES], TREE, REQUESTS, width), width)


def test_children_and_namespaces_stand_below_their_queue() -> None:
    assert [line.split()[0] for line in shown()] == [
        "queue",
        "idle",
        "top",
        "rest",
        "team",
        "low",
        "█",
    ]
    assert [len(line) - len(line.lstrip()) for line in shown()[1:6]] == [2, 2, 4, 4, 4]


def test_a_line_says_what_a_queue_uses_and_deserves() -> None:
    top, _, team, low = shown()[2:6]
    assert top.split()[:5] == ["top", "3", "cpu", "6", "12"]
    assert top.split()[5:] == ["█" * 12 + "░" * 12 + "·" * 8, "wants", "9"]
    assert team.split() == ["team", "4", "cpu", "6", "▪" * 12, "share", "37.5%"]
    assert low.split()[5:] == ["█" * 8 + "▓" * 4, "closed,", "priority", "5"]


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_nothing_is_cut_on_a_narrow_console(width: int) -> None:
    assert max(len(line) for line in shown(width)) <= width
    words = " ".join(" ".join(shown(width)).split())
    for each in ("12", "wants 9", "share 37.5%", "closed, priority 5"):
        assert each in words
    for sign in ("█ used", "▓ beyond what it", "░ deserved, idle", "· up to", "▪ of a namespace"):
        assert sign in words


def test_the_bar_of_a_gang_is_the_fraction_of_min_member_that_runs() -> None:
    listed = gangs(
        [
            GangSummary("a/more", "Running", 2, 3),
            GangSummary("a/none", "Inqueue", 4, 0),
            GangSummary("a/part", "Unknown", 4, 2),
            GangSummary("a/past", "Completed", 4, 0),
        ]
    )
    *drawn, legend = lines(gang_bars(listed, 80), 80)
    assert legend.split() == ["█", "running", "░", "still", "to", "start"]
    assert [line.split() for line in drawn[1:]] == [
        ["a/more", "Running", "3/2", "█" * 10],
        ["a/none", "Inqueue", "0/4", "░" * 10],
        ["a/part", "Unknown", "2/4", "█" * 5 + "░" * 5],
        ["a/past", "Completed", "0/4", "█" * 10],
    ]


def test_very_many_gangs_are_not_all_shown() -> None:
    listed = gangs([GangSummary(f"a/g-{number}", "Pending", 2, 0) for number in range(30)])
    assert lines(gang_bars(listed, 80), 80)[-2] == "  ... and 6 more; -o json has them all"
