"""What a reflector makes of servers that break, refuse, expire and talk nonsense."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from aliquot.dialects.core.objects import Metadata, PlainWire, PodWire, Wire
from aliquot.kube.api.resource import PODS
from aliquot.kube.watch.reflector import Reflector
from tests.cluster.kube.listening import CacheListener, telling
from tests.cluster.kube.scripted import (
    asking,
    event,
    hangs_up,
    mark,
    page,
    refuses,
    says,
    status,
    streams,
    thing,
)
from tests.cluster.kube.stories import story, until

QUIET = streams(then="hang")


class Strict(Wire):
    """A shape that not everything fits."""

    metadata: Metadata
    size: int = 0


@story
async def test_a_list_in_pages_then_a_watch_from_its_version() -> None:
    first, second = page(thing("a"), thing("b"), rest="more"), page(thing("c"), version=7)
    watch = streams(event("ADDED", thing("d", 8)), event("DELETED", thing("a", 9)), then="hang")
    async with telling(first, second, watch) as (told, reflector, script):
        await until(lambda: told.said == "+a +b +c synced +d -a")
        assert (reflector.lists, reflector.events, reflector.restarts) == (1, 2, 0)
        assert reflector.last_event is not None
    assert dict(script.queries[0]) == {"limit": "2"}
    assert dict(script.queries[1]) == {"limit": "2", "continue": "more"}
    assert script.queries[2]["resourceVersion"] == "7"
    assert script.queries[2]["allowWatchBookmarks"] == "true"
    assert script.queries[2]["timeoutSeconds"] == "1"


@story
async def test_a_list_as_part_of_the_watch() -> None:
    steps = streams(
        event("ADDED", thing("a")),
        mark(3),
        event("ADDED", thing("b")),
        mark(5, complete=True),
        event("MODIFIED", thing("b", 6)),
    )
    async with telling(steps, QUIET, streaming=True) as (told, reflector, script):
        await until(lambda: len(script.asked) == 2)
        assert told.said == "+a +b synced +b"
        assert (reflector.lists, reflector.events, reflector.restarts) == (1, 1, 1)
    assert script.queries[0]["sendInitialEvents"] == "true"
    assert script.queries[0]["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in script.queries[0]
    assert script.queries[1]["resourceVersion"] == "6"
    assert "sendInitialEvents" not in script.queries[1]


@pytest.mark.parametrize("code", [400, 422])
@story
async def test_a_server_that_cannot_stream_lists_is_asked_for_pages(code: int) -> None:
    async with telling(refuses(code, "Invalid"), page(thing("a")), QUIET, streaming=True) as (
        told,
        _,
        script,
    ):
        await until(lambda: len(script.asked) == 3)
        assert told.said == "+a synced"


@story
async def test_a_streamed_list_that_never_completes_is_given_up_for_pages() -> None:
    half = streams(event("ADDED", thing("a")), then="cut")
    listed = page(thing("b"), version=4)
    async with telling(half, half, half, listed, QUIET, streaming=True) as (told, _, script):
        await until(lambda: told.in_sync)
        assert told.said == "+a +a +a +b -a synced"
    assert [("sendInitialEvents" in query) for query in script.queries[:4]] == [1, 1, 1, 0]


@story
async def test_a_watch_goes_on_where_the_last_one_was_cut() -> None:
    cut = streams(event("ADDED", thing("b", 5)), event("ADDED", thing("c", 6))[:-20], then="cut")
    rest = streams(event("ADDED", thing("c", 6)), then="hang")
    async with telling(page(thing("a")), cut, hangs_up, rest) as (told, reflector, script):
        await until(lambda: told.said == "+a synced +b +c")
        assert reflector.lists == 1
        assert reflector.restarts >= 1
    assert script.queries[-1]["resourceVersion"] == "5"


@story
async def test_bookmarks_say_where_to_go_on() -> None:
    async with telling(page(), streams(mark(50)), QUIET, shape=PodWire) as (_, _, script):
        await until(lambda: len(script.asked) == 3)
    assert script.queries[-1]["resourceVersion"] == "50"


@pytest.mark.parametrize(
    "expired",
    [refuses(410, "Expired"), streams(event("ERROR", status(410, "Expired")))],
    ids=["as a code", "as an event"],
)
@story
async def test_too_old_a_version_leads_to_a_new_list_and_tells_who_is_gone(expired: Any) -> None:
    before = page(thing("a"), thing("b"), thing("c"))
    after = page(thing("b", 9, uid="another"), thing("c", 5), version=9)
    async with telling(before, expired, after, QUIET) as (told, reflector, script):
        await until(lambda: reflector.lists == 2)
        assert told.said == "+a +b +c synced -b +b +c -a"
        assert told.there == {"b": "another", "c": "uid-of-c"}
        await until(lambda: len(script.asked) == 4)
    assert script.queries[-1]["resourceVersion"] == "9"


@story
async def test_a_name_that_is_taken_again_in_a_watch() -> None:
    watch = streams(event("MODIFIED", thing("a", 2, uid="another")), then="hang")
    async with telling(page(thing("a")), watch) as (told, _, _):
        await until(lambda: told.said == "+a synced -a +a")


@story
async def test_a_list_that_expires_between_pages_begins_again() -> None:
    begun = page(thing("a"), rest="more")
    again = page(thing("b"), rest="more")
    steps = (begun, refuses(410, "Expired"), again, page(thing("c")), QUIET)
    async with telling(*steps) as (told, _, script):
        await until(lambda: told.in_sync)
        assert told.said == "+a +b +c -a synced"
    assert "continue" not in script.queries[2]


@story
async def test_a_list_that_always_expires_is_asked_for_as_a_whole() -> None:
    begun, expired = page(thing("a"), rest="more"), refuses(410, "Expired")
    steps = (begun, expired, begun, expired, begun, expired, page(thing("a"), thing("b")), QUIET)
    async with telling(*steps) as (told, _, script):
        await until(lambda: told.in_sync)
    assert "limit" not in script.queries[6]


@story
async def test_a_silent_watch_is_given_up() -> None:
    async with telling(page(), QUIET) as (_, reflector, script):
        await until(lambda: len(script.asked) == 3)
        assert (reflector.lists, reflector.restarts) == (1, 1)


@story
async def test_lines_come_in_pieces_and_in_heaps() -> None:
    lines = b"".join(event("ADDED", thing(f"t{n}", n, note="é" * n)) for n in range(30))
    pieces = [lines[at : at + 37] for at in range(0, 900, 37)] + [lines[37 * 25 :]]
    async with telling(page(), streams(*pieces, then="hang")) as (told, reflector, _):
        await until(lambda: reflector.events == 30)
        assert told.words[1:] == [f"+t{n}" for n in range(30)]


@story
async def test_an_object_that_does_not_fit_costs_nothing_but_itself() -> None:
    bad = thing("bad", size="large")
    first = page(thing("a", size=1), bad, {"metadata": 7}, thing("b", size=2))
    watch = streams(
        event("MODIFIED", thing("a", 5, size="huge")),
        event("ADDED", thing("c", 6, size=3)),
        event("DELETED", thing("a", 7, size="huge")),
        then="hang",
    )
    with capture_logs() as logs:
        async with telling(first, watch, shape=Strict) as (told, reflector, _):
            await until(lambda: reflector.events == 3)
            assert told.said == "+a +b synced +c -a"
    skipped = [entry for entry in logs if entry["event"] == "object skipped"]
    assert [entry["object"] for entry in skipped] == [("ns", "bad"), ("", ""), ("ns", "a")]
    assert "size" in skipped[0]["problem"]


@story
async def test_who_does_not_fit_any_more_is_not_taken_for_gone() -> None:
    again = page(thing("a", size="large"), version=9)
    steps = (page(thing("a", size=1)), refuses(410), again, QUIET)
    async with telling(*steps, shape=Strict) as (told, reflector, _):
        await until(lambda: reflector.lists == 2)
        assert told.said == "+a synced"


@pytest.mark.parametrize(
    "garbage",
    [
        *(b"<html>\n", b'{"type":"ADDED","object":{"meta\n', b"\xff\xfe\n", b"[1, 2]\n", b"\x00\n"),
        *(
            b'{"type":"%s","object":{"metadata":{"name":"n\xff"}}}\n' % word
            for word in (b"ADDED", b"MODIFIED", b"DELETED", b"BOOKMARK")
        ),
        b'{"type":"ADDED","object":{"metadata":{"na\xff":"n"}}}\n',
        b'{"type":"ADD\xff","object":{"metadata":{"name":"n"}}}\n',
        b'{"type":"ERROR","object":{"kind":"Status","message":"\xff","code":410}}\n',
    ],
)
@story
async def test_garbage_in_a_watch_loses_nothing(garbage: bytes) -> None:
    spoiled = streams(event("ADDED", thing("b", 5)), garbage, event("ADDED", thing("x", 6)))
    rest = streams(event("ADDED", thing("c", 6)), then="hang")
    async with telling(page(thing("a")), spoiled, rest) as (told, _, script):
        await until(lambda: told.said == "+a synced +b +c")
    assert script.queries[-1]["resourceVersion"] == "5"


@story
async def test_a_list_that_is_no_text_is_asked_for_again() -> None:
    spoiled = says(b'{"metadata":{"resourceVersion":"4"},"items":[{"metadata":{"name":"\xff"}}]}')
    async with telling(spoiled, page(thing("a")), QUIET) as (told, _, _):
        await until(lambda: told.said == "+a synced")


@story
async def test_a_version_at_which_nothing_works_is_given_up() -> None:
    bad = streams(event("ERROR", status(500, "InternalError")))
    steps = (page(thing("a")), bad, refuses(504, "Timeout"), bad, page(version=9), QUIET)
    async with telling(*steps) as (told, reflector, script):
        await until(lambda: reflector.lists == 2)
        assert told.said == "+a synced -a"
    assert [query.get("resourceVersion") for query in script.queries[1:4]] == ["1", "1", "1"]


@story
async def test_blank_lines_and_events_of_unknown_types_are_passed_over() -> None:
    watch = streams(
        b"\n", event("HELLO", {}), b' {"object": {}, "type": "HELLO"}\n', event("ADDED", thing("a"))
    )
    async with telling(page(), watch, QUIET) as (told, _, _):
        await until(lambda: told.said == "synced +a")


@story
async def test_trouble_is_logged_once_and_so_is_its_end() -> None:
    no = refuses(403, "Forbidden")
    with capture_logs() as logs:
        async with telling(no, no, refuses(500), no, page(thing("a")), QUIET) as (told, _, _):
            await until(lambda: told.in_sync)
    assert [entry.get("trouble") for entry in logs] == [
        "refused with 403",
        "refused with 500",
        "refused with 403",
        "refused with 403",
    ]
    assert [entry["log_level"] for entry in logs] == ["warning"] * 3 + ["info"]
    assert logs[0]["resource"] == "pods"


@story
async def test_the_server_says_when_to_come_back() -> None:
    busy = refuses(429, "TooManyRequests", Retry_After="1")
    async with telling(busy, page(), QUIET) as (told, _, script):
        await until(lambda: len(script.asked) == 1)
        await asyncio.sleep(0.6)
        assert len(script.asked) == 1
        await until(lambda: told.in_sync)


@story
async def test_a_kind_that_comes_and_goes() -> None:
    none = says(b"404 page not found", 404)
    served = (page(thing("a"), thing("b")), streams(event("DELETED", thing("b", 5))))
    steps = (none, none, *served, none, none, page(thing("c")), QUIET)
    async with telling(*steps) as (told, _, script):
        await until(lambda: "+c" in told.words)
        assert told.said == "synced +a +b -b -a +c"
    assert len(script.asked) <= 8


@story
async def test_a_kind_that_is_missing_for_a_moment_is_not_taken_for_gone() -> None:
    none, again = says(b"404 page not found", 404), page(thing("a"), version=9)
    async with telling(page(thing("a")), none, again, QUIET) as (told, reflector, _):
        await until(lambda: reflector.lists == 2)
        assert told.said == "+a synced +a"


@story
async def test_plain_data_is_a_shape_too() -> None:
    watch = streams(event("MODIFIED", thing("a", 2, x={"y": [1]})), then="hang")
    first = page(thing("a"), {"metadata": None}, {"metadata": {"name": 1}})
    async with telling(first, watch, shape=dict) as (told, _, _):
        await until(lambda: told.said == "+a synced +a")
        assert told.objects[-1] == thing("a", 2, x={"y": [1]})


@story
async def test_selectors_go_with_every_request() -> None:
    chosen: dict[str, Any] = {
        "field_selector": "spec.nodeName=",
        "label_selector": "a=b",
        "namespace": "ns",
    }
    async with telling(page(), QUIET, **chosen) as (_, _, script):
        await until(lambda: len(script.asked) == 2)
    for request in script.asked:
        assert request.path == "/api/v1/namespaces/ns/pods"
        assert request.query["fieldSelector"] == "spec.nodeName="
        assert request.query["labelSelector"] == "a=b"


@story
async def test_a_listener_that_fails_is_not_hidden() -> None:
    class Broken(CacheListener):
        def put(self, found: Any) -> None:
            raise KeyError("a defect")

    async with asking(page(thing("a"))) as (client, _):
        reflector = Reflector(client, PODS, PlainWire, Broken(), streaming=False)
        with pytest.raises(KeyError):
            await reflector.run()
