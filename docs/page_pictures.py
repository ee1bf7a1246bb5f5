"""Takes the pictures of the page in the browser anew, from a real run: part of `make pictures`.

`aliquot up` with 24 nodes in racks, on which six teams share 192 GPUs; a Chromium looks at the page
of it. What is shown is what the control plane did in that minute.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from playwright.sync_api import Browser, Page, sync_playwright

from aliquot.bench.browser import chromium
from aliquot.json import Body
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CUSTOM, NAMESPACES, PODS
from aliquot.local.demo import make, namespace
from aliquot.server.controllers.simulated_nodes import DURATION

IMAGES = Path(__file__).parent / "images"
GPU = "nvidia.com/gpu"
RACK, BLOCK = "example.com/rack", "example.com/block"
MODELS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB")
QUOTAS = CUSTOM["elasticquotas.scheduling.x-k8s.io"]
GANG = {
    "pod-group.scheduling.sigs.k8s.io/name": "llm",
    "pod-group.scheduling.sigs.k8s.io/min-available": "4",
}
EXPECTED = {"aliquot.dev/expected-duration": "25m"}
TEAMS = {
    "genomics": (16, 64),
    "research": (16, 96),
    "robotics": (32, 64),
    "search": (32, 48),
    "speech": (40, 80),
    "vision": (56, 96),
}
"""By team, min and max in GPUs; together as many as there are."""
RUNNING = (
    ("vision", "train", 4, 8),
    ("speech", "tune", 5, 4),
    ("search", "rank", 6, 4),
    ("robotics", "policy", 5, 2),
    ("genomics", "fold", 12, 2),
    ("research", "sweep", 23, 4),
)
"""Team, name, pods, GPUs of each: research and genomics borrow what the others leave."""
LATER = (("vision", "pretrain", 2, 8), ("speech", "align", 3, 4))
"""Within their mins: pods that borrowed make way."""
WIDE, TALL, FLAT, PHONE = 1280, 800, 460, 390


def main() -> None:
    """Run the cluster, and take all pictures of it."""
    binary = chromium()
    if binary is None:
        sys.exit("no Chromium is on the PATH: `make browser` installs one")
    with tempfile.TemporaryDirectory() as name, _cluster(Path(name)) as (url, kubeconfig):
        asyncio.run(_play(kubeconfig))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=binary, args=["--no-sandbox"])
            _take(browser, url)
            browser.close()


@contextmanager
def _cluster(folder: Path) -> Iterator[tuple[str, Path]]:
    """`aliquot up` in a process of its own; yields the URL of its page, and its kubeconfig."""
    nodes, config, kubeconfig = folder / "nodes.yaml", folder / "config.yaml", folder / "kubeconfig"
    nodes.write_text(yaml.safe_dump_all([_node(number) for number in range(24)]))
    config.write_text(yaml.safe_dump(_configuration()))
    words = ["up", "--nodes", nodes, "--config", config, "--kubeconfig", kubeconfig]
    command = [sys.executable, "-m", "aliquot", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            first = server.stdout.readline()
            assert any(line.startswith("kubeconfig:") for line in server.stdout)
            yield first.removeprefix("page: ").strip(), kubeconfig
        finally:
            server.terminate()
            server.wait(60)


def _configuration() -> Body:
    return {
        "apiVersion": "config.aliquot.dev/v1alpha1",
        "kind": "Configuration",
        "topology": [BLOCK, RACK],
    }


def _node(number: int) -> Body:
    rack = number // 4
    has = {"cpu": "128", "memory": "1Ti", GPU: "8", "pods": "110"}
    labels = {
        RACK: f"rack-{rack + 1}",
        BLOCK: f"block-{rack // 3 + 1}",
        "nvidia.com/gpu.product": MODELS[rack // 3],
    }
    about = {"name": f"gpu-{number + 1:02}", "labels": labels}
    status = {"capacity": has, "allocatable": has}
    return {"apiVersion": "v1", "kind": "Node", "metadata": about, "status": status}


async def _play(kubeconfig: Path) -> None:
    """Teams come, borrow, and take back what is theirs; some pods wait at the end."""
    async with Client(access.find(kubeconfig), connections=4) as client:
        for team, (low, high) in TEAMS.items():
            await make(client, NAMESPACES, namespace(team))
            await make(client, QUOTAS, _quota(team, low, high))
        for each in RUNNING:
            await _start(client, *each)
            await asyncio.sleep(2)
        await _start(client, "search", "index", 2, 4, ends="12s")
        await asyncio.sleep(8)
        for each in LATER:
            await _start(client, *each)
            await asyncio.sleep(7)
        path = f"{QUOTAS.path('robotics')}/robotics"
        await client.patch(path, {"spec": {"max": {GPU: 40}}})
        await asyncio.sleep(8)
        await _start(client, "search", "rerank", 4, 8)
        await _start(client, "genomics", "llm", 4, 8, gang=True)
        await asyncio.sleep(12)


async def _start(
    client: Client,
    team: str,
    name: str,
    pods: int,
    gpus: int,
    ends: str = "",
    gang: bool = False,
) -> None:
    asks = {GPU: str(gpus), "cpu": str(8 * gpus), "memory": f"{48 * gpus}Gi"}
    one = {"name": "main", "image": "train", "resources": {"requests": asks, "limits": asks}}
    for number in range(pods):
        about: Body = {
            "name": f"{name}-{number}",
            "namespace": team,
            "labels": GANG if gang else {},
            "annotations": {DURATION: ends} if ends else EXPECTED,
        }
        spec = {"schedulerName": "aliquot", "containers": [one]}
        await make(client, PODS, {"metadata": about, "spec": spec} | _POD)


_POD = {"apiVersion": "v1", "kind": "Pod"}


def _quota(team: str, low: int, high: int) -> Body:
    return {
        "apiVersion": QUOTAS.api_version,
        "kind": QUOTAS.kind,
        "metadata": {"name": team, "namespace": team},
        "spec": {"min": {GPU: low}, "max": {GPU: high}},
    }


def _take(browser: Browser, url: str) -> None:
    """All pictures, each of a view as it is opened, or after what a user would do there."""
    page = browser.new_page(viewport={"width": WIDE, "height": FLAT}, device_scale_factor=1.5)
    _shoot(page, url, "quotas", "page-quotas")
    page.close()
    page = browser.new_page(viewport={"width": WIDE, "height": TALL})
    _open(page, url, "nodes")
    page.locator("canvas").hover(position={"x": 40, "y": 56})
    page.wait_for_timeout(600)
    page.screenshot(path=IMAGES / "page-nodes.png")
    _open(page, url, "waiting")
    page.locator("table.waiting .link").first.click()
    page.get_by_role("heading", name="Gates").wait_for()
    page.screenshot(path=IMAGES / "page-waiting.png")
    _shoot(page, url, "story", "page-story")
    _shoot(page, url, "quotas/research%2Fresearch", "page-quota")
    _open(page, url, "what-if/search%2Fsearch")
    page.locator("#what-min-nvidia-com-gpu").fill("48")
    page.locator(".outcome").first.wait_for()
    page.wait_for_function("!document.querySelector('.asking')")
    page.screenshot(path=IMAGES / "page-what-if.png")
    page.close()
    page = browser.new_page(viewport={"width": WIDE, "height": TALL}, color_scheme="dark")
    _shoot(page, url, "nodes", "page-dark")
    page.close()
    page = browser.new_page(viewport={"width": PHONE, "height": TALL}, color_scheme="dark")
    _shoot(page, url, "quotas", "page-phone")
    page.close()


def _open(page: Page, url: str, view: str) -> None:
    page.goto("about:blank")
    page.goto(f"{url}#/{view}")
    page.locator("#summary .stat").nth(2).wait_for()
    page.wait_for_timeout(1200)  # transitions, and the second frame


def _shoot(page: Page, url: str, view: str, name: str) -> None:
    _open(page, url, view)
    page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
