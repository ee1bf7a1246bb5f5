"""What a cluster holds, counted from its objects alone, and by code that shares none with ours.

Nodes, devices and quotas may never hold more than they have, whatever the control plane went
through. Counting is as plain as can be: every bound pod that has not ended counts, and each time a
pod comes, changes or goes, everything is added up anew.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

Body = dict[str, Any]
Amounts = dict[str, Fraction]

_SUFFIXES = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000) ** power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}
_KOORDINATOR = "quota.scheduling.koordinator.sh"
_TENSOR_FUSION = "tensor-fusion.ai"
_OF_DEVICES = ("tflops", "vram")
_GANG = "scheduling.k8s.io/group-name"


class Books:
    """The pods of a cluster as they came and went, and what was wrong at any time."""

    def __init__(self, objects: Iterable[Body]) -> None:
        self.objects = list(objects)
        """Nodes, quotas, devices: as they are now."""
        self.pods: dict[str, Body] = {}
        """By uid."""
        self.nodes: dict[str, str] = {}
        """Where each pod was bound to, by uid, whether or not it is still there."""
        self.ended: dict[str, str] = {}
        """The pods that were made to go, and their paths."""
        self.wrong: list[str] = []

    def put(self, pod: Body) -> None:
        """A pod is there, like this."""
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if node and self.nodes.setdefault(uid, node) != node:
            self.wrong.append(f"{path(pod)} was bound to {self.nodes[uid]}, and to {node}")
        if pod["metadata"].get("deletionTimestamp"):
            self.ended[uid] = path(pod)
        grown = uid not in self.pods or self.pods[uid]["spec"].get("nodeName") != node
        self.pods[uid] = pod
        if grown:
            self.wrong += self.excesses()

    def gone(self, pod: Body) -> None:
        """A pod is no longer there."""
        self.ended[pod["metadata"]["uid"]] = path(pod)
        self.pods.pop(pod["metadata"]["uid"], None)

    def running(self) -> Counter[str]:
        """How many pods of each namespace hold something and are there to stay."""
        there = (pod["metadata"] for pod in self.bound())
        return Counter(each["namespace"] for each in there if "deletionTimestamp" not in each)

    def made_way(self) -> Counter[str]:
        """How many pods of each namespace were made to go."""
        return Counter(each.split("/")[0] for each in self.ended.values())

    def bound(self) -> Iterator[Body]:
        """The pods that hold something."""
        for pod in self.pods.values():
            over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
            if pod["spec"].get("nodeName") and not over:
                yield pod

    def of_kind(self, *kinds: str) -> Iterator[Body]:
        return (each for each in self.objects if each["kind"] in kinds)

    def excesses(self) -> Iterator[str]:
        """Who holds more than there is."""
        bound = list(self.bound())
        yield from self._nodes(bound)
        yield from self._quotas(bound)
        yield from self._devices(bound)
        yield from self._gpu_quotas(bound)

    def torn(self) -> Iterator[str]:
        """Gangs of which some run, and fewer than there must be; so may it be only for a while."""
        for gang in self.of_kind("PodGroup"):
            name, where = gang["metadata"]["name"], gang["metadata"]["namespace"]
            members = sum(
                pod["metadata"]["namespace"] == where and _noted(pod).get(_GANG) == name
                for pod in self.bound()
            )
            if 0 < members < gang["spec"]["minMember"]:
                yield f"gang {where}/{name}: {members} of {gang['spec']['minMember']} run"

    def _nodes(self, bound: list[Body]) -> Iterator[str]:
        for node in self.of_kind("Node"):
            name, has = node["metadata"]["name"], node["status"]["allocatable"]
            there = (asked(pod) for pod in bound if pod["spec"]["nodeName"] == name)
            yield from _beyond(f"node {name}", total(there), has)

    def _quotas(self, bound: list[Body]) -> Iterator[str]:
        quotas = list(self.of_kind("ElasticQuota"))
        parents = {
            each["metadata"]["name"]: _labels(each).get(f"{_KOORDINATOR}/parent") for each in quotas
        }
        homes = [(_homes(pod, quotas, parents), asked(pod)) for pod in bound]
        for quota in quotas:
            name = quota["metadata"]["name"]
            used = total(amounts for home, amounts in homes if name in home)
            yield from _beyond(f"quota {name}", used, quota["spec"].get("max") or {})

    def _devices(self, bound: list[Body]) -> Iterator[str]:
        known = {each["metadata"]["name"]: each for each in self.of_kind("GPU")}
        used: dict[str, list[Amounts]] = {name: [] for name in known}
        for pod in bound:
            asks, given = _shares(pod), _noted(pod).get(f"{_TENSOR_FUSION}/gpu-ids", "")
            chosen = given.split(",") if given else []
            if asks and len(set(chosen)) != _cards(pod):
                yield f"{path(pod)} asks for {_cards(pod)} devices and has {chosen}"
            for name in chosen:
                used[name].append(asks)
        for name, amounts in used.items():
            yield from _beyond(f"device {name}", total(amounts), known[name]["status"]["capacity"])

    def _gpu_quotas(self, bound: list[Body]) -> Iterator[str]:
        for quota in self.of_kind("GPUResourceQuota"):
            where = quota["metadata"]["namespace"]
            there = [pod for pod in bound if pod["metadata"]["namespace"] == where]
            used = total(_shares(pod) for pod in there for _ in range(_cards(pod)))
            most = quota["spec"].get("total", {}).get("requests", {})
            yield from _beyond(f"GPU quota of {where}", used, most)


def path(pod: Body) -> str:
    """Namespace and name, as people write it."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def amount(text: object) -> Fraction:
    """A quantity."""
    found = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(text))
    assert found is not None, text
    return Fraction(found[1]) * _SUFFIXES[found[2]]


