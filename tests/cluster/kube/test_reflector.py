"""Reflectors of what servers have: ours, and the real one."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from aliquot.dialects.core.objects import NodeWire, PlainWire, PodWire
from aliquot.kube.api.access import find
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import NODES, PODS, Resource
from aliquot.kube.watch.reflector import Pace
from tests.cluster.api.objects import definition, node, path_of, pod, thing
from tests.cluster.api.servers import Server
from tests.cluster.api.wire import Wire
from tests.cluster.conftest import Start, Unique, established
from tests.cluster.kube.listening import CacheListener, reflecting
from tests.cluster.kube.relay import relay
from tests.cluster.kube.stories import story, until

PAGES = Pace(page=2)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
WAYS = pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "paged"])


def _now(told: CacheListener, *names: str) -> bool:
    """Is that all there is, apart from what the cluster makes by itself?"""
    return set(told.there) - {"kube-root-ca.crt"} == set(names)


@WAYS
@story
async def test_what_there_is_and_what_becomes_of_it(
    server: Server, api: Wire, ns: str, streaming: bool
) -> None:
    for name in "abcde":
        api.made(pod(ns, name))
    async with Client(find(server.kubeconfig)) as client:
        settings: dict[str, Any] = {"namespace": ns, "streaming": streaming, "pace": PAGES}
        async with reflecting(client, PODS, PodWire, **settings) as (told, reflector):
            await until(lambda: told.in_sync)
            assert told.said == "+a +b +c +d +e synced"
            api.made(pod(ns, "f"))
            api.patch(path_of(pod(ns, "a")), {"metadata": {"labels": {"x": "y"}}}).done()
            api.delete(path_of(pod(ns, "b")), {"gracePeriodSeconds": 0}).done()
            await until(lambda: _now(told, *"acdef"))
            changed = [each for each in told.objects if each.metadata.name == "a"][-1]
            assert changed.metadata.labels == {"x": "y"}
            assert changed.metadata.resource_version
            assert changed.spec.containers[0].name == "main"
            await until(lambda: reflector.events >= 3)
            assert (reflector.lists, reflector.restarts) == (1, 0)


@story
async def test_lists_are_streamed_where_the_server_can(server: Server, ns: str) -> None:
    class Streams(Client):
        async def call(self, *given: Any, **named: Any) -> bytes:
            raise AssertionError("a list was asked for")

    async with (
        Streams(find(server.kubeconfig)) as client,
        reflecting(client, CONFIG_MAPS, namespace=ns) as (told, _),
    ):
        await until(lambda: told.in_sync)


@story
async def test_objects_of_no_namespace(server: Server, api: Wire, unique: Unique) -> None:
    name = unique("node")
    api.made(node(name))
    async with (
        Client(find(server.kubeconfig)) as client,
        reflecting(client, NODES, NodeWire) as (told, _),
    ):
        await until(lambda: name in told.there)
        api.delete(path_of(node(name))).done()
        await until(lambda: name not in told.there)


@story
async def test_a_selection_lets_go_of_who_leaves_it(server: Server, api: Wire, ns: str) -> None:
    for name in "ab":
        api.made(pod(ns, name, labels={"in": "yes"}))
    chosen = {"namespace": ns, "label_selector": "in=yes"}
    async with (
        Client(find(server.kubeconfig)) as client,
        reflecting(client, PODS, **chosen) as (told, _),
    ):
        await until(lambda: _now(told, "a", "b"))
        api.patch(path_of(pod(ns, "a")), {"metadata": {"labels": {"in": "no"}}}).done()
        await until(lambda: _now(told, "b"))


@WAYS
@story
async def test_a_watch_that_is_cut_goes_on(
    server: Server, api: Wire, ns: str, streaming: bool
) -> None:
    api.made(pod(ns, "a"))
    async with relay() as between, Client(between.lead(server.kubeconfig)) as client:
        settings: dict[str, Any] = {"namespace": ns, "streaming": streaming}
        async with reflecting(client, PODS, **settings) as (told, reflector):
            await until(lambda: told.in_sync)
            between.close()
            api.made(pod(ns, "b"))
            api.delete(path_of(pod(ns, "a")), {"gracePeriodSeconds": 0}).done()
            await asyncio.sleep(0.5)
            assert _now(told, "a")
            between.lead(server.kubeconfig)
            await until(lambda: _now(told, "b"))
            assert reflector.lists == 1
            assert reflector.restarts >= 1


@WAYS
@story
async def test_a_server_that_begins_again_has_forgotten_the_past(
    start: Start, streaming: bool
) -> None:
    async with AsyncExitStack() as stack:
        between = await stack.enter_async_context(relay())
        with start() as server:
            api = Wire(server.kubeconfig)
            for name in "abc":
                api.made(pod("default", name))
            client = await stack.enter_async_context(Client(between.lead(server.kubeconfig)))
            reflected = reflecting(client, PODS, namespace="default", streaming=streaming)
            told, reflector = await stack.enter_async_context(reflected)
            await until(lambda: told.in_sync)
            old = told.there["b"]
            between.close()
            for name in "ab":
                api.delete(path_of(pod("default", name)), {"gracePeriodSeconds": 0}).done()
            api.made(pod("default", "b"))
        with start() as server:
            api = Wire(server.kubeconfig)
            api.made(pod("default", "d"))
            between.lead(server.kubeconfig)
            await until(lambda: _now(told, "b", "c", "d"))
            assert told.there["b"] != old
            assert reflector.lists == 2
            api.made(pod("default", "e"))
            await until(lambda: _now(told, "b", "c", "d", "e"))


@story
async def test_bookmarks_carry_a_quiet_watch_along(server: Server, api: Wire, ns: str) -> None:
    pace = Pace(watch_seconds=(4, 4))
    async with Client(find(server.kubeconfig)) as client:
        chosen = {"namespace": ns, "label_selector": "none=such"}
        async with reflecting(client, PODS, pace=pace, **chosen) as (told, reflector):
            await until(lambda: told.in_sync)
            listed = int(reflector.version or "0")
            made = api.made(pod(ns, "a"))
            version = int(made["metadata"]["resourceVersion"])
            await until(lambda: reflector.restarts == 1)
            assert int(reflector.version or "0") >= version > listed
            assert told.said == "synced"


@WAYS
@story
async def test_a_kind_that_is_installed_later_and_removed_again(
    server: Server, api: Wire, ns: str, unique: Unique, streaming: bool
) -> None:
    word = unique("sprocket").replace("-", "")
    defined = definition(f"{word}s", word.capitalize())
    kind = Resource(defined["spec"]["group"], "v1", f"{word}s", word.capitalize())
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}}
    settings: dict[str, Any] = {"pace": Pace(absent_seconds=0.3), "streaming": streaming}
    async with (
        Client(find(server.kubeconfig)) as client,
        reflecting(client, kind, PlainWire, **settings) as (told, _),
    ):
        await until(lambda: told.in_sync)
        assert told.said == "synced"
        for _ in range(2):
            api.made(defined)
            await until(lambda: established(api, defined))
            await client.post(kind.path(ns), body)
            await until(lambda: "a" in told.there)
            api.delete(path_of(defined)).done()
            await until(lambda: not told.there)
            await until(lambda: api.gone(defined))


@pytest.mark.parametrize("kind", ["ConfigMap", "Lease"])
@story
async def test_plain_data(server: Server, api: Wire, ns: str, kind: str) -> None:
    lease = Resource("coordination.k8s.io", "v1", "leases", "Lease")
    fields = {"spec": {"holderIdentity": "me"}} if kind == "Lease" else {"data": {"x": "y"}}
    async with Client(find(server.kubeconfig)) as client:
        resource = lease if kind == "Lease" else CONFIG_MAPS
        async with reflecting(client, resource, dict, namespace=ns) as (told, _):
            await until(lambda: told.in_sync)
            made = api.made(thing(kind, ns, "a", **fields))
            await until(lambda: "a" in told.there)
            assert told.objects[-1] == made


@pytest.mark.not_ours("objects as deep as the real server takes them")
@WAYS
@story
async def test_objects_nested_beyond_all_sense(
    server: Server, api: Wire, unique: Unique, streaming: bool
) -> None:
    kind = Resource("suite.aliquot.dev", "v1", "gadgets", "Gadget", namespaced=False)
    names = [unique("deep"), unique("deep")]
    deep = '[{"a":' * 2000 + "1" + "}]" * 2000
    texts = [
        f'{{"apiVersion":"suite.aliquot.dev/v1","kind":"Gadget","metadata":{{"name":"{name}"}},'
        f'"spec":{{"x":{deep}}}}}'.encode()
        for name in names
    ]
    async with Client(find(server.kubeconfig)) as client:
        await client.call("POST", kind.path(), texts[0])
        async with reflecting(client, kind, streaming=streaming) as (told, reflector):
            await until(lambda: names[0] in told.there)
            await client.call("POST", kind.path(), texts[1])
            await until(lambda: names[1] in told.there)
            for name in names:
                await client.call("DELETE", kind.path(name=name))
            await until(lambda: not {*names} & {*told.there})
            assert reflector.lists == 1
