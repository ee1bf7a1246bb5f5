"""What a page is told: the frames since it was opened add up to everything as it is now."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aliquot.dashboard.board import PARTS, Board, Frame
from aliquot.dashboard.watched import Watched
from aliquot.engine import (
    SECOND,
    Device,
    DeviceSet,
    Engine,
    Event,
    GpuAmount,
    GpuAsk,
    GpuBound,
    GpuQuota,
    GpuQuotaGone,
    GpuQuotaSet,
)
from aliquot.engine.model.events import NodeGone, NodeSet, PodGone, PodSet, QuotaGone, QuotaSet
from tests.build.values import GPU, node, pod, quota

Page = dict[str, Any]


class World:
    """An engine, what watches it, and a page that was open from the beginning."""

    def __init__(self, policy: str = "capacity") -> None:
        self.engine = Engine(policy)
        self.watched = Watched(self.engine, Board("a test", policy))
        self.watched.live = True
        self.now = SECOND
        self.page: Page = {part: {} for part in PARTS} | {"story": []}

    def apply(self, *events: Event) -> None:
        for event in events:
            self.engine.apply(event)
            self.watched.apply(event, self.now)

    def look(self) -> Page:
        """The page after the next frame."""
        self.now += SECOND
        read(self.page, self.watched.look(self.now))
        return self.page

    def opened(self) -> Page:
        """A page that is opened now."""
        page: Page = {part: {} for part in PARTS} | {"story": []}
        read(page, self.watched.board.whole())
        return page


def read(page: Page, frame: Frame) -> None:
    """Take a frame as the page does."""
    text = frame.encoded().decode()
    assert text.startswith("data: ")
    assert text.endswith("\n\n")
    body = json.loads(text.removeprefix("data: "))
    for part in PARTS:
        news = body.get(part, {})
        if news.get("all"):
            page[part].clear()
        page[part].update(news.get("set", {}))
        for key in news.get("gone", []):
            del page[part][key]
    story = body.get("story", {"add": []})
    page["story"] = story["add"] if story.get("all") else page["story"] + story["add"]
    page["cluster"] = body["cluster"]


def test_only_accelerators_are_cards_and_slices_are_told_apart() -> None:
    world = World()
    other = (("rdma/hca", 8), ("vpc.amazonaws.com/efa", 4), ("koordinator.sh/gpu-core", 8))
    world.apply(
        NodeSet(node("whole", ((GPU, 2), *other))),
        NodeSet(node("sliced", (("nvidia.com/gpu-8gb", 2), ("nvidia.com/mig-1g.10gb", 1)))),
        NodeSet(node("tpu", (("google.com/tpu", 4),))),
    )
    nodes = world.look()["nodes"]
    cells = {name: (len(row["cells"]), row["sliced"]) for name, row in nodes.items()}
    assert cells == {"whole": (2, False), "sliced": (3, True), "tpu": (4, False)}


def test_cards_show_the_quotas_of_the_pods_on_them() -> None:
    world = World()
    world.apply(
        NodeSet(node("n", 4)),
        QuotaSet(quota("a/a", 2, 4)),
        PodSet(pod("p", 2, node="n")),
        PodSet(pod("q", 1, "other", node="n")),
    )
    page = world.look()
    owner = page["quotas"]["a/a"]["index"] + 1
    other = page["teams"]["other/"]["index"] + 1
    assert page["nodes"]["n"]["cells"] == [owner, owner, other, 0]
    assert page["nodes"]["n"]["pods"] == 2
    assert page["cluster"]["used"][GPU] == 3


def test_a_shared_card_shows_the_part_of_each_pod() -> None:
    world = World()
    world.apply(
        NodeSet(node("n", ())),
        QuotaSet(quota("a/a", ())),
        DeviceSet(Device("g", "n", GpuAmount(1000, 100))),
    )
    for name, vram in (("p", 25), ("q", 50)):
        asks = {"gpu": GpuAsk(GpuAmount(0, vram))}
        world.apply(PodSet(pod(name, (), shape=asks, node="n", devices=("g",))))
    owner = world.look()["quotas"]["a/a"]["index"] + 1
    assert world.page["nodes"]["n"]["cells"] == [[[owner, 250], [owner, 500]]]


def test_what_is_borrowed_is_lent_by_who_has_idle_min() -> None:
    world = World()
    world.apply(NodeSet(node("n", 8)), QuotaSet(quota("a/a", 2)), QuotaSet(quota("b/b", 3)))
    world.apply(QuotaSet(quota("c/c", 1)), PodSet(pod("p", 5, node="n")))
    loans = world.look()["loans"].values()
    assert [(each["from"], each["to"], each["amount"]) for each in loans] == [("b/b", "a/a", 3)]


def test_pods_that_wait_alike_are_one_row_with_the_reason() -> None:
    world = World()
    world.apply(NodeSet(node("n", 1)), QuotaSet(quota("a/a", 1, 1)), PodSet(pod("p", 1, node="n")))
    world.apply(*(PodSet(pod(f"w{i}", 1, created=i)) for i in (1, 2)))
    (row,) = world.look()["waiting"].values()
    assert (row["pod"], row["pods"], row["quota"]) == ("a/w1", 2, "a/a")
    assert row["reason"] == "QuotaMaxExceeded"
    assert "max 1" in row["message"]


def test_a_start_is_part_of_the_story() -> None:
    world = World()
    world.apply(NodeSet(node("n", 1)), QuotaSet(quota("a/a", 1)), PodSet(pod("p", 1)))
    world.look()
    world.apply(PodSet(pod("p", 1, node="n")))
    last = world.look()["story"][-1]
    assert (last["kind"], last["pod"], last["node"], last["quota"]) == ("start", "a/p", "n", "a/a")


def test_pods_of_a_quota_come_in_the_order_of_importance() -> None:
    world = World()
    world.apply(NodeSet(node("n", 8)), QuotaSet(quota("a/a", 2)))
    for name, priority in (("low", 0), ("high", 9), ("middle", 5)):
        world.apply(PodSet(pod(name, 1, priority=priority, node="n")))
    world.look()
    found = world.watched.quota("a/a", world.now)
    assert found is not None
    assert [(each["pod"], each["capacity"]) for each in found["pods"]] == [
        ("a/high", "in-quota"),
        ("a/middle", "in-quota"),
        ("a/low", "over-quota"),
    ]
    assert world.watched.quota("a/nobody", world.now) is None


def test_a_quota_that_changes_says_what_moved() -> None:
    world = World()
    world.apply(QuotaSet(quota("a/a", 1, 4)))
    world.apply(QuotaSet(quota("a/a", 2, 4)), QuotaSet(quota("a/a", 2, 4)), QuotaGone("a/a"))
    told = [(each["what"], each["moved"]) for each in world.look()["story"]]
    assert told == [
        ("created", [["min", GPU, None, 1], ["max", GPU, None, 4]]),
        ("changed", [["min", GPU, 1, 2]]),
        ("deleted", [["min", GPU, 2, None], ["max", GPU, 4, None]]),
    ]


def test_a_pod_that_ends_is_told_and_one_that_was_evicted_is_not_told_twice() -> None:
    world = World()
    world.apply(NodeSet(node("n", 2)), QuotaSet(quota("a/a", 2)))
    world.apply(PodSet(pod("p", 1, node="n")), PodSet(pod("q", 1, node="n")))
    world.watched.note({"at": 1, "kind": "evict", "pod": "a/q"})
    world.apply(PodGone("p"), PodGone("q"))
    told = [(each["kind"], each.get("pod")) for each in world.look()["story"][1:]]
    assert told == [("evict", "a/q"), ("end", "a/p")]
    assert world.watched.quota_of("a/q") == world.watched.quota_of("a/p") == "a/a"


def test_what_is_lent_is_told_of_the_lender() -> None:
    world = World()
    world.apply(NodeSet(node("n", 8)), QuotaSet(quota("a/a", 2)), QuotaSet(quota("b/b", 6)))
    world.apply(PodSet(pod("p", 5, node="n")))
    quotas = world.look()["quotas"]
    assert (quotas["b/b"]["lent"], quotas["a/a"]["lent"]) == ({GPU: 3}, {})
    world.apply(PodGone("p"))
    assert world.look()["quotas"]["b/b"]["lent"] == {}


def test_a_node_says_which_pod_is_on_which_card() -> None:
    world = World()
    world.apply(NodeSet(node("n", 3)), QuotaSet(quota("a/a", 2)), PodSet(pod("p", 2, node="n")))
    found = world.watched.node("n")
    assert found is not None
    assert found["cards"] == [[["a/p", "a/a", 1000]], [["a/p", "a/a", 1000]], []]


def test_gpu_quotas_are_rows_with_their_totals_until_they_go() -> None:
    world = World()
    total = GpuQuota("a", "q", requests=GpuBound(1000, None), workers=2)
    world.apply(GpuQuotaSet(total))
    assert world.look()["gpuQuotas"]["a/q"]["figures"] == {
        "requests.tflops": [0, 1000],
        "workers": [0, 2],
    }
    world.apply(GpuQuotaGone("a"))
    assert world.look()["gpuQuotas"] == {}


def test_namespaces_of_a_queue_are_rows() -> None:
    world = World("queues")
    world.apply(NodeSet(node("n", 4)), QuotaSet(quota("q", 0, namespaces=frozenset({"a"}))))
    world.apply(PodSet(pod("p", 1, node="n")))
    (row,) = world.look()["namespaces"].values()
    assert (row["namespace"], row["queue"], row["share"], row["weight"]) == ("a", "q", 0.25, 1)


def test_resources_that_quotas_bound_come_first() -> None:
    world = World()
    has = (("cpu", 4000), ("memory", 2**30), ("example.com/disk", 8), (GPU, 4))
    world.apply(NodeSet(node("n", has)), QuotaSet(quota("a/a", (("memory", 1),))))
    assert world.look()["cluster"]["resources"] == ["memory", GPU, "cpu"]


_TEAM_OF = {"p": "a", "q": "a", "r": "b", "s": "c"}
_names = st.sampled_from(sorted(_TEAM_OF))
_nodes = st.sampled_from(["m", "n"])
_teams = st.sampled_from(["a", "b"])
_events: st.SearchStrategy[Event] = st.one_of(
    st.builds(lambda n, c: NodeSet(node(n, c)), _nodes, st.integers(0, 4)),
    st.builds(NodeGone, _nodes),
    st.builds(lambda t, low: QuotaSet(quota(f"{t}/{t}", low)), _teams, st.integers(0, 4)),
    st.builds(lambda t: QuotaGone(f"{t}/{t}"), _teams),
    st.builds(
        lambda name, asks, where: PodSet(pod(name, asks, _TEAM_OF[name], node=where)),
        *(_names, st.integers(1, 3), st.one_of(st.none(), _nodes)),
    ),
    st.builds(PodGone, _names),
)


@given(st.lists(st.lists(_events, max_size=4), max_size=8))
def test_frames_add_up_to_everything(steps: list[list[Event]]) -> None:
    """The page that was always open, one opened now, and one of a new watch show the same."""
    world = World()
    taken: list[Event] = []
    for events in steps:
        for event in events:
            if _makes_sense(event, taken):
                taken.append(event)
                world.apply(event)
        assert {**world.look(), "story": []} == {**world.opened(), "story": []}
    fresh = World()
    fresh.apply(*taken)
    fresh.now = world.now
    for part in ("nodes", "loans"):
        assert _without_owners(world.look()[part]) == _without_owners(fresh.look()[part])
    for part in ("running", "waiting", "nodes"):
        assert world.page["cluster"][part] == fresh.page["cluster"][part]


def _makes_sense(event: Event, before: list[Event]) -> bool:
    """Is what is gone there? The cluster tells of no other deletions."""
    if isinstance(event, NodeGone | QuotaGone | PodGone):
        kind = {NodeGone: NodeSet, QuotaGone: QuotaSet, PodGone: PodSet}[type(event)]
        there = False
        for each in before:
            if _subject(each) == _subject(event) and isinstance(each, kind | type(event)):
                there = isinstance(each, kind)
        return there
    return True


def _subject(event: Event) -> str:
    match event:
        case NodeSet(value) | QuotaSet(value):
            return value.name
        case PodSet(value):
            return value.uid
        case NodeGone(name) | QuotaGone(name) | PodGone(name):
            return name
    raise AssertionError(event)


def _without_owners(rows: Page) -> Page:
    """Rows without the numbers of owners, which depend on who was seen first."""
    return {
        key: {**row, "cells": [bool(cell) for cell in row["cells"]]} if "cells" in row else row
        for key, row in rows.items()
    }
