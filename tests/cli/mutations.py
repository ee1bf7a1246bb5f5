"""Manifests gone wrong: valid ones, and the ways in which a fuzzer spoils them.

Everything is drawn from a `Random` that is handed in, so that a seed gives the same input again.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import yaml

from aliquot.engine.policies import POLICIES
from aliquot.json import Body
from tests.build.manifests import (
    annotated,
    asking,
    composite,
    figures,
    gang_job,
    gpu,
    gpu_quota,
    labelled,
    namespace,
    node,
    pod,
    pod_group,
    queue,
    quota,
    resource_quota,
    task,
    timeline,
    tree_quota,
    workload,
)

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["3"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
            ]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 5, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
        ],
    }
}
RUNNING: Body = {"nodeName": "n", "priority": 5}


def _labelled(name: str, **labels: Any) -> Body:
    body = node(name, gpu=8, cpu=8, **{"nvidia.com/mig-1g.10gb.me": 7, "nvidia.com/gpu-8gb": 4})
    body["metadata"]["labels"] = {f"nvidia.com/gpu.{key}": value for key, value in labels.items()}
    return body


NOS: list[Body] = [
    _labelled("n", memory="40960"),
    composite("ops/shared", ["a", "b"], {"nos.nebuly.com/gpu-memory": 80}, {"gpu": 4}),
    quota("c", {"nos.nebuly.ai/gpu-memory": 40}, group="nos.nebuly.ai"),
    pod("a/p", {"gpu": 2}, {"duration": "1m"}),
    pod("b/p", {"nvidia.com/gpu-8gb": 1}),
    pod("c/p", {"gpu": 2}, {"arrival": "10s"}),
    timeline({"at": 30, "apply": [composite("ops/shared", ["b", "d"], {"gpu": 1})]}),
    timeline(
        {"at": 40, "delete": [{"kind": "ElasticQuota", "namespace": "c", "name": "quota"}]},
        {"at": 50, "apply": [composite("ops/other", ["c"], {}, {})]},
    ),
]
KOORDINATOR: list[Body] = [
    node("n", cpu=40, gpu=8),
    tree_quota("top/research", {"gpu": 8}, {"gpu": 8}, is_parent="true"),
    tree_quota("top/vision", {"gpu": 2}, {"gpu": 8}, parent="research", weight='{"gpu": 3}'),
    tree_quota("speech/speech", {"gpu": 4}, {"gpu": 4}, parent="research", lend=False),
    tree_quota("top/lab", {}, {"gpu": 8}, namespaces='["lab", "attic"]', tree_id=""),
    tree_quota("koordinator-system/koordinator-default-quota", {}, {"cpu": 9, "gpu": 1}),
    labelled(pod("top/p", {"gpu": 2}, {"duration": "1m"}), name="vision", preemptible="false"),
    labelled(pod("lab/q", {"gpu": 1}, {"arrival": "10s"}), **{"quota-name": "lab"}),
    pod("speech/p", {"gpu": 1}),
    pod("kube-system/dns", {"cpu": 1}),
    pod("attic/p", {"gpu": 1}, priority=2_000_000_000),
    timeline(
        {"at": 20, "apply": [tree_quota("top/lab", {"gpu": 1}, {"gpu": 8}, parent="research")]},
        {"at": 30, "apply": [tree_quota("top/late", {}, {"gpu": 2}, parent="research")]},
        {"at": 90, "delete": [{"kind": "ElasticQuota", "namespace": "top", "name": "late"}]},
    ),
]
SHARED: list[Body] = [
    node("n", cpu=40, gpu=8),
    queue("default", {"gpu": 1}, {"cpu": 30, "gpu": 8}, weight=1),
    queue("root", weight=1),
    pod_group("a/one", queue="default", minMember=2, minTaskMember={"x": 1}),
    pod_group("b/two", "scheduling.x-k8s.io/v1alpha1", minResources={"cpu": 1}),
    annotated(pod("a/p", {"gpu": 1}, {"duration": "1m"}), group="one", queue="default"),
    annotated(pod("a/q", {"gpu": 1}), group="one", **{"volcano.sh/task-spec": "x"}),
    annotated(pod("b/p", {"gpu": 1}), **{"volcano.sh/preemptable": "false"}),
    namespace("b", queue="default"),
    resource_quota("a/rq", **{"volcano.sh/namespace.weight": "3", "cpu": 20}),
    gang_job(
        "a/train",
        task("ps", 1, {"cpu": 1}),
        task(None, 3, {"gpu": 1}, minAvailable=1),
        minAvailable=2,
    ),
    annotated(
        workload("Deployment", "b/web", {"cpu": 1}, replicas=2),
        queue="default",
        **{
            "scheduling.volcano.sh/group-min-member": "2",
            "scheduling.volcano.sh/group-min-resources": '{"cpu": "2"}',
        },
    ),
    timeline(
        {"at": 9, "apply": [gang_job("a/train", task("ps", 2), minAvailable=1)]},
        {"at": 20, "delete": [{"kind": "Job", "namespace": "a", "name": "train"}]},
        {"at": 30, "apply": [namespace("b"), queue("default", {}, {"gpu": 2}, state="Closed")]},
    ),
]
"""What runs under any policy: queues that come with Volcano, and gangs."""
VOLCANO: list[Body] = [
    *SHARED[:-1],
    queue("research", {"gpu": 4}, {"gpu": 8}, weight=3, deserved={"nvidia.com/gpu": 6}),
    queue("vision", parent="research", priority=5, reclaimable=False),
    queue("ops", weight=65535, state="Open"),
    annotated(pod("c/p", {"gpu": 2}, {"arrival": "10s"}), queue="vision"),
    gang_job("c/job", task("x", 2, {"gpu": 1}), minAvailable=1, queue="vision"),
    timeline(
        {"at": 20, "apply": [queue("vision", {"gpu": 1}, parent="research")]},
        {"at": 90, "delete": [{"kind": "Queue", "name": "ops"}]},
    ),
]
TENSOR_FUSION: list[Body] = [
    _labelled("n", product="NVIDIA-A100-SXM4-40GB", memory="40960"),
    node("m", cpu=8),
    gpu("g-0", "m", available=(60, "5Gi"), pool="east", gpuModel="A100", vendor="NVIDIA", index=0),
    gpu("g-1", "m", (100, "10Gi"), usedBy="tensor-fusion", index=1),
    gpu_quota(
        "a/q",
        {"requests": figures("1.5k", "80Gi"), "maxWorkers": 9, "alertThresholdPercent": 50},
        {"maxLimits": figures(900, "40Gi"), "maxGPUCount": 4, "defaultRequests": figures(5)},
    ),
    gpu_quota("b/q", {"limits": figures("200", "20Gi")}),
    asking(pod("a/p", {"cpu": 1}, {"duration": "1m"}), tflops_request="500m", gpu_count="2"),
    asking(pod("a/r", nodeName="m"), gpu_ids="g-0,g-1", tflops_limit="10", vram_request="1Gi"),
    asking(pod("b/p"), compute_percent_request="50", gpupool="east", gpu_indices="0,1"),
    asking(pod("b/q", {}, {"arrival": "10s"}), isolation="shared", gpu_model="A100", qos="low"),
    pod("a/cards", {"gpu": 1, "nvidia.com/mig-1g.10gb.me": 1}),
    pod("b/slices", {"nvidia.com/gpu-8gb": 2}),
    timeline(
        {"at": 20, "apply": [gpu_quota("b/q", {"maxWorkers": 0}), gpu("g-1", "m", phase="Failed")]},
        {"at": 30, "delete": [{"kind": "GPU", "name": "g-0"}, {"kind": "Node", "name": "n"}]},
        {"at": 40, "delete": [{"kind": "GPUResourceQuota", "namespace": "a", "name": "q"}]},
    ),
]
BUILT: list[list[Body]] = [
    [
        node(),
        quota("a", {"gpu": 2, "cpu": "1500m"}, {"gpu": 4}),
        quota("b", {"gpu": 6}, {"gpu": 8, "memory": "12E"}),
        pod("a/runs", {"gpu": 1}, {"duration": "90s"}, **RUNNING),
        pod("a/waits", {"gpu": 2}, {"arrival": "30s"}, affinity=AFFINITY),
        workload("Deployment", "b/web", {"gpu": 1, "cpu": "0.1"}, replicas=5),
        workload("Job", "b/train", {"gpu": 2}, parallelism=2, completions=4),
    ],
    [
        {**node("big", cpu=64, gpu=16, pods=20), "spec": {"taints": []}},
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "vip"},
            "value": 1000,
            "globalDefault": False,
        },
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "rq", "namespace": "a"},
            "spec": {"hard": {"requests.cpu": 40, "requests.nvidia.com/gpu": 8, "pods": 10}},
        },
        quota("a", {"gpu": 2}, {"gpu": 8}),
        pod(
            "a/vip",
            {"gpu": 3},
            priorityClassName="vip",
            tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
            initContainers=[{"name": "i", "resources": {"limits": {"cpu": 2}}}],
            overhead={"cpu": "250m"},
            nodeSelector={"kubernetes.io/hostname": "big"},
        ),
        timeline(
            {"at": "10s", "apply": [pod("a/later", {"gpu": 1}), node("more", gpu=2)]},
            {"at": "1m", "apply": [quota("a", {"gpu": 1}, {"gpu": 2})]},
            {"at": "2m", "delete": [{"kind": "Node", "name": "big"}]},
        ),
    ],
    [
        node(),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "pdb", "namespace": "a"},
            "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "x"}}},
        },
        workload("ReplicaSet", "a/web", {"gpu": 2}, replicas=3),
        {
            **pod("a/web-0", {"gpu": 2}, **RUNNING),
            "metadata": {
                "name": "web-0",
                "namespace": "a",
                "labels": {"app": "x"},
                "creationTimestamp": "2024-05-01T12:00:00Z",
                "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "controller": True}],
            },
            "status": {
                "phase": "Running",
                "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "2"}}],
            },
        },
        quota("a", {"gpu": 2}, {"gpu": 8}),
        quota("b", {"gpu": 6}),
        pod("b/owner", {"gpu": 6}, {"arrival": "1m"}, priority=-5),
    ],
    [{"apiVersion": "v1", "kind": "List", "items": [node(), pod("a/p", {"gpu": 1}), pod("a/q")]}],
    [
        _labelled("n", memory="81559"),
        _labelled("m", product="A10", memory=24564),
        quota("a", {"nos.nebuly.ai/gpu-memory": 100}, {"nos.nebuly.com/gpu-memory": 200}),
        quota("b", {"nos.nebuly.com/gpu-memory": "50"}),
        pod("a/cards", {"gpu": 2}, nodeName="n"),
        pod("a/waits", {"gpu": 1}),
        pod(
            "b/slices",
            {"nvidia.com/mig-1g.10gb.me": 1, "nvidia.com/gpu-8gb": 2},
            initContainers=[{"name": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
        ),
        timeline({"at": 9, "apply": [_labelled("n", product="A10"), quota("b", {"gpu": 1})]}),
    ],
    *([NOS] if "fair" in POLICIES else []),
    *([KOORDINATOR] if "hierarchy" in POLICIES else []),
    SHARED,
    TENSOR_FUSION,
    *([VOLCANO] if "queues" in POLICIES else []),
]
HOSTILE: list[Any] = [
    *(None, True, False, -1, 0, 1, 7, 2**31, 2**62, 2**63, 2**64, 10**30, -(10**30), 1.5, 1e-9),
    *(float("nan"), float("inf"), "", " ", "x", "A", "-", "a/b", "a.b", "x" * 300, "x" * 20_000),
    *("0", "-1", "+3", "1e400", "1e-400", "9" * 390, "12E", "1.5Gi", "3n", "0.0000000001", "0x1f"),
    *("1_000", "true", "null", "<<", "~", "30s", "1h30m", "100y", "99999999h", "0.000001ns", "-5s"),
    *("2024-05-01T12:00:00Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "\t\n"),
    *(
        "Zoë",
        "🦄",
        "\u202e",
        "\u0000",
        "\u001b[31m",
        "\ufeff",
        "\u0663",
        "\uff19",
        "\ud800",
        "é" * 100,
    ),
    *([], {}, [[]], [None], {"": ""}, {"a": {"b": [1]}}, ["x"] * 3, {"cpu": "1"}, {1: 2}),
    *("Always", "Never", "Gt", "Equal", "Pod", "Node", "List", "PodList", "Timeline", "n", "big"),
]
KEYS = ["kind", "spec", "metadata", "name", "namespace", "items", "steps", "at", "nodeName"]
KEYS += ["", "x" * 500, "é", "<<"]


def seeds() -> list[list[Body]]:
    """Valid inputs, each a list of documents."""
    folders = sorted({file.parent for file in EXAMPLES.rglob("*.yaml")})
    read = [
        [body for file in sorted(folder.glob("*.yaml")) for body in _documents(file)]
        for folder in folders
    ]
    return [*read, *BUILT]


def spoiled(random: Random, documents: list[Body]) -> bytes:
    """The documents as text, after a few mutations of what they say and of how it is written."""
    documents = deepcopy(documents)
    for _ in range(random.choice([0, 1, 1, 1, 2, 4])):
        mutate = random.choice([replace, replace, delete, duplicate, rename, swap, bury, repeat])
        documents = mutate(random, documents)
    text = written(random, documents)
    for _ in range(random.choice([0, 0, 0, 1, 1, 3])):
        text = random.choice(TEXT_MUTATIONS)(random, text)
    return text


def replace(random: Random, documents: Any) -> Any:
    """Something becomes something else."""
    holder, key = _somewhere(random, documents)
    holder[key] = deepcopy(random.choice(HOSTILE))
    return documents


def delete(random: Random, documents: Any) -> Any:
    """Something is missing."""
    holder, key = _somewhere(random, documents)
    del holder[key]
    return documents


def duplicate(random: Random, documents: Any) -> Any:
    """A document, or an item of a list, stands twice."""
    holder, key = _somewhere(random, documents)
    if isinstance(holder, list):
        holder.insert(key, deepcopy(holder[key]))
    return documents


def rename(random: Random, documents: Any) -> Any:
    """A key is another one."""
    holder, key = _somewhere(random, documents)
    if isinstance(holder, dict):
        holder[random.choice(KEYS)] = holder.pop(key)
    return documents


def swap(random: Random, documents: Any) -> Any:
    """Two things stand in each other's place, unless one holds the other."""
    (one, here), (other, there) = _somewhere(random, documents), _somewhere(random, documents)
    first, second = one[here], other[there]
    if isinstance(first, dict | list) or isinstance(second, dict | list):
        return documents
    one[here], other[there] = second, first
    return documents


