"""PodGroups and Volcano's Jobs as gangs; and how pods say which gang and queue they are in."""

from typing import Any

import pytest

from aliquot.dialects.volcano.gang_rules import check_gang, check_job, check_member
from aliquot.dialects.volcano.gangs import gang
from aliquot.dialects.volcano.jobs import Task, min_available, tasks
from aliquot.dialects.volcano.keys import MIN_MEMBER, MIN_RESOURCES, group_ref, is_preemptable
from aliquot.dialects.volcano.made_groups import group_name, pod_group
from aliquot.engine.model.gang import Gang
from aliquot.errors import InputError
from aliquot.json import Body
from tests.build.manifests import annotated, gang_job, pod, task, workload
from tests.build.manifests import pod_group as group
from tests.dialects.manifests import read

PLUGINS = "scheduling.x-k8s.io/v1alpha1"
OLDER = "scheduling.sigs.k8s.io/v1alpha1"


def with_labels(body: Body, **labels: Any) -> Body:
    return {**body, "metadata": {**body["metadata"], "labels": labels}}


def test_a_pod_group_is_a_gang() -> None:
    body = group(
        "a/g",
        minMember=3,
        minTaskMember={"worker": 2, "master": 1, "none": 0},
        minResources={"cpu": 3},
        queue="q",
    )
    assert gang(read(body), "other", 7, 5) == Gang(
        "a/g", 3, (("master", 1), ("worker", 2)), (("cpu", 3000),), "q", 7, 5
    )


def test_what_a_group_does_not_say() -> None:
    assert gang(read(group("a/g"))) == Gang("a/g", 1)
    assert gang(read(group("a/g")), "of-namespace").quota == "of-namespace"
    assert gang(read(annotated(group("a/g"), queue="q")), "of-namespace").quota == "q"


def test_a_group_of_the_scheduler_plugins() -> None:
    body = group("a/g", PLUGINS, minMember=2, minResources={"cpu": 2}, scheduleTimeoutSeconds=10)
    assert gang(read(body)) == Gang("a/g", 2, (), (("cpu", 2000),))
    assert gang(read(group("a/g", OLDER, minMember=2))) == Gang("a/g", 2)
    fields = [each.field for each in check_gang(read(body)) if each.severity == "warning"]
    assert fields == ["spec.scheduleTimeoutSeconds"]


def test_tasks_that_need_more_than_the_whole_do_not_count() -> None:
    body = group("a/g", minMember=1, minTaskMember={"a": 1, "b": 1})
    assert gang(read(body)).min_tasks == ()
    (found,) = check_gang(read(body))
    assert found.field == "spec.minTaskMember"
    assert found.problem == "has no effect: the tasks need 2 pods together, and minMember is 1"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"minMember": -2}, "spec.minMember: -2 is not between 0 and"),
        ({"minTaskMember": {"a": -1}}, "spec.minTaskMember[a]: -1 is not between 0 and"),
        ({"minResources": {"cpu": "x"}}, "spec.minResources[cpu]"),
    ],
)
def test_groups_that_make_no_sense(spec: Body, words: str) -> None:
    with pytest.raises(InputError) as caught:
        gang(read(group("a/g", **spec)))
    assert words in str(caught.value)


def test_a_group_of_volcano_may_need_no_pod() -> None:
    assert gang(read(group("a/g", minMember=0))).min_member == 1
    other = read(group("a/g", minMember=0) | {"apiVersion": "scheduling.x-k8s.io/v1alpha1"})
    with pytest.raises(InputError, match=r"spec\.minMember: 0 is not between 1 and"):
        gang(other)


def test_tasks_of_a_job_in_order() -> None:
    job = read(gang_job("a/j", task("master", 1), task(None, 4, minAvailable=2), task("x", None)))
    assert tasks(job) == [Task("master", 1, 1), Task("default1", 4, 2), Task("x", 1, 1)]
    assert min_available(job) == 4


