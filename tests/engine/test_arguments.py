"""Arguments that make no sense are refused at once, with an error of ours, and change nothing."""

from typing import Any

import pytest

from aliquot.engine import (
    BudgetSet,
    Device,
    DeviceSet,
    Engine,
    EvictionKnobs,
    FairKnobs,
    Gang,
    GangSet,
    GpuAmount,
    GpuQuota,
    GpuQuotaSet,
    Knobs,
    Node,
    NodeConstraints,
    NodeGone,
    NodeSet,
    PlacementKnobs,
    Pod,
    PodGone,
    PodSet,
    Quota,
    QuotaGone,
    QuotaSet,
    Shape,
    WeightSet,
)
from aliquot.errors import AliquotError, ArgumentError

GPU = "nvidia.com/gpu"
ONE = Shape(((GPU, 1), ("pods", 1)))
POLICIES = ("capacity", "fair", "hierarchy", "queues")


def engine(policy: str = "capacity") -> Engine:
    made = Engine(policy)
    made.apply(NodeSet(Node("n", ((GPU, 2), ("pods", 9)))))
    made.apply(QuotaSet(Quota("root", ((GPU, 2),), is_parent=True)))
    made.apply(QuotaSet(Quota("q", ((GPU, 1),), parent="root", namespaces=frozenset({"a"}))))
    made.apply(PodSet(Pod("u-1", "a", "p-1", ONE)))
    made.apply(PodSet(Pod("u-2", "a", "p-2", ONE, node="n")))
    made.apply(PodSet(Pod("u-3", "a", "p-3", Shape(((GPU, 9),)))))
    return made


def wrong(**fields: Any) -> Any:
    """A pod with fields of the wrong type."""
    return PodSet(Pod(**{"uid": "u-9", "namespace": "a", "name": "p-9", "shape": ONE, **fields}))