def bury(random: Random, documents: Any) -> Any:
    """Something is wrapped a few times, or very deeply."""
    holder, key = _somewhere(random, documents)
    for _ in range(random.choice([1, 3, 60, 120])):
        holder[key] = [holder[key]] if random.random() < 0.5 else {"a": holder[key]}
    return documents


def repeat(random: Random, documents: Any) -> Any:
    """A list is far longer than any in real manifests."""
    holder, key = _somewhere(random, documents)
    if isinstance(holder[key], list) and holder[key]:
        holder[key] = holder[key] * random.choice([2, 50])
    return documents


def written(random: Random, documents: Any) -> bytes:
    """As YAML or JSON; what is too deep for the one is written as the other."""
    as_json, plain = random.random() < 0.3, random.random() < 0.5
    try:
        if not as_json:
            text = yaml.safe_dump_all(documents, allow_unicode=plain)
    except RecursionError:
        as_json = True
    if as_json:
        text = "\n".join(json.dumps(each) for each in documents)
    return text.encode("utf-8", "surrogatepass")


def flip(random: Random, text: bytes) -> bytes:
    """A byte is another one."""
    at = random.randrange(len(text) + 1)
    return text[:at] + bytes([random.randrange(256)]) + text[at + 1 :]


def cut(random: Random, text: bytes) -> bytes:
    """A piece is missing."""
    at = random.randrange(len(text) + 1)
    return text[:at] + text[at + random.choice([1, 5, 50, len(text)]) :]


