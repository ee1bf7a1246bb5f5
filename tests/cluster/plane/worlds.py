"""Clusters in which something is about to happen, and what has happened when all is quiet again.

Each is given whole, with those who borrow running already, so that a control plane that starts has
everything to do. What must come of it is stated here once, whatever happens to the control plane in
between.
"""

from collections import Counter
from dataclasses import dataclass, field

from aliquot.dialects.configuration import Configuration, Hierarchy
from tests.cluster.plane.books import Body


@dataclass(frozen=True)
class World:
    """Objects, and how many pods of each namespace run, and were made to go, in the end.

    Pods of one namespace that are alike are as good as each other: which of them made way may
    depend on who has been asked already.
    """

    name: str
    objects: tuple[Body, ...]
    running: Counter[str]
    ended: Counter[str] = field(default_factory=Counter)
    configuration: Configuration = field(default_factory=Configuration)

    def __str__(self) -> str:
        return self.name


def node(name: str, **has: object) -> Body:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", **has}
    amounts = {key.replace("gpu", "nvidia.com/gpu"): str(each) for key, each in amounts.items()}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def pod(path: str, scheduler: str = "aliquot", *, on: str = "", **more: object) -> Body:
    """A pod; `labels`, `annotations` and what it asks for, `on` a node if it runs already."""
    namespace, name = path.split("/")
    about = {key: more.pop(key) for key in ("labels", "annotations") if key in more}
    spec = {key: more.pop(key) for key in ("priority", "nodeSelector") if key in more}
    asks = {key.replace("gpu", "nvidia.com/gpu"): str(each) for key, each in more.items()}
    resources = {"limits": asks, "requests": asks}
    main = {"name": "main", "image": "image.invalid/main:1", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **about},
        "spec": {
            "schedulerName": scheduler,
            "containers": [main],
            **({"nodeName": on} if on else {}),
            **spec,
        },
    }


def quota(
    name: str,
    least: int,
    most: int | None = None,
    *,
    group: str = "scheduling.x-k8s.io",
    resource: str = "cpu",
    namespace: str = "",
    **labels: str,
) -> Body:
    """An ElasticQuota for one resource, in the namespace that is called like it."""
    spec = {"min": {resource: str(least)}}
    if most is not None:
        spec["max"] = {resource: str(most)}
    keys = {f"quota.scheduling.koordinator.sh/{key}": text for key, text in labels.items()}
    keys = {key.replace("is_parent", "is-parent"): text for key, text in keys.items()}
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": namespace or name, "labels": keys},
        "spec": spec,
    }


def _volcano(kind: str, name: str, namespace: str = "", **spec: object) -> Body:
    about = {"name": name, **({"namespace": namespace} if namespace else {})}
    version = "scheduling.volcano.sh/v1beta1"
    return {"apiVersion": version, "kind": kind, "metadata": about, "spec": spec}


def _reclaim() -> World:
    """Two borrowers on two nodes make way for one who is owed it, and its fellow takes a rest."""
    return World(
        "reclaim",
        (
            *(node("n-1", cpu=4), node("n-2", cpu=4)),
            *(quota("lent", 2, 8), quota("owner", 4, 4)),
            *(pod(f"lent/p-{n}", on=f"n-{1 + n % 2}", cpu=1) for n in range(6)),
            *(pod("owner/p-0", cpu=3), pod("owner/p-1", cpu=1)),
        ),
        Counter(lent=2, owner=2),
        Counter(lent=4),
    )


def _gang() -> World:
    """A gang takes back its queue's half from pods of another queue, on two nodes."""
    group = {"scheduling.k8s.io/group-name": "g"}
    return World(
        "gang",
        (
            *(node("n-1", gpu=3), node("n-2", gpu=3)),
            *(_volcano("Queue", each, weight=1) for each in ("research", "product")),
            _volcano("PodGroup", "g", "search", minMember=3, queue="product"),
            *(
                pod(
                    f"vision/p-{n}",
                    *("volcano",),
                    on=f"n-{1 + n % 2}",
                    annotations={"scheduling.volcano.sh/queue-name": "research"},
                    gpu=1,
                )
                for n in range(6)
            ),
            *(pod(f"search/p-{n}", "volcano", annotations=group, gpu=1) for n in range(3)),
        ),
        Counter(vision=3, search=3),
        Counter(vision=3),
    )


