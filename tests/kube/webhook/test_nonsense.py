"""Nonsense is refused or let through, and never a defect: a defect would stop all writes."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.errors import InputError
from aliquot.kube.webhook import review
from aliquot.kube.webhook.metrics import Metrics
from aliquot.kube.webhook.service import Service
from aliquot.kube.webhook.verdict import judge
from tests.build.manifests import KOORDINATOR, gpu_quota, limited_pod, pod_group, queue, quota
from tests.campaign import examples
from tests.kube.webhook.writes import cluster, composite, member, named

Body = dict[str, Any]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
words = st.sampled_from(
    [
        *("min", "max", "cpu", "resources", "requests", "containers", "name", "weight", "parent"),
        *("guarantee", "resource", "capability", "queue", "minMember", "total", "single", "limits"),
        *("namespaces", "nvidia.com/gpu", "nos.nebuly.com/gpu-memory", "tflops", "nodeName"),
        *(f"{KOORDINATOR}{key}" for key in ("parent", "name", "shared-weight", "namespaces")),
        *("tensor-fusion.ai/vram-request", "scheduling.volcano.sh/queue-name"),
    ]
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)
KINDS = (
    *(
        quota("a/q"),
        member("m"),
        composite("c", "a"),
        queue("q"),
        pod_group("a/g"),
        gpu_quota("a/g"),
        limited_pod("a/p"),
    ),
)
THERE = (
    member("top", is_parent=True),
    member("m", "top"),
    queue("q"),
    pod_group("a/g", queue="q"),
    gpu_quota("a/g", single={"defaultRequests": {"vram": "1Gi"}}),
    limited_pod("a/p", labels=named("m")),
)


@st.composite
def nonsense(draw: st.DrawFn) -> Body:
    body = json.loads(json.dumps(draw(st.sampled_from(KINDS))))
    for place in draw(st.lists(st.sampled_from(["spec", "status", "metadata"]), max_size=2)):
        body[place] = draw(values)
    metadata = body["metadata"]
    if isinstance(metadata, dict):
        fields = st.sampled_from(["labels", "annotations", "name", "namespace"])
        for place in draw(st.lists(fields, max_size=3)):
            metadata[place] = draw(values)
    return dict(body)


def reviewed(body: Body, operation: str, old: Body | None) -> bytes:
    group_of, _, version = str(body["apiVersion"]).rpartition("/")
    request = {
        "uid": "1",
        "kind": {"group": group_of, "version": version, "kind": body["kind"]},
        "operation": operation,
        "namespace": "a",
        "object": None if operation == "DELETE" else body,
        "oldObject": old,
    }
    said = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(said).encode()


@settings(max_examples=examples(600), deadline=None)
@given(new=nonsense(), old=nonsense())
def test_nonsense_gets_an_answer(new: Body, old: Body) -> None:
    cache = cluster(*THERE, policy="capacity")
    service = Service(cache, Metrics(), "")
    for operation, body, before in (
        ("CREATE", new, None),
        ("UPDATE", new, {**old, "kind": new["kind"], "apiVersion": new["apiVersion"]}),
        ("DELETE", new, new),
    ):
        question = review.read(reviewed(body, operation, before))
        assert review.answer(question, judge(cache, question))
        assert review.answer(question, service._fill_in(question))


@settings(max_examples=examples(100), deadline=None)
@given(body=st.one_of(values, st.fixed_dictionaries({"request": values})))
def test_what_is_no_review_is_an_error_of_ours(body: Any) -> None:
    with pytest.raises(InputError):
        review.read(json.dumps(body).encode())