def test_a_job_has_a_group_of_its_own() -> None:
    parts = (task("master", 1), task("worker", 4, minAvailable=2))
    job = gang_job("a/j", *parts, minAvailable=3, queue="q", priorityClassName="vip")
    made = pod_group(read(job))
    assert made.key == ("PodGroup", "a", "j")
    assert gang(made) == Gang("a/j", 3, (("master", 1), ("worker", 2)), (), "q")
    assert made.body["spec"]["priorityClassName"] == "vip"
    assert gang(pod_group(read(gang_job("a/j", *parts)))) == Gang(
        "a/j", 3, (("master", 1), ("worker", 2)), (), "default"
    )
    assert gang(pod_group(read(gang_job("a/j", task("m", 0))))).min_member == 1


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (gang_job("a/j"), "spec.tasks: must hold at least one task"),
        (gang_job("a/j", task("x", 1), task("x", 1)), "spec.tasks[1].name: 'x' stands here"),
        (gang_job("a/j", task("default1", 1), task(None, 1)), "spec.tasks[1].name: 'default1'"),
        (gang_job("a/j", task("x", -1)), "spec.tasks[0].replicas: -1 is not between 0 and"),
        (gang_job("a/j", task("x", 2, minAvailable=3)), "spec.tasks[0].minAvailable: 3 is not"),
        (gang_job("a/j", task("x", 2), minAvailable=3), "spec.minAvailable: 3 is not between 0"),
        (gang_job("a/j", {"name": "x"}), "spec.tasks[0].template: is missing"),
        (gang_job("a/j", task("x", 60_000), task("y", 60_000)), "120000 pods are more than"),
    ],
)
def test_jobs_that_make_no_sense(job: Body, words: str) -> None:
    with pytest.raises(InputError) as caught:
        pod_group(read(job))
    assert words in str(caught.value)


def test_gangs_need_no_word() -> None:
    assert list(check_gang(read(group("a/g", minMember=3)))) == []
    assert list(check_job(read(gang_job("a/j", task("x", 2))))) == []


def test_what_is_not_considered_is_said() -> None:
    part = task("x", 1, dependsOn={"name": ["y"]}, policies=[{}], topologyPolicy="none")
    found = list(check_job(read(gang_job("a/j", part, policies=[{"event": "PodEvicted"}]))))
    assert [each.field for each in found] == [
        "spec.policies",
        "spec.tasks[0].dependsOn",
        "spec.tasks[0].policies",
    ]
    assert {each.severity for each in found} == {"warning"}
    (said,) = check_member(read(annotated(pod("a/p"), **{MIN_MEMBER: "3"})))
    assert (said.severity, said.field) == ("warning", f"metadata.annotations[{MIN_MEMBER}]")


def test_a_job_needs_what_its_most_important_pods_ask_for() -> None:
    parts = (
        task("few", 2, {"cpu": 1, "memory": "1Gi"}),
        task("many", 8, {"cpu": 2, "gpu": 1}),
    )
    job = read(gang_job("a/j", *parts, minAvailable=5))
    assert pod_group(job).body["spec"]["minResources"] == {
        "cpu": "8",
        "memory": "2Gi",
        "nvidia.com/gpu": "3",
    }
    made = pod_group(job, {"few": 0, "many": 9})
    assert made.body["spec"]["minResources"] == {"cpu": "10", "nvidia.com/gpu": "5"}
    assert "minResources" not in pod_group(read(gang_job("a/j", task("x", 2)))).body["spec"]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "Job"])
def test_an_owner_asks_for_a_group(kind: str) -> None:
    owner = workload(kind, "a/web", {"cpu": 1}, replicas=3)
    assert group_name(read(owner)) is None
    body = annotated(owner, queue="q", **{MIN_MEMBER: "3", MIN_RESOURCES: '{"cpu": 3, "gpu": "1"}'})
    made = pod_group(read(body))
    assert made.key == ("PodGroup", "a", "podgroup-web")
    assert gang(made) == Gang("a/podgroup-web", 3, (), (("cpu", 3000), ("gpu", 1)), "q")
    assert made.body["metadata"]["ownerReferences"][0]["kind"] == kind
    assert list(check_member(read(body))) == []


