"""The page in the browser, measured: first paint, updates, and what open pages cost the server.

The server and a Chromium are processes of their own. Where there is no Chromium, what the server
costs is measured, and the rest is left out, which is said.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp

from aliquot.bench.browser import Tab, browser_tab, chromium
from aliquot.bench.dashboard_server import (
    NODES,
    ONE_CHANGE,
    PODS,
    QUOTAS,
    RATE,
    STEADY_CHANGES,
)
from aliquot.bench.figure import Figure
from aliquot.bench.process import Child, child
from aliquot.errors import ProcessError

_SIZE = f"{NODES:,} nodes, {PODS:,} pods, {QUOTAS:,} quotas"
_PAGES = 10
_VIEWS = {"quotas": "table.quotas tbody tr", "nodes": "canvas"}
_OPENINGS = 3
"""Of each view; the best counts, as the others were disturbed."""
_UPDATES = 8
_PAUSE = 2.0
"""Seconds between two changes that are timed: an update is over by then, and no frame is due."""
_MEASURED = 20.0
"""Seconds in which the server's processor time is counted, with pages and without."""
_OPENED = """new Promise((done) => {
  const look = () => document.querySelector('%s') && document.querySelector('#summary .stat')
    ? requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0))
    : setTimeout(look, 5);
  look();
})"""
_WATCH = """(() => {
  globalThis.painted = [];
  const note = () => setTimeout(() => painted.push(Date.now()), 0);
  new MutationObserver(() => requestAnimationFrame(note))
    .observe(document.getElementById('summary'), { childList: true });
})()"""


def dashboard(progress: Callable[[str], None]) -> list[Figure]:
    """The page of a cluster of 5,000 nodes, 50,000 pods and 1,000 quotas."""
    binary = chromium()
    progress(f"the server of the page: {_SIZE}")
    with _served() as server:
        if binary is None:
            progress("only the server: no Chromium is on the PATH")
        seen = asyncio.run(_seen(server, binary, progress)) if binary else []
        return [*seen, *asyncio.run(_served_pages(server, progress))]


class _Server:
    def __init__(self, process: Child) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{self._words('port')[0]}/"

    def _words(self, first: str) -> list[str]:
        """The second word of each line that begins with this one."""
        lines = [line.split() for line in self.process.said().splitlines()]
        return [words[1] for words in lines if words and words[0] == first]

    def change(self) -> float:
        """Change something; returns when that was."""
        before = len(self._words("changed"))
        self.process.process.send_signal(ONE_CHANGE)
        self.process.wait(lambda: len(self._words("changed")) > before, 0.005)
        return float(self._words("changed")[-1])


@contextmanager
def _served() -> Iterator[_Server]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        command = [sys.executable, "-m", "aliquot.bench.dashboard_server"]
        with child(command, Path(name) / "dashboard") as process:
            process.wait(lambda: process.said().startswith("port"))
            yield _Server(process)


async def _seen(server: _Server, binary: str, progress: Callable[[str], None]) -> list[Figure]:
    """What a browser says: until a view is painted, and an update of it."""
    found: list[Figure] = []
    async with browser_tab(binary) as tab:
        for view, row in _VIEWS.items():
            progress(f"the first paint of {view}")
            opened = [await _open(tab, server.url, view, row) for _ in range(_OPENINGS)]
            what = f"first paint of {view}, from the navigation on"
            found.append(Figure(what, min(opened) / 1e3, "s", "<= 2", _SIZE))
            progress(f"updates of {view}")
            found += await _updates(tab, server, view)
    return found


async def _open(tab: Tab, url: str, view: str, row: str) -> float:
    await tab.call("Page.navigate", url="about:blank")
    await tab.call("Page.navigate", url=f"{url}#/{view}")
    painted: float = await tab.evaluate(_OPENED % row)
    return painted


async def _updates(tab: Tab, server: _Server, view: str) -> list[Figure]:
    """From a change to its painting, as a user sees it; and what of that is the page's own work."""
    await asyncio.sleep(_PAUSE)
    await tab.evaluate(_WATCH)
    used, taken = await tab.task_seconds(), list[float]()
    for _ in range(_UPDATES):
        before = await tab.evaluate("painted.length")
        changed = await asyncio.to_thread(server.change)
        await asyncio.sleep(_PAUSE)
        painted = await tab.evaluate(f"painted[{before}]")
        if painted is None:
            raise ProcessError(f"the page was not told of a change within {_PAUSE} s")
        taken.append(painted - 1e3 * changed)
    used = await tab.task_seconds() - used
    return [
        Figure(f"a change, until {view} are painted", min(taken), "ms", "<= 100", _SIZE),
        Figure(f"the same, median of {_UPDATES}", statistics.median(taken), "ms", "", _SIZE),
        Figure("of it the page's processor time", 1e3 * used / _UPDATES, "ms", "", _SIZE),
    ]


async def _served_pages(server: _Server, progress: Callable[[str], None]) -> list[Figure]:
    """The server's processor time with ten pages open, less than without, at a steady rate."""
    server.process.process.send_signal(STEADY_CHANGES)
    progress(f"{RATE} changes a second, no page open")
    bare = await _cpu_share(server)
    progress(f"{RATE} changes a second, {_PAGES} pages open")
    async with _pages(server.url) as sizes:
        full = await _cpu_share(server)
    frames = [each for each in sizes if len(each) > 1]
    rate = statistics.mean(len(each) - 1 for each in frames) / _MEASURED
    size = statistics.mean(sum(each[1:]) / (len(each) - 1) for each in frames)
    on = f"{RATE} changes a second"
    what = f"server, for {_PAGES} open pages"
    return [
        Figure(what, 100 * (full - bare), "% of a core", "<= 5", on),
        Figure("server, following the cluster without pages", 100 * bare, "% of a core", "", on),
        Figure("frames to each page", rate, "/s", "", on),
        Figure("a frame", size / 1024, "KiB", "", on),
        Figure("a page that opens", statistics.mean(each[0] for each in sizes) / 1024, "KiB"),
    ]


async def _cpu_share(server: _Server) -> float:
    """Of one core, what the server uses."""
    await asyncio.sleep(_PAUSE)
    used, begin = server.process.usage().cpu, time.monotonic()
    await asyncio.sleep(_MEASURED)
    return (server.process.usage().cpu - used) / (time.monotonic() - begin)


@asynccontextmanager
async def _pages(url: str) -> AsyncIterator[list[list[int]]]:
    """Ten pages that read what they are told, and the sizes of their frames."""
    sizes: list[list[int]] = [[] for _ in range(_PAGES)]

    async def read(session: aiohttp.ClientSession, into: list[int]) -> None:
        async with session.get(f"{url}api/stream") as answer:
            size = 0
            async for chunk in answer.content.iter_any():
                size += len(chunk)
                if chunk.endswith(b"\n\n"):
                    into.append(size)
                    size = 0

    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        tasks = [asyncio.create_task(read(session, each)) for each in sizes]
        try:
            yield sizes
        finally:
            for task in tasks:
                task.cancel()
