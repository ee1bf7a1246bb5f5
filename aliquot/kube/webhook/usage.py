"""What the pods in the cache use and ask for, by quota.

For resizes, what bound pods use of cpu and memory; for admission, what all pods ask for. The sums
are kept by what decides about a pod's quota: its namespace, the quota or queue that it names, its
gang. Which quota that is may change with other objects, so it is looked up when asked. Such an
answer costs a lookup for each of these owners, not for each pod.
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

_SHOWN_AFTER = 10.0
"""Seconds after which a pod that was let in is not counted any more if the watch does not show it:
its creation has failed then, or was but tried."""

Sums = dict[str, int]


class Owner(NamedTuple):
    """What decides about the quota of a pod."""

    namespace: str
    named: str | None
    queue: str | None
    gang: str | None


class Usage:
    """What pods request, by owner."""

    def __init__(self, cards: Cards) -> None:
        self._cards = cards
        self._pods: dict[Key, tuple[Owner, Sums]] = {}
        self._sums: dict[Owner, Sums] = {}
        """What bound pods request of what a resize can change."""
        self._waiting: dict[Key, tuple[Owner, Sums]] = {}
        """The pods that wait."""
        self._asked: dict[Owner, Sums] = {}
        """What all pods ask for."""
        self._admitted: dict[Key, tuple[Owner, Sums, float]] = {}
        """Pods that were let in, and when, until the watch shows them."""
        self._requests: dict[bytes, Sums] = {}
        self._encoder = msgspec.json.Encoder()

    def put(self, manifest: Manifest) -> None:
        """A pod was created or changed; one that has ended or is invalid uses nothing."""
        self.drop(manifest.key)
        pod = manifest.content
        assert isinstance(pod, PodWire)
        if pod.spec is None or pods.finished(pod.status):
            return
        try:
            owner, asks = owner_of(manifest), self.asks(manifest)
        except InputError:
            return
        _add(self._asked, owner, asks, +1)
        if pod.spec.node_name:
            self._pods[manifest.key] = owner, asks
            _add(self._sums, owner, _resizable(asks), +1)
        else:
            self._waiting[manifest.key] = owner, asks

    def drop(self, key: Key) -> None:
        """A pod was deleted."""
        self._admitted.pop(key, None)
        owner, asks = self._pods.pop(key, (None, {}))
        if owner is not None:
            _add(self._sums, owner, _resizable(asks), -1)
        else:
            owner, asks = self._waiting.pop(key, (None, {}))
        if owner is not None:
            _add(self._asked, owner, asks, -1)

    def of_pod(self, key: Key) -> Sums:
        """What a pod counts with."""
        return _resizable(self._pods[key][1]) if key in self._pods else {}

    def requests(self, manifest: Manifest) -> Sums:
        """What a pod requests of what a resize can change, or has been given where that is more."""
        return _resizable(self.asks(manifest))

    def asks(self, manifest: Manifest) -> Sums:
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
            found = dict(shape.requests)
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

    def asked_in(
        self, quota: str, index: QuotaIndex, objects: Objects, now: float, besides: Key
    ) -> Sums:
        """What the pods of a quota ask for together, those that were let in lately as well."""
        self._admitted = {
            key: each for key, each in self._admitted.items() if now - each[2] < _SHOWN_AFTER
        }
        asked = [*self._asked.items()]
        asked += [each[:2] for key, each in self._admitted.items() if key != besides]
        total: Sums = {}
        for owner, sums in asked:
            if quota_of(owner, index, objects) == quota:
                for name, amount in sums.items():
                    total[name] = total.get(name, 0) + amount
        return total

    def note_admitted(self, key: Key, owner: Owner, asks: Sums, now: float) -> None:
        """A pod was let in; the watch will show it."""
        if key not in self._pods and key not in self._waiting:
            self._admitted[key] = owner, asks, now


def _resizable(asks: Sums) -> Sums:
    return {name: amount for name, amount in asks.items() if name in RESIZABLE}


def _add(total: dict[Owner, Sums], owner: Owner, asks: Sums, sign: int) -> None:
    sums = total.setdefault(owner, {})
    for name, amount in asks.items():
        sums[name] = sums.get(name, 0) + sign * amount
        if not sums[name]:
            del sums[name]
    if not sums:
        del total[owner]


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
