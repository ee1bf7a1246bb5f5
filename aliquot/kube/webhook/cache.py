"""The webhook's cache of the cluster: what writes are validated against.

It holds valid objects, and of those only what a rule may need: pods with the few labels and
annotations that rules read, nodes as a sum. An invalid object is left out, as in the scheduler.
Nothing here may await: each verdict sees one consistent state.
"""

from collections.abc import Callable, Mapping

from aliquot.dialects import policy
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.manifest import VOLCANO_GROUP, Key, Manifest, key
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.policy import Choice
from aliquot.dialects.quota_index import QuotaIndex, Special, build
from aliquot.dialects.tensor_fusion import quotas as gpu_quotas
from aliquot.dialects.volcano import gangs, queues
from aliquot.errors import InputError
from aliquot.kube.webhook.capacity import Capacity
from aliquot.kube.webhook.index import Index, object_keys, pod_keys, slim

QUOTA_KINDS = {*quotas.KINDS, queues.KIND}
"""The kinds of quotas and queues."""

_READERS: Mapping[str, Callable[[Manifest], object]] = {
    **dict.fromkeys(quotas.KINDS, quotas.quota),
    queues.KIND: queues.queue,
    gangs.KIND: gangs.gang,
    gpu_quotas.KIND: gpu_quotas.quota,
    "ResourceQuota": quotas.hard,
    "Namespace": lambda manifest: list(object_keys(manifest)),
}
"""By kind, a function that raises `InputError` for an invalid object."""


def check(manifest: Manifest) -> None:
    """Raise `InputError` for an object that is invalid by itself: rules could not read it."""
    reader = _READERS.get(manifest.kind)
    if reader is not None:
        reader(manifest)


class Cache:
    """The objects of a cluster, as last watched."""

    def __init__(self, settings: Configuration, named_policy: str | None = None) -> None:
        self.settings = settings
        gpu = settings.gpu
        self.cards = Cards(gpu.memory_gb, gpu.memory_gb_by_model, counted=True, shared=True)
        self.capacity = Capacity(self.cards)
        self.index = Index()
        self.objects: dict[Key, Manifest] = {}
        """All but pods, nodes and what is in `quotas`."""
        self.quotas: dict[tuple[str, Key], Manifest] = {}
        """Quotas and queues, by group and key."""
        self.version = 0
        """Increases with every change."""
        self._policy = named_policy or policy.configured(settings)
        self._quota_index: QuotaIndex | None = None

    @property
    def quota_index(self) -> QuotaIndex:
        """The quotas and queues, with parents, children and namespaces."""
        if self._quota_index is None:
            self._quota_index = build(self.quotas.values(), self.special())
        return self._quota_index

    def special(self, *coming: Manifest) -> Special:
        """The built-in quotas of the policy, as it is once the coming objects exist."""
        choice = self.choice(*coming)
        return policy.special_quotas(choice.policy if choice is not None else self._policy)

    def choice(self, *coming: Manifest) -> Choice | None:
        """The policy that the objects imply once the coming ones exist; None if configured."""
        if self._policy != "auto":
            return None
        return policy.choose((*self.quotas.values(), *coming))

    def __contains__(self, wanted: object) -> bool:
        """Is there an object of this key? Not for pods and nodes."""
        return wanted in self.objects or (VOLCANO_GROUP, wanted) in self.quotas

    def namespace(self, name: str) -> Manifest | None:
        """The namespace of this name, if there is one."""
        return self.objects.get(key("Namespace", "", name))

    def put(self, manifest: Manifest) -> None:
        """An object was created or changed."""
        self.version += 1
        try:
            check(manifest)
        except InputError:
            self.drop(manifest.group, manifest.key)
            return
        match manifest.kind:
            case "Pod":
                self._put_pod(manifest)
            case "Node":
                self.capacity.put(manifest)
            case kind if kind in QUOTA_KINDS:
                self.quotas.pop((manifest.group, manifest.key), None)
                self.quotas[manifest.group, manifest.key] = manifest
                self._quota_index = None
            case _:
                self.objects[manifest.key] = manifest
                self.index.put(manifest, object_keys(manifest))

    def drop(self, group: str, gone: Key) -> None:
        """An object was deleted."""
        self.version += 1
        if self.quotas.pop((group, gone), None) is not None:
            self._quota_index = None
        if gone[0] == "Node":
            self.capacity.drop(gone[2])
        if gone[0] == "Pod" or (gone in self.objects and self.objects[gone].group == group):
            self.objects.pop(gone, None)
            self.index.drop(gone)

    def _put_pod(self, manifest: Manifest) -> None:
        kept = slim(manifest)
        if kept is None:
            self.index.drop(manifest.key)
        else:
            self.index.put(kept, pod_keys(kept))
