"""Elastic quotas and fair sharing for shared GPU clusters.

The engine, for notebooks and other programs: build a cluster, feed events, read decisions.
"""

from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind, Decision, Evict, Wait
from aliquot.engine.model.events import (
    BindFailed,
    Event,
    NodeGone,
    NodeSet,
    PodGone,
    PodSet,
    QuotaGone,
    QuotaSet,
)
from aliquot.engine.model.knobs import Knobs
from aliquot.engine.model.objects import Node, NodeConstraints, Pod, Quota, Shape
from aliquot.engine.report.summary import QuotaSummary
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
