"""Reports: the numbers of -o json, in one file that needs nothing else and trusts no name."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from aliquot.cli.main import run
from aliquot.cli.report import axes, words
from aliquot.cli.report.charts import Scale, Series, areas, coloured, heat, largest, lines
from aliquot.cli.report.markup import Html, tag
from aliquot.cli.report.page import named
from tests.build.manifests import limited_pod, ready_node

ROOT = Path(__file__).parents[2]
FAIR_SHARE = "examples/nos/fair-share"
WAITING = "examples/kep-9/waiting/cluster.yaml"
_VOID = {"meta", "br", "line", "rect", "path"}


class Read(HTMLParser):
    """A report as a browser reads it: its tables, its tiles, its tags."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.tiles: dict[str, float] = {}
        self.tables: dict[str, list[list[str]]] = {}
        self.shown: list[str] = []
        self._open: list[str] = []
        self._table: list[list[str]] | None = None
        self._cell: list[str] | None = None
        self._exact: str | None = None
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, name: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {word: value or "" for word, value in attrs}
        self.tags[name] += 1
        self.attributes += [(name, word, value) for word, value in given.items()]
        if name not in ("meta",):
            self._open.append(name)
        if name == "div" and "data-name" in given:
            self.tiles[given["data-name"]] = float(given["data-value"])
        if name == "table":
            self._table = self.tables[given["data-name"]] = []
        if name == "tr" and self._table is not None:
            self._table.append([])
        if name in ("td", "th"):
            self._cell, self._exact = [], given.get("data-value")

    def handle_startendtag(self, name: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(name, attrs)
        self._open.pop()

    def handle_endtag(self, name: str) -> None:
        assert self._open.pop() == name
        if name in ("td", "th") and self._cell is not None and self._table is not None:
            text = "".join(self._cell)
            self._table[-1].append(self._exact if self._exact is not None else text)
            self._cell = None

    def handle_data(self, data: str) -> None:
        self.shown.append(data)
        if self._cell is not None:
            self._cell.append(data)

    def rows(self, name: str) -> dict[str, list[str]]:
        """A table's rows below the heading, by their first cell."""
        return {row[0]: row[1:] for row in self.tables[name][1:]}


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run(list(arguments)) == code
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def reported(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> tuple[Read, Any]:
    """The report, and what `-o json` says beside it."""
    file = folder / "report.html"
    answer = json.loads(said(capsys, *arguments, "--report", str(file), "-o", "json"))
    return Read(file.read_text()), answer


def test_a_report_of_a_simulation_has_its_numbers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    read, answer = reported(capsys, tmp_path, "simulate", FAIR_SHARE)
    assert read.tiles["Evictions"] == len(answer["evictions"])
    assert read.tiles["Over after"] == answer["until"]
    assert read.tiles["Pods started"] == len({each["pod"] for each in answer["bindings"]})
    found = read.rows("pending")
    assert Counter(each["reason"] for each in answer["pending"]) == {
        reason: int(cells[0]) for reason, cells in found.items()
    }
    evicted = Counter(each["pod"].partition("/")[0] for each in answer["evictions"])
    assert {team: int(cells[0]) for team, cells in read.rows("evictions").items()} == evicted
    quotas = {each["name"]: each for each in answer["quotas"]}
    assert set(read.rows("shares")) <= set(quotas)


def test_a_report_and_a_comparison_say_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    read, _ = reported(capsys, tmp_path, "simulate", FAIR_SHARE, "--policy", "fair")
    other, compared = reported(capsys, tmp_path, "compare", FAIR_SHARE, "--policy", "capacity,fair")
    fair = compared["sides"][1]
    assert read.tiles["Mean wait"] == fair["waits"]["mean"]
    assert read.tiles["9 in 10 waited under"] == fair["waits"]["p90"]
    assert read.tiles["Longest wait"] == fair["waits"]["max"]
    assert read.tiles["Fairness"] == fair["fairness"]
    (resource,) = (name for name in fair["lostWork"] if "mig" in name)
    assert read.tiles["Lost to evictions"] == fair["lostWork"][resource]
    assert read.tiles["mig-1g.10gb in use"] == fair["utilisation"][resource]
    for team, cells in read.rows("waits by team").items():
        waits = fair["teams"][team]
        assert [float(each) for each in cells[1:]] == [
            waits[word] for word in ("mean", "p90", "max", "pods")
        ]
    figures = {row: [float(each) for each in cells] for row, cells in other.rows("figures").items()}
    assert figures["mean wait"] == [each["waits"]["mean"] for each in compared["sides"]]
    assert figures["evictions"] == [each["evictions"] for each in compared["sides"]]
    assert figures["fairness (Jain)"] == [each["fairness"] for each in compared["sides"]]
    assert figures["pods started"] == [each["pods"]["started"] for each in compared["sides"]]
    assert figures["over after"] == [each["makespan"] for each in compared["sides"]]
    for team, cells in other.rows("waits by team").items():
        means = [each["teams"][team]["mean"] for each in compared["sides"]]
        assert [float(each) for each in cells[1:]] == means


@pytest.mark.parametrize(
    "change",
    [
        ("-f", "docs/tasks/more-for-vision.yaml"),
        ("--drain", "gpu-1"),
        ("-f", "docs/tasks/new-team.yaml"),
    ],
    ids=["quota", "drain", "team"],
)
def test_a_report_of_a_change_has_its_numbers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, change: tuple[str, ...]
) -> None:
    read, answer = reported(capsys, tmp_path, "what-if", "--from", WAITING, *change)
    starts = read.rows("Pods that start") if answer["starts"] else {}
    assert len(starts) <= len(answer["starts"]) <= 30
    goes = read.rows("Pods that go") if answer["evictions"] else {}
    assert set(goes) == {each["pod"] for each in answer["evictions"]}
    figures = read.rows("figures")
    pending = answer["pending"]
    assert [float(each) for each in figures["pods that wait"]] == [
        len(pending["before"]),
        len(pending["after"]),
    ]
    assert float(figures["evictions"][1]) == len(answer["evictions"])
    used = {}
    for row in read.tables["quotas"][1:]:
        used[row[0]] = row[2], row[5]
    for pair in answer["quotas"]:
        for word, shown in zip(("before", "after"), used[pair["name"]], strict=True):
            expected = pair[word]["used"].get("nvidia.com/gpu", "0") if pair[word] else "0"
            assert shown == expected


ASKED = {
    "simulate": ("simulate", FAIR_SHARE),
    "nothing waits": ("simulate", "examples/kep-9/story-1"),
    "no time": ("simulate", WAITING),
    "compare": ("compare", FAIR_SHARE, "--policy", "capacity,fair"),
    "what-if": ("what-if", "--from", WAITING, "--drain", "gpu-1"),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_a_report_needs_nothing_else(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, asked: tuple[str, ...]
) -> None:
    file = tmp_path / "report.html"
    said(capsys, *asked, "--report", str(file))
    text = file.read_text()
    read = Read(text)
    assert not {"script", "link", "img", "iframe", "object", "a"} & set(read.tags)
    assert not [each for each in read.attributes if each[1] in ("src", "href", "xlink:href")]
    assert not [each for each in read.attributes if each[1].startswith("on")]
    assert not re.search(r"url\(|@import|https?:|javascript:", text)
    assert "prefers-color-scheme: dark" in text
    assert (read.tags["h1"], read.tags["title"] > 0) == (1, True)
    assert not re.search(r"\b(nan|inf|None)\b", " ".join(read.shown))
    drawn = [value for name, word, value in read.attributes if name == "path" and word == "d"]
    assert all(re.fullmatch(r"[MHVZ0-9. -]+", each) for each in drawn), drawn


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_a_report_is_the_same_every_time_and_changes_no_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, asked: tuple[str, ...]
) -> None:
    files = [tmp_path / name for name in ("one.html", "other.html")]
    answers = [said(capsys, *asked, "-o", "json", "--report", str(each)) for each in files]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert answers == [said(capsys, *asked, "-o", "json")] * 2


EVIL = "a\"><script>alert('x')</script>&lt;b"


def test_no_name_becomes_part_of_the_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = tmp_path / f"{EVIL}.csv".replace("/", "")
    table.write_text("namespace,name,arrival,duration,nvidia.com/gpu\nt,one,0,10m,1\n")
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: n}, "
        'status: {allocatable: {nvidia.com/gpu: "1", pods: "9"}}}\n'
    )
    file = tmp_path / "report.html"
    said(capsys, "simulate", str(nodes), "--trace", f"csv:{table}", "--report", str(file))
    text = file.read_text()
    assert "<script" not in text
    assert table.name in "".join(Read(text).shown)


