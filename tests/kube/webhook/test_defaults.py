"""What is filled in: no more than holds anyway, and never twice."""

import json
from typing import Any

import pytest

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Manifest, read
from aliquot.dialects.tensor_fusion.annotations import read_request
from aliquot.dialects.tensor_fusion.quotas import NO_DEFAULTS, defaults
from aliquot.dialects.tensor_fusion.requests import gpu_ask
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.defaults import patch
from aliquot.server.patch.merge import json_patch
from tests.build.manifests import (
    KOORDINATOR,
    gpu_quota,
    limited_pod,
    pod_group,
    queue,
    quota,
    resource,
)
from tests.kube.webhook.writes import cluster, member

Body = dict[str, Any]
GPU = "tensor-fusion.ai/"
QUEUE_OF = {"scheduling.volcano.sh/queue-name": "research"}


def manifest(body: Body) -> Manifest:
    found = read(Document("here", body))
    assert found is not None
    return found


def filled(cache: Cache, body: Body, is_new: bool = True) -> Body:
    """The object with all defaults; filled in a second time, nothing changes."""
    whole: Body = json_patch(body, patch(cache, manifest(body), is_new))
    assert patch(cache, manifest(whole), is_new) == []
    return whole


def test_queues_have_a_weight_and_can_be_reclaimed() -> None:
    bare = resource("scheduling.volcano.sh/v1beta1", "Queue", "q")
    assert filled(cluster(), bare)["spec"] == {"weight": 1, "reclaimable": True}
    said = queue("q", weight=3, reclaimable=False)
    assert filled(cluster(), said) == said


def test_gangs_have_a_number_and_a_queue() -> None:
    space = resource("v1", "Namespace", "a", annotations=QUEUE_OF)
    assert filled(cluster(), pod_group("a/g"))["spec"] == {"minMember": 1, "queue": "default"}
    by_place = filled(cluster(space), pod_group("a/g", queue="default", minMember=2))
    assert by_place["spec"] == {"minMember": 2, "queue": "research"}
    own = pod_group("a/g", queue="mine")
    assert filled(cluster(space), own)["spec"]["queue"] == "mine"
    other = resource("scheduling.x-k8s.io/v1alpha1", "PodGroup", "a/g", spec={})
    assert filled(cluster(space), other)["spec"] == {"minMember": 1}
    later = pod_group("a/g", queue="default")
    assert filled(cluster(space), later, is_new=False)["spec"]["queue"] == "default"


def test_quotas_of_a_tree_say_where_they_are() -> None:
    body = quota("a/q", {"cpu": 1}, {"cpu": 4, "memory": "1Gi"})
    body["metadata"]["labels"] = {f"{KOORDINATOR}is-parent": "true"}
    metadata = filled(cluster(), body)["metadata"]
    assert metadata["labels"] == {
        f"{KOORDINATOR}is-parent": "true",
        f"{KOORDINATOR}parent": "koordinator-root-quota",
        f"{KOORDINATOR}allow-lent-resource": "true",
    }
    weight = json.loads(metadata["annotations"][f"{KOORDINATOR}shared-weight"])
    assert weight == {"cpu": 4, "memory": "1Gi"}


def test_a_child_is_in_the_tree_of_its_parent() -> None:
    parent = member("top", is_parent=True, labels={f"{KOORDINATOR}tree-id": "t1"})
    labels = filled(cluster(parent), member("m", "top"))["metadata"]["labels"]
    assert labels[f"{KOORDINATOR}tree-id"] == "t1"


@pytest.mark.parametrize("there", [(), (member("tree"),)])
def test_who_has_no_tree_gets_none(there: tuple[Body, ...]) -> None:
    body = quota("a/q", {"cpu": 1}, {"cpu": 4})
    assert (filled(cluster(*there), body) == body) == (not there)
    assert filled(cluster(*there), body, is_new=False) == body


def test_quotas_on_gpus_say_when_they_warn() -> None:
    total = filled(cluster(), gpu_quota("a/g"))["spec"]["total"]
    assert total == {"alertThresholdPercent": 95}
    said = gpu_quota("a/g", total={"alertThresholdPercent": 50})
    assert filled(cluster(), said) == said


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ({}, None),
        (
            {"gpu-count": "2"},
            {
                "gpu-count": "2",
                "tflops-request": "10",
                "tflops-limit": "20",
                "vram-request": "1Gi",
                "vram-limit": "2Gi",
            },
        ),
        (
            {"tflops-request": "30", "vram-limit": "512Mi"},
            {
                "tflops-request": "30",
                "tflops-limit": "30",
                "vram-request": "512Mi",
                "vram-limit": "512Mi",
            },
        ),
        (
            {"compute-percent-request": "50"},
            {"compute-percent-request": "50", "vram-request": "1Gi", "vram-limit": "2Gi"},
        ),
        ({"dedicated-gpu": "true"}, {"dedicated-gpu": "true"}),
    ],
)
def test_pods_that_share_gpus_say_how_much(written: Body, want: Body | None) -> None:
    bounds = gpu_quota(
        "a/g",
        single={
            "defaultRequests": {"tflops": "10", "vram": "1Gi"},
            "defaultLimits": {"tflops": "20", "vram": "2Gi"},
        },
    )
    body = limited_pod("a/p", annotations={GPU + word: value for word, value in written.items()})
    whole = filled(cluster(bounds), body)
    said = {k.removeprefix(GPU): v for k, v in whole["metadata"]["annotations"].items()}
    assert said == (want or {})
    wishes = [read_request(each.metadata, each) for each in map(manifest, (body, whole))]
    before = gpu_ask(wishes[0], ({},), 32, defaults(manifest(bounds)))
    assert gpu_ask(wishes[1], ({},), 32, NO_DEFAULTS) == before
    assert filled(cluster(bounds), body, is_new=False) == body


def test_nonsense_is_left_for_those_who_judge() -> None:
    assert (
        patch(
            cluster(gpu_quota("a/g")),
            manifest(limited_pod("a/p", annotations={f"{GPU}qos": "x"})),
            True,
        )
        == []
    )
    assert filled(cluster(), quota("a/q")) == quota("a/q")
