"""What a running pod asks for of GPUs may not grow beyond the quota of its namespace."""

from copy import deepcopy
from typing import Any

import pytest

from aliquot.json import Body
from aliquot.kube.webhook.cache import Cache
from tests.build.manifests import annotated, figures, gpu_quota, pod
from tests.kube.webhook.writes import cluster, create, update

FUSION = "tensor-fusion.ai/"


def worker(request: Any = 30, limit: Any = None, count: int = 1, node: str = "n") -> Body:
    most = request if limit is None else limit
    written = {
        f"{FUSION}tflops-request": str(request),
        f"{FUSION}vram-request": f"{request}0",
        f"{FUSION}tflops-limit": str(most),
        f"{FUSION}vram-limit": f"{most}0",
        f"{FUSION}gpu-count": str(count),
    }
    return annotated(pod("a/p", nodeName=node or None), **written)


def quota(
    total: int, used: int, workers: int = 1, single: Body | None = None, most: int | None = None
) -> Body:
    bounds = {
        "requests": figures(total, 10 * total),
        "limits": figures(most or total, 10 * (most or total)),
        "maxWorkers": workers,
    }
    amounts = {"tflops": str(used), "vram": f"{used}0"}
    status = {"used": {"requests": amounts, "limits": amounts, "workers": workers}}
    return {**gpu_quota("a/q", bounds, single), "status": status}


def refusal(cache: Cache, old: Body, new: Body) -> str:
    return update(cache, old, new).refusal


def test_a_pod_may_grow_up_to_the_quota_and_shrink() -> None:
    """tf-life-05 and tf-life-06. The worker is there already: its number is no bound."""
    cache = cluster(quota(200, 60), worker(count=2))
    assert not refusal(cache, worker(30, 30, 2), worker(40, 50, 2))
    assert not refusal(cache, worker(30, 30, 2), worker(100, 100, 2))
    assert not refusal(cache, worker(40, 50, 2), worker(30, 30, 2))
    assert "total.max.tflops.request: requested 202, limit 200; used 0" in refusal(
        cache, worker(30, 30, 2), worker(101, 101, 2)
    )


def test_growth_of_the_limit_alone_is_judged() -> None:
    """tf-life-07, and beside another pod."""
    assert "total.max.tflops.limit: requested 250, limit 200" in refusal(
        cluster(quota(200, 30)), worker(), worker(30, 250)
    )
    cache = cluster(quota(200, 130, workers=2))
    assert not refusal(cache, worker(), worker(30, 100))
    assert "requested 101, limit 200; used 100" in refusal(cache, worker(), worker(30, 101))


def test_bounds_on_one_pod_hold_the_new_amount() -> None:
    """tf-life-08."""
    cache = cluster(quota(500, 50, single={"maxLimits": figures(100, 10000)}))
    assert "single.max.tflops.limit: requested 150, limit 100" in refusal(
        cache, worker(50), worker(50, 150)
    )
    assert not refusal(cache, worker(50), worker(100))


@pytest.mark.parametrize("old", [worker(300), worker(node="")])
def test_what_does_not_grow_or_does_not_run_is_left_alone(old: Body) -> None:
    """Not even in a quota that is exceeded already; what waits is judged when it is to start."""
    cache = cluster(quota(200, 300))
    asks = 250 if old["spec"].get("nodeName") else 900
    new = worker(asks, node=old["spec"].get("nodeName", ""))
    assert not refusal(cache, old, new)
    labelled = deepcopy(old)
    labelled["metadata"]["labels"] = {"any": "label"}
    assert not refusal(cache, old, labelled)


def test_without_a_quota_or_before_its_first_status() -> None:
    assert not refusal(cluster(), worker(), worker(1000))
    unwritten = gpu_quota("a/q", {"requests": figures(100, 1000)})
    assert not refusal(cluster(unwritten), worker(), worker(100))
    assert "requested 101, limit 100" in refusal(cluster(unwritten), worker(), worker(101))
    spoiled = {**unwritten, "status": {"used": {"requests": {"tflops": "lots"}, "workers": "x"}}}
    assert not refusal(cluster(spoiled), worker(), worker(101))
    assert not create(cluster(unwritten), worker(101, node="")).refusal
