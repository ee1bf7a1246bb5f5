"""Elastic quotas and fair sharing for shared GPU clusters.

For notebooks and other programs: `load` objects and `simulate` them; or use the engine itself:
build a cluster, feed events, read decisions. Errors are `AliquotError`s.

The names below are imported when they are first used, because the commands import this package too
and `aliquot --version` has no use for numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from aliquot.errors import AliquotError, ArgumentError, InputError
from aliquot.version import __version__ as __version__

if TYPE_CHECKING:
    from aliquot.engine import (
        Bind,
        BindFailed,
        Budget,
        BudgetGone,
        BudgetSet,
        Decision,
        Device,
        DeviceGone,
        DeviceSet,
        Engine,
        Event,
        Evict,
        EvictFailed,
        Gang,
        GangGone,
        GangSet,
        GpuAmount,
        GpuAsk,
        GpuBound,
        GpuQuota,
        GpuQuotaGone,
        GpuQuotaSet,
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
        Reason,
        Refusal,
        Shape,
        Wait,
        WeightSet,
    )
    from aliquot.simulation.library import load, simulate

__all__ = [
    "AliquotError",
    "ArgumentError",
    "Bind",
    "BindFailed",
    "Budget",
    "BudgetGone",
    "BudgetSet",
    "Decision",
    "Device",
    "DeviceGone",
    "DeviceSet",
    "Engine",
    "Event",
    "Evict",
    "EvictFailed",
    "Gang",
    "GangGone",
    "GangSet",
    "GpuAmount",
    "GpuAsk",
    "GpuBound",
    "GpuQuota",
    "GpuQuotaGone",
    "GpuQuotaSet",
    "InputError",
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
    "Reason",
    "Refusal",
    "Shape",
    "Wait",
    "WeightSet",
    "load",
    "simulate",
]

_LIBRARY = ("load", "simulate")

if not TYPE_CHECKING:  # type checkers would take every name for one that is here

    def __getattr__(name):
        """Import the name from the engine or the library, and keep it."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = "aliquot.simulation.library" if name in _LIBRARY else "aliquot.engine"
        return globals().setdefault(name, getattr(import_module(module), name))

    def __dir__():
        return sorted({*globals(), *__all__})
