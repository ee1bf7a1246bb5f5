"""Reports in a real browser, without scripts: nothing is cut off, on a wide screen and a phone."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from aliquot.cli.main import run

FAIR_SHARE = "examples/nos/fair-share"
WAITING = "examples/kep-9/waiting/cluster.yaml"
ASKED = {
    "simulate": ("simulate", FAIR_SHARE),
    "compare": ("compare", FAIR_SHARE, "--policy", "capacity,fair"),
    "what-if": ("what-if", "--from", WAITING, "-f", "docs/tasks/more-for-vision.yaml"),
}
_CUT_TABLES = """() => [...document.querySelectorAll('.table')]
  .filter(each => each.scrollWidth > each.clientWidth)
  .map(each => each.querySelector('thead').innerText)"""
_CHARTS = """() => [...document.querySelectorAll('.plot')].map(plot => {
  const box = plot.getBoundingClientRect(), width = document.documentElement.clientWidth;
  const words = [...plot.querySelectorAll('span')].map(each => each.getBoundingClientRect());
  const across = plot.querySelector('.x') ? [...plot.querySelectorAll('.x span')] : [];
  const places = across.map(each => each.getBoundingClientRect());
  return {
    height: plot.querySelector('svg').getBoundingClientRect().height,
    inside: words.every(word => word.left >= 0 && word.right <= width + 1),
    apart: places.every((word, n) => n == 0 || places[n - 1].right <= word.left),
  };
})"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_a_report_fits_and_needs_no_scripts(
    browser: Browser, tmp_path: Path, asked: tuple[str, ...], scheme: str, width: int
) -> None:
    file = tmp_path / "report.html"
    assert run([*asked, "--report", str(file), "-o", "json"]) == 0
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        java_script_enabled=False,
        offline=True,
    )
    try:
        tab = context.new_page()
        tab.goto(file.as_uri())
        overflow = (
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert tab.evaluate(overflow) <= 0
        assert tab.evaluate(_CUT_TABLES) == []
        for chart in tab.evaluate(_CHARTS):
            assert chart["height"] > 100
            assert chart["inside"], "a label is cut off"
            assert chart["apart"], "labels lie on each other"
        ground = tab.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(20, 23, 27)" if scheme == "dark" else "rgb(255, 255, 255)")
    finally:
        context.close()
