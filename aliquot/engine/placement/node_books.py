"""The books that scores of nodes are read off, as one value.

`node_scores` and `fragmentation` read the same ones: what nodes have and have free, their devices,
and what constraints leave of them.
"""

from typing import NamedTuple

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.columns import Resources
from aliquot.engine.gpus.devices import Devices
from aliquot.engine.placement.free_capacity import FreeCapacity
from aliquot.engine.placement.preferences import NodePreferences


class NodeBooks(NamedTuple):
    """What is known of nodes, in columns."""

    resources: Resources
    nodes: Nodes
    devices: Devices
    capacity: FreeCapacity
    preferences: NodePreferences
