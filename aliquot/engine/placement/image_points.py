"""Points for nodes that have a pod's container images already, which need not be pulled there.

As kube-scheduler's ImageLocality counts them: an image counts with its size, less the fewer nodes
have it, so that pods do not crowd on the one node that pulled it first. Pods of one template have
the same images, so a column over the nodes is kept for each tuple of images.
"""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.node_images import NodeImages
from aliquot.engine.books.nodes import Nodes

_MIB = 1024**2
_LEAST = 23 * _MIB
"""Less than this is soon pulled, and gives no points (kube-scheduler's bound)."""
_MOST = 1_000 * _MIB
"""So much for each container gives all points (kube-scheduler's bound)."""
_BEST = 100
_MOST_KEPT = 1_024
"""Columns that are kept: at 5,000 nodes 40 KB each, 40 MB in all."""
_Column = NDArray[np.int64]
_Moment = tuple[int, ...]


class ImagePoints:
    """The points of the nodes for each tuple of images that pods have."""

    def __init__(self, nodes: Nodes, images: NodeImages) -> None:
        self._nodes = nodes
        self._images = images
        self._kept: dict[tuple[str, ...], tuple[_Moment, _Column | None]] = {}

    def of(self, images: tuple[str, ...]) -> _Column | None:
        """0 to 100 by node, for the image of each container; None where all nodes have 0."""
        if not images or not self._images.held:
            return None
        nodes = self._nodes
        moment = (len(nodes.known), len(nodes.slots), *self._images.versions(images))
        kept = self._kept.pop(images, None)
        if kept is None or kept[0] != moment:
            kept = moment, self._computed(images)
        self._kept[images] = kept
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return kept[1]

    def _computed(self, images: tuple[str, ...]) -> _Column | None:
        """In floats where kube-scheduler has floats, so that what is cut off is the same."""
        size = np.zeros(len(self._nodes.slots), dtype=np.int64)
        for image in images:
            held = self._images.held.get(image)
            if held is not None:
                count = len(held.sizes)
                slots = np.fromiter(held.sizes, dtype=np.int64, count=count)
                sizes = np.fromiter(held.sizes.values(), dtype=np.float64, count=count)
                size[slots] += (sizes * (count / len(self._nodes.known))).astype(np.int64)
        most = _MOST * len(images)
        points = _BEST * (np.clip(size, _LEAST, most) - _LEAST) // (most - _LEAST)
        return points if points.any() else None
