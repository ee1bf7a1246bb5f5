"""Host ports: on which nodes a port that a pod asks for is taken already.

A port of one address clashes with the same port of that address and of all addresses; different
protocols do not clash.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.ledger import Booking
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.model.pod_rules import HostPort
from aliquot.engine.placement.constraints import NodeRefusal
from aliquot.engine.placement.pod_counts import scrambled

_ALL_ADDRESSES = "0.0.0.0"


class HostPorts:
    """The host ports in use, as a tally of the ledger."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._users: dict[tuple[str, int], dict[str, Counter[int]]] = {}
        """By protocol and port, then address: how many pods use it, by node slot."""
        self._fingerprints: dict[tuple[str, int], int] = {}

    def post(self, booking: Booking, sign: int, held: bool) -> None:
        """Count the ports of a pod, or stop counting them; a nominated pod's are taken as well."""
        for each in booking.rules.ports if booking.node is not None else ():
            users = self._users.setdefault((each.protocol, each.port), {})
            on = users.setdefault(each.ip, Counter())
            slot = self._nodes.slots.take(str(booking.node))
            on[slot] += sign
            if not on[slot]:
                del on[slot]
            key = each.protocol, each.port
            known = self._fingerprints.get(key, 0)
            self._fingerprints[key] = known + sign * scrambled(slot)

    def refuse(self, ports: tuple[HostPort, ...], column: NDArray[np.int64]) -> None:
        """Note in the column the open nodes on which one of these ports is taken."""
        taken = [slot for each in ports for slot, _ in self.users(each) if slot < len(column)]
        if taken:
            slots = np.array(taken)
            column[slots[column[slots] == 0]] = NodeRefusal.PORT

    def users(self, port: HostPort) -> Iterator[tuple[int, int]]:
        """The slots of nodes on which a port is taken, and by how many."""
        users = self._users.get((port.protocol, port.port), {})
        for ip, on in users.items():
            if _ALL_ADDRESSES in (ip, port.ip) or ip == port.ip:
                yield from on.items()

    def fingerprint(self, ports: tuple[HostPort, ...]) -> tuple[int, ...]:
        """Equal as long as these ports are taken on the same nodes."""
        return tuple(self._fingerprints.get((each.protocol, each.port), 0) for each in ports)


def clashes(port: HostPort, others: tuple[HostPort, ...]) -> int:
    """With how many of these ports of another pod does a port clash?"""
    return sum(
        port.port == other.port
        and port.protocol == other.protocol
        and (port.ip == other.ip or _ALL_ADDRESSES in (port.ip, other.ip))
        for other in others
    )
