"""The cluster as the webhook knows it: what writes are judged against.

It holds objects that make sense, and of those only what a rule may ask for: pods in a slim form,
nodes as a sum. What it is told of is never judged again; an object that makes no sense is as good
as not there, as it is to the scheduler. Nothing here waits for anything, so that a judgement sees
one moment.
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
from aliquot.kube.webhook.index import Index, slim, words_of, words_of_pod

SHARES = {*quotas.KINDS, queues.KIND}
"""The kinds of objects that say who gets how much."""

_READERS: Mapping[str, Callable[[Manifest], object]] = {
    **dict.fromkeys(quotas.KINDS, quotas.quota),
    queues.KIND: queues.queue,
    gangs.KIND: gangs.gang,
    gpu_quotas.KIND: gpu_quotas.quota,
    "ResourceQuota": quotas.hard,
    "Namespace": lambda manifest: list(words_of(manifest)),
}
"""How to find out whether an object makes sense."""


def make_sure(manifest: Manifest) -> None:
    """Refuse an object that makes no sense by itself, and that rules could not look at."""
    reader = _READERS.get(manifest.kind)
    if reader is not None:
        reader(manifest)


class Cache:
    """The objects of a cluster, as they were last told."""

    def __init__(self, settings: Configuration, named_policy: str | None = None) -> None:
        self.settings = settings
        gpu = settings.gpu
        self.cards = Cards(gpu.memory_gb, gpu.memory_gb_by_model, counted=True, shared=True)
        self.capacity = Capacity(self.cards)
        self.index = Index()
        self.objects: dict[Key, Manifest] = {}
        """All but pods, nodes and what is in `shares`."""
        self.shares: dict[tuple[str, Key], Manifest] = {}
        """Quotas and queues, by group and key."""
        self.version = 0
        """Goes up with every change."""
        self._policy = named_policy or policy.configured(settings)
        self._forest: QuotaIndex | None = None

    @property
    def quota_index(self) -> QuotaIndex:
        """The quotas and queues, with what they mean to each other."""
        if self._forest is None:
            self._forest = build(self.shares.values(), self.special())
        return self._forest

    def special(self, *coming: Manifest) -> Special:
        """Whose quotas are there that nobody wrote, once these have come?"""
        choice = self.choice(*coming)
        return policy.special_quotas(choice.policy if choice is not None else self._policy)

    def choice(self, *coming: Manifest) -> Choice | None:
        """The policy that the objects ask for, once these have come; None if it is given."""
        if self._policy != "auto":
            return None
        return policy.choose((*self.shares.values(), *coming))

    def __contains__(self, wanted: object) -> bool:
        """Is there an object of this key? Pods and nodes are not asked for."""
        return wanted in self.objects or (VOLCANO_GROUP, wanted) in self.shares

    def space(self, name: str) -> Manifest | None:
        """A namespace."""
        return self.objects.get(key("Namespace", "", name))

    def put(self, manifest: Manifest) -> None:
        """An object is there, or has changed."""
        self.version += 1
        try:
            make_sure(manifest)
        except InputError:
            self.drop(manifest.group, manifest.key)
            return
        match manifest.kind:
            case "Pod":
                self._put_pod(manifest)
            case "Node":
                self.capacity.put(manifest)
            case kind if kind in SHARES:
                self.shares.pop((manifest.group, manifest.key), None)
                self.shares[manifest.group, manifest.key] = manifest
                self._forest = None
            case _:
                self.objects[manifest.key] = manifest
                self.index.put(manifest, words_of(manifest))

    def drop(self, group: str, gone: Key) -> None:
        """An object is not there any more."""
        self.version += 1
        if self.shares.pop((group, gone), None) is not None:
            self._forest = None
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
            self.index.put(kept, words_of_pod(kept))
