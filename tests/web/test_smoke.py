"""Every view of the page over every design's objects, in a real browser, without a cluster.

Fast, and without kubectl: the page is served in this process, from the examples.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page, expect

from aliquot.dashboard.oracle import EngineOracle
from aliquot.dashboard.service import Settings, dashboard_of_files
from aliquot.json import Body
from aliquot.questions.sources.origin import Origin
from tests.build.manifests import limited_pod, quota, ready_node

EXAMPLES = Path(__file__).parents[2] / "examples"
VIEWS = ("quotas", "nodes", "waiting", "story", "what-if")


@contextmanager
def served(page: Page, example: str, config: str | None = None) -> Iterator[str]:
    """The page of an example; yields its URL, and leaves it before the server ends."""
    origin = Origin(paths=(str(EXAMPLES / example),), config=config)
    oracle, ready, urls = EngineOracle(origin), threading.Event(), list[str]()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with dashboard_of_files(origin.read(), Settings(), oracle) as port:
            urls.append(f"http://localhost:{port}/")
            ready.set()
            await asyncio.Event().wait()

    task = loop.create_task(serve())

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            ready.set()
            loop.run_until_complete(_end_others())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(60)
        yield urls[0]
    finally:
        page.goto("about:blank")
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()
        oracle.close()


async def _end_others() -> None:
    """Cancel what still runs in this loop, and wait until it has ended."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for each in left:
        each.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def written(folder: Path, *bodies: Body) -> str:
    """A file of these objects."""
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all(bodies))
    return str(file)


def open_view(page: Page, url: str, view: str = "quotas") -> None:
    page.goto("about:blank")
    page.goto(f"{url}#/{view}")
    expect(page.locator("#summary .stat").nth(2)).to_be_visible(timeout=30_000)


def row(page: Page, name: str) -> list[str]:
    """The figures of a quota, without its name and bar: used, min, max, share, ..."""
    found = page.locator("table.quotas tbody tr", has=page.get_by_role("link", name=name))
    return [each.strip() for each in found.locator("td").all_inner_texts()[1:]]


