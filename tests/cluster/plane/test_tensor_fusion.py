"""TensorFusion, told with real objects: bounds on GPUs, devices by name, and alerts."""

from typing import Any

from aliquot.json import Body
from tests.build.manifests import TENSOR_FUSION, asking, figures, gpu, gpu_quota, limited_pod
from tests.cluster.plane.cluster import Cluster

ASKS = "tensor-fusion-scheduler"


def worker(path: str, **said: Any) -> Body:
    """A pod that asks for parts of GPUs."""
    return asking(
        limited_pod(path, schedulerName=ASKS), **{key: str(value) for key, value in said.items()}
    )


def conditions(cluster: Cluster, name: str) -> dict[str, str]:
    status = cluster.get("GPUResourceQuota", name).get("status") or {}
    return {each["type"]: each["status"] for each in status.get("conditions") or ()}


def test_a_quota_refuses_in_the_words_of_the_design(cluster: Cluster) -> None:
    cluster.nodes(1)
    cluster.apply(
        gpu("gpu-1", "node-1", (1000, "80Gi")),
        gpu_quota(
            "team/quota",
            {"requests": figures("100", "40Gi"), "maxWorkers": 3},
            {"maxRequests": figures("60", "16Gi")},
        ),
        worker("team/a", tflops_request=60, vram_request="10Gi"),
    )
    with cluster.scheduler():
        cluster.running("team/a")
        cluster.apply(worker("team/b", tflops_request=50, vram_request="10Gi"))
        said = "quota exceeded in namespace team for total.max.tflops.request: requested 50"
        cluster.pending("team/b", "GPUQuotaExceeded", said, "limit 100")
        cluster.apply(worker("team/c", tflops_request=61, vram_request="1Gi"))
        said = "quota exceeded in namespace team for single.max.tflops.request: requested 61"
        cluster.pending("team/c", "GPUQuotaExceeded", said, "limit 60")
        cluster.finish("team/a")
        cluster.running("team/b")
        cluster.waiting("team/c")


def test_pods_are_given_devices_by_name(cluster: Cluster) -> None:
    cluster.nodes(2)
    cluster.apply(
        gpu("gpu-1", "node-1", (100, "10Gi")),
        gpu("gpu-2", "node-2", (100, "10Gi")),
        gpu("gpu-3", "node-2", (100, "10Gi")),
        worker("team/pair", tflops_request=60, vram_request="6Gi", gpu_count=2),
    )
    with cluster.scheduler():
        cluster.running("team/pair", on="node-2")
        wanted = {"metadata": {"annotations": {f"{TENSOR_FUSION}gpu-ids": "gpu-2,gpu-3"}}}
        cluster.shows("Pod", "team/pair", wanted)
        cluster.shows("GPU", "gpu-2", {"status": {"available": {"tflops": "40", "vram": "4Gi"}}})
        cluster.apply(worker("team/one", tflops_request=60, vram_request="6Gi"))
        cluster.running("team/one", on="node-1")
        cluster.apply(worker("team/more", tflops_request=60, vram_request="6Gi"))
        cluster.pending("team/more", "Unschedulable")
        cluster.delete("Pod", "team/pair")
        cluster.running("team/more", on="node-2")
        cluster.shows("GPU", "gpu-1", {"status": {"available": {"tflops": "40", "vram": "4Gi"}}})


def test_a_quota_shows_what_is_used_and_calls_when_little_is_left(cluster: Cluster) -> None:
    cluster.nodes(1)
    cluster.apply(
        gpu("gpu-1", "node-1", (1000, "80Gi")),
        gpu_quota(
            "team/quota",
            {"requests": figures("100", "10Gi"), "alertThresholdPercent": 80, "maxWorkers": 4},
        ),
        worker("team/a", tflops_request=50, vram_request="5Gi", tflops_limit=60),
    )
    fine = {"Ready": "True", "Exceeded": "False", "AlertThresholdReached": "False"}
    with cluster.scheduler():
        used = {"requests": {"tflops": "50", "vram": "5Gi"}, "workers": 1}
        left = {"requests.tflops": "50.00", "requests.vram": "50.00", "workers": "75.00"}
        wanted = {"used": used, "availablePercent": left}
        cluster.shows("GPUResourceQuota", "team/quota", {"status": wanted})
        cluster.until(lambda: conditions(cluster, "team/quota") != fine)
        cluster.apply(worker("team/b", tflops_request=40, vram_request="1Gi"))
        alert = {**fine, "AlertThresholdReached": "True"}
        cluster.until(lambda: conditions(cluster, "team/quota") != alert)
        cluster.told("GPUResourceQuota", "team/quota", "ThresholdReached", "90 of 100")
        lower = {"requests": figures("80", "10Gi"), "alertThresholdPercent": 80, "maxWorkers": 4}
        cluster.apply(gpu_quota("team/quota", lower))
        beyond = {**alert, "Exceeded": "True"}
        cluster.until(lambda: conditions(cluster, "team/quota") != beyond)
        cluster.told("GPUResourceQuota", "team/quota", "AboveTotal", "90 of 80")
        cluster.untouched("team/a", "team/b")
        cluster.delete("Pod", "team/b")
        cluster.until(lambda: conditions(cluster, "team/quota") != fine)
