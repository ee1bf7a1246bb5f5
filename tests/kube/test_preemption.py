"""Pods of a gang go together: none of them before the one that a disruption budget protects."""

import pytest

from aliquot.engine.model.decisions import evictions
from aliquot.kube.api.resource import BUDGETS, CUSTOM
from tests.build import manifests
from tests.build.engines import books
from tests.kube.workshop import Workshop, always, nominations, play, watched_pod

PLUGINS = "scheduling.x-k8s.io"
GROUPS = CUSTOM[f"podgroups.{PLUGINS}"]


def lent_to_a_gang(shop: Workshop, allowed: int) -> None:
    """Team a is guaranteed two nodes; a gang of b uses both, and its pod x2 has a budget."""
    shop.node("n1")
    shop.node("n2")
    shop.quota("a", 4)
    shop.quota("b", 0)
    group = manifests.pod_group("b/g", f"{PLUGINS}/v1alpha1", minMember=2)
    guard = manifests.budget("b/x2", minAvailable=1)
    guard["status"] = {"disruptionsAllowed": allowed}
    shop.intake.objects.put(GROUPS, group)
    shop.intake.objects.put(BUDGETS, guard)
    shop.intake.objects.settle()
    for number in (1, 2):
        pod = watched_pod(f"x{number}", "b", 2, node=f"n{number}")
        pod.metadata.labels = {f"{PLUGINS}/pod-group": "g", "app": f"x{number}"}
        shop.intake.pods.put(pod)
    shop.pod("p", "a", 2)


def evicted(shop: Workshop) -> list[str]:
    """The pods whose eviction was created."""
    return [body["metadata"]["name"] for body in shop.answers.to("/eviction")]


def test_a_gang_stays_whole_while_a_budget_protects_one_of_its_pods() -> None:
    async def story(shop: Workshop) -> None:
        lent_to_a_gang(shop, allowed=0)
        shop.answers.refuse["x2/eviction"] = always(429)
        assert sorted(each.pod.name for each in evictions(shop.decide())) == ["x1", "x2"]
        await shop.write()
        await shop.again()
        assert evicted(shop) == []
        del shop.answers.refuse["x2/eviction"]
        await shop.again(2)
        assert evicted(shop) == ["x2", "x1"]
        assert nominations(shop, "p") != []

    play(story)


def test_the_rest_of_a_gang_is_not_evicted_where_one_of_its_pods_cannot_be() -> None:
    async def story(shop: Workshop) -> None:
        lent_to_a_gang(shop, allowed=0)
        shop.answers.refuse["x2/eviction"] = always(403)
        assert len(list(evictions(shop.decide()))) == 2
        await shop.write()
        assert evicted(shop) == []
        assert nominations(shop, "p") == []
        assert [uid for uid in ("x1", "x2") if uid in books(shop.engine).leaving] == []

    play(story)


@pytest.mark.parametrize("allowed", [1, 2])
def test_a_gang_that_budgets_do_not_protect_is_evicted_at_once(allowed: int) -> None:
    async def story(shop: Workshop) -> None:
        lent_to_a_gang(shop, allowed)
        shop.answers.refuse["x2/eviction"] = always(409)
        shop.decide()
        await shop.write()
        assert evicted(shop) == ["x1"]

    play(story)
