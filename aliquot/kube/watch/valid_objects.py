"""The last valid version of every watched object, and which of several API groups is in force.

The scheduler and the webhook both keep what they watch here, so that writes are validated against
the objects that the scheduler goes by. An invalid object leaves its last valid version in force;
one that was never valid is left out. Two API groups can have objects of one kind and name: the one
of the group with the higher rank is in force, the other one once that object is deleted.
"""

from collections.abc import Iterator
from dataclasses import replace

from aliquot.dialects.core.manifest import KEP9_GROUPS, NOS_GROUPS, VOLCANO_GROUP, Key, Manifest
from aliquot.dialects.core.objects import Metadata
from aliquot.dialects.tensor_fusion.objects import GpuQuotaWire
from aliquot.dialects.tensor_fusion.quotas import KIND as GPU_QUOTA
from aliquot.json import Body

PLACE = "cluster"
"""What errors name in place of a file."""
_RANKS = {group: rank for rank, group in enumerate((VOLCANO_GROUP, *KEP9_GROUPS, *NOS_GROUPS))}
"""The ranks of API groups, the highest first: those with the smaller number."""


class ValidObjects:
    """The last valid version of each object, by key and API group."""

    def __init__(self) -> None:
        self._by_key: dict[Key, dict[str, Manifest]] = {}

    def __iter__(self) -> Iterator[Manifest]:
        """All of them, those of every group, the key that was put last at the end."""
        return (each for by_group in self._by_key.values() for each in by_group.values())

    def __contains__(self, key: object) -> bool:
        """Is there a valid version of this key in any group?"""
        return key in self._by_key

    def put(self, manifest: Manifest) -> None:
        """An object was created or changed, and is valid."""
        by_group = self._by_key.pop(manifest.key, {})
        by_group.pop(manifest.group, None)
        self._by_key[manifest.key] = {**by_group, manifest.group: manifest}

    def keep(self, group: str, key: Key, body: Body) -> Manifest | None:
        """An object is invalid now: its last valid content, with the body that it has now.

        None if it was never valid. But a GPUResourceQuota that was never valid allows no GPUs at
        all: an invalid field must not be a way around the quota.
        """
        valid = self._by_key.get(key, {}).get(group)
        if valid is None and key[0] == GPU_QUOTA:
            content = GpuQuotaWire(metadata=Metadata(name=key[2], namespace=key[1]))
            valid = Manifest(key[0], group, key[1], key[2], PLACE, content, {})
        if valid is None:
            return None
        kept = replace(valid, body=body)
        self._by_key.setdefault(key, {})[group] = kept
        return kept

    def drop(self, group: str, key: Key) -> bool:
        """An object was deleted; returns whether a version of it was kept here."""
        by_group = self._by_key.get(key, {})
        known = by_group.pop(group, None) is not None
        if not by_group:
            self._by_key.pop(key, None)
        return known

    def in_force(self, key: Key) -> Manifest | None:
        """The object of this key whose group has the highest rank, if there is one."""
        by_group = self._by_key.get(key)
        return _highest(by_group) if by_group else None

    def groups(self, key: Key) -> list[str]:
        """The groups that have a valid object of this key."""
        return list(self._by_key.get(key, ()))

    def all_in_force(self) -> Iterator[Manifest]:
        """The object in force of every key."""
        return map(_highest, self._by_key.values())


def _highest(by_group: dict[str, Manifest]) -> Manifest:
    """The object of the group with the highest rank; nearly always there is but one group."""
    if len(by_group) == 1:
        return next(iter(by_group.values()))
    return min(by_group.values(), key=lambda each: _RANKS.get(each.group, 0))
