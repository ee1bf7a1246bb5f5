"""The container images of nodes, as they were last sent to the engine.

Most changes of a node say nothing new of its images, and most reports of images nothing new of the
node.
"""

from collections.abc import Callable

from aliquot.dialects.core import nodes
from aliquot.dialects.core.manifest import Manifest
from aliquot.engine import Event, NodeImagesSet


class NodeImages:
    """What nodes report of their images; what changes goes to `send`."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self._sent: dict[str, tuple[tuple[str, int], ...]] = {}
        """By node, of those that have any."""
        self._send = send

    def refresh(self, manifest: Manifest) -> None:
        """Send the images of a node if they differ from the last ones sent."""
        images = nodes.images(manifest)
        if images != self._sent.get(manifest.name, ()):
            self._sent[manifest.name] = images
            self._send(NodeImagesSet(manifest.name, images))

    def forget(self, node: str) -> None:
        """A node was deleted, which the engine is told by itself."""
        self._sent.pop(node, None)

    def replay(self, send: Callable[[Event], None]) -> None:
        """Send all images to a new engine."""
        for node, images in self._sent.items():
            send(NodeImagesSet(node, images))
