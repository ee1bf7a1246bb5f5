"""Objects of the five designs, and what becomes of them if one value is wrong."""

from collections.abc import Iterator
from typing import Any

from aliquot.json import Body, fresh

GPU = "nvidia.com/gpu"
KOORDINATOR = "quota.scheduling.koordinator.sh"
Steps = tuple[str | int, ...]

_VALUES: tuple[Any, ...] = (True, 0, -1, 1.5, 70000, 10**12, "", "x", "-1", "1500m", [], ["x"], {})
_VALUES += ({"x": "y"},)
"""Values of every type, of which most are wrong in any place."""


def made(api_version: str, kind: str, path: str, spec: Body | None = None, **metadata: Any) -> Body:
    """An object of `namespace/name`, or of `name`."""
    namespace, _, name = path.rpartition("/")
    where = {"namespace": namespace} if namespace else {}
    body: Body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **where}}
    body["metadata"].update(metadata)
    return body if spec is None else {**body, "spec": spec}


def template(**more: Any) -> Body:
    """A pod template."""
    requests = {"cpu": 1, GPU: 1}
    container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": {GPU: 1}}}
    return {"spec": {"restartPolicy": "Never", "containers": [container], **more}}


BOUNDS = {"min": {"cpu": 2, GPU: 1}, "max": {"cpu": "4", "memory": "8Gi", GPU: 2}}
FIGURES = {"tflops": "10", "vram": "4Gi"}

KEP9 = [
    made("scheduling.x-k8s.io/v1alpha1", "ElasticQuota", "a/q", BOUNDS),
    made("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", "b/q", BOUNDS),
    made(
        "scheduling.x-k8s.io/v1alpha1",
        "PodGroup",
        "a/g",
        {"minMember": 2, "minResources": {"cpu": 2}, "scheduleTimeoutSeconds": 10},
    ),
    made("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", "a/g", {"minMember": 2}),
]
NOS = [
    made("nos.nebuly.com/v1alpha1", "ElasticQuota", "a/q", BOUNDS),
    made("nos.nebuly.ai/v1alpha1", "ElasticQuota", "b/q", {"min": {"nos.nebuly.ai/gpu-memory": 8}}),
    made(
        "nos.nebuly.com/v1alpha1",
        "CompositeElasticQuota",
        "ops/c",
        {"namespaces": ["c", "d"], **BOUNDS},
    ),
]
KOORDINATORS = [
    made(
        "scheduling.sigs.k8s.io/v1alpha1",
        "ElasticQuota",
        "top/team",
        BOUNDS,
        labels={f"{KOORDINATOR}/parent": "all", f"{KOORDINATOR}/is-parent": "false"},
        annotations={
            f"{KOORDINATOR}/shared-weight": '{"cpu": 4}',
            f"{KOORDINATOR}/namespaces": '["a", "b"]',
        },
    )
]
ALL = made(
    "scheduling.x-k8s.io/v1alpha1",
    "ElasticQuota",
    "top/all",
    {"min": {"cpu": 8, GPU: 4}, "max": {"cpu": 8, "memory": "8Gi", GPU: 4}},
    labels={f"{KOORDINATOR}/is-parent": "true"},
)
VOLCANO = [
    made(
        "scheduling.volcano.sh/v1beta1",
        "Queue",
        "q",
        {
            "weight": 2,
            "capability": {"cpu": 8, GPU: 4},
            "deserved": {"cpu": 4},
            "guarantee": {"resource": {"cpu": 2}},
            "reclaimable": True,
            "priority": 1,
            "parent": "root",
        },
    ),
    made(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        "a/g",
        {
            "minMember": 2,
            "queue": "other",
            "minTaskMember": {"t": 1},
            "minResources": {"cpu": 1},
            "networkTopology": {"mode": "hard", "highestTierAllowed": 2, "highestTierName": "row"},
        },
    ),
    made(
        "batch.volcano.sh/v1alpha1",
        "Job",
        "a/j",
        {
            "minAvailable": 2,
            "queue": "other",
            "schedulerName": "volcano",
            "policies": [
                {"event": "PodEvicted", "action": "RestartJob"},
                {"events": ["PodFailed", "Unknown"], "action": "AbortJob", "timeout": "1m"},
                {"exitCode": 3, "action": "TerminateJob"},
            ],
            "tasks": [
                {"name": "ps", "replicas": 1, "template": template()},
                {"name": "worker", "replicas": 2, "minAvailable": 1, "template": template()},
            ],
        },
    ),
    made(
        "topology.volcano.sh/v1alpha1",
        "HyperNode",
        "s0",
        {
            "tier": 1,
            "tierName": "rack",
            "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": "n0"}}},
                {"type": "HyperNode", "selector": {"regexMatch": {"pattern": "^s"}}},
                {
                    "type": "Node",
                    "selector": {
                        "labelMatch": {
                            "matchLabels": {"rack": "r0"},
                            "matchExpressions": [
                                {"key": "zone", "operator": "In", "values": ["a"]}
                            ],
                        }
                    },
                },
            ],
        },
    ),
]
OTHER_QUEUE = made("scheduling.volcano.sh/v1beta1", "Queue", "other", {"weight": 1})
TENSOR_FUSION = [
    made(
        "tensor-fusion.ai/v1",
        "GPUResourceQuota",
        "a/g",
        {
            "total": {
                "requests": FIGURES,
                "limits": FIGURES,
                "maxWorkers": 4,
                "alertThresholdPercent": 90,
            },
            "single": {"maxRequests": FIGURES, "maxLimits": FIGURES, "maxGPUCount": 2},
        },
    ),
]


