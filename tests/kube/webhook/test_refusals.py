"""Every write that a design refuses, and what is said about it."""

from typing import Any

import pytest

from aliquot.kube.webhook.review import Verdict
from tests.build.manifests import (
    KOORDINATOR,
    gpu_quota,
    limited_pod,
    node,
    pod_group,
    queue,
    quota,
    resource,
)
from tests.kube.webhook.writes import (
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

GPU = "tensor-fusion.ai/"
HARD = resource("v1", "ResourceQuota", "a/cap", spec={"hard": {"requests.cpu": "4"}})
TREE = (
    member("root-team", is_parent=True, low=10),
    member("one", "root-team", low=4),
    member("two", "root-team", low=4),
)
QUEUES = (queue("top"), queue("below", parent="top"))

CREATES: list[tuple[str, tuple[Body, ...], Body, int, str]] = [
    # KEP-9
    (
        "min above max",
        (),
        quota("a/q", low={"cpu": 4}, high={"cpu": 2}),
        403,
        "min 4 is above max 2",
    ),
    ("unreadable", (), quota("a/q", low={"cpu": "many"}), 422, "spec.min[cpu]: 'many' is not a"),
    ("negative", (), quota("a/q", low={"cpu": -1}), 422, "spec.min[cpu]: -1 is negative"),
    (
        "above hard",
        (HARD,),
        quota("a/q", high={"cpu": 5}),
        403,
        "max 5 is above hard 4 of Resource",
    ),
    (
        "second",
        (quota("a/q"),),
        quota("a/r"),
        403,
        "the namespace has a quota already: ElasticQuota",
    ),
    (
        "same name in another group",
        (quota("a/q"),),
        quota("a/q", group="nos.nebuly.com"),
        403,
        "a quota goes by this name already",
    ),
    # nos
    (
        "in a composite",
        (composite("c", "a"),),
        quota("a/q"),
        403,
        "the namespace has a quota already",
    ),
    ("of a quota", (quota("a/q"),), composite("c", "a"), 403, "namespace a has a quota already"),
    ("of two", (composite("c", "a"),), composite("d", "b", "a"), 403, "spec.namespaces[1]: names"),
    ("of none", (), composite("c"), 422, "spec.namespaces: must name at least one namespace"),
    # Koordinator
    ("no parent", (), member("m", "nobody"), 403, "there is no parent quota nobody"),
    ("no parent of it", TREE, member("m", "one"), 403, "quota one/one is no parent"),
    ("its own", (), member("m", "m", is_parent=True), 403, "is its own parent"),
    ("sum of min", TREE, member("m", "root-team", low=3), 403, "have a min of 11 together, above"),
    ("same name", TREE, member("one", namespace="b"), 403, "names are unique across namespaces"),
    (
        "unknown to max",
        TREE,
        quota("m/m", high={"memory": 1}, labels={f"{KOORDINATOR}parent": "root-team"}),
        403,
        "max of its parent root-team/root-team does not name it",
    ),
    (
        "an id below none",
        TREE,
        member("m", "root-team", labels={f"{KOORDINATOR}tree-id": "t2"}),
        403,
        "is 't2', but there is none in ElasticQuota root-team/root-team",
    ),
    (
        "listed twice",
        (member("m", annotations={f"{KOORDINATOR}namespaces": '["x"]'}),),
        member("n", annotations={f"{KOORDINATOR}namespaces": '["x"]'}),
        403,
        "namespace x is listed already by ElasticQuota m/m",
    ),
    (
        "namespaces that are no list",
        (),
        member("m", annotations={f"{KOORDINATOR}namespaces": "x"}),
        422,
        "is not a JSON list",
    ),
    (
        "pod of a parent",
        TREE,
        limited_pod("root-team/p", labels=named("root-team")),
        403,
        "is a parent and holds no pods",
    ),
    # TensorFusion
    (
        "second on GPUs",
        (gpu_quota("a/g"),),
        gpu_quota("a/h"),
        403,
        "the namespace has a quota already: GPUResourceQuota a/g",
    ),
    (
        "limits below requests",
        (),
        gpu_quota("a/g", total={"requests": {"tflops": 2}, "limits": {"tflops": 1}}),
        403,
        "1 is below requests.tflops 2",
    ),
    (
        "threshold",
        (),
        gpu_quota("a/g", total={"alertThresholdPercent": 101}),
        422,
        "101 is not between 0 and 100",
    ),
    (
        "request above limit",
        (),
        limited_pod("a/p", annotations={f"{GPU}vram-request": "2Gi", f"{GPU}vram-limit": "1Gi"}),
        422,
        "is above its limit",
    ),
    (
        "unreadable amount",
        (),
        limited_pod("a/p", annotations={f"{GPU}tflops-request": "lots"}),
        422,
        "'lots'",
    ),
    # Volcano
    ("no parent queue", (), queue("q", parent="nobody"), 403, "there is no parent queue nobody"),
    ("weight", (), queue("q", weight=0), 422, "spec.weight: 0 is not between 1 and 65535"),
    (
        "guarantee above capability",
        (),
        queue("q", guarantee={"cpu": 4}, capability={"cpu": 2}),
        403,
        "guarantee 4 is above capability 2",
    ),
    (
        "sum of guarantees",
        (queue("t", guarantee={"cpu": 4}),),
        queue("q", parent="t", guarantee={"cpu": 5}),
        403,
        "have a guarantee of 5 together, above 4",
    ),
    (
        "above the parent",
        (queue("t", capability={"cpu": 4}),),
        queue("q", parent="t", capability={"cpu": 5}),
        403,
        "5 is above 4 of its parent t",
    ),
    ("gang in no queue", QUEUES, pod_group("a/g", queue="nobody"), 403, "there is no queue nobody"),
    ("minMember", (), pod_group("a/g", minMember=-1), 422, "spec.minMember: -1 is not between"),
    (
        "pod in no queue",
        QUEUES,
        limited_pod("a/p", annotations={"scheduling.volcano.sh/queue-name": "nobody"}),
        403,
        "there is no queue nobody",
    ),
    (
        "pod in a parent queue",
        QUEUES,
        limited_pod("a/p", annotations={"scheduling.volcano.sh/queue-name": "top"}),
        403,
        "queue top is a parent and holds no pods",
    ),
    (
        "a parent made of a queue with pods",
        (queue("top"), limited_pod("a/p", annotations={"scheduling.volcano.sh/queue-name": "top"})),
        queue("below", parent="top"),
        403,
        "Pod a/p: metadata.annotations[scheduling.volcano.sh/queue-name]: queue top is a parent",
    ),
    (
        "a parent made of the queue of a gang",
        (
            queue("top"),
            pod_group("a/g", queue="top"),
            limited_pod("a/p", annotations={"scheduling.k8s.io/group-name": "g"}),
        ),
        queue("below", parent="top"),
        403,
        "queue top is a parent and holds no pods",
    ),
    # several at once
    ("queues beside quotas", (quota("a/q"),), queue("own"), 403, "there are queues and quotas"),
]

DELETES: list[tuple[str, tuple[Body, ...], Body, str]] = [
    ("a parent", TREE, TREE[0], "cannot be deleted: it is the parent of one/one, two/two"),
    (
        "of pods",
        (*TREE, limited_pod("one/p", labels=named("one"))),
        TREE[1],
        "cannot be deleted: it is the quota of Pod one/p",
    ),
    ("special", (), member("koordinator-default-quota"), "cannot be deleted"),
    ("a parent queue", QUEUES, QUEUES[0], "cannot be deleted: it is the parent of below"),
    ("the default queue", (queue("default"),), queue("default"), "cannot be deleted"),
    (
        "a queue of pods",
        (*QUEUES, limited_pod("a/p", annotations={"scheduling.volcano.sh/queue-name": "below"})),
        QUEUES[1],
        "cannot be deleted: it is the queue of Pod a/p",
    ),
    (
        "a queue of a namespace with pods",
        (
            queue("q"),
            resource("v1", "Namespace", "a", annotations={"scheduling.volcano.sh/queue-name": "q"}),
            limited_pod("a/p"),
        ),
        queue("q"),
        "cannot be deleted: it is the queue of Pod a/p",
    ),
]


def refused(verdict: Verdict, code: int, words: str) -> None:
    assert words in verdict.refusal, verdict
    assert verdict.code == code


@pytest.mark.parametrize(
    ("there", "body", "code", "words"),
    [row[1:] for row in CREATES],
    ids=[row[0] for row in CREATES],
)
def test_what_may_not_come(there: tuple[Body, ...], body: Body, code: int, words: str) -> None:
    refused(create(cluster(*there), body), code, words)


@pytest.mark.parametrize(
    ("there", "body", "words"), [row[1:] for row in DELETES], ids=[row[0] for row in DELETES]
)
def test_what_may_not_go(there: tuple[Body, ...], body: Body, words: str) -> None:
    refused(delete(cluster(*there), body), 403, words)


def test_a_parent_cannot_have_less_than_its_children() -> None:
    cache = cluster(*TREE)
    lower = changed(TREE[0], min={"cpu": 7})
    refused(update(cache, TREE[0], lower), 403, "two/two: spec.min[cpu]: with this quota, the")
    assert not update(cache, TREE[0], changed(TREE[0], min={"cpu": 8})).refusal


def test_a_quota_with_pods_cannot_become_a_parent() -> None:
    new = marked(TREE[1], **{f"{KOORDINATOR}is-parent": "true"})
    by_name = cluster(*TREE, limited_pod("one/p", labels=named("one")))
    refused(update(by_name, TREE[1], new), 403, "cannot become a parent: it is the quota of Pod")
    by_place = cluster(*TREE, limited_pod("one/p"), limited_pod("one/q"))
    refused(update(by_place, TREE[1], new), 403, "the quota of Pod one/p and 1 more")
    assert not update(cluster(*TREE, limited_pod("a/p")), TREE[1], new).refusal


def test_a_parent_with_children_cannot_stop_being_one() -> None:
    new = marked(TREE[0], **{f"{KOORDINATOR}is-parent": "false"})
    refused(update(cluster(*TREE), TREE[0], new), 403, "root-team/root-team is no parent")


def test_a_circle_cannot_be_closed() -> None:
    top, middle = member("top", is_parent=True), member("middle", "top", is_parent=True)
    new = marked(top, **{f"{KOORDINATOR}parent": "middle"})
    refused(update(cluster(top, middle), top, new), 403, "a circle")


def test_a_tree_is_not_left() -> None:
    old = member("m", labels={f"{KOORDINATOR}tree-id": "t1"})
    new = marked(old, **{f"{KOORDINATOR}tree-id": "t2"})
    refused(update(cluster(old), old, new), 403, "was 't1' and cannot become 't2'")


def test_what_bounds_nothing_is_not_edited() -> None:
    old = member("koordinator-system-quota")
    refused(update(cluster(old), old, changed(old, min={"cpu": 2})), 403, "cannot be changed")


def test_a_pod_stays_preemptible_or_not() -> None:
    old = limited_pod("a/p", labels={f"{KOORDINATOR}preemptible": "false"})
    new = limited_pod("a/p", labels={f"{KOORDINATOR}preemptible": "true"})
    refused(update(cluster(old), old, new), 403, "cannot change while the pod is there")


def test_what_is_used_and_checked_is_not_undercut() -> None:
    old = member("m", annotations={f"{KOORDINATOR}max-strict-check-resource-keys": '["cpu"]'})
    old["status"] = {"used": {"cpu": 50}}
    refused(update(cluster(old), old, changed(old, max={"cpu": 40})), 403, "is below used 50")


def test_sums_are_laid_at_the_door_of_what_is_written() -> None:
    cache = cluster(*TREE)
    more = changed(TREE[1], min={"cpu": 7})
    verdict = update(cache, TREE[1], more)
    refused(verdict, 403, "spec.min[cpu]: with this quota, the children of root-team/root-team")
    assert "11 together, above its own of 10" in verdict.refusal


def test_warnings_come_along() -> None:
    verdict = create(cluster(node(cpu=4)), quota("a/q", low={"cpu": 5}))
    assert not verdict.refusal
    assert verdict.warnings == (
        "spec.min[cpu]: with this quota, guarantees add up to 5 of 4 cpu that the nodes have",
    )


def test_pods_of_others_get_no_warnings() -> None:
    slip = {f"{GPU}vram-reqest": "1Gi"}
    ours, theirs = limited_pod("a/p", annotations=slip), limited_pod("a/p", annotations=slip)
    theirs["spec"]["schedulerName"] = "default-scheduler"
    assert "did you mean" in create(cluster(), ours).warnings[0]
    assert not create(cluster(), theirs).warnings
