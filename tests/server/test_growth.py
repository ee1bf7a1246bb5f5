"""Pods that come and go leave nothing behind: neither the server nor the control plane grows.

What is counted are containers, not megabytes: after so many pods, none may hold as many things as
pods have passed. And what is gone is freed at once: the garbage collector looks at older objects so
rarely that circles of them would add up. The caches that are bounded by a constant are given small
ones here.
"""

import asyncio
import gc
import types
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aliquot.dialects.configuration import Configuration
from aliquot.engine.placement import free_capacity
from aliquot.errors import ApiError
from aliquot.kube.api.client import Client
from aliquot.kube.execution import events
from aliquot.local.cluster import LocalCluster, local_cluster, node_manifests, plane_settings
from aliquot.server.app import Settings
from aliquot.server.storage import window
from tests.build.manifests import KEP9, pod, pod_group, quota
from tests.campaign import length

_PODS = length(80, 2000)
_GPUS = 32
_AT_ONCE = 40
"""Pods at a time, of one GPU each: more than there is room for, so that some wait."""
_GROUP = f"{KEP9}/v1alpha1"
_CONTAINERS = (dict, list, set, frozenset, deque, tuple)


def test_pods_that_are_gone_leave_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(window, "MOST_SECONDS", 0.0)
    monkeypatch.setattr(window, "_FEWEST_AGED", 10)
    monkeypatch.setattr(events, "_MOST_REMEMBERED", 10)
    monkeypatch.setattr(free_capacity, "_MOST_RECOMPUTED", 10)
    try:
        asyncio.run(_story(tmp_path))
    finally:
        gc.enable()


async def _story(folder: Path) -> None:
    nodes = tuple(node_manifests("4x8", "A100"))
    settings = Settings(folder, nodes=nodes, event_seconds=0)
    own = plane_settings(Configuration(), None, "127.0.0.1", None)
    async with local_cluster(settings, own) as made, Client(made.reach()) as client:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
        for namespace in ("default", "other"):
            body = quota(f"{namespace}/q", {"gpu": 16}, {"gpu": 32})
            await client.post(_where("elasticquotas", namespace), body)
        await _round(made, client, 0)
        before = {id(each) for each in _large(_PODS // 2)}
        gc.disable()
        for start in range(_AT_ONCE, _PODS + _AT_ONCE, _AT_ONCE):
            await _round(made, client, start)
        await _settled(made)
        circles = gc.collect()
        assert circles < _PODS, "objects that refer to each other stay until all are looked at"
        left = [each for each in _large(_PODS // 2) if id(each) not in before]
        assert not left, [_described(each) for each in left]


async def _round(made: LocalCluster, client: Client, start: int) -> None:
    """Create pods, some in a gang; have some evicted by others; delete all."""
    gang = f"g-{start}"
    group = pod_group(f"default/{gang}", _GROUP, minMember=4)
    await client.post(_where("podgroups", "default"), group)
    for number in range(start, start + _AT_ONCE):
        labels = {"scheduling.x-k8s.io/pod-group": gang} if number < start + 4 else {}
        await client.post(_pods("default"), _pod(f"default/p-{number}", labels))
    await _until(lambda: _running(made, "default") == _GPUS)
    for number in range(8):
        await client.post(_pods("other"), _pod(f"other/p-{start + number}", {}))
    await _until(lambda: _running(made, "other") == 8)
    for each in made.server.api.store.all("pods"):
        path = f"{_pods(each.namespace)}/{each.name}"
        with suppress(ApiError):  # it may have been evicted just now
            await client.call("DELETE", path)
    await client.call("DELETE", f"{_where('podgroups', 'default')}/{gang}")
    await _until(lambda: not made.server.api.store.all("pods"))


def _pod(path: str, labels: dict[str, str]) -> dict[str, Any]:
    body = pod(path, {"gpu": 1}, schedulerName="aliquot", labels=labels)
    body["spec"]["terminationGracePeriodSeconds"] = 0
    return body


def _running(made: LocalCluster, namespace: str) -> int:
    found = made.server.api.store.all("pods", namespace)
    return sum(each.selectable["status"].get("phase") == "Running" for each in found)


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def _where(plural: str, namespace: str) -> str:
    return f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{namespace}/{plural}"


async def _until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not done():
            await asyncio.sleep(0.05)


async def _settled(made: LocalCluster) -> None:
    """Wait until the control plane has seen the last deletion, and upkeep has gone round."""
    store = made.server.api.store
    await _until(lambda: len(store.bucket("pods").window) <= 20 and not store.all("events"))
    await asyncio.sleep(1.0)


def _large(size: int) -> list[Any]:
    """All containers that are alive, and hold so many things; not those of code."""
    gc.collect()
    seen: dict[int, Any] = {}
    for each in gc.get_objects():
        if isinstance(each, types.ModuleType | types.FunctionType | type):
            continue
        for inner in (each, *gc.get_referents(each)):
            if isinstance(inner, _CONTAINERS) and len(inner) >= size and not _is_loops(inner):
                seen[id(inner)] = inner
    return list(seen.values())


def _is_loops(found: Any) -> bool:
    """Is it of asyncio itself, which drops cancelled timers and dead references in batches?"""
    return isinstance(next(iter(found), None), asyncio.TimerHandle | weakref.ref)


def _described(found: Any) -> str:
    sample = repr(next(iter(found)))[:100]
    owners = [type(each).__qualname__ for each in gc.get_referrers(found)][:4]
    return f"{type(found).__qualname__} of {len(found)}, such as {sample}, held by {owners}"
