"""Warnings for queues whose pods ask for what others' `deserved` name and their own does not.

Such a queue deserves nothing of that resource: its pods start on idle capacity only, and can be
evicted for it. That is rarely meant by an administrator who named GPUs and left out the cpus beside
them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from aliquot.dialects.core import pods
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.core.pod_templates import template_views
from aliquot.engine import Quota
from aliquot.validation.history import State

_Warned = tuple[str, str]
"""A queue, and a resource that its `deserved` does not name."""


@dataclass(slots=True)
class UnnamedResources:
    """The warnings so far, one for each queue and resource."""

    _found: dict[_Warned, Finding] = field(default_factory=dict)

    def add_state(self, state: State) -> None:
        """Look at the pods of a state's change; after a change of queues, at all pods."""
        queues = {quota.name: (manifest, quota) for manifest, quota in state.quota_index.queues}
        named = _first_named(quota for _, quota in queues.values())
        if not named:
            return
        for manifest in state.valid.values() if state.quotas_changed else state.applied:
            for home, resource in _asked_for(manifest, state):
                for quota in state.quota_index.ancestry(home):
                    by = named.get(resource)
                    silent = quota.deserved and resource not in dict(quota.deserved)
                    if by is not None and silent and quota.name in queues:
                        self._warn(queues[quota.name][0], resource, by, manifest, state)

    def findings(self) -> Iterator[Finding]:
        """The warnings, in the order in which their causes came."""
        yield from self._found.values()

    def _warn(self, queue: Manifest, resource: str, by: str, pod: Manifest, state: State) -> None:
        if (queue.name, resource) not in self._found:
            problem = (
                f"does not name {resource}, which {pod.title} asks for and the deserved of queue "
                f"{by} names: the queue deserves none of it, and its pods can be evicted for it"
            )
            warning = queue.finding("warning", "spec.deserved", problem)
            self._found[queue.name, resource] = replace(warning, at=state.change.at)


def _first_named(queues: Iterator[Quota]) -> dict[str, str]:
    """The resources that any `deserved` names, with the first queue, by name, of which it does."""
    found: dict[str, str] = {}
    for quota in sorted(queues, key=lambda quota: quota.name):
        for resource, _ in quota.deserved:
            found.setdefault(resource, quota.name)
    return found


def _asked_for(manifest: Manifest, state: State) -> Iterator[tuple[str, str]]:
    """The quota of each pod of an object, with each resource that the pod asks for."""
    content = manifest.content
    status = content.status if isinstance(content, PodWire) else None
    for view in template_views(manifest):
        if view.spec is None or pods.finished(status):
            continue
        named = state.requested_quota(manifest, view)
        home = state.quota_index.membership.of(named, manifest.namespace)
        shape = pods.shape(view.spec, status, manifest, state.cards, view.spec_field)
        for resource, amount in shape.requests if home is not None else ():
            if amount:
                yield str(home), resource