def test_a_template_may_ask_for_the_group() -> None:
    owner = workload("Deployment", "a/web", {}, replicas=3)
    owner["spec"]["template"] = annotated(owner["spec"]["template"], queue="q", **{MIN_MEMBER: 2})
    assert gang(pod_group(read(owner))) == Gang("a/podgroup-web", 2, quota="q")
    with pytest.raises(InputError) as caught:
        pod_group(read(annotated(owner, **{MIN_MEMBER: "3"})))
    assert caught.value.field == f"spec.template.metadata.annotations[{MIN_MEMBER}]"
    with pytest.raises(InputError) as caught:
        pod_group(read(annotated(owner, queue="r")))
    assert caught.value.problem.startswith("is 'q', but metadata.annotations[")
    owner["spec"]["template"] = annotated(owner["spec"]["template"], group="g")
    assert group_name(read(owner)) is None
    (said,) = check_member(read(owner))
    assert said.problem == "has no effect here; write a PodGroup, and name it in the pods"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (MIN_MEMBER, "0", "'0' is no whole number of at least 1"),
        (MIN_MEMBER, "many", "'many' is no whole number"),
        (MIN_MEMBER, "9" * 30, "is no whole number"),
        (MIN_MEMBER, {"a": 1}, "must be text"),
        (MIN_RESOURCES, "cpu=1", "'cpu=1' is no JSON map of quantities"),
        (MIN_RESOURCES, "[1]", "'[1]' is no JSON map of quantities"),
        (MIN_RESOURCES, '{"\\ud800": 1}', "is no JSON map of quantities"),
        (MIN_RESOURCES, '{"cpu": "x"}', "'x' is not a quantity"),
        (MIN_RESOURCES, '{"cpu": -1}', "-1 is negative"),
    ],
)
def test_annotations_that_make_no_sense(key: str, value: Any, words: str) -> None:
    owner = annotated(workload("Deployment", "a/web", {}), **{key: value})
    with pytest.raises(InputError) as caught:
        pod_group(read(owner))
    assert caught.value.field.startswith(f"metadata.annotations[{key}]")
    assert words in caught.value.problem


@pytest.mark.parametrize(
    "body",
    [
        annotated(pod("a/p"), group="g"),
        annotated(pod("a/p"), **{"scheduling.volcano.sh/group-name": "g"}),
        with_labels(pod("a/p"), **{"scheduling.x-k8s.io/pod-group": "g"}),
        with_labels(pod("a/p"), **{"pod-group.scheduling.sigs.k8s.io": "g"}),
        with_labels(annotated(pod("a/p"), group="g"), **{"scheduling.x-k8s.io/pod-group": "g"}),
    ],
)
def test_a_pod_names_its_gang(body: Body) -> None:
    each = read(body)
    assert group_ref(each.metadata, each).gang == "g"


def test_a_pod_names_its_queue_and_task() -> None:
    each = read(annotated(pod("a/p"), queue="q", **{"volcano.sh/task-spec": "worker"}))
    said = group_ref(each.metadata, each)
    assert (said.queue, said.task, said.gang) == ("q", "worker", None)
    assert said.queue_field == "metadata.annotations[scheduling.volcano.sh/queue-name]"
    each = read(with_labels(pod("a/p"), **{"volcano.sh/queue-name": "q"}))
    assert group_ref(each.metadata, each).queue == "q"


def test_two_words_that_differ() -> None:
    each = read(with_labels(annotated(pod("a/p"), queue="q"), **{"volcano.sh/queue-name": "r"}))
    with pytest.raises(InputError) as caught:
        group_ref(each.metadata, each)
    assert caught.value.field == "metadata.labels[volcano.sh/queue-name]"
    assert "is 'r', but metadata.annotations[" in caught.value.problem
    each = read(annotated(pod("a/p"), group={"a": 1}))
    with pytest.raises(InputError):
        group_ref(each.metadata, each)


@pytest.mark.parametrize(
    ("annotation", "label", "may_go"),
    [
        (None, None, True),
        ("true", None, True),
        ("false", "true", False),
        (None, "false", False),
        ("maybe", None, False),
        (False, None, False),
        ("true", "false", True),
    ],
)
def test_who_may_be_asked_to_go(annotation: Any, label: Any, may_go: bool) -> None:
    key = "volcano.sh/preemptable"
    body = pod("a/p")
    if annotation is not None:
        body = annotated(body, **{key: annotation})
    if label is not None:
        body = with_labels(body, **{key: label})
    assert is_preemptable(read(body).metadata) is may_go
