"""The objects of the embedded cluster, as they stand now."""

from aliquot.cluster import annotations
from aliquot.dialects import nodes, pods, quotas
from aliquot.dialects.manifest import Key, Manifest, is_read
from aliquot.dialects.times import timestamp
from aliquot.dialects.wire import PodSpec, PodStatus, PodWire, PriorityClassWire, WorkloadWire
from aliquot.errors import InputError

_BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_MOST_PODS = 100_000
_WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "Job")


class Store:
    """Objects by key, and the questions they answer together."""

    def __init__(self) -> None:
        self.objects: dict[Key, Manifest] = {}
        self._classes: dict[str, PriorityClassWire] = {}

    def put(self, manifest: Manifest) -> None:
        """Add or replace an object."""
        self.objects[manifest.key] = manifest
        if isinstance(manifest.content, PriorityClassWire):
            self._classes[manifest.name] = manifest.content

    def delete(self, key: Key, place: str) -> list[Manifest]:
        """Take an object away, and all that goes with it: a namespace's objects, a node's pods."""
        kind, namespace, name = key
        gone = [each for each in self.objects.values() if each.key == key]
        if kind == "Namespace":
            gone += [each for each in self.objects.values() if each.namespace == name]
        if kind == "Node":
            gone += [each for each in self.objects.values() if _runs_on(each, name)]
        known = gone or not is_read(kind) or (kind == "Pod" and self._may_be_owned(namespace, name))
        if not known:
            path = f"{namespace}/{name}" if namespace else name
            raise InputError(place, "", f"there is no {kind} {path} to delete")
        for each in gone:
            self.objects.pop(each.key, None)
            if each.kind == "PriorityClass":
                self._classes.pop(each.name, None)
        return gone

    def check(self, manifest: Manifest) -> None:
        """Read an object to the end, so that whatever is wrong with it comes out now."""
        match manifest.content:
            case PodWire(spec=spec, status=status):
                pods.shape(spec, status, manifest)
                self.priority(spec, manifest, "spec")
                self._check_node(spec, status, manifest, "spec")
            case WorkloadWire(spec=spec):
                template = spec.template if spec is not None else None
                if template is None:
                    raise manifest.error("spec.template", "is missing")
                pods.shape(template.spec, None, manifest, "spec.template.spec")
                self.priority(template.spec, manifest, "spec.template.spec")
                self._check_node(template.spec, None, manifest, "spec.template.spec")
                for field in ("replicas", "parallelism", "completions"):
                    value = getattr(spec, field) or 0
                    if not 0 <= value <= _MOST_PODS:
                        problem = f"{value} is not between 0 and {_MOST_PODS}"
                        raise manifest.error(f"spec.{field}", problem)
            case PriorityClassWire(value=None):
                raise manifest.error("value", "is missing")
        timestamp(
            manifest.metadata.creation_timestamp,
            f"{manifest.place}: {manifest.title}",
            "metadata.creationTimestamp",
        )
        annotations.lasts(manifest)
        if manifest.kind == "Node":
            nodes.node(manifest)
        if manifest.kind == "ElasticQuota":
            quotas.quota(manifest)

    def priority(self, spec: PodSpec | None, manifest: Manifest, field: str) -> tuple[int, bool]:
        """A pod's priority, and whether it may preempt: its own word, its class's, the default."""
        spec = spec or PodSpec()
        named = self._class_of(spec, manifest, field)
        value = named.value if named is not None else 0
        policy = spec.preemption_policy or (named.preemption_policy if named is not None else None)
        return spec.priority if spec.priority is not None else value or 0, policy != "Never"

    def _check_node(
        self, spec: PodSpec | None, status: PodStatus | None, manifest: Manifest, field: str
    ) -> None:
        """A pod can only run on a node that is there."""
        name = spec.node_name if spec is not None else None
        if name and not pods.finished(status) and ("Node", "", name) not in self.objects:
            raise manifest.error(f"{field}.nodeName", f"there is no node {name}")

    def _class_of(self, spec: PodSpec, manifest: Manifest, field: str) -> PriorityClassWire | None:
        name = spec.priority_class_name
        if not name:
            defaults = [each for each in self._classes.values() if each.global_default]
            return max(defaults, key=lambda each: each.value or 0, default=None)
        if name in self._classes:
            return self._classes[name]
        if name in _BUILT_IN:
            return PriorityClassWire(value=_BUILT_IN[name])
        if spec.priority is None:
            problem = f"there is no PriorityClass {name}"
            raise manifest.error(f"{field}.priorityClassName", problem)
        return None

    def _may_be_owned(self, namespace: str, name: str) -> bool:
        owner, _, index = name.rpartition("-")
        return index.isdigit() and any(
            (kind, namespace, owner) in self.objects for kind in _WORKLOADS
        )


def _runs_on(manifest: Manifest, node: str) -> bool:
    content = manifest.content
    return (
        isinstance(content, PodWire) and content.spec is not None and content.spec.node_name == node
    )
