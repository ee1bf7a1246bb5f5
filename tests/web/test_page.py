"""The page in a real browser: every view, what changes live, and what the engine answers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from aliquot.json import Body
from tests.build.manifests import limited_pod, namespace, quota
from tests.web.conftest import Shown

VIEWS = ("quotas", "nodes", "waiting", "story", "what-if", "quotas/a%2Fa", "waiting/a%2Fwait")
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def teams(shown: Shown) -> Shown:
    """Team a uses its min and borrows; b lends; a third pod of a waits for what b's max allows."""
    bodies: list[Body] = [
        *(namespace(team) for team in ("a", "b")),
        quota("a/a", {"gpu": 2}, {"gpu": 4}),
        quota("b/b", {"gpu": 6}, {"gpu": 8}),
        *(limited_pod(f"a/run-{i}", 2) for i in (1, 2)),
        limited_pod("a/wait", 2),
    ]
    shown.kubectl("apply", "-f", "-", documents=bodies)
    for name in ("run-1", "run-2"):
        shown.kubectl("wait", "-n", "a", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    return shown


def open_view(page: Page, shown: Shown, view: str) -> None:
    page.goto(f"{shown.url}#/{view}")
    expect(page.locator("#summary .stat").nth(2)).to_be_visible(timeout=30_000)


def test_quotas_show_who_borrows_from_whom(page: Page, teams: Shown) -> None:
    open_view(page, teams, "quotas")
    row = page.locator("table.quotas tbody tr", has_text="a/a")
    expect(row.locator("td.used")).to_have_text("4")
    expect(row.locator("td.borrowed")).to_have_text("2")
    expect(row.locator("td.waiting")).to_have_text("1")
    label = row.locator(".bar").get_attribute("aria-label") or ""
    assert "uses 4 GPU, min 2, max 4" in label
    assert "borrows 2" in label
    lender = page.locator("table.quotas tbody tr", has_text="b/b")
    expect(lender.locator("td.lent")).to_have_text("2")
    expect(page.locator("svg.loans")).to_contain_text("a/a borrows 2 from b/b")


def test_a_quota_has_its_pods_with_the_line_between_them(page: Page, teams: Shown) -> None:
    open_view(page, teams, "quotas")
    page.get_by_role("link", name="a/a").first.click()
    expect(page.locator("h1")).to_have_text("a/a")
    pods = page.locator("section[aria-label='Its pods'] tbody tr")
    expect(pods).to_have_count(3)
    expect(pods.nth(1)).to_contain_text("Over-quota from here")
    row = page.evaluate("import('/store.js').then(({ state }) => state.quotas.get('a/a').index)")
    fill = page.evaluate(f"import('/colour.js').then(({{ fillOf }}) => fillOf({row}, false))")
    expect(page.locator(".curve-used")).to_have_attribute("stroke", fill)
    expect(page.locator("section[aria-label='Who waits']")).to_contain_text("QuotaMaxExceeded")


def test_what_kubectl_writes_is_shown_at_once(page: Page, teams: Shown) -> None:
    open_view(page, teams, "quotas")
    row = page.locator("table.quotas tbody tr", has_text="b/b")
    expect(row.locator("td.used")).to_have_text("0")
    teams.kubectl("apply", "-f", "-", documents=[limited_pod("b/new", 1)])
    expect(row.locator("td.used")).to_have_text("1", timeout=20_000)
    page.goto(f"{teams.url}#/story")
    expect(page.locator("ol.events")).to_contain_text("started b/new")
    teams.kubectl("delete", "pod", "-n", "b", "new", "--wait=false")
    page.goto(f"{teams.url}#/quotas")
    expect(row.locator("td.used")).to_have_text("0", timeout=60_000)


def test_changes_are_told_without_a_request(page: Page, teams: Shown) -> None:
    open_view(page, teams, "quotas")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    row = page.locator("table.quotas tbody tr", has_text="b/b")
    teams.kubectl("apply", "-f", "-", documents=[quota("b/b", {"gpu": 6}, {"gpu": 7})])
    expect(row.locator("td.max")).to_have_text("7", timeout=20_000)
    teams.kubectl("apply", "-f", "-", documents=[quota("b/b", {"gpu": 6}, {"gpu": 8})])
    expect(row.locator("td.max")).to_have_text("8", timeout=20_000)
    assert asked == []


def test_nodes_show_every_card(page: Page, teams: Shown) -> None:
    open_view(page, teams, "nodes")
    expect(page.locator(".bar-tools p")).to_contain_text("2 nodes, 8 cards, 4 idle")
    page.locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".detail h2")).to_have_text("node-0")
    box = page.locator("canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 12, box["y"] + 62)
    expect(page.locator("#tip")).to_contain_text("node-0")
    expect(page.locator("#tip")).to_contain_text("pod a/run-")


def test_a_waiting_pod_says_why_and_what_would_help(page: Page, teams: Shown) -> None:
    open_view(page, teams, "waiting")
    page.get_by_role("button", name="a/wait").click()
    detail = page.locator(".detail")
    expect(detail).to_contain_text("✗ Max", timeout=60_000)
    expect(detail.locator("ol.cures")).to_contain_text("raise max of quota a/a from 4 to 6")
    page.reload()
    expect(page.locator(".detail h2")).to_have_text("a/wait")


def test_what_if_is_what_the_command_says(page: Page, teams: Shown, tmp_path: Path) -> None:
    open_view(page, teams, "what-if")
    page.get_by_label("Quota", exact=True).select_option("a/a")
    slider = page.locator("#what-max-nvidia-com-gpu")
    slider.fill("6")
    expect(page.locator("section[aria-label='What would happen'] h2").first).to_have_text(
        "1 pod would start, 0 would be evicted", timeout=60_000
    )
    written = page.locator("pre.yaml").inner_text()
    (changed,) = yaml.safe_load_all(written)
    assert changed["spec"]["max"]["nvidia.com/gpu"] == "6"
    change = tmp_path / "change.yaml"
    change.write_text(written)
    words = ["what-if", "-f", str(change), "-o", "json", "--kubeconfig", str(teams.kubeconfig)]
    done = subprocess.run(
        [sys.executable, "-m", "aliquot", *words], capture_output=True, check=True
    )
    assert [each["pod"] for each in json.loads(done.stdout)["starts"]] == ["a/wait"]
    expect(page.locator("section[aria-label='What would happen']")).to_contain_text("a/wait")
    unchanged = teams.kubectl.json("get", "eq", "-n", "a", "a")
    assert unchanged["spec"]["max"]["nvidia.com/gpu"] in (4, "4")


def test_search_finds_and_opens(page: Page, teams: Shown) -> None:
    open_view(page, teams, "quotas")
    page.keyboard.press("/")
    page.keyboard.type("node-1")
    page.keyboard.press("Enter")
    expect(page.locator(".detail h2")).to_have_text("node-1")
    assert page.url.endswith("#/nodes/node-1")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_no_serious_finding_of_axe(
    page: Page, teams: Shown, view: str, scheme: str
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    open_view(page, teams, view)
    page.wait_for_timeout(300)
    found = Axe().run(page).response["violations"]
    serious = [
        f"{each['id']}: {node['html'][:120]}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]
    assert serious == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_fits_a_phone(page: Page, teams: Shown, view: str) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    open_view(page, teams, view)
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_an_arrow_leads_to_the_first_start_after_the_eviction(page: Page, teams: Shown) -> None:
    """A pod that is made anew under its old name, as those of StatefulSets, starts again later."""
    open_view(page, teams, "story")
    starts = [{"kind": "start", "pod": "b/claim", "at": at} for at in (50, 10, 30)]
    evicted = [{"kind": "evict", "for": "b/claim", "at": at} for at in (5, 30, 40, 60)]
    found = page.evaluate(
        """([told, evicted]) => import('/story.js').then(({ startsByPod, startFor }) =>
            evicted.map((each) => startFor(each, startsByPod(told))?.at ?? null))""",
        [starts, evicted],
    )
    assert found == [10, 30, 50, None]


def test_an_eviction_has_an_arrow_to_its_claim_and_the_past_can_be_seen(
    page: Page, teams: Shown
) -> None:
    """The last one of this file: it takes from team a what the others look at."""
    open_view(page, teams, "story")
    teams.kubectl("apply", "-f", "-", documents=[limited_pod(f"b/claim-{i}", 2) for i in (1, 2, 3)])
    events = page.locator("ol.events")
    expect(events).to_contain_text("evicted a/run-", timeout=60_000)
    expect(events).to_contain_text("b/claim-", timeout=60_000)
    expect(page.locator("svg.timeline path.arrow").first).to_be_attached()
    expect(page.locator(".moment")).to_have_text("now")
    expect(page.locator("section[aria-label='At that moment']")).to_contain_text("in use now")
    page.locator("input.scrub").fill("0")
    expect(page.locator(".moment")).not_to_have_text("now")
    expect(events).not_to_contain_text("evicted")
    page.get_by_role("button", name="Now", exact=True).click()
    expect(events).to_contain_text("evicted a/run-")
