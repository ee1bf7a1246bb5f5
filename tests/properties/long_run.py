"""A long run of random operations on one engine, with every invariant checked on the way.

A step is an event that the engine is told, or a cycle. After every cycle its decisions are judged
by the observer, the books are added up anew, and the shares are. At times the figures are compared
with those of a fresh engine; at times the cluster is left alone until it is at rest; at times the
control plane crashes, and a fresh engine goes on.

A run that failed is played again, with all events and decisions written down, by

    python -m tests.properties.long_run SEED POLICY
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from random import Random

from aliquot.engine import (
    Decision,
    DeviceGone,
    DeviceSet,
    Engine,
    Event,
    Evict,
    NodeSet,
    Nominate,
    Pod,
    PodGone,
    PodSet,
    QuotaSet,
    QuotaSummary,
    Reason,
    Wait,
    binds_and_evictions,
    evictions,
)
from aliquot.mirror.pod_list import PodList
from tests.build.engines import books
from tests.properties.books import check_books
from tests.properties.observer import Observer
from tests.properties.rough_cluster import RoughCluster
from tests.properties.rough_rules import RoughRules
from tools.streams.text import decision_text, flat, plain

CYCLES = 60
"""Of one run: some 250 steps. Clusters that live longer repeat themselves."""
MOST_ROUNDS = 200
"""A dozen claims come to rest in some twenty cycles; a cluster that goes round never does."""
_REST_EVERY, _CRASH_EVERY, _REBUILD_EVERY = 25, 40, 5
"""Cycles between two of these, on average."""
_RULES_EVERY = 3
"""Of so many seeds one is of a cluster in which pods have rules about other pods."""
_MOST_TRIED = 4
"""Each victim that is tried costs a fresh engine; larger sets are rare."""


class LongRun:
    """One cluster, played from a seed."""

    def __init__(
        self,
        seed: int,
        policy: str,
        write: Callable[[str], object] = lambda line: None,
        patience: int = 0,
    ) -> None:
        self.write = write
        self.rng = Random(seed)
        rules = RoughRules(Random(seed + 2)) if seed % _RULES_EVERY == 0 else None
        self.cluster = RoughCluster(self.rng, policy, seed % 50 == 49, rules)
        eviction = replace(self.cluster.knobs.eviction, patience=patience)
        self.cluster.knobs = replace(self.cluster.knobs, eviction=eviction)
        self.engine = Engine(policy, self.cluster.knobs)
        self.observer = Observer(self.engine, self.cluster.knobs.eviction.hold_for)
        self.chance = Random(seed + 1)
        self.steps = 0
        self.seen: Counter[str] = Counter()

    def play(self, cycles: int) -> None:
        """So many cycles, then rest."""
        for _ in range(cycles):
            for event in self.cluster.events():
                self.apply(event)
            self.decide()
            if self._one_in(_REBUILD_EVERY):
                self.compare_with_rebuilt()
            if self._one_in(_CRASH_EVERY):
                self.crash()
            if self._one_in(_REST_EVERY):
                self.rest()
            self.cluster.advance(self.engine.next_deadline())
        self.rest()

    def _one_in(self, number: int) -> bool:
        return self.chance.randrange(number) == 0

    def apply(self, event: Event) -> None:
        """Tell the engine, and the observer."""
        self.steps += 1
        self.write(plain(event))
        self.engine.apply(event)
        self.observer.see(event)

    def decide(self) -> list[Decision]:
        """One cycle, judged."""
        self.steps += 1
        self.write(f"cycle {self.cluster.now}")
        self.observer.begin(self.cluster.now)
        undisturbed = not self.observer.is_busy() and not books(self.engine).ledger.holding
        decisions = self.engine.cycle(self.cluster.now)
        if undisturbed:
            self.check_needed(decisions)
        for each in flat(decisions):
            self.seen[type(each).__name__] += 1
            self.write(f"  {decision_text(each)}")
        self.observer.judge(decisions)
        check_books(self.engine)
        self.check_audit()
        self.check_sums()
        self.cluster.take(decisions)
        for eviction in evictions(decisions):
            self.seen[eviction.reason.value] += 1
        return decisions

    def check_audit(self) -> None:
        """Every pod that runs is booked once, as the cluster shows it."""
        pods = self.cluster.pods

        def bound(uid: str) -> object:
            pod = pods.get(uid)
            return pod if pod is not None and pod.node is not None else None

        found = [each for each in self.engine.violations(pods, bound) if each]  # type: ignore[arg-type]
        assert not found, found

    def check_sums(self) -> None:
        """Children share at most what their parent has, unless they are guaranteed more."""
        if self.engine.policy not in ("hierarchy", "queues"):
            return
        summaries = {each.name: each for each in self.engine.summarise()}
        for parent in summaries.values():
            children = [each for each in summaries.values() if each.parent == parent.name]
            for resource, share in parent.runtime.items():
                total = sum(child.runtime.get(resource, 0) for child in children)
                low = sum(_min_in_force(child, resource) for child in children)
                assert total <= max(share, low), (
                    f"children of {parent.name} share {total} {resource}, it has {share}"
                )

    def check_needed(self, decisions: list[Decision]) -> None:
        """No victim can be put back: with it, the claim would still not start.

        The pods of a gang go together, needed or not.
        """
        acts = [each for each in decisions if not isinstance(each, Wait)]
        if (
            len(acts) != 1
            or not isinstance(acts[0], Nominate)
            or len(acts[0].victims) > _MOST_TRIED
        ):
            return  # what else was decided in this cycle may be the reason
        for spared in (each for each in acts[0].victims if each.pod.gang is None):
            others = [each.pod for each in acts[0].victims if each is not spared]
            claimant = acts[0].pods[0].uid
            fresh = self._without(others, False)
            needed = fresh.why(claimant) is not None or self._would_grow(fresh, acts[0], spared)
            needed = needed or self._without(others, True).why(claimant) is not None
            assert needed, f"{spared.pod.uid} was not in the way of {claimant}"

    def _without(self, pods: Iterable[Pod], replaced: bool) -> Engine:
        """A fresh engine, once these pods are gone; and wait anew, if owners replace them.

        What they ask for counts in shares of quotas.
        """
        fresh = self.rebuilt()
        for pod in pods:
            fresh.apply(PodGone(pod.uid))
            if replaced:
                anew = replace(pod, uid=f"{pod.uid}-anew", name=f"{pod.name}-anew", node=None)
                fresh.apply(PodSet(replace(anew, devices=(), terminating=False, started=0)))
        fresh._gang_claims.refresh()
        return fresh

    def _would_grow(self, fresh: Engine, act: Nominate, spared: Evict) -> bool:
        """Would the quota of both grow beyond what it could keep, if this pod were spared?

        A pod that replaces others of its quota must not make it grow so: it would have to give back
        at once. In `fresh` the other victims are gone.
        """
        if spared.reason is not Reason.PREEMPTED_IN_QUOTA:
            return False
        lived, state = books(self.engine), books(fresh)
        quota = str(self.engine.quota_of(spared.pod))
        own, spare = state.tree.slots[quota], fresh._policy.reclaim.spare  # type: ignore[attr-defined]
        before = {
            name: lived.ledger.used.get(row, lived.tree.slots[quota])
            for row, name in enumerate(lived.resources.names)
        }
        return any(
            state.ledger.used.get(row, own) + amount
            > max(before.get(state.resources.names[row], 0), spare(quota, row))
            for pod in act.pods
            for row, amount in state.bookings.pending(state.pods[pod.uid]).charge
            if state.tree.guaranteed(row) is not None
        )

    # Rest

    def rest(self) -> None:
        """Demand is fixed from here: the cluster comes to rest, and nothing is left undone."""
        evicted: Counter[tuple[str, str]] = Counter()
        for _ in range(MOST_ROUNDS):
            for event in self.cluster.quiet():
                self.apply(event)
            decisions = self.decide()
            for each in evictions(decisions):
                if each.claimant is not None:
                    evicted[each.pod.uid, each.claimant.uid] += 1
            if any(binds_and_evictions(decisions)) or self.cluster.is_busy():
                continue
            deadline = self.engine.next_deadline(at_rest=True)
            if deadline is None:
                break
            self.cluster.now = max(self.cluster.now, deadline)
        else:
            raise AssertionError(f"no rest after {MOST_ROUNDS} cycles")
        twice = [pair for pair, times in evicted.items() if times > 1]
        assert not twice, f"evicted twice for the same claim: {twice}"
        self.at_rest()

    def at_rest(self) -> None:
        """No claim waits that could start; all that is decided is what a fresh engine decides."""
        state, now = books(self.engine), self.cluster.now
        held = bool(state.ledger.holding)
        for claim in list(state.waiting.claims()):
            if not held:
                why = self.engine.why(claim.uid)
                assert why is not None, f"{claim.uid} could start"
                self.observer.judge_wait(claim.pods[0], why)
            state.waiting.add(claim)
        again = [decision_text(each) for each in flat(self.engine.cycle(now))]
        acts = [line for line in again if not line.startswith("wait")]
        assert not acts, f"asked again, it acts: {acts}"
        if not held and self.engine.policy in ("capacity", "fair"):
            self.observer.judge_owed(self.engine, self.cluster.knobs)

    # Rebuild

    def rebuilt(self) -> Engine:
        """A fresh engine that was told how the cluster is, in another order.

        And which cards there were: of pods on them no GPU quota is rid because their card is.
        """
        fresh = Engine(self.engine.policy, self.cluster.knobs)
        assumed = {uid: bind for uid, (_, bind) in self.observer.assumed.items()}
        gone = books(self.engine).leaving  # without evictions that were late, and are called off
        leaving = [uid for uid in self.observer.leaving if uid in gone or uid in gone.overdue]
        facts = [without_nomination(event) for event in self.cluster.facts(assumed, leaving)]
        for event in self._shuffled(facts):
            fresh.apply(event)
        for device in self.observer.gone_devices.values():
            fresh.apply(DeviceSet(device))
            fresh.apply(DeviceGone(device.name))
        state = books(fresh)
        state.nodes.lose(self.cluster.now, self.cluster.knobs.eviction.node_lost_after)
        state.strand(self.cluster.now)
        fresh._gang_claims.refresh()
        return fresh

    def _shuffled(self, facts: list[Event]) -> list[Event]:
        """Another order of the same objects: quotas after their parents, pods after the nodes."""
        first = [event for event in facts if isinstance(event, QuotaSet)]
        nodes = [event for event in facts if isinstance(event, NodeSet)]
        others = [event for event in facts if not isinstance(event, QuotaSet | NodeSet)]
        self.chance.shuffle(nodes)
        self.chance.shuffle(others)
        return [*first, *nodes, *others]

    def compare_with_rebuilt(self) -> None:
        """The figures of the engine that lived are those of a fresh one."""
        state = books(self.engine)
        if state.ledger.holding or state.leaving.overdue or self.cluster.lost_nodes():
            return  # what is held, whose eviction was refused, which nodes were there: a fresh
            # engine cannot know
        fresh = self.rebuilt()
        if lost_nodes(self.engine) != lost_nodes(fresh):
            return  # the clock was set back
        old, new = self.engine.summarise(), fresh.summarise()
        for one, other in zip(old, new, strict=True):
            assert one == other, f"{one.name}, lived and rebuilt: {_fields(one, other)}"
        if self.cluster.is_busy():
            return
        assert self.engine.over_quota_pods() == fresh.over_quota_pods()
        assert state.repeat_guard.present == books(fresh).repeat_guard.present

    def crash(self) -> None:
        """The control plane ends between two writes; another one goes on from the cluster.

        In whatever order the objects are listed, it decides the same.
        """
        self.write("crash")
        facts = [without_nomination(event) for event in self.cluster.crash()]
        engines = []
        for _ in range(2):
            engine = Engine(self.engine.policy, self.cluster.knobs)
            pods = PodList(engine)
            with pods.gathering():
                for event in self._shuffled(facts):
                    pods.apply(event)
            engines.append(engine)
        self.engine, twin = engines
        self.observer = Observer(self.engine, self.cluster.knobs.eviction.hold_for)
        for event in facts:
            self.observer.see(event)
        self.steps += len(facts)
        twin_says = [decision_text(each) for each in flat(twin.cycle(self.cluster.now))]
        says = [decision_text(each) for each in flat(self.decide())]
        assert sorted(says) == sorted(twin_says), _difference(says, twin_says)


def lost_nodes(engine: Engine) -> set[str | None]:
    """The nodes that an engine counts as lost."""
    nodes = books(engine).nodes
    return {nodes.slots.names[slot] for slot in nodes.lost}


def without_nomination(event: Event) -> Event:
    """The event as the control plane tells it: nominations are the engine's own word."""
    if isinstance(event, PodSet):
        return PodSet(replace(event.pod, nominated=None))
    return event


def _fields(one: QuotaSummary, other: QuotaSummary) -> str:
    """The fields that differ."""
    pairs = ((f.name, getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return ", ".join(f"{name} {a} and {b}" for name, a, b in pairs if a != b)


def _min_in_force(summary: QuotaSummary, resource: str) -> int:
    return (summary.scaled_min or {}).get(resource, summary.min.get(resource, 0))


def _difference(one: list[str], other: list[str]) -> str:
    return "\n".join(f"- {a}\n+ {b}" for a, b in zip(one, other, strict=False) if a != b)


def main(seed: str, policy: str) -> None:
    """Play one run, and print every event and decision."""
    run = LongRun(int(seed), policy, print)
    run.play(CYCLES)


if __name__ == "__main__":
    main(*sys.argv[1:])
