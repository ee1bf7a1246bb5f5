"""A headless Chromium, asked over its own protocol: what a page takes to be painted.

Nothing but the browser is needed, which is found on the PATH or named by `CHROMIUM`.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

from aliquot.bench.process import child
from aliquot.errors import ProcessError
from aliquot.json import Body

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-sync", "--disable-background-networking", "--disable-component-update"),
    *("--remote-debugging-port=0", "--window-size=1280,800", "about:blank"),
)
_PORT = "DevToolsActivePort"
"""The file in which a browser says where it listens."""
_ANSWER_SECONDS = 120


def chromium() -> str | None:
    """The browser, if there is one."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Tab:
    """One page of a browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, session: str) -> None:
        self._socket = socket
        self._session = session

    async def call(self, method: str, **parameters: Any) -> Body:
        """Call a method of the protocol; what happens meanwhile is passed over."""
        return await _call(self._socket, method, parameters, self._session)

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        asked = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        found = await self.call("Runtime.evaluate", **asked)
        if "exceptionDetails" in found:
            raise ProcessError(f"the page: {found['exceptionDetails']}")
        return found["result"].get("value")

    async def task_seconds(self) -> float:
        """Seconds of processor time that the page's main thread has used."""
        found = await self.call("Performance.getMetrics")
        values = {each["name"]: each["value"] for each in found["metrics"]}
        return float(values["TaskDuration"])


@asynccontextmanager
async def browser_tab(binary: str) -> AsyncIterator[Tab]:
    """A browser with one empty page, for as long as the block lasts."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name) / "chromium"
        command = [binary, f"--user-data-dir={folder}", *_OPTIONS]
        with child(command, folder) as process:
            await asyncio.to_thread(process.wait, _file(folder / _PORT))
            port, path = (folder / _PORT).read_text().split()
            url = f"ws://127.0.0.1:{port}{path}"
            async with aiohttp.ClientSession() as http, http.ws_connect(url, max_msg_size=0) as ws:
                target = await _call(ws, "Target.createTarget", {"url": "about:blank"})
                asked = {"targetId": target["targetId"], "flatten": True}
                session = await _call(ws, "Target.attachToTarget", asked)
                tab = Tab(ws, session["sessionId"])
                await tab.call("Performance.enable", timeDomain="threadTicks")
                yield tab


def _file(path: Path) -> Callable[[], bool]:
    return lambda: path.is_file() and len(path.read_text().split()) == 2


_numbers = count(1)


async def _call(
    socket: aiohttp.ClientWebSocketResponse, method: str, parameters: Body, session: str = ""
) -> Body:
    number = next(_numbers)
    message = {"id": number, "method": method, "params": parameters}
    await socket.send_json(message | ({"sessionId": session} if session else {}))
    async with asyncio.timeout(_ANSWER_SECONDS):
        while True:
            answer: Body = await socket.receive_json()
            if answer.get("id") == number:
                break
    if "error" in answer:
        raise ProcessError(f"{method}: {answer['error'].get('message')}")
    found: Body = answer["result"]
    return found
