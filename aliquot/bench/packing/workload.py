"""What is packed: servers, and the requests from which pods are drawn.

Of a trace, or made up: a mix of the kind that published traces show, with parts of cards that leave
odd rests, and servers with much and with little cpu for each card.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.simulation_annotations import ARRIVAL, DURATION
from aliquot.engine import (
    Device,
    DeviceSet,
    Event,
    GpuAmount,
    GpuAsk,
    Node,
    NodeSet,
    Pod,
    PodSet,
    Shape,
    selects,
)
from aliquot.errors import InputError
from aliquot.questions.workloads import traces
from aliquot.simulation.simulation import Simulation
from aliquot.validation.inputs import collect

CARD = 1_000
"""Parts of a card that pods ask for; a trace's cards have so many MiB."""
_MIB = 2**20
_GIB = 2**30
_SERVERS = (
    *((60, 96, 384, 8), (40, 104, 512, 2), (12, 16, 120, 2), (4, 128, 768, 8)),
    *((4, 32, 128, 4), (30, 64, 256, 0)),
)
"""How many servers; their cpus, GiB and cards."""
_PODS = (
    *((200, 12, 48, 1, 1000), (60, 4, 8, 1, 1000), (40, 19, 64, 1, 1000), (120, 3, 6, 1, 800)),
    *((60, 12, 46, 1, 450), (40, 8, 30, 1, 450), (30, 12, 46, 1, 650), (40, 4, 22, 1, 300)),
    *((20, 4, 30, 1, 250), (10, 4, 15, 1, 150), (8, 5, 10, 1, 550), (5, 64, 256, 8, 1000)),
    *((3, 32, 128, 4, 1000), (3, 16, 64, 2, 1000), (80, 12, 56, 0, 0), (40, 8, 30, 0, 0)),
)
"""How many of a pod; its cpus, GiB, cards, and thousandths of each."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The servers, as events; the pods of which any may come, again and again."""

    servers: tuple[Event, ...]
    pods: tuple[Pod, ...]

    @property
    def nodes(self) -> list[Node]:
        """The servers."""
        return [each.node for each in self.servers if isinstance(each, NodeSet)]

    @property
    def cards(self) -> dict[str, int]:
        """How many cards each server has."""
        found = {node.name: 0 for node in self.nodes}
        for each in self.servers:
            if isinstance(each, DeviceSet):
                found[each.device.node] += 1
        return found

    def draw(self, seed: int, demand: float) -> Iterator[Pod]:
        """Pods drawn at random until they ask for so many times all cards."""
        rng, asked, number = random.Random(seed), 0, 0
        most = demand * CARD * sum(self.cards.values())
        while asked < most:
            pod = rng.choice(self.pods)
            asked += asked_parts(pod.shape)
            yield replace(pod, uid=f"u-{number}", name=f"p-{number}", created=number)
            number += 1


def asked_parts(shape: Shape) -> int:
    """The thousandths of cards that a pod asks for."""
    ask = shape.gpu
    if ask is None:
        return 0
    return ask.count * (CARD if ask.whole else ask.request.vram // _MIB)


def is_open(node: Node, shape: Shape) -> bool:
    """Does the pod's required node affinity admit the node?"""
    required, labels = shape.constraints.required, dict(node.labels)
    return required is None or any(selects(term.labels, labels) for term in required)


def of_trace(trace: str) -> Workload:
    """The servers and pods of a trace."""
    documents = traces.read(trace)
    for document in documents:
        for word in (ARRIVAL, DURATION):
            document.body["metadata"].get("annotations", {}).pop(word, None)
    events: list[Event] = []
    simulation = Simulation(collect(documents, Configuration(), "capacity"), "capacity")
    simulation.listeners.append(events.append)
    simulation.feed()
    servers = tuple(each for each in events if isinstance(each, NodeSet | DeviceSet))
    found = Workload(servers, tuple(each.pod for each in events if isinstance(each, PodSet)))
    if not any(found.cards.values()) or not any(asked_parts(each.shape) for each in found.pods):
        raise InputError("--trace", "", f"{trace!r:.60} must have cards and pods that share them")
    return found


def made_up() -> Workload:
    """A cluster of a hundred and fifty servers, and what its pods ask for."""
    servers: list[Event] = []
    for count, cpu, memory, cards in _SERVERS:
        for _ in range(count):
            name = f"node-{len(servers)}"
            has = ("cpu", 1000 * cpu), ("memory", memory * _GIB), ("pods", 110)
            servers.append(NodeSet(Node(name, (*has, ("nvidia.com/gpu", cards)))))
            servers += [
                DeviceSet(Device(f"{name}/{i}", name, GpuAmount(0, CARD * _MIB), index=i))
                for i in range(cards)
            ]
    pods = [
        Pod("", "team", "", _shape(cpu, memory, cards, part))
        for count, cpu, memory, cards, part in _PODS
        for _ in range(count)
    ]
    return Workload(tuple(servers), tuple(pods))


def _shape(cpu: int, memory: int, cards: int, part: int) -> Shape:
    asks = ("cpu", 1000 * cpu), ("memory", memory * _GIB), ("pods", 1)
    if not cards:
        return Shape(asks)
    if part < CARD:
        amount = GpuAmount(0, part * _MIB)
        return Shape(asks, gpu=GpuAsk(amount, amount, count=cards))
    return Shape((*asks, ("nvidia.com/gpu", cards)), gpu=GpuAsk(whole=True, count=cards))
