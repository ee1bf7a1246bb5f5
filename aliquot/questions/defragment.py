"""Which running pods would have to move so that a waiting one starts: `what-if --defragment`.

An answer only: nothing is moved, and nothing written. A set of moves is proposed from what a node
would have free without some of its pods; whether it will do is asked of the engine, in a copy of
the moment: the pods leave the node, which is closed meanwhile; the engine must find each of them
another node, evicting none for it; then the node is opened, and the pod must start there. The
smallest sets are tried first, and only so many of them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

from aliquot.dialects.core import nodes
from aliquot.engine import (
    Bind,
    Decision,
    Device,
    Evict,
    Node,
    NodeSet,
    Pod,
    PodGone,
    PodSet,
    Taint,
    binds_and_evictions,
)
from aliquot.errors import ArgumentError
from aliquot.questions import copies
from aliquot.questions.moment import Moment
from aliquot.questions.sources.source import Source

Result = dict[str, Any]
_MOST_MOVES = 8
"""Pods that are moved: as many as a server has cards."""
_MOST_NODES = 32
"""Nodes that are looked at closely: those from which fewest pods must go, by a lower bound."""
_MOST_SETS = 400
"""Sets of pods of one size that are looked at on one node."""
_MOST_TRIED = 48
"""Sets that the engine is asked about, some 10 ms each on a large cluster."""
_CLOSED = Taint("aliquot.dev/defragment", "", "NoSchedule")
"""Keeps the pods that move from the node they left; no total of nodes depends on it."""
_CYCLES = 16
"""Cycles in which a set of moves must come to its end."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Pods that leave a node so that another starts there."""

    node: str
    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Server:
    """A node, what is left of it, and the pods that could leave it."""

    node: Node
    devices: tuple[Device, ...]
    pods: tuple[Pod, ...]
    movable: tuple[Pod, ...]

    def missing(self, pod: Pod, without: tuple[Pod, ...] = ()) -> dict[str, int]:
        """What it would lack for a pod if some of its pods were gone; nothing if it has room."""
        left = Counter(dict(self.node.allocatable))
        for each in self.pods:
            if each not in without:
                left.subtract(dict(each.shape.requests))
        lacking = {name: asks - left[name] for name, asks in pod.shape.requests}
        ask = pod.shape.gpu
        if ask is not None and ask.whole:
            busy = {name for each in self.pods if each not in without for name in each.devices}
            idle = sum(each.ready and each.name not in busy for each in self.devices)
            lacking["cards"] = ask.count - idle
        return {name: amount for name, amount in lacking.items() if amount > 0}

    def fewest(self, pod: Pod) -> int | None:
        """At least so many pods must go; None if it were too small without any of them."""
        missing = self.missing(pod)
        if self.missing(pod, self.movable):
            return None
        found = 1
        for name, amount in missing.items():
            most = sorted((_share(each, name) for each in self.movable), reverse=True)
            sums = (sum(most[:number]) for number in range(len(most) + 1))
            found = max(found, next((n for n, total in enumerate(sums) if total >= amount), found))
        return found

    def sets(self, pod: Pod, number: int) -> Iterator[tuple[Pod, ...]]:
        """So many pods without which it would have room, those that hold most first."""
        missing = self.missing(pod)
        order = sorted(self.movable, key=lambda each: (_kept(each, missing), each.path))
        for some in islice(combinations(order, number), _MOST_SETS):
            if not self.missing(pod, some):
                yield some


def _share(pod: Pod, name: str) -> int:
    """What is free of a resource once a pod is gone; of cards, at most those that it is on."""
    return len(pod.devices) if name == "cards" else dict(pod.shape.requests).get(name, 0)


def _kept(pod: Pod, missing: dict[str, int]) -> tuple[int, ...]:
    """Of each resource that is missing, the part that a pod would leave missing if it went."""
    return tuple(max(amount - _share(pod, name), 0) for name, amount in missing.items())


def defragment(source: Source, path: str) -> Result:
    """The fewest pods that would have to move so that this pod starts, and where to."""
    moment = Moment(source)
    moment.settle()
    record = moment.pod(path)
    if record is None:
        raise ArgumentError(f"--defragment: there is no pod {path}")
    pod = record.pod
    if record.phase != "Pending":
        raise ArgumentError(f"--defragment: pod {path} is {record.phase}, it does not wait")
    if pod.gang is not None:
        raise ArgumentError(f"--defragment: pod {path} belongs to gang {pod.gang}; pods alone only")
    found: Result = {"policy": moment.policy, "pod": path, "node": None, "moves": [], "why": None}
    refused = _refused_by(moment, pod)
    if refused != ["Nodes"]:
        gates = ", ".join(refused) or "nothing"
        return {**found, "why": f"it is refused by {gates}: moves give it room, and nothing else"}
    tried = 0
    for moves in _proposed(moment, pod):
        if tried == _MOST_TRIED:
            break
        tried += 1
        places = copies.ask(lambda moves=moves: _places(moment, pod, moves))  # type: ignore[misc]
        if places is not None:
            moved = [
                {"pod": each.path, "from": moves.node, "to": places[each.uid]}
                for each in moves.pods
            ]
            return {**found, "node": moves.node, "moves": moved}
    return {**found, "why": f"no set of at most {_MOST_MOVES} moves will do, of {tried} tried"}


