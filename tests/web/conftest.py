"""A browser, and a cluster with the page; without a browser the tests are skipped."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.cluster.api import binaries
from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.polling import eventually
from tests.web.browsers import CHROMIUM, NO_CHROMIUM

_QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A cluster, and where its page is."""

    kubectl: Kubectl
    url: str
    kubeconfig: Path


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """It ends with the last test of this folder: meanwhile a loop runs in this thread."""
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_QUIET))
        yield found
        found.close()


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """A cluster of its own with two teams, of which one borrows, and one pod that waits."""
    if binaries.kubectl() is None:
        pytest.skip(binaries.NO_KUBECTL)
    folder = tmp_path_factory.mktemp("shown")
    kubeconfig = folder / "kubeconfig"
    words = ["up", "--nodes", "2x4", "--kubeconfig", str(kubeconfig), "--data-dir", str(folder)]
    command = [sys.executable, "-m", "aliquot", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            first = server.stdout.readline()
            assert first.startswith("page: http://localhost:"), first
            url = first.removeprefix("page: ").strip()
            assert any(line.startswith("kubeconfig: ") for line in server.stdout)
            kubectl = Kubectl(kubeconfig, folder / "home", "")
            eventually(lambda: kubectl.run("get", "eq", "-A").code == 0, seconds=60)
            yield Shown(kubectl, url, kubeconfig)
        finally:
            server.terminate()
            assert server.wait(60) == 0


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab that has seen no error, also at the end of the test."""
    problems: list[str] = []
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on(
        "console",
        lambda said: problems.append(said.text) if said.type == "error" else None,
    )
    yield tab
    tab.close()
    assert problems == []
