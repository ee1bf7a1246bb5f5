"""Elastic quotas and fair sharing for shared GPU clusters.

The engine, for notebooks and other programs: build a cluster, feed events, read decisions.

The names below are imported when they are first used, because the commands import this package too
and `aliquot --version` has no use for numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from aliquot.errors import AliquotError

if TYPE_CHECKING:
    from aliquot.engine.config import Knobs
    from aliquot.engine.cycle import Engine
    from aliquot.engine.decisions import Bind, Decision, Evict, Hold
    from aliquot.engine.events import (
        BindFailed,
        Event,
        NodeGone,
        NodeSet,
        PodGone,
        PodSet,
        QuotaGone,
        QuotaSet,
    )
    from aliquot.engine.objects import Node, Pod, Quota, Shape, Where
    from aliquot.engine.summary import QuotaSummary

__version__ = "0.1.0"

__all__ = [
    "AliquotError",
    "Bind",
    "BindFailed",
    "Decision",
    "Engine",
    "Event",
    "Evict",
    "Hold",
    "Knobs",
    "Node",
    "NodeGone",
    "NodeSet",
    "Pod",
    "PodGone",
    "PodSet",
    "Quota",
    "QuotaGone",
    "QuotaSet",
    "QuotaSummary",
    "Shape",
    "Where",
]

if not TYPE_CHECKING:  # type checkers would take every name for one that is here
    _MODULES = (
        "aliquot.engine.config",
        "aliquot.engine.cycle",
        "aliquot.engine.decisions",
        "aliquot.engine.events",
        "aliquot.engine.objects",
        "aliquot.engine.summary",
    )
    """Where the names of `__all__` are defined."""

    def __getattr__(name):
        """Import the name from the engine, and keep it."""
        for module in map(import_module, _MODULES if name in __all__ else ()):
            if name in vars(module):
                return globals().setdefault(name, getattr(module, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})
