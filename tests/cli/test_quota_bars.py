"""How quotas, decisions and reasons look on terminals of any width, with and without UTF-8."""

import io
import re
import subprocess
import sys
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from aliquot.cli.drawing import signs
from aliquot.cli.drawing.grid import Cell, elapsed, table
from aliquot.cli.drawing.quota_bars import quota_bars, quota_tables
from tests.cli.test_queue_bars import lines
from tests.docs.test_examples import ROOT

GPU = "nvidia.com/gpu"
FIGURES = ("min", "max", "used", "request", "runtime", "weight", "borrowed", "idle")


def quota(name: str, parent: str | None = None, **figures: int) -> dict[str, Any]:
    made = {word: {GPU: str(figures.get(word, 0))} for word in FIGURES}
    more = {"guaranteed": {GPU: str(figures["guaranteed"])}} if "guaranteed" in figures else {}
    return {"name": name, "parent": parent, **made, **more}


ORG = "org/a-long-name-of-a-quota"
TREE = [
    quota(ORG, min=20, max=100, used=61, request=61, runtime=70),
    quota("team/below-it", ORG, min=20, max=64, used=33, request=1234, runtime=41, borrowed=13),
]
FAIR = [
    quota("a/q", min=10, max=40, used=3, request=3, idle=7, guaranteed=5),
    quota("b/q", min=10, max=40, used=17, request=90, borrowed=7, guaranteed=15),
]
SHOWN = [("hierarchy", TREE), ("fair", FAIR), ("capacity", FAIR)]
SIGN = re.compile(r"[█▓▒░▪·+]")


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
@pytest.mark.parametrize(("policy", "quotas"), SHOWN)
def test_no_number_is_cut(policy: str, quotas: list[dict[str, Any]], width: int) -> None:
    drawn = lines(quota_bars(policy, quotas, width), width)
    assert max(len(line) for line in drawn) <= width
    words = " ".join(drawn).split()
    for each in quotas:
        for word in ("used", "min", "max"):
            assert each[word][GPU] in words
    joined = " ".join(words)
    of_tree = ("borrows 13", "wants 1234")
    for remark in of_tree if policy == "hierarchy" else ("borrows 7", "wants 90"):
        assert remark in joined


def test_beside_trees_there_is_no_table_of_quotas_without_bounds() -> None:
    bare = {**quota("system/default"), **{word: {} for word in FIGURES}, "tree": None}
    of_pool = [{**each, "tree": "a100"} for each in TREE]
    drawn = "\n".join(lines(quota_tables("hierarchy", [bare, *of_pool], 120), 120))
    assert "QUOTAS OF TREE a100" in drawn
    assert drawn.count("QUOTAS") == 1


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(("policy", "quotas"), SHOWN)
def test_the_legend_explains_the_signs_in_use_and_no_others(
    policy: str, quotas: list[dict[str, Any]], width: int
) -> None:
    drawn = "\n".join(lines(quota_bars(policy, quotas, width), width))
    in_bars = {sign for run in re.findall(r"[█▓▒░▪·+]{2,}", drawn) for sign in run}
    explained = set(re.findall(r"([█▓▒░▪·+]) [a-z]", drawn))
    assert in_bars == explained
    assert ("+" in explained) is (policy != "capacity")


def test_an_entry_of_the_legend_is_not_broken() -> None:
    drawn = lines(quota_bars("hierarchy", TREE, 60), 60)
    legend = [line.strip() for line in drawn if "up to max" in line or "within min" in line]
    entries = [entry for line in legend for entry in line.split("   ")]
    assert {"█ used within min", "+ up to its runtime", "· up to max"} <= set(entries)


def test_words_stand_below_their_row_where_there_is_no_room_beside_it() -> None:
    rows: list[list[Cell]] = [
        ["team/pod", Text("Why"), "because of " + "very " * 20 + "long reasons"]
    ]
    narrow = lines([table(60, ("pods", "reason", "why"), rows)], 60)
    assert narrow[0].split() == ["team/pod", "Why"]
    assert all(line.startswith("      ") for line in narrow[1:])
    wide = lines([table(160, ("pods", "reason", "why"), rows)], 160)
    assert wide[0].split() == ["pods", "reason", "why"]
    assert wide[1].split()[:3] == ["team/pod", "Why", "because"]


def test_a_name_breaks_after_its_slash() -> None:
    drawn = lines(quota_bars("capacity", FAIR, 60), 60)
    assert [line.split()[1] for line in drawn[1:4:2]] == ["nvidia.com/", "nvidia.com/"]
    assert [line.split()[0] for line in drawn[2:5:2]] == ["gpu", "gpu"]


@pytest.mark.parametrize(
    ("environment", "ascii_only"),
    [
        ({}, False),
        ({"LANG": "C.UTF-8"}, False),
        ({"LANG": "de_DE.utf8"}, False),
        ({"LC_CTYPE": "UTF-8"}, False),
        ({"LANG": "C", "LC_ALL": "en_US.UTF-8"}, False),
        ({"LC_CTYPE": "C.UTF-8"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "C.UTF-8", "LC_ALL": "C"}, True),
        ({"LANG": "POSIX"}, True),
        ({"LANG": "en_US.ISO-8859-1"}, True),
        ({"LANG": "en_US"}, True),
    ],
)
def test_the_locale_says_whether_a_terminal_has_utf_8(
    environment: dict[str, str], ascii_only: bool
) -> None:
    utf8 = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert signs.needs_ascii(utf8, environment) is ascii_only
    latin = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    assert signs.needs_ascii(latin, environment)


@pytest.mark.parametrize("more", [{"LC_ALL": "C"}, {"LANG": "C"}, {"PYTHONIOENCODING": "ascii"}])
def test_tables_are_ascii_where_they_must_be(more: dict[str, str]) -> None:
    command = [sys.executable, "-m", "aliquot", "simulate", "examples/nos/fair-share"]
    done = subprocess.run(command, cwd=ROOT, env=more, capture_output=True, check=True)
    shown = done.stdout.decode("ascii")
    assert "# used within min" in shown
    assert "?" not in shown


def test_columns_stand_where_they_stood() -> None:
    console = Console(file=io.StringIO(), width=80)
    with console.capture() as capture:
        for part in quota_bars("fair", FAIR, 80):
            console.print(part)
    drawn = capture.get()
    assert len(drawn) == len(drawn.translate(signs._ASCII))
    assert not SIGN.search(drawn.translate(signs._ASCII).replace("+", ""))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (0.0004, "0s"),
        (45, "45s"),
        (8.657, "8.657s"),
        (60, "1m"),
        (138.462, "2m18.462s"),
        (1800, "30m"),
        (3600, "1h"),
        (88410.744, "24h33m31s"),
    ],
)
def test_times_are_written_as_durations_are(seconds: float, words: str) -> None:
    assert elapsed(seconds) == words
