"""The walk of a pod from watch to bind is the one in docs/architecture.md, with no step back up."""

import asyncio
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from aliquot.engine import Engine
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS
from aliquot.kube.execution.writer import Writer
from aliquot.kube.intake.intake import _Inbox
from tests.build.manifests import limited_pod
from tests.cluster.kube.in_process import scheduling, shows

_DOCS = Path(__file__).parents[3] / "docs" / "architecture.md"
_OUTPUT = {"Binder", "Evictor", "Executor", "PodStatus", "Writer"}
Stack = tuple[str, ...]


def legs() -> list[Stack]:
    """The numbered list of the page: the functions of each leg."""
    lines = re.findall(r"^\d\. .*?: (`.*`(?: -> `.*`)*)\.$", _DOCS.read_text(), re.MULTILINE)
    return [tuple(re.findall(r"`(.*?)`", line)) for line in lines]


def classes(stack: Stack) -> list[str]:
    """The classes on a stack, the outermost first; functions of one class in a row count once."""
    return [name for name, _ in groupby(each.partition(".")[0] for each in stack)]


class Tracer:
    """The stacks with which the ends of the legs are called; for a pod p, but for the engine."""

    def __init__(self) -> None:
        self.applied: list[Stack] = []
        self.ends: dict[str, Stack] = {}
        self._watched: dict[CodeType, Any] = {
            _Inbox.put.__code__: lambda found: _is_p(found["found"]),
            Engine.apply.__code__: lambda found: _is_p(getattr(found["event"], "pod", None)),
            Engine.cycle.__code__: lambda _: True,
            Writer.add.__code__: lambda found: found["write"].operation == "bind",
            Client.post.__code__: lambda found: found["path"].endswith("/pods/p/binding"),
        }

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code not in self._watched:
            return
        stack = tuple(_stack(frame))[::-1]
        if frame.f_code is Engine.apply.__code__:
            self.applied.append(stack)
        if self._watched[frame.f_code](frame.f_locals):
            self.ends.setdefault(frame.f_code.co_qualname, stack)


def _is_p(found: Any) -> bool:
    return getattr(getattr(found, "metadata", found), "name", "") == "p"


def _stack(frame: FrameType | None) -> Iterator[str]:
    """The methods on the stack, the innermost first."""
    while frame is not None:
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_qualname
        if module.startswith("aliquot.") and "." in name:
            yield name.partition(".<locals>")[0]
        frame = frame.f_back


def trace() -> Tracer:
    """A pod is made, and bound; what was called meanwhile."""
    tracer = Tracer()

    async def story() -> None:
        async with scheduling() as (client, made):
            while made.engine is None:
                await asyncio.sleep(0.01)
            sys.setprofile(tracer)
            await client.post(PODS.path("default"), limited_pod("p"))
            await shows(client, PODS.path("default", "p"), lambda p: "nodeName" in p["spec"])

    before = sys.getprofile()
    try:
        asyncio.run(story())
    finally:
        sys.setprofile(before)
    return tracer


def test_the_walk_is_the_documented_one_and_has_no_step_back_up() -> None:
    walked, tracer = legs(), trace()
    assert len(walked) == len(tracer.ends) == 5
    for leg in walked:
        stack = tracer.ends[leg[-1]]
        expected = [each.partition(".")[0] for each in leg]
        assert classes(stack) == expected
        assert len(set(expected)) == len(expected)
        assert [each for each in stack if each in leg] == list(leg)
    assert tracer.applied
    for stack in tracer.applied:
        assert classes(stack)[-2:] == ["Feed", "Engine"]
        assert not _OUTPUT & set(classes(stack))
