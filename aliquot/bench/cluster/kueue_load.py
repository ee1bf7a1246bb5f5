"""Kueue's baseline generator as the pods of a live cluster, each at its time.

The objects are those of `aliquot generate baseline`: 5 cohorts, each a lending group, of 6 queues.
Its Jobs have one pod each; here the benchmark plays the Job's controller, so that no other is
measured. A pod that is evicted comes again under the next name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aliquot.dialects.core.simulation_annotations import ARRIVAL, DURATION
from aliquot.json import Body
from aliquot.questions.workloads.generators import BASELINE, baseline

_READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}


@dataclass(frozen=True, slots=True)
class Workload:
    """One pod of the generator."""

    size: str
    """small, medium or large."""
    at: float
    """Seconds after the begin when it is created."""
    seconds: float
    """How long it runs once it is bound."""
    cpu: int
    pod: Body


@dataclass(frozen=True, slots=True)
class Load:
    """All objects of the generator."""

    node: Body
    quotas: list[Body]
    workloads: list[Workload]
    """In order of their arrival."""

    @property
    def limit(self) -> float:
        """The physical limit: seconds in which the node does all of the work, never idle."""
        cpus = int(self.node["status"]["allocatable"]["cpu"])
        return sum(each.cpu * each.seconds for each in self.workloads) / cpus

    def namespaces(self) -> Iterator[Body]:
        """One for each quota."""
        for quota in self.quotas:
            name = quota["metadata"]["namespace"]
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def load(scale: float) -> Load:
    """So much of the generator's load, of the same shape."""
    node, *rest = baseline(scale)
    node["status"] |= {"capacity": node["status"]["allocatable"], "conditions": [_READY]}
    quotas = [each for each in rest if each["kind"] == "ElasticQuota"]
    workloads = [_workload(each) for each in rest if each["kind"] == "Job"]
    return Load(node, quotas, sorted(workloads, key=lambda each: each.at))


def priority_classes() -> Iterator[Body]:
    """One of each size: a server refuses a priority without a class."""
    for each in BASELINE:
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": each.name},
            "value": each.priority,
        }


def pod_again(pod: Body, gone: str) -> Body:
    """The pod that a Job makes in place of one that was evicted, from its first pod."""
    first, _, tries = gone.partition(".")
    return {**pod, "metadata": {**pod["metadata"], "name": f"{first}.{int(tries or 0) + 1}"}}


def _workload(job: Body) -> Workload:
    about, spec = job["metadata"], dict(job["spec"]["template"]["spec"])
    size, space = about["name"].partition("-")[0], about["namespace"]
    del spec["priority"]
    at, length = (
        float(about["annotations"][key].removesuffix("ms")) / 1e3 for key in (ARRIVAL, DURATION)
    )
    requests: Any = spec["containers"][0]["resources"]["requests"]
    pod: Body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{space}-{about['name']}", "namespace": space},
        "spec": {**spec, "priorityClassName": size},
    }
    return Workload(size, at, length, int(requests["cpu"]), pod)
