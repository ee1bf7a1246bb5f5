"""The dashboard by itself: one file for any installation, panels where Grafana can show them."""

import json
import re
from itertools import combinations
from pathlib import Path

import pytest

from aliquot.json import Body
from aliquot.kube.install.monitoring import DASHBOARD_FILE, dashboard_text
from aliquot.kube.monitoring import accounting
from aliquot.kube.monitoring.dashboard import dashboard
from aliquot.kube.observe import catalogue
from tests.kube.monitoring.queries import panels, queries

CHARTED = Path(__file__).parents[3] / "charts" / "aliquot" / "dashboards" / DASHBOARD_FILE


def test_the_chart_has_the_same() -> None:
    assert json.loads(dashboard_text()) == dashboard() == json.loads(CHARTED.read_text())


def test_every_panel_says_what_it_is_and_asks_something() -> None:
    for panel in panels():
        assert panel["title"], panel
        assert panel["description"].endswith("."), panel["title"]
        assert panel["targets"], panel["title"]
        letters = [each["refId"] for each in panel["targets"]]
        assert letters == [chr(ord("A") + n) for n in range(len(letters))]


def test_panels_do_not_overlap_and_fit_the_grid() -> None:
    shown = [each["gridPos"] for each in dashboard()["panels"]]
    assert all(each["x"] >= 0 and each["x"] + each["w"] <= 24 for each in shown)
    for one, other in combinations(shown, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)
    numbers = [each["id"] for each in [*dashboard()["panels"], *panels()]]
    assert len({*numbers}) == len({json.dumps(each) for each in _ids()})


def _ids() -> list[Body]:
    found = [{"id": each["id"], "title": each["title"]} for each in dashboard()["panels"]]
    return found + [{"id": each["id"], "title": each["title"]} for each in panels()]


def test_only_metrics_that_there_are_are_asked_for() -> None:
    known = {each.name for each in catalogue.METRICS} | {accounting.TOTAL}
    asked = {
        re.sub(r"_(bucket|count|sum)$", "", name)
        for expression in queries()
        for name in re.findall(r"\b(?:aliquot|process)[_:][\w:]+", expression)
    }
    assert asked <= known


def test_what_a_control_plane_tells_is_shown() -> None:
    """Every metric of it but a few that are for other eyes."""
    elsewhere = {
        *(each.name for each in catalogue.METRICS if each.name.startswith("aliquot_shadow")),
        *(
            catalogue.BUILD_INFO.name,
            catalogue.PROCESS_ADDRESSES.name,
            catalogue.PROCESS_START.name,
        ),
        *(catalogue.PROCESS_FILES.name, catalogue.PROCESS_MOST_FILES.name),
    }
    text = " ".join(queries())
    missing = {each.name for each in catalogue.METRICS if not re.search(rf"\b{each}", text)}
    assert missing == elsewhere


@pytest.mark.parametrize("word", ["datasource", "resource", "quota"])
def test_what_is_chosen_at_the_top_is_used(word: str) -> None:
    variables = {each["name"] for each in dashboard()["templating"]["list"]}
    assert variables == {"datasource", "resource", "quota"}
    assert re.search(rf"\${{?{word}\b", dashboard_text())