def _fair() -> World:
    """Of what is idle, one team has more than its part: it gives one back to another."""
    nos, gpu = "nos.nebuly.ai", "nvidia.com/gpu"
    return World(
        "fair",
        (
            *(node("n-1", gpu=4), node("n-2", gpu=4)),
            *(
                quota(team, least, group=nos, resource=gpu)
                for team, least in (("a", 4), ("b", 1), ("c", 3))
            ),
            *(pod(f"a/p-{n}", "nos-scheduler", on=f"n-{1 + n % 2}", gpu=1) for n in range(4)),
            *(pod(f"b/p-{n}", "nos-scheduler", on=f"n-{1 + n % 2}", gpu=1) for n in range(4)),
            *(pod(f"a/p-{n}", "nos-scheduler", gpu=1) for n in (4, 5)),
        ),
        Counter(a=5, b=3),
        Counter(b=1),
    )


def _recycling() -> World:
    """A quota above its share gives back what another is owed, after a while."""
    gpu = {"resource": "nvidia.com/gpu"}
    return World(
        "recycling",
        (
            node("n-1", gpu=6),
            quota("top", 6, 6, namespace="tree", parent="root", is_parent="true", **gpu),
            *(quota(each, 3, 6, namespace="tree", parent="top", **gpu) for each in ("a", "b")),
            *(
                pod(
                    f"{quota}/p-{n}",
                    *("koord-scheduler",),
                    on="n-1" if quota == "a" else "",
                    labels={"quota.scheduling.koordinator.sh/name": quota},
                    gpu=1,
                )
                for quota, pods in (("a", 6), ("b", 4))
                for n in range(pods)
            ),
        ),
        Counter(a=3, b=3),
        Counter(a=3),
        Configuration(hierarchy=Hierarchy(revoke_after="50ms")),
    )


def _devices() -> World:
    """Pods share two devices in parts; the last one does not fit any more."""

    def gpu(name: str) -> Body:
        has = {"tflops": "300", "vram": "40Gi"}
        return {
            "apiVersion": "tensor-fusion.ai/v1",
            "kind": "GPU",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": "n-1"}},
            "spec": {},
            "status": {
                "capacity": has,
                "available": has,
                "uuid": name,
                "gpuModel": "NVIDIA-A100-SXM4-40GB",
                "nodeSelector": {"kubernetes.io/hostname": "n-1"},
                "phase": "Running",
                "message": "",
            },
        }

    def asks(tflops: int, count: int = 1) -> dict[str, str]:
        said = {"tflops-request": str(tflops), "vram-request": "8Gi", "gpu-count": str(count)}
        return {f"tensor-fusion.ai/{key}": text for key, text in said.items()}

    sizes = ((150, 2), (100, 1), (100, 1), (50, 1), (50, 1), (60, 1))
    return World(
        "devices",
        (
            node("n-1"),
            *(gpu(each) for each in ("gpu-1", "gpu-2")),
            {
                "apiVersion": "tensor-fusion.ai/v1",
                "kind": "GPUResourceQuota",
                "metadata": {"name": "quota", "namespace": "parts"},
                "spec": {"total": {"requests": {"tflops": "600", "vram": "64Gi"}}},
            },
            *(
                pod(f"parts/p-{n}", "tensor-fusion-scheduler", annotations=asks(*size))
                for n, size in enumerate(sizes)
            ),
        ),
        Counter(parts=5),
    )


def _burst() -> World:
    """More pods than their quota may have come at once."""
    return World(
        "burst",
        (
            *(node("n-1", cpu=4), node("n-2", cpu=4)),
            quota("team", 4, 6),
            *(quota("idle", 4, 4),),
            *(pod(f"team/p-{n}", cpu=1) for n in range(9)),
        ),
        Counter(team=6),
    )


WORLDS = (_reclaim(), _gang(), _fair(), _recycling(), _devices(), _burst())