def stutter(random: Random, text: bytes) -> bytes:
    """A line stands twice: a key, too, as like as not."""
    lines = text.split(b"\n")
    at = random.randrange(len(lines))
    return b"\n".join([*lines[: at + 1], *lines[at:]])


def insert(random: Random, text: bytes) -> bytes:
    """A word of YAML where it does not belong."""
    at = random.randrange(len(text) + 1)
    word = random.choice([b"---\n", b"...\n", b"&a ", b"*a ", b"!!str ", b"!x ", b"{", b"]", b"? "])
    return text[:at] + word + text[at:]


def bomb(random: Random, text: bytes) -> bytes:
    """A document of aliases to aliases, or of more depth than any parser likes."""
    width = random.choice([2, 10])
    levels = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, 12)]
    merges = ["a0: &a0 {x: 1}"]
    merges += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 20)]
    head = "apiVersion: v1\nkind: Pod\nmetadata: {name: bomb}\n"
    deep = random.choice(["[", "{a: ", "- ", "? "]) * random.choice([50, 99, 101, 5000])
    bad = random.choice([head + "\n".join(levels), head + "\n".join(merges), deep])
    return text + b"\n---\n" + bad.encode()


TEXT_MUTATIONS: list[Callable[[Random, bytes], bytes]] = [flip, flip, cut, stutter, insert, bomb]


def _somewhere(random: Random, documents: Any) -> tuple[Any, Any]:
    """A place in the documents: what holds it, and its key or index there."""
    places: list[tuple[Any, Any]] = []
    rest: list[Any] = [documents]
    while rest:
        holder = rest.pop()
        items = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, value in items:
            places.append((holder, key))
            if isinstance(value, dict | list):
                rest.append(value)
    return random.choice(places) if places else ([None], 0)


def _documents(file: Path) -> list[Body]:
    return [body for body in yaml.safe_load_all(file.read_text()) if body is not None]
