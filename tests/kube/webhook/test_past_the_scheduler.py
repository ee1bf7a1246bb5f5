"""What would use a quota without asking it: pods that come with a node, and resizes beyond max."""

from copy import deepcopy
from typing import Any

import pytest

from aliquot.kube.webhook.review import Verdict
from aliquot.kube.webhook.verdict import judge
from tests.build.manifests import annotated, namespace, pod, queue, quota
from tests.kube.webhook.writes import asked, cluster, composite, create, member

Body = dict[str, Any]

QUEUED = (
    queue("q"),
    {
        **namespace("a"),
        "metadata": {"name": "a", "annotations": {"scheduling.volcano.sh/queue-name": "q"}},
    },
)
BY_POLICY: dict[str, tuple[Body, ...]] = {
    "capacity": (quota("a/q", {"cpu": 2}, {"cpu": 4}),),
    "fair": (composite("q", "a", max={"cpu": 4}),),
    "hierarchy": (member("a", low=2, high=4),),
    "queues": ({**QUEUED[0], "spec": {"weight": 1, "capability": {"cpu": 4}}}, QUEUED[1]),
}
POLICIES = sorted(BY_POLICY)


def on(node: str, path: str = "a/p", cpu: Any = 1, **spec: Any) -> Body:
    return pod(path, {"cpu": cpu}, nodeName=node, **spec)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_pod_with_a_node_is_refused_where_there_is_a_quota(policy: str) -> None:
    cache = cluster(*BY_POLICY[policy], policy=policy)
    verdict = create(cache, on("n"))
    assert verdict.code == 403
    assert "spec.nodeName: is n, so quota" in verdict.refusal
    assert "nodeSelector or node affinity" in verdict.refusal
    assert not create(cache, pod("a/p", {"cpu": 1})).refusal


@pytest.mark.parametrize("policy", POLICIES)
def test_nodes_show_their_own_pods(policy: str) -> None:
    mirror = annotated(on("n"), **{"kubernetes.io/config.mirror": "1"})
    assert not create(cluster(*BY_POLICY[policy], policy=policy), mirror).refusal


@pytest.mark.parametrize("policy", ["capacity", "fair"])
def test_without_a_quota_a_pod_may_name_its_node(policy: str) -> None:
    cache = cluster(*BY_POLICY[policy], policy=policy)
    assert not create(cache, on("n", "elsewhere/p")).refusal


def resize(cache: Any, old: Body, cpu: Any) -> Verdict:
    new = deepcopy(old)
    for each in new["spec"]["containers"]:
        each["resources"] = {"requests": {"cpu": cpu}}
    return judge(cache, asked("UPDATE", new, old, part="resize"))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_resize_beyond_max_is_refused(policy: str) -> None:
    running, other = on("n"), on("n", "a/other", cpu=2)
    cache = cluster(*BY_POLICY[policy], running, other, policy=policy)
    assert not resize(cache, running, 2).refusal
    verdict = resize(cache, running, "2001m")
    assert verdict.code == 403
    assert "max 4 cpu, used 3; the pod has 1 and asks 2001m" in verdict.refusal
    assert "ask for less" in verdict.refusal


def test_a_smaller_pod_is_never_refused() -> None:
    """Not even in a quota that is above its max."""
    running, other = on("n", cpu=3), on("n", "a/other", cpu=3)
    cache = cluster(*BY_POLICY["capacity"], running, other)
    assert not resize(cache, running, 2).refusal
    assert not resize(cache, running, 3).refusal
    assert resize(cache, running, 4).refusal


def test_a_resize_counts_up_the_tree() -> None:
    tree = (member("org", is_parent=True, low=4, high=4), member("a", "org"), member("b", "org"))
    running = on("n")
    cache = cluster(*tree, running, on("n", "b/other", cpu=2), policy="hierarchy")
    assert not resize(cache, running, 2).refusal
    assert "quota org/org: max 4 cpu, used 3" in resize(cache, running, 3).refusal


def test_pods_that_have_ended_or_wait_use_nothing() -> None:
    running, ended = on("n"), {**on("n", "a/ended", cpu=3), "status": {"phase": "Succeeded"}}
    cache = cluster(*BY_POLICY["capacity"], running, ended, pod("a/waits", {"cpu": 3}))
    assert not resize(cache, running, 4).refusal
    assert resize(cache, running, 5).refusal


def test_what_is_still_given_to_a_container_counts() -> None:
    """It was asked to shrink, and its node has not yet done so."""
    status = {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "3"}}]}
    shrinking = {**on("n", "a/other", cpu=1), "status": status}
    running = on("n")
    cache = cluster(*BY_POLICY["capacity"], running, shrinking)
    assert "used 4" in resize(cache, running, 2).refusal
