"""What came of writes, as far as the engine must know it.

The executor reports what the API server has refused; the feed settles it before the next cycle. A
binding or an eviction that was carried out is not reported: the watch shows it.
"""

from dataclasses import dataclass

from aliquot.engine import Evict, Pod


@dataclass(frozen=True, slots=True)
class BindRefused:
    """The API server refused to bind a pod."""

    pod: Pod
    problem: str


@dataclass(frozen=True, slots=True)
class EvictionRefused:
    """An eviction was refused, or not sent because no claim waits for it any longer."""

    eviction: Evict


WriteResult = BindRefused | EvictionRefused


@dataclass(frozen=True, slots=True)
class Backoff:
    """A pod whose binding was refused is kept from the engine for so many seconds."""

    pod: Pod
    problem: str
    seconds: float
