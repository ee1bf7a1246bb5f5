"""Queues as quotas, and the rules they obey: what is refused, what is fine, in which words."""

from typing import Any

import pytest

from aliquot.dialects import configuration
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.quota_index import QuotaIndex, Special, build
from aliquot.dialects.volcano.queue_rules import check_queue, check_queue_change, check_queues
from aliquot.dialects.volcano.queues import queue as read_queue
from aliquot.engine import Quota
from aliquot.errors import InputError
from aliquot.json import Body
from tests.build.manifests import annotated, labelled, pod, queue, quota, tree_quota
from tests.dialects.manifests import read

GPU = "nvidia.com/gpu"


def quota_index(*bodies: Body, special: Special = "volcano") -> QuotaIndex:
    return build([read(each) for each in bodies], special)


def alone(body: Body) -> list[tuple[str, str, str]]:
    return [(each.severity, each.field, each.problem) for each in check_queue(read(body))]


def together(*bodies: Body, coming: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    listed = check_queues(quota_index(*bodies), coming)
    return [(each.severity, each.object, each.problem) for each in listed]


def deleted(name: str, *rest: Body) -> list[Finding]:
    old = read(queue(name))
    return list(check_queue_change(quota_index(*rest), {old.key: old}, {old.key: "there"}))


def test_a_queue_is_a_quota_by_its_bare_name() -> None:
    body = queue(
        "q",
        {"gpu": 2, "cpu": "1500m"},
        {"gpu": 8},
        state="Closing",
        weight=7,
        deserved={GPU: 4},
        reclaimable=False,
        priority=3,
    )
    assert read_queue(read(body)) == Quota(
        "q",
        min=(("cpu", 1500), (GPU, 2)),
        max=((GPU, 8),),
        lend=False,
        default_weight=7,
        deserved=((GPU, 4),),
        reclaimable=False,
        closed=True,
        priority=3,
    )


def test_what_a_queue_does_not_say() -> None:
    bare = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    found = read_queue(read({**bare, "metadata": {"name": "q", "namespace": "a"}}))
    assert found == Quota("q", lend=False, default_weight=1)
    assert read(queue("q")).key == ("Queue", "", "q")


@pytest.mark.parametrize(
    ("state", "closed"), [("Open", False), ("Unknown", False), ("Closed", True), ("Closing", True)]
)
def test_closed_or_not(state: str, closed: bool) -> None:
    assert read_queue(read(queue("q", state=state))).closed is closed


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"weight": 0}, "spec.weight: 0 is not between 1 and 65535"),
        ({"weight": 65536}, "spec.weight: 65536 is not between 1 and 65535"),
        ({"weight": -1}, "spec.weight: -1"),
        ({"priority": -1}, "spec.priority: -1 is not between 0"),
        ({"state": "Ajar"}, "status.state: 'Ajar' is none of Closed, Closing, Open, Unknown"),
        ({"capability": {"cpu": "-1"}}, "spec.capability[cpu]: -1 is negative"),
        ({"deserved": {"cpu": "x"}}, "spec.deserved[cpu]"),
        ({"guarantee": {GPU: "500m"}}, "spec.guarantee.resource[nvidia.com/gpu]"),
    ],
)
def test_nonsense_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        read_queue(read(queue("q", **said)))
    assert words in str(caught.value)


@pytest.mark.parametrize("weight", [1.5, "3", True, [1]])
def test_a_weight_is_a_whole_number(weight: Any) -> None:
    with pytest.raises(InputError) as caught:
        read(queue("q", weight=weight))
    assert caught.value.field == "spec.weight"


def test_queues_make_one_tree_with_all_quotas() -> None:
    found = quota_index(
        queue("leaf", parent="top"), queue("top", parent="root"), queue("root"), quota("a", {})
    )
    assert list(found.quotas) == ["a/quota", "top", "default", "leaf"]
    assert {name: each.parent for name, each in found.quotas.items() if each.parent} == {
        "leaf": "top"
    }
    assert [name for name, each in found.quotas.items() if each.is_parent] == ["top"]
    assert [each.name for _, each in found.queues] == ["leaf", "top", "default"]


def test_the_default_queue_is_there_where_queues_share() -> None:
    assert quota_index(queue("q")).membership.of(None, "a") == "default"
    written = quota_index(queue("default", {"cpu": 1}, weight=4))
    assert (written.quotas["default"].default_weight, written.membership.fallback) == (4, "default")


def test_a_default_queue_that_says_nothing_bounds_nobody_elsewhere() -> None:
    assert quota_index(queue("default", weight=1), queue("root"), special="").quotas == {}
    assert list(quota_index(queue("default", {}, {"cpu": 4}), special="").quotas) == ["default"]
    below = quota_index(queue("default"), queue("q", parent="default"), special="")
    assert below.quotas["q"].parent == "default"


def test_a_pod_is_in_the_queue_found_for_it_unless_it_names_a_quota_of_a_tree() -> None:
    bodies = (queue("q"), queue("gone"), tree_quota("a/x"))
    trees = quota_index(*bodies, special="koordinator")
    assert trees.requested_quota(read(pod("a/p")), "q") == "q"
    assert trees.requested_quota(read(labelled(pod("a/p"), name="x")), "q") == "a/x"
    assert trees.requested_quota(read(labelled(pod("a/p"), name="gone"))) == "gone/"
    labels_do_not_count = quota_index(*bodies)
    assert labels_do_not_count.requested_quota(read(labelled(pod("a/p"), name="x")), "q") == "q"
    assert quota_index(quota("a", {}), special="").requested_quota(read(pod("a/p")), "q") is None


