"""Workloads: how many pods an owner wants now, and what the next one is called.

Deployments, ReplicaSets, StatefulSets and Jobs all come down to this: so many pods in all, so many
at once, and a lost one is replaced under the next index. A pod that has ended counts as done.
"""

from dataclasses import dataclass, field

from aliquot.dialects.documents import Body
from aliquot.dialects.manifest import Key, Manifest
from aliquot.dialects.wire import WorkloadSpec, WorkloadWire


@dataclass(slots=True)
class Workload:
    """An owner of pods, and where it stands."""

    manifest: Manifest
    priority: int
    preempts: bool
    applied: int
    pods: dict[str, None] = field(default_factory=dict)
    """The uids of its pods that are still there."""
    done: int = 0
    """How many have ended."""
    next_index: int = 0

    @property
    def spec(self) -> WorkloadSpec:
        """What it asks for."""
        assert isinstance(self.manifest.content, WorkloadWire)
        return self.manifest.content.spec or WorkloadSpec()

    @property
    def wanted(self) -> int:
        """How many pods should be there now."""
        spec = self.spec
        if self.manifest.kind != "Job":
            replicas = 1 if spec.replicas is None else spec.replicas
            return max(replicas - self.done, 0)
        if spec.suspend:
            return 0
        at_once = 1 if spec.parallelism is None else spec.parallelism
        in_all = at_once if spec.completions is None else spec.completions
        return max(min(at_once, in_all - self.done), 0)

    def differs(self, manifest: Manifest) -> bool:
        """Would pods of this manifest look different?"""
        return bool(self.manifest.body["spec"]["template"] != manifest.body["spec"]["template"])

    def new_name(self) -> str:
        """The name of the next pod: `<owner>-<index>`."""
        self.next_index += 1
        return f"{self.manifest.name}-{self.next_index - 1}"

    def pod_body(self, name: str) -> Body:
        """The next pod, as an object."""
        template = self.manifest.body["spec"]["template"]
        owner = {
            "apiVersion": self.manifest.body["apiVersion"],
            "kind": self.manifest.kind,
            "name": self.manifest.name,
            "controller": True,
        }
        metadata = {
            **(template.get("metadata") or {}),
            "name": name,
            "namespace": self.manifest.namespace,
            "ownerReferences": [owner],
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def owner_of(manifest: Manifest) -> Key | None:
    """The key of the object that controls this one, if any does."""
    for reference in manifest.metadata.owner_references or []:
        if reference.controller:
            return (reference.kind, manifest.namespace, reference.name)
    return None