def test_text_is_escaped_unless_it_is_html() -> None:
    assert tag("p", EVIL) == f"<p>{_escaped(EVIL)}</p>"
    assert tag("p", tag("b", "x"), title=EVIL) == f'<p title="{_escaped(EVIL)}"><b>x</b></p>'
    series = [Series(EVIL, [1.0, 2.0], "var(--c0)")]
    scale = Scale(60, EVIL)
    for drawn in (areas(series, scale, series[0]), lines(series * 2, scale), heat({EVIL: [1]}, 60)):
        assert "<script" not in drawn
        assert _escaped(EVIL) in drawn
    assert isinstance(tag("p"), Html)


def _escaped(text: str) -> str:
    for old, new in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ('"', "&quot;"),
        ("'", "&#x27;"),
    ):
        text = text.replace(old, new)
    return text


def test_bands_lie_on_each_other() -> None:
    drawn = areas([Series("a", [1, 1, 3], "red"), Series("b", [1, 3, 1], "blue")], Scale(3, "pods"))
    paths = re.findall(r' d="([^"]*)"', drawn)
    assert paths[0] == "M0 100 V75 H2 V25 H3 V100 Z"
    assert paths[1] == "M0 75 V50 H1 V0 H3 V25 H2 V75 Z"


def test_a_line_has_gaps_where_there_is_nothing_to_say() -> None:
    drawn = lines([Series("a", [1, 1, None, 0, 2], "red")], Scale(5, "x"))
    (path,) = re.findall(r' d="([^"]*)"', drawn)
    assert path == "M0 50 H2 M3 100 H4 V0 H5"


