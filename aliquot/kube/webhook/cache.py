"""The webhook's cache of the cluster: what writes are validated against.

It holds valid objects, and of those only what a rule may need: pods with the few labels and
annotations that rules read, nodes as a sum. Which version of an object counts, and that of which
API group, is decided as in the scheduler, by `watch.valid_objects`. Nothing here may await: each
verdict sees one consistent state.
"""

from aliquot.dialects import policy
from aliquot.dialects.configuration import Configuration, system_namespaces
from aliquot.dialects.core.gpu_models import GpuModels
from aliquot.dialects.core.manifest import Key, Manifest, key
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.koordinator import admission, profiles
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.policy import Choice
from aliquot.dialects.quota_index import QuotaIndex, Special, build
from aliquot.dialects.volcano import queues
from aliquot.engine import Quota
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.kube.watch.valid_objects import ValidObjects
from aliquot.kube.webhook.index import Index, object_keys, pod_keys, slim
from aliquot.kube.webhook.usage import Usage
from aliquot.mirror.validity import check_by_itself
from aliquot.validation.capacity import Capacity

QUOTA_KINDS = {*quotas.KINDS, queues.KIND, profiles.KIND}
"""The kinds of quotas and queues, and of profiles, which keep some of them."""


class Cache:
    """The objects of a cluster, as last watched."""

    def __init__(self, settings: Configuration, named_policy: str | None = None) -> None:
        self.settings = settings
        gpu = settings.gpu
        groups = {value: group for group, values in gpu.models.items() for value in values}
        self.cards = Cards(
            gpu.memory_gb,
            gpu.memory_gb_by_model,
            counted=True,
            shared=True,
            models=GpuModels(groups, named=None),
        )
        self.capacity = Capacity(self.cards)
        self.index = Index()
        self.usage = Usage(self.cards)
        self.quotas = ValidObjects()
        """Quotas and queues, those of every API group."""
        self.objects: dict[Key, Manifest] = {}
        """The objects in force, but pods, nodes, quotas and queues."""
        self._others = ValidObjects()
        self.version = 0
        """Increases with every change."""
        self._policy = named_policy or policy.configured(settings)
        self._system = system_namespaces(settings)
        self._quota_index: QuotaIndex | None = None
        self._admitting: list[tuple[Manifest, Quota]] | None = None

    @property
    def quota_index(self) -> QuotaIndex:
        """The quotas and queues, with parents, children and namespaces."""
        if self._quota_index is None:
            self._quota_index = build(
                self.quotas, self.special(), self._system, models=self.cards.models
            )
        return self._quota_index

    @property
    def admitting(self) -> list[tuple[Manifest, Quota]]:
        """The quotas that limit which pods are let in."""
        if self._admitting is None:
            pairs = self.quota_index.pairs
            self._admitting = [each for each in pairs if admission.limits(*each) is not None]
        return self._admitting

    def special(self, *coming: Manifest) -> Special:
        """The built-in quotas of the policy, as it is once the coming objects exist."""
        choice = self.choice(*coming)
        return policy.special_quotas(choice.policy if choice is not None else self._policy)

    def choice(self, *coming: Manifest) -> Choice | None:
        """The policy that the objects imply once the coming ones exist; None if configured."""
        if self._policy != "auto":
            return None
        return policy.choose((*self.quotas.all_in_force(), *coming))

    def __contains__(self, wanted: object) -> bool:
        """Is there an object of this key? Not for pods and nodes."""
        return wanted in self.objects or wanted in self.quotas

    def namespace(self, name: str) -> Manifest | None:
        """The namespace of this name, if there is one."""
        return self.objects.get(key("Namespace", "", name))

    def put(self, manifest: Manifest) -> None:
        """An object was created or changed."""
        self.version += 1
        match manifest.kind:
            case "Pod":
                self._put_pod(manifest)
            case "Node":
                self.capacity.put(manifest)
            case kind:
                try:
                    check_by_itself(manifest)
                except InputError:
                    self.keep_last_valid(manifest.group, manifest.key, manifest.body)
                    return
                self._of_kind(kind).put(manifest)
                self._put_in_force(manifest.key)

    def keep_last_valid(self, group: str, invalid: Key, body: Body) -> None:
        """An object was created or changed, and is invalid."""
        self.version += 1
        self._of_kind(invalid[0]).keep(group, invalid, body)
        self._put_in_force(invalid)

    def drop(self, group: str, gone: Key) -> None:
        """An object was deleted."""
        self.version += 1
        match gone[0]:
            case "Pod":
                self.index.drop(gone)
                self.usage.drop(gone)
            case "Node":
                self.capacity.drop(gone[2])
            case kind:
                self._of_kind(kind).drop(group, gone)
                self._put_in_force(gone)

    def _of_kind(self, kind: str) -> ValidObjects:
        return self.quotas if kind in QUOTA_KINDS else self._others

    def _put_in_force(self, changed: Key) -> None:
        """Bring what is derived from the object of a key up to date."""
        if changed[0] in QUOTA_KINDS:
            self._quota_index = self._admitting = None
            return
        found = self._others.in_force(changed)
        if found is None:
            self.objects.pop(changed, None)
            self.index.drop(changed)
        else:
            self.objects[changed] = found
            self.index.put(found, object_keys(found))

    def _put_pod(self, manifest: Manifest) -> None:
        self.usage.put(manifest)
        kept = slim(manifest)
        if kept is None:
            self.index.drop(manifest.key)
        else:
            self.index.put(kept, pod_keys(kept))
