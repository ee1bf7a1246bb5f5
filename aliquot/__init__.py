"""Elastic quotas and fair sharing for shared GPU clusters.

The engine, for notebooks and other programs: build a cluster, feed events, read decisions.
"""

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
from aliquot.errors import AliquotError

__version__ = "0.1.0"

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
