"""What `what-if` says is what `simulate` does with the changed objects, under every policy.

Whether the objects are read once more or the change is applied to those that are there.
"""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aliquot import simulate
from aliquot.dialects.core.documents import Document
from aliquot.json import Body, fresh
from aliquot.questions import what_if as module
from aliquot.questions.sources.source import Source
from aliquot.questions.what_if import Hypothesis, consequences
from tests.campaign import examples
from tests.properties.manifests import GPU, POLICIES, cluster

Changed = tuple[Hypothesis, list[Body]]
"""A hypothesis, and the objects that it leads to, made by other means."""


def _documents(objects: list[Body]) -> list[Document]:
    return [Document(f"object {n}", fresh(body)) for n, body in enumerate(objects)]


def _pick(rng: Random, objects: list[Body], *kinds: str) -> Body:
    return rng.choice([body for body in objects if body["kind"] in kinds])


def _raise_a_bound(rng: Random, objects: list[Body]) -> Changed:
    quota = _pick(rng, objects, "ElasticQuota", "Queue")
    changed = fresh(quota)
    if quota["kind"] == "Queue":
        changed["spec"]["weight"] = rng.randint(1, 6)
    else:
        low = int(changed["spec"]["min"][GPU]) + rng.randint(1, 3)
        changed["spec"] = {"min": {GPU: str(low)}, "max": {GPU: str(low + rng.randint(0, 3))}}
    after = [changed if body is quota else body for body in objects]
    return Hypothesis(_documents([changed])), after


def _delete_a_pod(rng: Random, objects: list[Body]) -> Changed:
    pod = _pick(rng, objects, "Pod")
    name = "Pod/{namespace}/{name}".format(**pod["metadata"])
    return Hypothesis(delete=[name]), [body for body in objects if body is not pod]


def _add_nodes(rng: Random, objects: list[Body]) -> Changed:
    node, number = _pick(rng, objects, "Node"), rng.randint(1, 2)
    name = node["metadata"]["name"]
    taken = {body["metadata"]["name"] for body in objects if body["kind"] == "Node"}
    free = [f"{name}-{n}" for n in range(2, 9) if f"{name}-{n}" not in taken][:number]
    more = [{**fresh(node), "metadata": {**node["metadata"], "name": each}} for each in free]
    return Hypothesis(add_nodes=number, like=name), [*objects, *more]


def _drain_a_node(rng: Random, objects: list[Body]) -> Changed:
    node = _pick(rng, objects, "Node")
    name = node["metadata"]["name"]
    closed = {**fresh(node), "spec": {**node["spec"], "unschedulable": True}}
    left = [body for body in objects if body.get("spec", {}).get("nodeName") != name]
    return Hypothesis(drain=[name]), [closed if body is node else body for body in left]


def _add_a_pod(rng: Random, objects: list[Body]) -> Changed:
    pod = fresh(_pick(rng, objects, "Pod"))
    pod["spec"].pop("nodeName", None)
    pod["metadata"]["name"] = "one-more"
    return Hypothesis(_documents([pod])), [*objects, pod]


CHANGES: tuple[Callable[[Random, list[Body]], Changed], ...] = (
    *(_raise_a_bound, _delete_a_pod, _add_nodes, _drain_a_node, _add_a_pod),
)


def _check(rng: Random, policy: str) -> None:
    objects = cluster(rng, policy)
    hypothesis, after = rng.choice(CHANGES)(rng, objects)
    found = consequences(Source("", _documents(objects), policy=policy), hypothesis)
    expected, before = simulate(after, policy), simulate(objects, policy)
    assert found["starts"] == [
        {word: each[word] for word in ("pod", "node", "at")} for each in expected["bindings"]
    ]
    assert [each for each in found["evictions"] if each["reason"] != "Drained"] == [
        {word: each[word] for word in ("pod", "for", "reason")} for each in expected["evictions"]
    ]
    quotas = {each["name"]: each for each in found["quotas"]}
    assert {n: q["after"] for n, q in quotas.items() if q["after"]} == {
        each["name"]: each for each in expected["quotas"]
    }
    assert found["pending"] == {"before": before["pending"], "after": expected["pending"]}


@settings(max_examples=examples(400, 15))
@given(st.randoms(use_true_random=False), st.sampled_from(POLICIES))
def test_what_if_is_what_simulate_does(rng: Random, policy: str) -> None:
    _check(rng, policy)


@settings(
    max_examples=examples(400, 15), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rng=st.randoms(use_true_random=False), policy=st.sampled_from(POLICIES))
def test_a_change_of_a_large_cluster_is_applied_to_what_is_there(
    rng: Random, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MANY_OBJECTS", 0)
    _check(rng, policy)
