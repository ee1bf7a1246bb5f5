"""Explanations and cures, held against what `simulate` then does, under every policy.

The first cure that is no wait, carried out on the objects as it is written, lets the pod start and
evicts the pods that it names: not because it says so, but in a simulation of the changed objects.
"""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot import simulate
from aliquot.dialects.core.documents import Document
from aliquot.json import Body, fresh
from aliquot.questions.cures.changes import CONFIGURATION
from aliquot.questions.explanation import explain_pod
from aliquot.questions.moment import Moment
from aliquot.questions.sources.source import Source
from aliquot.server.patch.merge import merge_patch
from tests.campaign import examples
from tests.properties.manifests import POLICIES, cluster

Answer = dict[str, Any]


def _moment(objects: list[Body], policy: str) -> Moment:
    documents = [Document(f"object {n}", fresh(body)) for n, body in enumerate(objects)]
    return Moment(Source("", documents, policy=policy))


def _name(body: Body) -> tuple[str, str | None, str]:
    metadata = body["metadata"]
    return body["kind"], metadata.get("namespace"), metadata["name"]


def _changed(objects: list[Body], cure: Answer) -> tuple[list[Body], Body | None]:
    """The objects, and the Configuration, as a user leaves them who does what the cure says."""
    after, config = [fresh(body) for body in objects], None
    for change in cure["changes"]:
        about = change["object"]
        if change["how"] == "add":
            after += change["add"]
        elif about["kind"] == CONFIGURATION:
            head = {"apiVersion": "config.aliquot.dev/v1alpha1", "kind": CONFIGURATION}
            config = head | change["patch"]
        else:
            key = about["kind"], about["namespace"], about["name"]
            assert any(_name(body) == key for body in after)
            if change["how"] == "delete":
                after = [body for body in after if _name(body) != key]
            else:
                patch = change["patch"]
                after = [merge_patch(b, patch) if _name(b) == key else b for b in after]
    return after, config


def _waiting(objects: list[Body]) -> list[str]:
    pods = [body for body in objects if body["kind"] == "Pod" and "nodeName" not in body["spec"]]
    return ["{namespace}/{name}".format(**body["metadata"]) for body in pods]


def _evicted(result: Answer, until: float = 0) -> set[str]:
    return {each["pod"] for each in result["evictions"] if each["at"] <= until}


def check_answer(objects: list[Body], policy: str, path: str) -> list[Answer]:
    """Hold the answer about one pod against simulations; returns its cures."""
    answer = explain_pod(_moment(objects, policy), path)
    before = simulate(objects, policy, until=0)
    started = {each["pod"]: each["node"] for each in before["bindings"]}
    if answer["reason"] is None:
        assert path in started, answer["message"]
        return []
    pending = {each["pod"]: each for each in before["pending"]}
    assert answer["reason"] == pending[path]["reason"]
    assert answer["message"].startswith(pending[path]["message"])
    assert not all(gate["passes"] for gate in answer["gates"])
    for cure in answer["cures"]:
        if any(change["how"] == "wait" for change in cure["changes"]):
            continue
        after, config = _changed(objects, cure)
        result = simulate(after, policy, config, until=0)
        assert path in {each["pod"] for each in result["bindings"]}, cure
        if not before["bindings"]:  # else a pod that starts at the same moment might wait instead
            _check_exact(objects, policy, path, cure)
        assert set(cure["evicts"]) == _evicted(result) - _evicted(before), cure
    cures: list[Answer] = answer["cures"]
    return cures


def _check_exact(objects: list[Body], policy: str, path: str, cure: Answer) -> None:
    """A max that is raised, and nothing else, is raised by no more than the pod needs.

    Where a pod of its own quota goes for it, that frees some of the max besides.
    """
    (change, *more), words = cure["changes"], cure["summary"]
    if more or cure["evicts"] or not words.startswith("raise max") or " and " in words:
        return
    ((field, bounds),) = change["patch"]["spec"].items()
    less = {name: str(int(amount) - 1) for name, amount in bounds.items()}
    changed = {**change, "patch": {"spec": {field: less}}}
    after, _ = _changed(objects, {"changes": [changed]})
    result = simulate(after, policy, until=0)
    assert path not in {each["pod"] for each in result["bindings"]}, cure


@settings(max_examples=examples(400, 12), deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(POLICIES))
def test_a_cure_does_what_it_says(rng: Random, policy: str) -> None:
    objects = cluster(rng, policy)
    for path in _waiting(objects)[:2]:
        check_answer(objects, policy, path)
