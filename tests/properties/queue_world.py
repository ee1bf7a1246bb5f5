"""Random small clusters with queues, and running them to rest."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind, Decision, Evict, binds_and_evictions
from aliquot.engine.model.events import Event, NodeSet, PodGone, PodSet, QuotaSet, WeightSet
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quota import Quota
from tests.build.values import amounts
from tests.properties.queue_rules import Queues

NAMESPACES = ("x", "y", "z")
MOST_ROUNDS = 60


@dataclass(frozen=True)
class World:
    nodes: tuple[Node, ...]
    queues: tuple[Quota, ...]
    weights: dict[str, int]
    waves: tuple[tuple[Pod, ...], ...]

    def facts(self) -> list[Event]:
        """Everything but the pods; a queue comes after the one above it."""
        return [
            *map(NodeSet, self.nodes),
            *map(QuotaSet, self.queues),
            *(WeightSet(name, weight) for name, weight in self.weights.items()),
        ]


def maybe(values: st.SearchStrategy[int], often: int = 1) -> st.SearchStrategy[int | None]:
    """One of these, or nothing; that so many times as often."""
    return st.integers(0, often).flatmap(lambda n: values if n == 0 else st.none())


@st.composite
def queues(draw: st.DrawFn, name: str, parent: str | None, is_parent: bool) -> Quota:
    low = draw(maybe(st.integers(0, 5), 2))
    high = draw(maybe(st.integers(0, 8), 2))
    return Quota(
        name,
        amounts(gpu=low, cpu=draw(maybe(st.integers(0, 4), 4))),
        amounts(gpu=None if high is None else high + (low or 0)),
        parent=parent,
        is_parent=is_parent,
        lend=False,
        default_weight=draw(st.integers(1, 4)),
        deserved=amounts(
            gpu=draw(maybe(st.integers(0, 6), 3)), cpu=draw(maybe(st.integers(0, 6), 5))
        ),
        reclaimable=draw(st.sampled_from((True,) * 6 + (False,))),
        closed=draw(st.sampled_from((False,) * 9 + (True,))),
    )


@st.composite
def trees(draw: st.DrawFn) -> tuple[Quota, ...]:
    """Two or three queues, one of them perhaps with queues below it."""
    found: list[Quota] = []
    for name in ("p", "q", "r")[: draw(st.integers(2, 3))]:
        children = draw(st.integers(2, 3)) if name == "p" and draw(st.booleans()) else 0
        found.append(draw(queues(name, None, children > 0)))
        found += [draw(queues(f"{name}{i}", name, False)) for i in range(children)]
    return tuple(found)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    return Node(name, amounts(cpu=draw(st.integers(3, 8)), gpu=draw(st.integers(2, 8)), pods=30))


@st.composite
def worlds(draw: st.DrawFn, most: int = 5, waves: int = 3) -> World:
    tree = draw(trees())
    leaves = [queue.name for queue in tree if not queue.is_parent]
    pods: list[list[Pod]] = [[] for _ in range(waves)]
    for number in range(draw(st.integers(2, most))):
        pod = Pod(
            uid="",
            namespace=draw(st.sampled_from(NAMESPACES)),
            name="",
            shape=Shape(
                amounts(
                    gpu=draw(st.sampled_from((None, 1, 1, 2, 3, 9))),
                    cpu=draw(maybe(st.integers(1, 2))),
                    pods=1,
                )
            ),
            priority=draw(st.sampled_from((0, 0, 0, 10))),
            quota=draw(st.sampled_from(leaves)),
            gated=draw(st.sampled_from((False,) * 12 + (True,))),
            preemptible=draw(st.sampled_from((True,) * 12 + (False,))),
        )
        wave = pods[draw(st.integers(0, waves - 1))]
        for replica in range(draw(st.integers(1, 4))):
            name = f"w{number}-{replica}"
            wave.append(replace(pod, uid=name, name=name, created=draw(st.integers(0, 3))))
    return World(
        tuple(draw(nodes(f"n{i}")) for i in range(draw(st.integers(1, 3)))),
        tree,
        {name: draw(st.integers(1, 3)) for name in NAMESPACES},
        tuple(map(tuple, pods)),
    )


class Play:
    """An engine in a world, with owners that put evicted pods back at once, or not."""

    def __init__(self, world: World, owners: bool = True) -> None:
        self.engine = Engine("queues")
        self.rules = Queues(world.nodes, {queue.name: queue for queue in world.queues})
        self.owners = owners
        self.evictions = 0
        self.now = 0
        self._pods: dict[str, Pod] = {}
        for event in world.facts():
            self.engine.apply(event)

    def add(self, pod: Pod) -> None:
        self._pods[pod.uid] = pod
        self.engine.apply(PodSet(pod))
        self._count()

    def end(self, pod: Pod) -> None:
        """A pod has finished."""
        del self._pods[pod.uid]
        self.engine.apply(PodGone(pod.uid))
        self._count()

    def edit(self, queue: Quota) -> None:
        """A queue is like this now."""
        self.rules.queues[queue.name] = queue
        self.engine.apply(QuotaSet(queue))

    def _count(self) -> None:
        self.rules.running = [pod for pod in self._pods.values() if pod.node is not None]
        self.rules.waiting = [pod for pod in self._pods.values() if pod.node is None]

    def cycle(self) -> list[Decision]:
        """Decide and carry out."""
        decisions = self.engine.cycle(self.now)
        self.carry_out(decisions)
        return decisions

    def started(self, pod: Pod, host: str) -> None:
        """A pod is to run here."""
        self._pods[pod.uid] = replace(pod, node=host)
        self._count()

    def carry_out(self, decisions: list[Decision]) -> None:
        """Tell the engine what came of its decisions."""
        for decision in binds_and_evictions(decisions):
            match decision:
                case Bind(pod, host):
                    self.started(pod, host)
                    self.engine.apply(PodSet(self._pods[pod.uid]))
                case Evict(pod):
                    self.evictions += 1
                    del self._pods[pod.uid]
                    self.engine.apply(PodGone(pod.uid))
                    if self.owners:
                        uid = f"{pod.uid.partition('.')[0]}.{self.evictions}"
                        created = 100 + self.evictions
                        again = replace(pod, uid=uid, name=uid, created=created, node=None)
                        self._pods[uid] = again
                        self.engine.apply(PodSet(again))
        self._count()

    def to_rest(self) -> None:
        """Until nothing more happens; that must end."""
        for _ in range(MOST_ROUNDS):
            decisions = self.cycle()
            if any(binds_and_evictions(decisions)):
                continue
            deadline = self.engine.next_deadline()
            if deadline is None:
                return
            self.now = max(self.now, deadline)
        raise AssertionError("it never comes to rest")
