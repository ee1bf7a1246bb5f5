"""Writes that nobody may refuse: they make nothing worse, whatever is wrong already."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document
from aliquot.kube.webhook.verdict import judge
from aliquot.validation import inputs
from tests.build.manifests import (
    KOORDINATOR,
    gpu_quota,
    limited_pod,
    pod,
    pod_group,
    queue,
    quota,
    resource,
)
from tests.campaign import examples
from tests.kube.webhook.writes import (
    asked,
    changed,
    cluster,
    composite,
    create,
    delete,
    marked,
    member,
    named,
    update,
)

Body = dict[str, Any]

CROWDED = (
    member("p", is_parent=True, low=5),
    member("a", "p", low=3),
    member("b", "p", low=3),
    member("c", "p", low=3),
)
"""Children with more than their parent has, from before anybody looked."""
SINS = (
    *CROWDED,
    member("orphan", "nobody"),
    quota("bad/bad", {"cpu": 5}, {"cpu": 1}),
    gpu_quota("twice/g"),
    gpu_quota("twice/h"),
    limited_pod("x/inside", labels=named("p")),
)


@pytest.mark.parametrize("body", SINS, ids=lambda body: body["metadata"]["name"])
def test_a_label_may_always_be_written(body: Body) -> None:
    cache = cluster(*SINS)
    assert not update(cache, body, marked(body, team="blue")).refusal


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_lend_may_be_said_in_a_crowded_family(name: str) -> None:
    cache = cluster(*CROWDED)
    old = next(each for each in CROWDED if each["metadata"]["name"] == name)
    new = marked(old, **{f"{KOORDINATOR}allow-lent-resource": "false"})
    assert not update(cache, old, new).refusal


@pytest.mark.parametrize(
    "body",
    [
        quota("a/q", {"cpu": "x"}),
        composite("c"),
        queue("q", weight=0),
        pod_group("a/g", minMember=0),
    ],
)
def test_what_makes_no_sense_can_be_labelled_put_right_and_deleted(body: Body) -> None:
    cache = cluster(body)
    assert not update(cache, body, marked(body, team="blue")).refusal
    assert not delete(cache, body).refusal
    right = changed(body, min={}, namespaces=["a"], weight=1, minMember=1)
    assert not update(cache, body, right).refusal
    wrong = changed(body, min={"cpu": "y"}, weight=70000, minMember=-1)
    assert update(cache, body, wrong).refusal


def test_old_sins_elsewhere_do_not_matter() -> None:
    cache = cluster(*SINS)
    assert not create(cache, member("new")).refusal
    assert not create(cache, gpu_quota("other/i")).refusal
    assert not create(cache, limited_pod("x/new")).refusal
    leaf = member("leaf")
    assert not delete(cluster(*SINS, leaf), leaf).refusal


def test_a_crowded_family_may_shrink() -> None:
    cache = cluster(*CROWDED)
    assert not delete(cache, CROWDED[3]).refusal
    for less in (2, 0):
        assert not update(cache, CROWDED[3], changed(CROWDED[3], min={"cpu": less})).refusal
        assert not update(cache, CROWDED[1], changed(CROWDED[1], min={"cpu": less})).refusal


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_crowded_family_may_not_grow(place: int) -> None:
    verdict = update(cluster(*CROWDED), CROWDED[place], changed(CROWDED[place], min={"cpu": 4}))
    assert "10 together, above its own of 5" in verdict.refusal
    assert create(cluster(*CROWDED), member("d", "p", low=1)).refusal


def test_what_is_being_deleted_may_be_written() -> None:
    old = quota("a/q", {"cpu": 1}, {"cpu": 2})
    new = changed(old, min={"cpu": 4})
    assert update(cluster(old), old, new).refusal
    new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not update(cluster(old), old, new).refusal


def test_parts_and_strangers_are_not_judged() -> None:
    bad = quota("a/q", {"cpu": 4}, {"cpu": 2})
    assert judge(cluster(), asked("UPDATE", bad, quota("a/q"))).refusal
    assert not judge(cluster(), asked("UPDATE", bad, quota("a/q"), part="status")).refusal
    assert not create(cluster(), resource("example.com/v1", "Widget", "w", spec=4)).refusal


def test_a_pod_may_run_on_a_node_that_is_not_known_yet() -> None:
    body = pod("a/p", containers=[{"name": "c"}], nodeName="fresh")
    assert not create(cluster(), body).refusal


def test_a_pod_need_not_fit() -> None:
    assert not create(cluster(quota("a/q", high={"cpu": 1})), pod("a/p", {"cpu": "9"})).refusal


def test_names_may_be_made_up_later() -> None:
    body = limited_pod("a/p")
    body["metadata"] = {"generateName": "p-", "namespace": "a"}
    assert not create(cluster(), body).refusal


def test_a_namespace_takes_its_quotas_along() -> None:
    space = resource("v1", "Namespace", "one")
    held = (member("one"), limited_pod("one/p", labels=named("one")))
    assert delete(cluster(space, *held), held[0]).refusal
    space["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    verdict = delete(cluster(space, *held), held[0])
    assert not verdict.refusal
    assert verdict.warnings == ("cannot be deleted: it is the quota of Pod one/p",)


def test_pods_that_ended_stand_in_nobodys_way() -> None:
    done = limited_pod("one/p", labels=named("one"), status={"phase": "Succeeded"})
    assert not delete(cluster(member("one"), done), member("one")).refusal
    cache = cluster(member("one"), limited_pod("one/p", labels=named("one")))
    cache.drop("", ("Pod", "one", "p"))
    assert not delete(cache, member("one")).refusal


def test_an_order_of_yaml_that_makes_sense_is_accepted_one_by_one() -> None:
    cache, order = (
        cluster(),
        [*CROWDED[:2], queue("default"), pod_group("a/g"), limited_pod("a/p", labels=named("a"))],
    )
    for body in order:
        assert not create(cache, body).refusal, body
        cache = cluster(*order[: order.index(body) + 1])


amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "nos.nebuly.com/gpu-memory"]),
    st.sampled_from([0, 1, "2", "500m", "1Gi", "x", -1]),
)
names = st.sampled_from(["m", "n", "p"])
words = st.sampled_from(["true", "false", "m", "n", "koordinator-root-quota", '["a"]', '{"cpu":1}'])
keys = st.sampled_from(
    ["is-parent", "parent", "name", "shared-weight", "namespaces", "tree-id", "preemptible"]
)
koordinator = st.dictionaries(keys.map(lambda word: KOORDINATOR + word), words, max_size=3)
shares = st.builds(
    lambda name, low, high, said: quota(f"a/{name}", low, high, labels=said, annotations=said),
    names,
    amounts,
    amounts,
    koordinator,
)
queues = st.builds(
    lambda name, weight, low, high, parent: queue(
        name, weight=weight, guarantee=low, capability=high, parent=parent
    ),
    names,
    st.sampled_from([None, 0, 1, 70000]),
    amounts,
    amounts,
    st.sampled_from(["", "root", "other", "m", "n"]),
)
groups = st.builds(
    lambda few, which, wanted: pod_group("a/g", minMember=few, queue=which, minResources=wanted),
    st.sampled_from([None, 0, 3]),
    st.sampled_from([None, "default", "other", "root"]),
    amounts,
)
asking = st.dictionaries(
    st.sampled_from(["tflops-request", "tflops-limit", "vram-request", "gpu-count", "qos"]).map(
        lambda word: f"tensor-fusion.ai/{word}"
    ),
    st.sampled_from(["1", "10", "1Gi", "x", "low", ""]),
)
pods = st.builds(
    lambda said, labels: limited_pod("a/p", annotations=said, labels=labels), asking, koordinator
)
figures = st.fixed_dictionaries(
    {}, optional={"tflops": st.sampled_from([1, 2]), "vram": st.just(1)}
)
gpu_quotas = st.builds(
    lambda low, high, percent: gpu_quota(
        "a/g", total={"requests": low, "limits": high, "alertThresholdPercent": percent}
    ),
    figures,
    figures,
    st.sampled_from([None, 50, 200]),
)
composites = st.builds(
    lambda names, low, high: composite("c", *names, min=low, max=high),
    st.lists(st.sampled_from(["a", "b"])),
    amounts,
    amounts,
)
anything = st.one_of(shares, queues, groups, pods, gpu_quotas, composites)


@settings(max_examples=examples(300), deadline=None)
@given(body=anything)
def test_alone_in_a_cluster_it_is_as_validate_says(body: Body) -> None:
    found = inputs.examine([Document("x", copy.deepcopy(body))], Configuration())
    valid = all(each.severity != "error" for each in (*found.findings, *found.refusals))
    verdict = create(cluster(), body)
    assert (not verdict.refusal) == valid, verdict


@settings(max_examples=examples(200), deadline=None)
@given(body=anything, there=st.lists(anything, max_size=4))
def test_a_write_that_changes_nothing_of_note_is_never_refused(
    body: Body, there: list[Body]
) -> None:
    cache = cluster(*there, body)
    new = copy.deepcopy(body)
    new["metadata"] |= {"resourceVersion": "7", "finalizers": ["x/y"]}
    new["status"] = {"used": {"cpu": 1}}
    assert not update(cache, body, new).refusal


@settings(max_examples=examples(200), deadline=None)
@given(body=anything, there=st.lists(anything, max_size=4))
def test_a_label_of_nobodys_is_never_refused(body: Body, there: list[Body]) -> None:
    cache = cluster(*there, body)
    assert not update(cache, body, marked(body, team="blue")).refusal
