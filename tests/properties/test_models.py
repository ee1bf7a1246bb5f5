"""Cards by model: whatever comes, goes or is labelled anew, maxes hold, mins are met, books agree.

The oracle counts pods by the model of the node they run on, and knows nothing of the engine.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from aliquot.engine import Amounts, Bind, Engine, Node, NodeConstraints, Pod, PodGone, Quota
from aliquot.engine.model.decisions import binds_and_evictions
from aliquot.engine.model.events import NodeGone, NodeSet, PodSet, QuotaSet
from aliquot.engine.model.knobs import SECOND
from tests.build.engines import books
from tests.build.values import GPU, amounts, pod
from tests.campaign import examples
from tests.properties.books import check_books

MODELS = ("x", "y", "z")
QUOTAS = ("a", "b", "c")
POLICIES = ("capacity", "fair", "hierarchy", "queues")
CARDS = 4
NODES = 4


def resource(model: str) -> str:
    return f"gpu.aliquot.dev/{model}"


def node(number: int, model: str) -> Node:
    """A node with cards of a model; `z` is named by no quota."""
    named = model in ("x", "y")
    has = amounts(gpu=CARDS, pods=110, **({resource(model): CARDS} if named else {}))
    models = ((GPU, resource(model)),) if named else ()
    return Node(f"n{number}", has, models=models, labels=(("model", model),))


def quota(name: str, policy: str, low: Counter[str], high: Counter[str]) -> Quota:
    """Mins and maxes by model; the min in all is at least the sum of the former."""
    least = max(low["all"], low["x"] + low["y"])
    mins: Amounts = amounts(gpu=least, **{resource(m): low[m] for m in "xy" if low[m]})
    most = amounts(
        gpu=max(high["all"], least),
        **{resource(m): max(high[m], low[m]) for m in "xy" if high[m] >= 0},
    )
    deserved = mins if policy == "queues" else ()
    return Quota(name, mins, most, namespaces=frozenset({name}), deserved=deserved)


def only(model: str | None) -> NodeConstraints:
    return NodeConstraints(selector=(("model", model),) if model else ())


def asks(name: str, team: str, size: int, model: str | None, **more: Any) -> Pod:
    return pod(name, amounts(gpu=size), team, shape={"constraints": only(model)}, **more)


class Cluster:
    """An engine and its cluster, in which every decision comes true at once."""

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self.engine = Engine(policy)
        self.nodes: dict[str, Node] = {}
        self.quotas: dict[str, Quota] = {}
        self.pods: dict[str, Pod] = {}
        self.now = 0

    def set_node(self, made: Node) -> None:
        self.nodes[made.name] = made
        self.engine.apply(NodeSet(made))

    def set_quota(self, made: Quota) -> None:
        self.quotas[made.name] = made
        self.engine.apply(QuotaSet(made))

    def set_pod(self, made: Pod) -> None:
        self.pods[made.uid] = made
        self.engine.apply(PodSet(made))

    def drop_pod(self, uid: str) -> None:
        if self.pods.pop(uid, None) is not None:
            self.engine.apply(PodGone(uid))

    def used(self, team: str) -> Counter[str]:
        """What the pods of a team use: of all cards, and by the model of their node."""
        found: Counter[str] = Counter()
        for each in self.pods.values():
            if each.namespace == team and each.node is not None:
                size = dict(each.shape.requests)[GPU]
                found[GPU] += size
                for _, model in self.nodes[each.node].models if each.node in self.nodes else ():
                    found[model] += size
        return found

    def cycle(self) -> list[str]:
        """Decide; what was evicted. No decision takes a quota above a max."""
        self.now += SECOND
        decided = list(binds_and_evictions(self.engine.cycle(self.now)))
        gone = []
        for each in decided:
            if not isinstance(each, Bind):
                gone.append(each.pod.uid)
                self.drop_pod(each.pod.uid)
        for each in decided:
            if isinstance(each, Bind):
                team = each.pod.namespace
                before = self.used(team)
                self.set_pod(replace(each.pod, node=each.node))
                after = self.used(team)
                high = dict(self.quotas[team].max) if team in self.quotas else {}
                for name, most in high.items():
                    assert after[name] == before[name] or after[name] <= most, (each, name)
        return gone

    def check_rebuilt(self) -> None:
        """An engine that is told of the cluster as it is now has the same books."""
        other = Engine(self.policy)
        for each in self.nodes.values():
            other.apply(NodeSet(each))
        for one in self.quotas.values():
            other.apply(QuotaSet(one))
        for each_pod in self.pods.values():
            other.apply(PodSet(each_pod))
        books(self.engine).renew_pending()
        assert figures(other) == figures(self.engine)


def figures(engine: Engine) -> Any:
    ledger, found = books(engine).ledger, []
    for column in (ledger.wanted, ledger.used):
        for row, name in enumerate(books(engine).resources.names):
            for slot, account in enumerate(books(engine).tree.slots.names):
                amount = column.get(row, slot)
                if amount:
                    found.append((name, account, amount))
    return sorted(found, key=str)


SMALL = st.integers(0, 6)
BOUNDS = st.fixed_dictionaries({"all": SMALL, "x": st.integers(0, 4), "y": st.integers(0, 4)})
MAXES = st.fixed_dictionaries(
    {"all": st.integers(0, 16), "x": st.integers(-1, 6), "y": st.integers(-1, 6)}
)


class Machine(RuleBasedStateMachine):
    """Random operations on a cluster whose quotas name two of three models."""

    policy = "capacity"

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(self.policy)
        self.made = 0
        for number in range(NODES):
            self.cluster.set_node(node(number, MODELS[number % len(MODELS)]))
        for name in QUOTAS:
            empty = quota(name, self.policy, Counter(all=2), Counter(all=16, x=-1, y=-1))
            self.cluster.set_quota(empty)

    @rule(number=st.integers(0, NODES - 1), model=st.sampled_from(MODELS))
    def label_node(self, number: int, model: str) -> None:
        self.cluster.set_node(node(number, model))

    @rule(name=st.sampled_from(QUOTAS), low=BOUNDS, high=MAXES)
    def set_quota(self, name: str, low: dict[str, int], high: dict[str, int]) -> None:
        self.cluster.set_quota(quota(name, self.policy, Counter(low), Counter(high)))

    @rule(
        team=st.sampled_from((*QUOTAS, "none")),
        size=st.integers(1, 4),
        model=st.sampled_from((None, *MODELS)),
        priority=st.integers(0, 2),
        preemptible=st.booleans(),
    )
    def add_pod(
        self, team: str, size: int, model: str | None, priority: int, preemptible: bool
    ) -> None:
        self.made += 1
        more = {"priority": priority, "preemptible": preemptible, "created": self.made}
        self.cluster.set_pod(asks(f"p{self.made}", team, size, model, **more))

    @rule(number=st.integers(1, 30))
    def drop_pod(self, number: int) -> None:
        self.cluster.drop_pod(f"p{number}")

    @rule()
    def decide(self) -> None:
        self.cluster.cycle()

    @rule(number=st.integers(1, 30))
    def ask(self, number: int) -> None:
        uid = f"p{number}"
        if uid in self.cluster.pods and self.cluster.pods[uid].node is None:
            self.cluster.engine.why(uid)

    @invariant()
    def books_agree(self) -> None:
        check_books(self.cluster.engine)
        state = books(self.cluster.engine)
        state.renew_pending()
        for row in state.model_mins.rows():
            unused = {
                slot: max(
                    low - state.ledger.used.get(row, slot) - state.ledger.held.get(row, slot), 0
                )
                for slot, low in state.model_mins.of(row).items()
            }
            assert state.model_mins.kept_from(row, None) == sum(unused.values())
        for team in QUOTAS:
            used = self.cluster.used(team)
            slot = state.tree.slots[team]
            for name in (GPU, resource("x"), resource("y")):
                row = state.resources.row(name)
                assert state.ledger.used.get(row, slot) == used[name]

    def teardown(self) -> None:
        self.cluster.cycle()
        if not any(books(self.cluster.engine).ledger.holding):
            self.cluster.check_rebuilt()


def _machine(policy: str) -> Any:
    made: Any = type(f"Machine_{policy}", (Machine,), {"policy": policy})
    made = made.TestCase
    made.settings = settings(max_examples=examples(200, 12), stateful_step_count=25, deadline=None)
    return made


TestCapacity = _machine("capacity")
TestFair = _machine("fair")
TestHierarchy = _machine("hierarchy")
TestQueues = _machine("queues")


@settings(max_examples=examples(400), deadline=None)
@given(data=st.data())
def test_what_is_guaranteed_by_model_is_met(data: st.DataObject) -> None:
    """Whatever other quotas hold on any model, by pods that can run on all of them.

    The mins fit the cards, by model and in all.
    """
    policy = data.draw(st.sampled_from(POLICIES), "policy")
    cluster = Cluster(policy)
    cards = Counter({"x": 2 * CARDS, "y": CARDS, "z": CARDS})
    for number, model in enumerate("xxyz"):
        cluster.set_node(node(number, model))
    size = data.draw(st.sampled_from((1, 2)), "size")
    left, total = Counter(cards), sum(cards.values())
    lows: dict[str, Counter[str]] = {}
    for name in QUOTAS:
        low = Counter({m: data.draw(st.integers(0, left[m] // size)) * size for m in "xy"})
        left -= low
        lows[name] = low
    spare = total - sum(sum(low.values()) for low in lows.values())
    for name in QUOTAS:
        more = data.draw(st.integers(0, spare // size)) * size
        spare -= more
        lows[name]["all"] = lows[name]["x"] + lows[name]["y"] + more
    free, number = {f"n{i}": CARDS for i in range(NODES)}, 0
    for name in data.draw(st.lists(st.sampled_from(QUOTAS), max_size=16), "held"):
        where = data.draw(st.sampled_from(sorted(free)))
        if free[where] >= size:
            free[where] -= size
            number += 1
            cluster.set_pod(asks(f"held-{number}", name, size, None, created=number, node=where))
    for name in QUOTAS:
        most = Counter(all=total, x=-1, y=-1)
        cluster.set_quota(quota(name, policy, lows[name], most))
    owner = data.draw(st.sampled_from(QUOTAS), "owner")
    for uid in [uid for uid, each in cluster.pods.items() if each.namespace == owner]:
        cluster.drop_pod(uid)
    for model in "xy":
        for index in range(lows[owner][model] // size):
            cluster.set_pod(asks(f"{model}-{index}", owner, size, model, created=100 + index))
    for _ in range(6 * total):
        for uid in cluster.cycle():  # its owner makes it anew
            name = uid.partition("-")[0]
            assert name == "held" or not uid.startswith(("x", "y"))
    waiting = [each.name for each in cluster.pods.values() if each.node is None]
    assert not waiting, (waiting, [cluster.engine.why(uid) for uid in waiting])
    assert cluster.used(owner)[resource("x")] >= lows[owner]["x"]
    assert cluster.used(owner)[resource("y")] >= lows[owner]["y"]


def test_a_node_that_goes_takes_its_cards_along() -> None:
    cluster = Cluster("capacity")
    cluster.set_node(node(0, "x"))
    cluster.set_quota(quota("a", "capacity", Counter(x=2, all=4), Counter(all=4, x=-1, y=-1)))
    cluster.set_pod(asks("p", "a", 4, None))
    cluster.cycle()
    assert cluster.used("a")[resource("x")] == 4
    cluster.drop_pod("p")
    del cluster.nodes["n0"]
    cluster.engine.apply(NodeGone("n0"))
    cluster.set_pod(asks("q", "a", 4, None))
    cluster.cycle()
    cluster.check_rebuilt()