BAD_EVENTS: list[Any] = [
    "PodSet",
    None,
    Pod("u-9", "a", "p-9", ONE),
    PodSet("p-9"),  # type: ignore[arg-type]
    wrong(uid=9),
    wrong(name=None),
    wrong(namespace=b"a"),
    wrong(shape={GPU: 1}),
    wrong(priority="high"),
    wrong(created=1.5),
    wrong(node=7),
    wrong(labels={"app": "x"}),
    wrong(devices="gpu-1"),
    wrong(expected_duration="1h"),
    wrong(uid="u-1"),  # the uid of another pod
    NodeSet(Quota("q")),  # type: ignore[arg-type]
    NodeSet(Node(7, ())),  # type: ignore[arg-type]
    NodeSet(Node("m", (), labels={"a": "b"})),  # type: ignore[arg-type]
    NodeSet(Node("m", (), taints=("x",))),  # type: ignore[arg-type]
    NodeGone(None),  # type: ignore[arg-type]
    PodGone(7),  # type: ignore[arg-type]
    QuotaSet(Quota("r", parent="nowhere")),
    QuotaSet(Quota("root", parent="q")),
    QuotaSet(Quota("root", parent="root")),
    QuotaSet(Quota("<root>")),
    QuotaSet(Quota("r", namespaces={"a"})),  # type: ignore[arg-type]
    QuotaSet(Quota("r", namespaces=frozenset({1}))),  # type: ignore[arg-type]
    QuotaSet(Quota("r", lend="no")),  # type: ignore[arg-type]
    QuotaGone("root"),
    GangSet(Gang("a/g", min_member="2")),  # type: ignore[arg-type]
    DeviceSet(Device("d", "n", (1, 2))),  # type: ignore[arg-type]
    DeviceSet(Device("d", "n", GpuAmount("1", 2))),  # type: ignore[arg-type]
    GpuQuotaSet(GpuQuota("a", "q", workers=1.5)),  # type: ignore[arg-type]
    WeightSet("a", "2"),  # type: ignore[arg-type]
    BudgetSet({"allowed": 1}),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("event", BAD_EVENTS, ids=lambda each: repr(each)[:60])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_bad_event_is_refused_and_the_engine_is_as_it_was(policy: str, event: Any) -> None:
    told, untold = engine(policy), engine(policy)
    for step in range(3):
        with pytest.raises(AliquotError):
            told.apply(event)
        assert told.summarise() == untold.summarise()
        assert told.cycle(step) == untold.cycle(step)
        assert told.why("u-3") == untold.why("u-3")
    assert told.next_deadline() == untold.next_deadline()


@pytest.mark.parametrize("given", [{GPU: 1}, [(GPU, 1)], ((GPU, 1, 2),), ((GPU,),), (GPU, 1), "4"])
@pytest.mark.parametrize("word", ["min", "max", "weight", "deserved"])
def test_amounts_of_a_quota_are_pairs(word: str, given: Any) -> None:
    with pytest.raises(ArgumentError, match=f"quota q: {word}: .* is not a tuple of pairs"):
        Quota("q", **{word: given})


@pytest.mark.parametrize("amount", [-1, 1.5, "1", None, True])
def test_an_amount_is_a_whole_number(amount: Any) -> None:
    for build in (lambda has: Quota("q", has), lambda has: Node("n", has), Shape):
        with pytest.raises(ArgumentError, match="is not an amount"):
            build(((GPU, amount),))
    with pytest.raises(ArgumentError, match="is not an amount"):
        Gang("a/g", min_resources=((GPU, amount),))
    with pytest.raises(ArgumentError, match="is not an amount"):
        Shape((), charges=(("", ((GPU, amount),)),))


def test_a_resource_is_there_once() -> None:
    with pytest.raises(ArgumentError, match="quota q: max: cpu is there twice"):
        Quota("q", max=(("cpu", 1), ("cpu", 2)))


def test_unsorted_amounts_are_sorted() -> None:
    mixed = (("pods", 1), ("cpu", 2), (GPU, 3))
    ordered = (("cpu", 2), (GPU, 3), ("pods", 1))
    assert Quota("q", mixed, mixed).min == Quota("q", mixed, mixed).max == ordered
    assert Node("n", mixed).allocatable == Shape(mixed).requests == ordered
    assert Shape(mixed) == Shape(ordered)
    assert hash(Shape(mixed)) == hash(Shape(ordered))
    assert Shape((), charges=(("", mixed),)).charges == (("", ordered),)
    assert Gang("a/g", min_resources=mixed).min_resources == ordered


def test_a_shape_asks_for_nothing_that_is_zero() -> None:
    assert Shape((("pods", 1), ("cpu", 0))).requests == (("pods", 1),)


def test_constraints_of_a_shape_are_values() -> None:
    bad: Any = {"zone": "a"}
    with pytest.raises(ArgumentError, match="shape: constraints"):
        Shape((), constraints=bad)
    with pytest.raises(ArgumentError, match="selector"):
        Shape((), constraints=NodeConstraints(selector=bad))


@pytest.mark.parametrize("policy", ["nice", "auto", "", None, 7, ["capacity"]])
def test_a_policy_that_is_none_is_refused(policy: Any) -> None:
    with pytest.raises(ArgumentError, match="is none of capacity, fair, hierarchy, queues"):
        Engine(policy)


@pytest.mark.parametrize(
    "knobs",
    [
        {"eviction": {}},
        EvictionKnobs(),
        Knobs(eviction={"hold_for": 1}),  # type: ignore[arg-type]
        Knobs(eviction=EvictionKnobs(hold_for="5m")),  # type: ignore[arg-type]
        Knobs(placement=PlacementKnobs(score="best")),  # type: ignore[arg-type]
        Knobs(fair=FairKnobs(over_quota_order=("age",))),
        Knobs(fair=FairKnobs(over_quota_order="name")),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_knobs_that_make_no_sense_are_refused(knobs: Any) -> None:
    with pytest.raises(ArgumentError):
        Engine("fair", knobs)


def test_questions_about_a_pod_that_is_not_there_are_refused() -> None:
    made = engine()
    for uid in ("u-9", "", None, 7, ["u-1"]):
        bad: Any = uid
        with pytest.raises(ArgumentError, match="there is no pod with the uid"):
            made.why(bad)
        with pytest.raises(ArgumentError, match="there is no pod with the uid"):
            made.may_resize(bad, ONE)
    assert made.why("u-2") is None, "it runs"
    with pytest.raises(ArgumentError, match="p-1 does not run"):
        made.may_resize("u-1", ONE)
    shape: Any = {GPU: 1}
    with pytest.raises(ArgumentError, match="is not a Shape"):
        made.may_resize("u-2", shape)
    pod: Any = "u-1"
    with pytest.raises(ArgumentError, match="is not a Pod"):
        made.quota_of(pod)


@pytest.mark.parametrize("now", [1.5, "now", None])
def test_time_is_a_whole_number(now: Any) -> None:
    made = engine()
    with pytest.raises(ArgumentError, match="whole number of nanoseconds"):
        made.cycle(now)
    assert made.cycle(0) == engine().cycle(0)
