"""Clusters in which something is about to happen, and what has happened when all is quiet again.

Each is given whole, with those who borrow running already, so that a control plane that starts has
everything to do. What must come of it is stated here once, whatever happens to the control plane in
between.
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from aliquot.dialects.configuration import Configuration, Hierarchy
from aliquot.json import Body
from tests.build.manifests import (
    GROUP_NAME,
    KEP9,
    KOORDINATOR,
    QUEUE_NAME,
    figures,
    gpu_quota,
    limited_pod,
    pod_group,
    queue,
    quota,
    ready_node,
    tree_quota,
)
from tests.build.storage import claim, mounted, storage_class, volume


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


node = partial(ready_node, cpu=64, memory="512Gi")


def _reclaim() -> World:
    """Two borrowers on two nodes make way for one who is owed it, and its fellow takes a rest."""
    return World(
        "reclaim",
        (
            *(node("n-1", cpu=4), node("n-2", cpu=4)),
            *(
                quota("lent/lent", {"cpu": 2}, {"cpu": 8}),
                quota("owner/owner", {"cpu": 4}, {"cpu": 4}),
            ),
            *(limited_pod(f"lent/p-{n}", {"cpu": 1}, nodeName=f"n-{1 + n % 2}") for n in range(6)),
            *(limited_pod("owner/p-0", {"cpu": 3}), limited_pod("owner/p-1", {"cpu": 1})),
        ),
        Counter(lent=2, owner=2),
        Counter(lent=4),
    )


def _gang() -> World:
    """A gang takes back its queue's half from pods of another queue, on two nodes."""
    group = {GROUP_NAME: "g"}
    return World(
        "gang",
        (
            *(node("n-1", gpu=3), node("n-2", gpu=3)),
            *(queue(each, weight=1) for each in ("research", "product")),
            pod_group("search/g", minMember=3, queue="product"),
            *(
                limited_pod(
                    f"vision/p-{n}",
                    {"gpu": 1},
                    schedulerName="volcano",
                    nodeName=f"n-{1 + n % 2}",
                    annotations={QUEUE_NAME: "research"},
                )
                for n in range(6)
            ),
            *(
                limited_pod(f"search/p-{n}", {"gpu": 1}, schedulerName="volcano", annotations=group)
                for n in range(3)
            ),
        ),
        Counter(vision=3, search=3),
        Counter(vision=3),
    )


def _fair() -> World:
    """Of what is idle, one team has more than its part: it gives one back to another."""
    nos = "nos.nebuly.ai"
    return World(
        "fair",
        (
            *(node("n-1", gpu=4), node("n-2", gpu=4)),
            *(
                quota(f"{team}/{team}", {"gpu": least}, group=nos)
                for team, least in (("a", 4), ("b", 1), ("c", 3))
            ),
            *(
                limited_pod(
                    f"a/p-{n}", {"gpu": 1}, schedulerName="nos-scheduler", nodeName=f"n-{1 + n % 2}"
                )
                for n in range(4)
            ),
            *(
                limited_pod(
                    f"b/p-{n}", {"gpu": 1}, schedulerName="nos-scheduler", nodeName=f"n-{1 + n % 2}"
                )
                for n in range(4)
            ),
            *(limited_pod(f"a/p-{n}", {"gpu": 1}, schedulerName="nos-scheduler") for n in (4, 5)),
        ),
        Counter(a=5, b=3),
        Counter(b=1),
    )


def _recycling() -> World:
    """A quota above its share gives back what another is owed, after a while."""
    return World(
        "recycling",
        (
            node("n-1", gpu=6),
            tree_quota(
                "tree/top", {"gpu": 6}, {"gpu": 6}, parent="root", is_parent="true", group=KEP9
            ),
            *(
                tree_quota(
                    *(f"tree/{each}", {"gpu": 3}, {"gpu": 6}),
                    parent="top",
                    namespaces=f'["{each}"]',
                    group=KEP9,
                )
                for each in ("a", "b")
            ),
            *(
                limited_pod(
                    f"{team}/p-{n}",
                    {"gpu": 1},
                    schedulerName="koord-scheduler",
                    labels={f"{KOORDINATOR}name": team},
                    **({"nodeName": "n-1"} if team == "a" else {}),
                )
                for team, pods in (("a", 6), ("b", 4))
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
            gpu_quota("parts/quota", {"requests": figures("600", "64Gi")}),
            *(
                limited_pod(
                    f"parts/p-{n}", schedulerName="tensor-fusion-scheduler", annotations=asks(*size)
                )
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
            quota("team/team", {"cpu": 4}, {"cpu": 6}),
            *(quota("idle/idle", {"cpu": 4}, {"cpu": 4}),),
            *(limited_pod(f"team/p-{n}", {"cpu": 1}) for n in range(9)),
        ),
        Counter(team=6),
    )


def _volumes() -> World:
    """Pods get disks of nodes, or volumes that are provisioned near them: once each.

    There are as many disks as claims on them: were a claim to have two, a pod would find none.
    """
    disks = [volume(f"pv-{n}", f"n-{1 + n % 2}") for n in range(4)]
    return World(
        "volumes",
        (
            *(node("n-1", cpu=4), node("n-2", cpu=4)),
            *(storage_class("local"), storage_class("fast", "csi.example.com")),
            *disks,
            *(claim(f"db/disk-{n}") for n in range(4)),
            *(claim(f"db/made-{n}", "fast") for n in range(2)),
            *(
                limited_pod(f"db/p-{n}", {"cpu": 1}, volumes=mounted(*claims))
                for n, claims in enumerate(
                    (["disk-0", "made-0"], ["disk-1"], ["disk-2", "made-1"], ["disk-3"])
                )
            ),
        ),
        Counter(db=4),
    )


WORLDS = (_reclaim(), _gang(), _fair(), _recycling(), _devices(), _burst(), _volumes())