def asked(pod: Body) -> Amounts:
    """What a pod asks for, itself included."""
    parts: list[Amounts] = [{"pods": Fraction(1)}]
    for container in pod["spec"]["containers"]:
        said = container.get("resources") or {}
        texts = (said.get("limits") or {}) | (said.get("requests") or {})
        parts.append({resource: amount(text) for resource, text in texts.items()})
    return total(parts)


def total(parts: Iterable[Amounts]) -> Amounts:
    """All of these together."""
    found: Amounts = {}
    for part in parts:
        for resource, number in part.items():
            found[resource] = found.get(resource, Fraction(0)) + number
    return found


def _homes(pod: Body, quotas: list[Body], parents: Mapping[str, str | None]) -> set[str]:
    """The quota of a pod, and all above it."""
    where = pod["metadata"]["namespace"]
    own = next((q["metadata"]["name"] for q in quotas if q["metadata"]["namespace"] == where), None)
    home = _labels(pod).get(f"{_KOORDINATOR}/name") or own
    found = set()
    while home:
        found.add(home)
        home = parents.get(home)
    return found


def _shares(pod: Body) -> Amounts:
    """What a pod asks for of each of its devices."""
    said = ((word, _noted(pod).get(f"{_TENSOR_FUSION}/{word}-request")) for word in _OF_DEVICES)
    return {word: amount(text) for word, text in said if text}


def _cards(pod: Body) -> int:
    return int(_noted(pod).get(f"{_TENSOR_FUSION}/gpu-count", "1"))


def _beyond(what: str, used: Amounts, most: Mapping[str, object]) -> Iterator[str]:
    for resource, text in most.items():
        held = used.get(resource, Fraction(0))
        if held > amount(text):
            yield f"{what} has {text} {resource}, and {float(held):g} are held"


def _labels(body: Body) -> dict[str, str]:
    return body["metadata"].get("labels") or {}


def _noted(body: Body) -> dict[str, str]:
    return body["metadata"].get("annotations") or {}
