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

_ALL_ADDRESSES = "0.0.0.0"


class HostPorts:
    """The host ports in use, as a tally of the ledger."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._users: dict[tuple[str, int], dict[str, Counter[int]]] = {}
        """By protocol and port, then address: how many pods use it, by node slot."""
        self._versions: dict[tuple[str, int], int] = {}

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
            self._versions[key] = self._versions.get(key, 0) + 1

    def refuse(self, ports: tuple[HostPort, ...], column: NDArray[np.int64]) -> None:
        """Note in the column the open nodes on which one of these ports is taken."""
        taken = [slot for each in ports for slot in self._taken(each) if slot < len(column)]
        if taken:
            slots = np.array(taken)
            column[slots[column[slots] == 0]] = NodeRefusal.PORT

    def _taken(self, port: HostPort) -> Iterator[int]:
        """The slots of nodes on which a port is taken."""
        users = self._users.get((port.protocol, port.port), {})
        for ip, on in users.items():
            if _ALL_ADDRESSES in (ip, port.ip) or ip == port.ip:
                yield from on

    def version(self, ports: tuple[HostPort, ...]) -> int:
        """Grows whenever one of these ports is taken or freed."""
        return sum(self._versions.get((each.protocol, each.port), 0) for each in ports)


def clash(ports: tuple[HostPort, ...], others: tuple[HostPort, ...]) -> bool:
    """Can two pods with these ports not be on one node?"""
    return any(
        one.port == other.port
        and one.protocol == other.protocol
        and (one.ip == other.ip or _ALL_ADDRESSES in (one.ip, other.ip))
        for one in ports
        for other in others
    )
