"""What the quotas use of what a resize can change, cpu and memory, by the pods in the cache.

The sums are kept by what decides about a pod's quota: its namespace, the quota or queue that it
names, its gang. Which quota that is may change with other objects, so it is looked up when asked.
A resize is rare, and its answer costs a lookup for each of these owners, not for each pod.
"""

from typing import NamedTuple

import msgspec

from aliquot.dialects.core import pods
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.objects import PodSpec, PodStatus, PodWire
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.quota_index import QuotaIndex
from aliquot.dialects.volcano import keys as volcano
from aliquot.dialects.volcano.keys import GroupRef
from aliquot.errors import InputError
from aliquot.mirror.group_membership import Objects, queue_of

RESIZABLE = ("cpu", "memory")
"""The resources that a resize may change."""
_MOST_SPECS = 20_000
"""Requests kept by spec: far more than a cluster has templates; beyond it, it starts anew."""

Sums = dict[str, int]


class Owner(NamedTuple):
    """What decides about the quota of a pod."""

    namespace: str
    named: str | None
    queue: str | None
    gang: str | None


class Usage:
    """What bound pods request, by owner."""

    def __init__(self, cards: Cards) -> None:
        self._cards = cards
        self._pods: dict[Key, tuple[Owner, Sums]] = {}
        self._sums: dict[Owner, Sums] = {}
        self._requests: dict[bytes, Sums] = {}
        self._encoder = msgspec.json.Encoder()

    def put(self, manifest: Manifest) -> None:
        """A pod was created or changed; one that waits, has ended or is invalid uses nothing."""
        self.drop(manifest.key)
        pod = manifest.content
        assert isinstance(pod, PodWire)
        if pod.spec is None or not pod.spec.node_name or pods.finished(pod.status):
            return
        try:
            owner, asks = owner_of(manifest), self.requests(manifest)
        except InputError:
            return
        self._pods[manifest.key] = owner, asks
        self._add(owner, asks, +1)

    def drop(self, key: Key) -> None:
        """A pod was deleted."""
        owner, asks = self._pods.pop(key, (None, {}))
        if owner is not None:
            self._add(owner, asks, -1)

    def of_pod(self, key: Key) -> Sums:
        """What a pod counts with."""
        return self._pods[key][1] if key in self._pods else {}

    def requests(self, manifest: Manifest) -> Sums:
        """What a pod requests, or has been given where that is more."""
        pod = manifest.content
        assert isinstance(pod, PodWire)
        spec, status = pod.spec or PodSpec(), pod.status or PodStatus()
        key = self._encoder.encode(
            (
                *(spec.containers, spec.init_containers, spec.resources, spec.overhead),
                *(status.container_statuses, status.init_container_statuses),
            )
        )
        found = self._requests.get(key)
        if found is None:
            shape = pods.shape(spec, status, manifest, self._cards)
            found = {name: n for name, n in shape.requests if name in RESIZABLE}
            if len(self._requests) >= _MOST_SPECS:
                self._requests.clear()
            self._requests[key] = found
        return found

    def by_quota(self, index: QuotaIndex, objects: Objects) -> dict[str, Sums]:
        """What each quota uses, with the quotas below it."""
        used: dict[str, Sums] = {}
        for owner, sums in self._sums.items():
            quota = quota_of(owner, index, objects)
            for each in index.ancestry(quota) if quota is not None else ():
                total = used.setdefault(each.name, {})
                for name, amount in sums.items():
                    total[name] = total.get(name, 0) + amount
        return used

    def _add(self, owner: Owner, asks: Sums, sign: int) -> None:
        sums = self._sums.setdefault(owner, {})
        for name, amount in asks.items():
            sums[name] = sums.get(name, 0) + sign * amount
            if not sums[name]:
                del sums[name]
        if not sums:
            del self._sums[owner]


def owner_of(manifest: Manifest) -> Owner:
    """What decides about the quota of a pod."""
    ref = volcano.group_ref(manifest.metadata, manifest)
    return Owner(manifest.namespace, koordinator.quota_named(manifest), ref.queue, ref.gang)


def quota_of(owner: Owner, index: QuotaIndex, objects: Objects) -> str | None:
    """The quota of a pod, by the objects of now; None if it has none."""
    ref = GroupRef(owner.gang, "", owner.queue, "", "")
    queue = queue_of(ref, owner.namespace, objects)
    asked = index.find_quota(owner.named, owner.namespace, queue)
    found = index.membership.of(asked, owner.namespace)
    return found if found in index.quotas else None
