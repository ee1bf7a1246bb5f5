"""Elastic quotas and fair sharing for shared GPU clusters.

The engine, for notebooks and other programs: build a cluster, feed events, read decisions.

The names below are imported when they are first used, because the commands import this package too
and `aliquot --version` has no use for numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from aliquot.errors import AliquotError

if TYPE_CHECKING:
    from aliquot.engine import (
        Bind,
        BindFailed,
        Decision,
        Engine,
        Event,
        Evict,
        Knobs,
        Node,
        NodeConstraints,
        NodeGone,
        NodeSet,
        Nominate,
        Pod,
        PodGone,
        PodSet,
        Quota,
        QuotaGone,
        QuotaSet,
        QuotaSummary,
        Shape,
        Wait,
    )

__version__ = "0.1.0"
KUBERNETES = "1.35"
"""The release of Kubernetes whose kinds are known here (`dialects.schemas.kubernetes`)."""

__all__ = [
    "AliquotError",
    "Bind",
    "BindFailed",
    "Decision",
    "Engine",
    "Event",
    "Evict",
    "Knobs",
    "Node",
    "NodeConstraints",
    "NodeGone",
    "NodeSet",
    "Nominate",
    "Pod",
    "PodGone",
    "PodSet",
    "Quota",
    "QuotaGone",
    "QuotaSet",
    "QuotaSummary",
    "Shape",
    "Wait",
]

if not TYPE_CHECKING:  # type checkers would take every name for one that is here

    def __getattr__(name):
        """Import the name from the engine, and keep it."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module("aliquot.engine"), name))

    def __dir__():
        return sorted({*globals(), *__all__})