@pytest.mark.parametrize(
    "example", ["kep-9/waiting", "nos/gpu-memory", "koordinator/pools", "volcano/table-3-busy"]
)
def test_every_view_of_every_design(page: Page, example: str) -> None:
    with served(page, example) as url:
        for view in VIEWS:
            open_view(page, url, view)
            expect(page.locator("main h1")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_tree_has_its_head_its_shares_and_can_be_closed(page: Page) -> None:
    with served(page, "koordinator/pools") as url:
        open_view(page, url)
        expect(page.locator("tr.tree")).to_have_text(["No tree of its own", "Tree a100"])
        assert row(page, "students/students") == ["8", "4", "24", "8", "4", "", "2", "1"]
        page.get_by_role("button", name="children of kube-system/a100").click()
        expect(page.get_by_role("link", name="speech/speech")).to_have_count(0)
        page.get_by_role("button", name="Open all").click()
        expect(page.get_by_role("link", name="speech/speech")).to_be_visible()


def test_a_queue_shows_its_namespaces(page: Page) -> None:
    with served(page, "volcano/table-3-busy") as url:
        open_view(page, url)
        assert row(page, "q2")[:4] == ["12", "0", "∞", "12"]
        expect(page.locator("tr.namespace")).to_have_count(3)
        expect(page.locator("tr.namespace").last).to_contain_text("weight 6")
        expect(page.locator("tr.namespace").last).to_contain_text("dominant share 56%")


def test_gpu_quotas_say_what_is_exceeded(page: Page) -> None:
    with served(page, "tensor-fusion/alert") as url:
        open_view(page, url)
        found = page.locator(".gpu-quotas tbody tr")
        expect(found).to_contain_text("196 of 150")
        expect(found.locator(".reason")).to_have_text(["Exceeded", "AlertThresholdReached"])


def test_quotas_in_gpu_memory_are_shown_in_it_first(page: Page) -> None:
    with served(page, "nos/gpu-memory") as url:
        open_view(page, url)
        expect(page.locator(".choice button").first).to_have_text("GPU memory")


def test_parts_of_cards_are_of_the_namespaces_that_have_no_quota(page: Page) -> None:
    with served(page, "tensor-fusion/fractions") as url:
        open_view(page, url, "nodes")
        keys = page.locator(".key")
        expect(keys).to_have_text(["research (no quota)1.2", "serving (no quota)0.3"])
        keys.first.click()
        expect(keys.first).to_have_attribute("aria-pressed", "true")


def test_nodes_are_in_their_racks(page: Page, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: config.aliquot.dev/v1alpha1\nkind: Configuration\n"
        "topology: [example.com/block, example.com/rack]\n"
    )
    with served(page, "topology", config=str(config)) as url:
        open_view(page, url, "nodes")
        expect(page.get_by_label("Group nodes by")).to_have_value("example.com/rack")
        expect(page.locator(".panel", has_text="Where idle cards are")).to_contain_text(
            "8 cards: 2 nodes could"
        )


def test_a_gang_is_one_row(page: Page) -> None:
    with served(page, "gangs/training") as url:
        open_view(page, url, "waiting")
        rows = page.locator("table.waiting tbody tr")
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("gang of 4 pods")
        rows.get_by_role("button").click()
        expect(page.locator(".detail")).to_contain_text("Gates", timeout=60_000)
        assert "#/waiting/" in page.url


def test_what_if_adds_a_node(page: Page) -> None:
    with served(page, "gangs/training") as url:
        open_view(page, url, "what-if")
        page.get_by_label("Add").fill("1")
        expect(page.locator(".outcome").first).to_contain_text("would start", timeout=60_000)
        expect(page.locator(".moved")).to_contain_text("1 node more like")
        page.get_by_role("button", name="Reset").click()
        expect(page.get_by_role("heading", name="Move something")).to_be_visible()


def test_the_theme_is_kept(page: Page) -> None:
    with served(page, "kep-9/waiting") as url:
        open_view(page, url)
        page.get_by_role("button", name="Dark or light").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.reload()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_are_cut_and_push_nothing_off_the_page(
    page: Page, tmp_path: Path, width: int
) -> None:
    team, name = "t" * 63, "-".join(["long"] * 45)
    pods = [limited_pod(f"{team}/{name}-{i}", 4) for i in range(3)]
    nodes = ready_node(f"node.{'n' * 60}.example", gpu=8)
    file = written(tmp_path, nodes, quota(f"{team}/{name}", {"gpu": 4}, {"gpu": 8}), *pods)
    page.set_viewport_size({"width": width, "height": 800})
    with served(page, file) as url:
        for view in (*VIEWS, f"quotas/{team}%2F{name}", f"waiting/{team}%2F{name}-2"):
            open_view(page, url, view)
            page.wait_for_timeout(300)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        open_view(page, url, "waiting")
        because = page.locator("td.because").bounding_box()
        assert because is not None
        assert because["x"] + because["width"] <= width


def test_an_empty_cluster_says_what_would_be_shown(page: Page, tmp_path: Path) -> None:
    texts = ["No quotas yet", "No nodes to show", "No pod waits", "Nothing has happened yet"]
    with served(page, written(tmp_path)) as url:
        for view, text in zip(VIEWS, [*texts, "Nothing to move yet"], strict=True):
            page.goto("about:blank")
            page.goto(f"{url}#/{view}")
            expect(page.get_by_role("heading", name=text)).to_be_visible(timeout=30_000)
        expect(page.locator("#summary")).to_contain_text("on 0 nodes")


def test_no_image_environment_or_secret_is_sent(page: Page, tmp_path: Path) -> None:
    hidden = "hunter2"
    pods = [limited_pod(f"a/p-{i}", 4) for i in range(3)]
    for each in pods:
        (container,) = each["spec"]["containers"]
        container["image"] = f"{hidden}.example/train:1"
        container["env"] = [{"name": "TOKEN", "value": hidden}]
        each["spec"]["volumes"] = [{"name": "v", "secret": {"secretName": hidden}}]
        each["metadata"]["annotations"] = {"note": hidden}
    bounds = quota("a/a", {"gpu": 4}, {"gpu": 8})
    with served(page, written(tmp_path, ready_node("n", gpu=8), bounds, *pods)) as url:
        asked = ("quota?name=a/a", "node?name=n", "history", "explain?pod=a/p-1")
        told = [page.request.get(f"{url}api/{each}").text() for each in asked]
        change = {"quotas": {"a/a": {"max": {"nvidia.com/gpu": 12}}}, "addNodes": 1, "like": "n"}
        told.append(page.request.post(f"{url}api/what-if", data=change).text())
        page.goto(url)
        told.append(
            page.evaluate("""async () => {
            const reader = (await fetch('api/stream')).body.getReader();
            const found = new TextDecoder().decode((await reader.read()).value);
            await reader.cancel();
            return found;
        }""")
        )
        assert "a/p-1" in told[-1]
        assert [each for each in told if hidden in each] == []
        assert [each for each in told if "a/" not in each] == []


def test_slices_are_no_cards(page: Page) -> None:
    with served(page, "nos/gpu-memory") as url:
        open_view(page, url, "nodes")
        expect(page.locator(".bar-tools p")).to_contain_text("13 cards and slices, 10 idle")
        expect(page.locator(".panel", has_text="Where idle cards are")).to_contain_text(
            "1 card: 1 node could"
        )


def test_the_gpu_quotas_of_a_cluster_without_others_stand_alone(page: Page) -> None:
    with served(page, "tensor-fusion/fractions") as url:
        open_view(page, url)
        expect(page.get_by_role("heading", name="GPU quotas")).to_be_visible()
        expect(page.get_by_text("No quotas yet")).to_be_hidden()


def test_what_is_borrowed_from_no_quota_is_said(page: Page) -> None:
    with served(page, "koordinator/pools") as url:
        open_view(page, url)
        expect(page.get_by_label("Who borrows from whom")).to_contain_text(
            "4 GPU borrowed from what no min covers"
        )


def test_gpu_quotas_need_no_scrolling_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    with served(page, "tensor-fusion/alert") as url:
        open_view(page, url)
        sheet = page.locator(".gpu-quotas .sheet")
        expect(sheet).to_contain_text("AlertThresholdReached")
        assert sheet.evaluate("each => each.scrollWidth <= each.clientWidth")
