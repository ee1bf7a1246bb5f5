"""Which nodes have which container images, and how large these are there.

Kubelets report their images often, so these are no part of a `Node`: a report is no change of the
nodes, and only what is computed of the images that it changes is computed anew. An image has the
size that each node reports for it; where nodes disagree, kube-scheduler takes the size of the node
that it has heard of first.
"""

Images = tuple[tuple[str, int], ...]
"""Names of images, each with its size in bytes."""


class HeldImage:
    """An image that some node has."""

    __slots__ = ("sizes", "version")

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        """Its size in bytes, by the slot of each node that has it."""
        self.version = 0
        """Another with every change of these, also once no node has had it for a while."""


class NodeImages:
    """The images of all nodes, by name."""

    def __init__(self) -> None:
        self.held: dict[str, HeldImage] = {}
        self._reported: dict[str, Images] = {}
        """By node, also of nodes that are not known yet."""
        self._slots: dict[str, int] = {}
        """Of the nodes that are known."""
        self._changes = 0

    def set(self, node: str, images: Images) -> None:
        """A node has these images, and no others."""
        before = self._reported.pop(node, ())
        if images:
            self._reported[node] = images
        slot = self._slots.get(node)
        if slot is not None and images != before:
            self._replace(slot, before, images)

    def place(self, node: str, slot: int) -> None:
        """A node is known, and has this slot."""
        if self._slots.get(node) != slot:
            self._slots[node] = slot
            self._replace(slot, (), self._reported.get(node, ()))

    def remove(self, node: str) -> None:
        """A node is gone, and its images with it."""
        self.set(node, ())
        self._slots.pop(node, None)

    def versions(self, images: tuple[str, ...]) -> tuple[int, ...]:
        """Equal as long as no node gets or loses one of these images; 0 where no node has one."""
        return tuple(
            0 if (held := self.held.get(image)) is None else held.version for image in images
        )

    def _replace(self, slot: int, before: Images, after: Images) -> None:
        old, new = dict(before), dict(after)
        self._changes += 1
        for image in old:
            if image not in new:
                held = self.held[image]
                del held.sizes[slot]
                held.version = self._changes
                if not held.sizes:
                    del self.held[image]
        for image, size in new.items():
            if old.get(image) != size:
                held = self.held.get(image) or self.held.setdefault(image, HeldImage())
                held.sizes[slot] = size
                held.version = self._changes
