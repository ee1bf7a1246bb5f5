"""Volcano's Queues, each by itself, as quotas; `quota_index` makes one tree of them.

A queue goes by its bare name, which no other quota has: those have a slash in theirs.
"""

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import Manifest, once
from aliquot.dialects.core.objects import Guarantee, Quantities, QueueSpec, QueueStatus, QueueWire
from aliquot.dialects.nos.gpu_memory import as_written
from aliquot.engine import Amounts, Quota

KIND = "Queue"
DEFAULT = "default"
ROOT = "root"
SPECIAL = (DEFAULT, ROOT)

_WEIGHTS = (1, 65535)
_STATES = {"", "Open", "Unknown", "Closed", "Closing"}
_CLOSED = {"Closed", "Closing"}
_HIGHEST_PRIORITY = 2**31 - 1


@once
def queue(manifest: Manifest) -> Quota:
    """What one queue says by itself; what its parent is, and whether it is one, others decide.

    What it is guaranteed is kept for it, so it does not lend.
    """
    said = spec(manifest)
    return Quota(
        name=manifest.name,
        min=_amounts(said.guarantee.resource, manifest, "guarantee.resource")
        if said.guarantee is not None
        else (),
        max=_amounts(said.capability, manifest, "capability"),
        lend=False,
        fallback=manifest.name == DEFAULT,
        default_weight=_number(said.weight, _WEIGHTS, manifest, "weight"),
        deserved=_amounts(said.deserved, manifest, "deserved"),
        reclaimable=said.reclaimable is not False,
        closed=_state(manifest) in _CLOSED,
        priority=_number(said.priority, (0, _HIGHEST_PRIORITY), manifest, "priority"),
    )


def spec(manifest: Manifest) -> QueueSpec:
    """What is written about it; an empty one, if nothing is."""
    read = manifest.content
    assert isinstance(read, QueueWire)
    return read.spec or QueueSpec()


def parent(manifest: Manifest) -> str | None:
    """The queue above it, if it names one other than the root."""
    named = spec(manifest).parent
    return None if named in (None, "", ROOT) else named


def bounds(manifest: Manifest) -> dict[str, Quantities]:
    """Its maps of amounts as they are written, by where they stand."""
    said = spec(manifest)
    return {
        "spec.guarantee.resource": (said.guarantee or Guarantee()).resource or {},
        "spec.deserved": said.deserved or {},
        "spec.capability": said.capability or {},
    }


def field(manifest: Manifest, where: str, resource: str) -> str:
    """Where an amount stands, in the spelling of its author."""
    return f"{where}[{as_written(resource, bounds(manifest)[where])}]"


def _amounts(quantities: Quantities | None, manifest: Manifest, field: str) -> Amounts:
    return tuple(sorted(amounts.read(quantities, manifest, f"spec.{field}").items()))


def _number(value: int | None, allowed: tuple[int, int], manifest: Manifest, field: str) -> int:
    """A number within bounds; the lower one where nothing is said."""
    low, high = allowed
    if value is not None and not low <= value <= high:
        raise manifest.error(f"spec.{field}", f"{value} is not between {low} and {high}")
    return low if value is None else value


def _state(manifest: Manifest) -> str:
    read = manifest.content
    assert isinstance(read, QueueWire)
    state = (read.status or QueueStatus()).state or ""
    if state not in _STATES:
        known = ", ".join(sorted(_STATES - {""}))
        raise manifest.error("status.state", f"{state!r} is none of {known}")
    return state
