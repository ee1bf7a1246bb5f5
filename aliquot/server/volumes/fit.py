"""Which volume fits a claim: the smallest of those that have what it asks for. Pure.

As Kubernetes' PersistentVolume controller chooses: a volume that is kept for the claim comes before
all others, one that is not Available never. What fits is the engine's rule, by which a scheduler
chooses as well.
"""

from collections.abc import Iterable
from dataclasses import replace

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Manifest, read
from aliquot.dialects.core.storage import volumes as dialect
from aliquot.engine import PersistentVolume, VolumeClaim, fits, offers
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.server.volumes.keys import refers_to


def best(claim: Body, volumes: Iterable[Body], only_kept: bool) -> Body | None:
    """The volume to bind to a claim; `only_kept`: of those that are kept for it."""
    asks = _claim(claim)
    kept: list[tuple[PersistentVolume, Body]] = []
    free: list[tuple[PersistentVolume, Body]] = []
    for body in volumes:
        known = None if only_kept and not refers_to(body, claim) else _volume(body)
        if known is None or asks is None:
            continue
        if refers_to(body, claim):
            if fits(known, asks):
                kept.append((known, body))
        elif known.available and not known.claim and offers(known, asks):
            free.append((known, body))
    found = min(kept or free, key=lambda pair: (pair[0].size, pair[0].name), default=None)
    return None if found is None else found[1]


def serves(volume: Body, claim: Body) -> bool:
    """May a claim have the free volume that it names? Its selector does not matter then."""
    has, asks = _volume(volume), _claim(claim)
    return has is not None and asks is not None and offers(has, replace(asks, selector=()))


def _volume(body: Body) -> PersistentVolume | None:
    manifest = _manifest(body, "PersistentVolume")
    return None if manifest is None else dialect.volume(manifest)


def _claim(body: Body) -> VolumeClaim | None:
    manifest = _manifest(body, "PersistentVolumeClaim")
    return None if manifest is None else dialect.claim(manifest)


def _manifest(body: Body, kind: str) -> Manifest | None:
    """None if the object cannot be read: nothing is bound to it."""
    try:
        return read(Document("", {**body, "apiVersion": "v1", "kind": kind}))
    except InputError:
        return None