def test_a_team_keeps_its_colour_and_small_ones_are_put_together() -> None:
    used: dict[str, Sequence[float]] = {f"t{n}": [20.0 - n] for n in range(12)}
    waiting: dict[str, Sequence[float]] = {f"t{n}": [1.0 * n] for n in range(12)}
    colours = largest(used, waiting)
    assert set(colours) == {f"t{n}" for n in range(8)}
    for teams in (used, waiting):
        *own, others = coloured(teams, colours)
        assert [each.colour for each in own] == [colours[each.name] for each in own]
        assert others.name == "4 others"
        (rest,) = others.values
        assert rest == sum(teams[f"t{n}"][0] for n in range(8, 12))


@pytest.mark.parametrize(
    ("end", "labels"),
    [
        (60, ["0", "15 s", "30 s", "45 s", "60 s"]),
        (1800, ["0", "10 min", "20 min", "30 min"]),
        (100_000, ["0", "6 h", "12 h", "18 h", "24 h"]),
        (40 * 86400, ["0", "14 d", "28 d"]),
        (35 * 86400, ["0", "7 d", "14 d", "21 d", "28 d", "35 d"]),
        (0, []),
    ],
)
def test_an_axis_of_time_has_round_labels(end: float, labels: list[str]) -> None:
    assert [each.label for each in axes.times(end)] == labels


@pytest.mark.parametrize(
    ("most", "whole", "labels"),
    [
        (7, False, ["0", "2", "4", "6", "8"]),
        (1, False, ["0", "0.25", "0.5", "0.75", "1"]),
        (1, True, ["0", "1"]),
        (3, True, ["0", "1", "2", "3"]),
        (0, False, ["0", "1"]),
        (12_000, False, ["0", "5,000", "10,000", "15,000"]),
    ],
)
def test_an_axis_of_amounts_has_round_labels(most: float, whole: bool, labels: list[str]) -> None:
    top, ticks = axes.amounts(most, whole=whole)
    assert top >= most
    assert [each.label for each in ticks] == labels


def test_figures_read_well() -> None:
    assert [words.span(each) for each in (0, 0.25, 46, 119, 600, 7300, 200_000)] == [
        *("0 s", "0.2 s", "46 s", "119 s", "10 min", "2 h", "2.3 days"),
    ]
    assert [words.percent(each) for each in (0, 0.001, 0.5, 0.999, 1)] == [
        *("0%", "under 1%", "50%", "over 99%", "100%"),
    ]
    assert words.amounts("8 cpu, 1 nvidia.com/gpu") == "8 cpu, 1 GPU"
    assert words.amounts("nothing") == "nothing"
    assert [words.amount(each) for each in (0, 0.04, 0.1, 1.25, 12.6, 12_345.6)] == [
        *("0", "under 0.1", "0.1", "1.2", "13", "12,346"),
    ]
    assert words.number(1, "pod") == "1 pod"
    assert words.number(2000, "pod") == "2,000 pods"
    assert words.hours("nvidia.com/gpu") == "GPU-hours"
    assert named(["a/b.yaml", "csv:x/y.csv", "-"]) == "b.yaml, y.csv (csv), standard input"


def test_a_report_that_cannot_be_written_is_refused_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for file in (tmp_path / "none" / "r.html", tmp_path):
        assert run(["simulate", FAIR_SHARE, "--report", str(file)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "--report" in err


def test_a_report_of_one_team_says_nothing_about_fairness_between_teams(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    alone = limited_pod("a/p", 1, annotations={"sim.aliquot.dev/duration": "1m"})
    file = tmp_path / "objects.json"
    objects = {"apiVersion": "v1", "kind": "List", "items": [ready_node("n", gpu=200), alone]}
    file.write_text(json.dumps(objects))
    read, _ = reported(capsys, tmp_path, "simulate", str(file))
    assert "Every pod started. Under 1% of the GPUs were in use. Nothing was evicted." in read.shown
    assert read.shown.count("Fairness") == 1, "its tile, and no section with nothing in it"