def _refused_by(moment: Moment, pod: Pod) -> list[str]:
    explained = moment.engine.explain(pod.uid, moment.simulation.now)
    return [gate.gate for gate in explained.gates if not gate.passes]


def _proposed(moment: Moment, pod: Pod) -> Iterator[Moves]:
    """Sets of moves that would make room, the smallest first."""
    refusals = moment.engine.node_refusals(pod.uid)
    open_to = {each for each, why in refusals.items() if why == "NodeResourcesFit"}
    servers = [each for each in _servers(moment) if each.node.name in open_to]
    ranked = [(least, each) for each in servers if (least := each.fewest(pod)) is not None]
    ranked.sort(key=lambda pair: (pair[0], pair[1].node.name))
    near = ranked[:_MOST_NODES]
    for number in range(1, _MOST_MOVES + 1):
        for least, server in near:
            if least <= number:
                for some in server.sets(pod, number):
                    yield Moves(server.node.name, some)


def _servers(moment: Moment) -> list[Server]:
    """All nodes, with their pods."""
    mirror, cards = moment.simulation.world.mirror, moment.inputs.cards
    on: dict[str, list[Pod]] = {}
    devices: dict[str, list[Device]] = {}
    for record in mirror.records.values():
        if record.alive and record.pod.node is not None:
            on.setdefault(record.pod.node, []).append(record.pod)
    for device in mirror.devices.sent.values():
        devices.setdefault(device.node, []).append(device)
    found = []
    for manifest in mirror.store.objects.values():
        if manifest.kind == "Node":
            node = nodes.node(manifest, cards)
            pods = tuple(on.get(node.name, ()))
            movable = tuple(each for each in pods if _may_move(moment, each))
            found.append(Server(node, tuple(devices.get(node.name, ())), pods, movable))
    return found


def _may_move(moment: Moment, pod: Pod) -> bool:
    """Not one that ends anyway, nor one of a gang or of a DaemonSet."""
    owner = moment.simulation.world.mirror.records[pod.uid].owner
    bound_to_node = owner is not None and owner[0] in ("DaemonSet", "Node")
    return not (pod.terminating or pod.gang is not None or bound_to_node)


def _places(moment: Moment, pod: Pod, moves: Moves) -> dict[str, str] | None:
    """Where the engine puts each pod, if the waiting one then starts; asked in a copy."""
    engine, now = moment.engine, moment.simulation.now
    manifest = moment.simulation.world.mirror.store.objects["Node", "", moves.node]
    node = nodes.node(manifest, moment.inputs.cards)
    engine.apply(NodeSet(replace(node, taints=(*node.taints, _CLOSED))))
    anew = dict[str, str]()
    for each in moves.pods:
        engine.apply(PodGone(each.uid))
        anew[f"moved-{each.uid}"] = each.uid
        away = replace(each, uid=f"moved-{each.uid}", node=None, nominated=None, devices=())
        engine.apply(PodSet(away))
    places = dict[str, str]()
    for _ in range(_CYCLES):
        done = list(binds_and_evictions(engine.cycle(now)))
        if not _carried_out(moment, done, places):
            return None
        if not done:
            break
    if not anew.keys() <= places.keys():
        return None
    engine.apply(NodeSet(node))
    for _ in range(_CYCLES):
        done = list(binds_and_evictions(engine.cycle(now)))
        if not _carried_out(moment, done, places):
            return None
        if not done or pod.uid in places:
            break
    if places.get(pod.uid) != moves.node:
        return None
    return {uid: places[new] for new, uid in anew.items()}


def _carried_out(moment: Moment, decisions: Sequence[Decision], places: dict[str, str]) -> bool:
    """Let decisions come true, and note where pods start; false if one is an eviction."""
    for decision in decisions:
        if isinstance(decision, Evict):
            return False
        if isinstance(decision, Bind):
            places[decision.pod.uid] = decision.node
            bound = replace(decision.pod, node=decision.node, devices=decision.devices)
            moment.engine.apply(PodSet(bound))
    return True
