"""Short ways to write TensorFusion's objects in tests."""

from typing import Any

from tests.cli.manifests import Body

PREFIX = "tensor-fusion.ai/"
A100 = "NVIDIA-A100-SXM4-40GB"


def gpu_quota(path: str, total: Body | None = None, single: Body | None = None) -> Body:
    namespace, name = path.split("/")
    spec = {"total": total, "single": single}
    return {
        "apiVersion": "tensor-fusion.ai/v1",
        "kind": "GPUResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {word: said for word, said in spec.items() if said is not None},
    }


def figures(tflops: Any = None, vram: Any = None) -> Body:
    written = {"tflops": tflops, "vram": vram}
    return {word: value for word, value in written.items() if value is not None}


def gpu(
    name: str,
    node: str = "n",
    capacity: tuple[Any, Any] = (100, "10Gi"),
    available: tuple[Any, Any] | None = None,
    pool: str = "",
    **status: Any,
) -> Body:
    """A GPU: `available` is all of it unless said otherwise."""
    said = {
        "capacity": figures(*capacity),
        "available": figures(*(available or capacity)),
        "phase": "Running",
        "nodeSelector": {"kubernetes.io/hostname": node},
        **status,
    }
    labels = {"labels": {f"{PREFIX}gpupool": pool}} if pool else {}
    return {
        "apiVersion": "tensor-fusion.ai/v1",
        "kind": "GPU",
        "metadata": {"name": name, **labels},
        "status": said,
    }


def asking(body: Body, **said: Any) -> Body:
    """A pod or a template with annotations: `tflops_request`, `gpu_count`, `gpu_ids` and so on."""
    written = {PREFIX + key.replace("_", "-"): value for key, value in said.items()}
    metadata = body.get("metadata", {})
    annotations = {**metadata.get("annotations", {}), **written}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def model(body: Body, product: str = A100, memory: Any = "40960") -> Body:
    """A node with the labels that NVIDIA sets."""
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": memory}
    said = {key: value for key, value in labels.items() if value is not None}
    return {**body, "metadata": {**body["metadata"], "labels": said}}