_METADATA: tuple[Body, ...] = (
    {"generateName": "g-"},
    {"labels": {"a b": "x"}},
    {"labels": {"a": "x y"}},
    {"annotations": {"a b": "x y"}},
    {"annotations": {"a": "x y"}},
    {"finalizers": ["x"]},
    {"finalizers": ["example.com/x"]},
    {"ownerReferences": [{"kind": "Job"}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "u", "u": 1}]},
    {"uid": 3},
)
"""Metadata of which some are refused."""


def spoiled(body: Body) -> Iterator[tuple[str, Body]]:
    """An object with one thing wrong, or right after all; and what was done to it."""
    yield "as it is", fresh(body)
    for added in _METADATA:
        more = added
        metadata = body["metadata"]
        nameless = {key: each for key, each in metadata.items() if key != "name"}
        kept = nameless if "generateName" in more else metadata
        for word in more.keys() & {"labels", "annotations"}:
            more = {word: {**kept.get(word, {}), **more[word]}}
        yield f"metadata has {more}", {**fresh(body), "metadata": {**kept, **more}}
    for version in ("v1", "v9"):
        group = body["apiVersion"].partition("/")[0]
        yield f"apiVersion {version}", {**fresh(body), "apiVersion": f"{group}/{version}"}
    for steps in _paths(body):
        if steps[:1] not in (("spec",), ("metadata",)) or steps[:2] == ("metadata", "namespace"):
            continue
        for value in _values(steps) if steps != ("metadata",) else ():
            yield f"{steps} is {value!r}", _changed(body, steps, value)
        if len(steps) > 1:
            yield f"{steps} is gone", _without(body, steps)
        inner = _at(body, steps)
        if isinstance(inner, dict) and steps[-1] not in ("labels", "annotations"):
            yield f"{steps} has more", _changed(body, steps, {**inner, "unknownField": 1})


def _values(steps: Steps) -> tuple[Any, ...]:
    """Unquoted labels and annotations are read as they were meant: one of two exceptions."""
    if steps == ("metadata", "name"):
        return (*_VALUES, "a..b", "a.b", "A", "a" * 254, "-a")
    if len(steps) == 3 and steps[1] in ("labels", "annotations"):
        return ("", "x", "true", "[1]", '{"cpu": -1}', '["B"]')
    if len(steps) == 2 and steps[1] in ("labels", "annotations"):
        return ()
    return _VALUES


def _paths(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    if steps:
        yield steps
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    if isinstance(value, dict | list):
        for key, each in inner:
            if isinstance(each, dict | list):
                yield from _paths(each, (*steps, key))
            else:
                yield (*steps, key)


def _at(body: Any, steps: Steps) -> Any:
    for step in steps:
        body = body[step]
    return body


def _changed(body: Body, steps: Steps, value: Any) -> Body:
    copy: Body = fresh(body)
    _at(copy, steps[:-1])[steps[-1]] = value
    return copy


def _without(body: Body, steps: Steps) -> Body:
    copy: Body = fresh(body)
    del _at(copy, steps[:-1])[steps[-1]]
    return copy
