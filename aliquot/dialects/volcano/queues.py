"""Volcano Queues, each by itself, as the engine's quotas; `quota_index` makes one tree of them.

The engine knows a queue by its bare name. That is unique among quotas: the names of all others have
a slash.
"""

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import Manifest, once
from aliquot.dialects.core.objects import INT32_MAX, Quantities
from aliquot.dialects.nos.gpu_memory import as_written
from aliquot.dialects.volcano.objects import Guarantee, QueueSpec, QueueStatus, QueueWire
from aliquot.engine import Amounts, Quota

KIND = "Queue"
DEFAULT = "default"
ROOT = "root"
SPECIAL = (DEFAULT, ROOT)

_WEIGHTS = (1, 65535)
"""The lowest and highest weight that Volcano's CRD allows."""
_STATES = {"", "Open", "Unknown", "Closed", "Closing"}
_CLOSED = {"Closed", "Closing"}


@once
def queue(manifest: Manifest) -> Quota:
    """A queue as the engine's quota, without its parent and children (see `quota_index`).

    A queue does not lend its guarantee: Volcano keeps it free for the queue's own pods.
    """
    written = spec(manifest)
    return Quota(
        name=manifest.name,
        min=_amounts(written.guarantee.resource, manifest, "guarantee.resource")
        if written.guarantee is not None
        else (),
        max=_amounts(written.capability, manifest, "capability"),
        lend=False,
        fallback=manifest.name == DEFAULT,
        default_weight=_number(written.weight, _WEIGHTS, manifest, "weight"),
        deserved=_amounts(written.deserved, manifest, "deserved"),
        reclaimable=written.reclaimable is not False,
        closed=_state(manifest) in _CLOSED,
        priority=_number(written.priority, (0, INT32_MAX), manifest, "priority"),
    )


def spec(manifest: Manifest) -> QueueSpec:
    """The spec of a queue; an empty one if it has none."""
    read = manifest.content
    assert isinstance(read, QueueWire)
    return read.spec or QueueSpec()


def parent(manifest: Manifest) -> str | None:
    """The parent that a queue names, if that is not the root."""
    named = spec(manifest).parent
    return None if named in (None, "", ROOT) else named


def bounds(manifest: Manifest) -> dict[str, Quantities]:
    """The quantities of guarantee, deserved and capability as they are written, by field."""
    written = spec(manifest)
    return {
        "spec.guarantee.resource": (written.guarantee or Guarantee()).resource or {},
        "spec.deserved": written.deserved or {},
        "spec.capability": written.capability or {},
    }


def field(manifest: Manifest, where: str, resource: str) -> str:
    """The field of a resource in one of these maps, with the resource spelled as written."""
    return f"{where}[{as_written(resource, bounds(manifest)[where])}]"


def _amounts(quantities: Quantities | None, manifest: Manifest, field: str) -> Amounts:
    return tuple(sorted(amounts.read(quantities, manifest, f"spec.{field}").items()))


def _number(value: int | None, allowed: tuple[int, int], manifest: Manifest, field: str) -> int:
    """A number within bounds; the lower bound if there is none."""
    low, high = allowed
    if value is not None and not low <= value <= high:
        manifest.refuse(f"spec.{field}", f"{value} is not between {low} and {high}")
        return low
    return low if value is None else value


def _state(manifest: Manifest) -> str:
    read = manifest.content
    assert isinstance(read, QueueWire)
    state = (read.status or QueueStatus()).state or ""
    if state not in _STATES:
        known = ", ".join(sorted(_STATES - {""}))
        raise manifest.error("status.state", f"{state!r} is none of {known}")
    return state