def test_bounds_in_order_need_no_word() -> None:
    body = queue("q", {"cpu": 1, "memory": 5}, {"cpu": 4}, deserved={"cpu": 2, GPU: 9})
    assert alone(body) == []


@pytest.mark.parametrize(
    ("guarantee", "deserved", "capability", "field", "problem"),
    [
        (3, 2, None, "guarantee.resource", "guarantee 3 is above deserved 2"),
        (3, None, 2, "guarantee.resource", "guarantee 3 is above capability 2"),
        (None, 3, 2, "deserved", "deserved 3 is above capability 2"),
    ],
)
def test_guarantee_deserved_capability(
    guarantee: int | None, deserved: int | None, capability: int | None, field: str, problem: str
) -> None:
    said: dict[str, Any] = {} if deserved is None else {"deserved": {"cpu": deserved}}
    low, high = ({"cpu": each} if each else None for each in (guarantee, capability))
    assert alone(queue("q", low, high, **said)) == [("error", f"spec.{field}[cpu]", problem)]


def test_what_has_no_effect_is_said() -> None:
    body = queue("root", {"cpu": 1}, parent="x", affinity={"a": 1}, dequeueStrategy="fifo")
    body = annotated(body, **{"volcano.sh/hierarchy": "root/a"})
    found = {field: (severity, problem) for severity, field, problem in alone(body)}
    assert found["spec.guarantee.resource"] == ("warning", "has no effect on this queue")
    assert found["spec.parent"] == ("error", "the root has no parent")
    assert found["spec.affinity"] == ("warning", "is not considered yet")
    assert found["spec.dequeueStrategy"] == ("warning", "is not considered yet")
    assert "spec.parent" in found["metadata.annotations[volcano.sh/hierarchy]"][1]
    assert alone(queue("q", dequeueStrategy="traverse")) == []


def test_gpu_memory_like_bytes() -> None:
    (found,) = alone(queue("q", {"nos.nebuly.com/gpu-memory": "40Gi"}))
    assert found[:2] == ("warning", "spec.guarantee.resource[nos.nebuly.com/gpu-memory]")


def test_a_parent_is_there() -> None:
    assert together(queue("a", parent="b"), queue("b", parent="default")) == []
    assert together(queue("a", parent="b")) == [("error", "Queue a", "there is no parent queue b")]
    ((severity, _, problem),) = together(queue("a", parent="b"), coming=("b",))
    assert (severity, problem.split(";")[0]) == ("warning", "parent queue b comes later")


def test_no_circles() -> None:
    assert together(queue("a", parent="a")) == [("error", "Queue a", "is its own parent")]
    ring = [queue("a", parent="b"), queue("b", parent="c"), queue("c", parent="a")]
    below = queue("d", parent="a")
    found = together(*ring, below)
    assert [(name, problem) for _, name, problem in found] == [
        ("Queue a", "a circle: a is below b is below c is below a"),
        ("Queue b", "a circle: b is below c is below a is below b"),
        ("Queue c", "a circle: c is below a is below b is below c"),
    ]
    assert quota_index(*ring, below).quotas["d"].parent == "a"


def test_children_within_their_parent() -> None:
    top = queue("top", {"cpu": 4}, {"cpu": 8}, deserved={"cpu": 6})
    fine = [queue(name, {"cpu": 2, GPU: 9}, {"cpu": 8}, parent="top") for name in ("a", "b")]
    assert together(top, *fine, queue("free", {"cpu": 99}, {"cpu": 99}, deserved={GPU: 9})) == []
    assert together(top, *fine, queue("c", {"cpu": 1}, parent="top")) == [
        (
            "error",
            "Queue c",
            "with this queue, the children of top have a guarantee of 5 together, above 4",
        )
    ]
    assert together(top, queue("c", {}, {"cpu": 9}, parent="top")) == [
        ("error", "Queue c", "9 is above 8 of its parent top")
    ]
    halves = [queue(name, parent="top", deserved={"cpu": "3500m"}) for name in ("a", "b", "c")]
    assert together(top, *halves) == [
        (
            "warning",
            "Queue b",
            "with this queue, the children of top have a deserved of 7 together, above 6",
        ),
        (
            "warning",
            "Queue c",
            "with this queue, the children of top have a deserved of 10500m together, above 6",
        ),
    ]


def test_who_cannot_be_deleted() -> None:
    assert deleted("q", queue("other")) == []
    for name in ("default", "root"):
        (found,) = deleted(name)
        assert (found.place, found.problem) == ("there", "cannot be deleted")
    (found,) = deleted("top", queue("a", parent="top"))
    assert found.problem == "cannot be deleted: it is the parent of a"


def test_the_knob_of_the_policy_reaches_the_engine() -> None:
    head = {"apiVersion": "config.aliquot.dev/v1alpha1", "kind": "Configuration"}
    for given, expected in (({}, False), ({"queues": {"priorityBands": True}}, True)):
        settings = configuration.read(Document("test", {**head, **given}))
        assert configuration.knobs(settings).queues.priority_bands is expected
