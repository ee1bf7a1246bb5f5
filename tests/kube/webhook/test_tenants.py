"""What a tenant with `edit` rights in one namespace may write, and what is refused."""

import pytest

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.quota_index import built_in
from aliquot.json import Body
from aliquot.kube.webhook.cache import Cache
from tests.build.manifests import KOORDINATOR, limited_pod, queue, quota, resource
from tests.kube.webhook.writes import cluster, create, delete, marked, member, named, update

TREE = (
    member("team-a"),
    member("team-b"),
    member("lists", annotations={f"{KOORDINATOR}namespaces": '["team-c"]'}),
    member("all", namespace="kube-system"),
)
CLOSED = "quota team-b/team-b is not open to pods of namespace team-a, only to those of team-b"


def test_a_pod_that_names_a_closed_quota_is_refused_with_what_would_help() -> None:
    verdict = create(cluster(*TREE), limited_pod("team-a/p", labels=named("team-b")))
    assert verdict.code == 403
    assert verdict.refusal == (
        f"metadata.labels[{KOORDINATOR}name]: {CLOSED}; name a quota of team-a, or have the quota "
        f"list this namespace in its annotation {KOORDINATOR}namespaces"
    )


@pytest.mark.parametrize("key", ["name", "quota-name"])
@pytest.mark.parametrize(
    ("namespace", "quota", "allowed"),
    [
        ("team-a", "team-a", True),
        ("team-a", "team-b", False),
        ("team-a", "lists", False),
        ("team-c", "lists", True),
        ("team-a", "all", True),
        ("team-a", "nowhere", True),
        ("team-a", "koordinator-default-quota", True),
        ("team-a", "koordinator-system-quota", False),
        ("infra", "koordinator-system-quota", True),
        ("infra", "team-b", True),
    ],
)
def test_which_quotas_a_pod_may_name(key: str, namespace: str, quota: str, allowed: bool) -> None:
    cache = cluster(*TREE, settings=Configuration(system_namespaces=["infra"]))
    body = limited_pod(f"{namespace}/p", labels={f"{KOORDINATOR}{key}": quota})
    assert bool(create(cache, body).refusal) is not allowed


@pytest.mark.parametrize("policy", ["capacity", "fair", "queues"])
def test_elsewhere_a_label_names_no_quota_and_is_not_refused(policy: str) -> None:
    cache = cluster(*TREE, policy=policy)
    for name in ("team-b", "koordinator-system-quota"):
        assert not create(cache, limited_pod("team-a/p", labels=named(name))).refusal


def test_a_pod_may_not_be_labelled_with_a_closed_quota_later() -> None:
    cache, pod = cluster(*TREE), limited_pod("team-a/p", labels=named("team-a"))
    pod["spec"]["nodeName"] = "n"
    away = marked(pod, **named("team-b"))
    assert CLOSED in update(cache, pod, away).refusal
    assert not update(cache, away, marked(away, colour="blue")).refusal
    assert not update(cache, away, pod).refusal


def test_every_task_of_a_job_names_an_open_quota() -> None:
    def task(name: str, quota: str) -> Body:
        template = {"metadata": {"labels": named(quota)}, "spec": limited_pod("x/x")["spec"]}
        return {"name": name, "replicas": 1, "template": template}

    tasks = [task("first", "team-a"), task("second", "team-b")]
    job = resource("batch.volcano.sh/v1alpha1", "Job", "team-a/j", spec={"tasks": tasks})
    refusal = create(cluster(*TREE), job).refusal
    assert f"spec.tasks[1].template.metadata.labels[{KOORDINATOR}name]: {CLOSED}" in refusal
    assert "tasks[0]" not in refusal


def test_pods_that_a_quota_is_closed_to_do_not_keep_it_from_being_deleted() -> None:
    foreign = cluster(*TREE, limited_pod("team-a/p", labels=named("team-b")))
    assert not delete(foreign, TREE[1]).refusal
    parent = marked(TREE[1], **{f"{KOORDINATOR}is-parent": "true"})
    assert not update(foreign, TREE[1], parent).refusal
    own = cluster(*TREE, limited_pod("team-b/p", labels=named("team-b")))
    assert "it is the quota of Pod team-b/p" in delete(own, TREE[1]).refusal


def test_neither_pods_nor_what_aliquot_wrote_choose_the_policy() -> None:
    plain = quota("team-a/q"), limited_pod("team-a/p", labels=named("team-b"))
    cache = cluster(*plain, *(each.body for each in built_in()))
    assert _policy(cache) == "capacity"
    assert not create(cache, limited_pod("team-a/r", labels=named("team-b"))).refusal
    alone = cluster(*(each.body for each in built_in()))
    assert not create(alone, queue("own")).refusal


def _policy(cache: Cache) -> str:
    choice = cache.choice()
    assert choice is not None
    return choice.policy
