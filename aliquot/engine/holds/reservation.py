"""Reservations: room and right are kept for a claim that other claims keep passing.

A claim is *passed* when one behind it in the policy's order starts with room or right that it could
have used. A claim that was passed and has waited for `placement.reserveAfter` gets a reservation: a
hold without victims, of right and of what it asks for on nodes where it fits soonest. It waits only
for pods that can end. The nodes are chosen once, and anew only if one of them is lost. Claims
behind it do not pass it any more (see `holds.precedence`), unless they are known to end before it
is known to start; one that then outlives its stated end is its first victim.

A quota has one reservation at a time, those passed longest first. All together ask for at most
`placement.reserveShare` of any resource, so that little is idle for their sake; but one is always
allowed. A reservation ends when its claim starts, goes, or can no longer start by its bounds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aliquot.engine.books.quota_tree import ROOT
from aliquot.engine.columns import Vector
from aliquot.engine.gang_domains import GangDomains
from aliquot.engine.holds.outlook import Outlook, known_start
from aliquot.engine.holds.starts import Start, Starts
from aliquot.engine.model.decisions import Wait
from aliquot.engine.model.knobs import SECOND, PlacementKnobs
from aliquot.engine.model.reasons import NO_ROOM, ROOM, Reason, Refusal, Watch
from aliquot.engine.placement.domains import Mask
from aliquot.engine.policies import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Position, precedes
from aliquot.engine.state import State

_RIGHT = (
    Reason.QUOTA_MAX_EXCEEDED,
    Reason.BORROWING_EXHAUSTED,
    Reason.RUNTIME_EXCEEDED,
    Reason.ANCESTOR_EXCEEDED,
    Reason.QUEUE_OVER_DESERVED,
)
_MOST_DOMAINS = 4
"""In how many domains of a level nodes are sought for a gang: those with room the soonest."""
_MOST_TRIED = 8
"""For how many claims nodes are sought in one cycle: each takes milliseconds at 50,000 pods."""
_PASSED = "other claims kept passing it"
CAN_BE_PASSED = (*NO_ROOM, *_RIGHT)
"""Refusals after which other claims may start with what the claim waits for."""


@dataclass(slots=True)
class Reservation:
    """A claim, and the nodes kept for its pods."""

    claim: Claim
    nodes: tuple[str, ...]


class Reservations:
    """Which claims wait and were passed, and for which of them room and right are kept."""

    def __init__(self, state: State, policy: Policy, knobs: PlacementKnobs) -> None:
        self._state = state
        self._policy = policy
        self._knobs = knobs
        self.active: dict[str, Reservation] = {}
        """By the uid of the claim."""
        self._refused: dict[str, Refusal] = {}
        """The claims that wait for room or right, by uid."""
        self._passed: dict[str, int] = {}
        """When a claim was first passed, by its uid."""
        self._untriable: dict[str, int] = {}
        """When a claim was last seen with scheduling gates, or with pods missing."""
        self._starts: dict[object, Start] = {}
        """What has started in this cycle."""
        self._backfills: dict[str, tuple[int, str]] = {}
        """The stated end of a pod that runs on reserved room, and the claim it is reserved for."""
        self._without_nodes: dict[str, tuple[int, ...]] = {}
        """Claims for which no nodes were found, with the versions of the books at that time."""
        waits = self._refused, self._passed, self._untriable
        self._of_claims: tuple[dict[str, Any], ...] = (*waits, self._without_nodes, self.active)
        """All that is known of claims that wait, by uid."""

    def note_refused(self, claim: Claim, refusal: Refusal, now: int) -> None:
        """Note a refused claim, if other claims can pass it."""
        if refusal.reason in CAN_BE_PASSED:
            self._refused[claim.uid] = refusal
            if self._keeps_room(claim):
                self._passed.setdefault(claim.uid, now)
        elif refusal.reason in (Reason.GANG_INCOMPLETE, Reason.SCHEDULING_GATED):
            self._untriable[claim.uid] = now

    def _keeps_room(self, claim: Claim) -> bool:
        """Is it the core of a gang that has what it finds reserved, whether or not it is passed?"""
        gang = None if claim.surplus else self._state.gangs.of(claim.pods[0])
        return gang is not None and gang.keeps_room

    def _patience(self, claim: Claim) -> int:
        """How long a claim has waited at least before it gets a reservation."""
        return 0 if self._keeps_room(claim) else self._knobs.reserve_after

    def position(self, claim: Claim) -> Position | None:
        """The claim's place in the order before it starts; None if it can pass no claim."""
        return self._state.waiting.position(claim) if self._refused else None

    def note_started(
        self, claim: Claim, position: Position | None, yielded: list[str], now: int
    ) -> None:
        """A claim has started, with the holds of the `yielded` pods set aside."""
        for known in self._of_claims:
            if known:
                known.pop(claim.uid, None)
        for uid in claim.uids() if self._state.reserved else ():
            self._state.reserved.pop(uid, None)
        if position is None:
            return
        entries = [self._state.ledger.entries[uid] for uid in claim.uids()]
        kind = (tuple(group for group, _ in position[0]), claim.asks)
        start = self._starts.get(kind)
        if start is None:
            charge = frozenset(row for row, _ in claim.charge(None))
            room = frozenset(row for ask in claim.asks for row, _ in ask.room)
            start = self._starts[kind] = Start(position, room, charge, entries[0].path)
        start.position = max(start.position, position, key=lambda each: each[1])
        start.nodes.update(entry.node for entry in entries)
        self._note_backfill(claim, position, set(yielded), now)

    def _note_backfill(self, claim: Claim, position: Position, yielded: set[str], now: int) -> None:
        """Note the pods of a claim that uses reserved room until the reserved claim starts."""
        for other, _ in self.current():
            if yielded.isdisjoint(other.uids()):
                continue
            if not precedes(position, self._state.waiting.position(other)):
                for pod in claim.pods:
                    if pod.expected_duration is not None:
                        self._backfills[pod.uid] = now + pod.expected_duration, other.uid

    def overstayed(self, claim: Claim, now: int) -> list[str]:
        """The bound pods that use what is reserved for the claim beyond their stated end."""
        slots = self._state.bound_pods.slots
        return [
            uid
            for uid, (end, reserved_for) in self._backfills.items()
            if reserved_for == claim.uid and end <= now and uid in slots
        ]

    def deadline(self, now: int) -> int | None:
        """When a passed claim will have waited long enough, or a pod outlives its stated end."""
        moments = [
            self._since(claim) + self._patience(claim)
            for uid in self._passed
            if uid not in self.active
            and uid in self._state.waiting
            and (claim := self._state.waiting.claim(uid))
        ]
        moments += [end for end, uid in self._backfills.values() if uid in self.active]
        return min((each for each in moments if each > now), default=None)

    def passed_since(self) -> dict[str | None, int]:
        """Of each quota with a waiting claim that was passed: when the first of them was."""
        found: dict[str | None, int] = {}
        for uid, since in self._passed.items():
            if uid in self._state.waiting:
                quota = self._state.waiting.claim(uid).quota
                found[quota] = min(found.get(quota, since), since)
        return found

    def current(self) -> Iterator[tuple[Claim, Reservation]]:
        """The reservations that hold as they were made, each with its claim as it waits now.

        Events may have changed the claim's pods or quota, or have removed a node, since the last
        cycle: the next one ends such a reservation.
        """
        waiting, nodes = self._state.waiting, self._state.nodes.known
        for uid, each in self.active.items():
            claim = waiting.claim(uid) if uid in waiting else None
            same = claim is not None and claim.uids() == each.claim.uids()
            if claim is not None and same and all(node in nodes for node in each.nodes):
                yield claim, each

    def wake_overstayed(self, now: int) -> None:
        """Wake the claims on whose reserved room a pod runs beyond its stated end.

        Before any claim is tried, reservations end that no longer hold.
        """
        self._end()
        for uid in {uid for end, uid in self._backfills.values() if end <= now}:
            if uid in self.active and uid in self._state.waiting:
                self._state.waiting.wake_claim(uid)

    def reserve(self, now: int) -> list[Wait]:
        """Reserve for claims that were passed and have waited long enough; what they are told."""
        self._note_passed(now)
        self._forget()
        self._end()
        if not self._passed:
            return []
        told: list[Wait] = []
        quotas = {each.claim.quota for each in self.active.values()}
        tried = 0
        for claim in self._candidates(now):
            if claim.quota in quotas or (self.active and not self._within_share(claim)):
                continue
            if self._reserve(claim):
                quotas.add(claim.quota)
                refusal = self.describe(claim, now)
                told += [Wait(pod, refusal) for pod in claim.pods]
            tried += 1
            if tried == _MOST_TRIED:
                break
        return told

    def end(self, claim: Claim) -> None:
        """End the reservation of a claim, if it has one: it is nominated instead."""
        if self.active.pop(claim.uid, None) is not None:
            for uid in claim.uids():
                self._state.reserved.pop(uid, None)

    def _since(self, claim: Claim) -> int:
        """Since when a claim can be tried: its last pod is there, and no gate keeps it back.

        By the age of its pods, so that a restart does not reset it.
        """
        created = max(pod.created for pod in claim.pods)
        return max(created, self._untriable.get(claim.uid, created))

    def _note_passed(self, now: int) -> None:
        """Note which of the refused claims were passed by those that started in this cycle."""
        starts, self._starts = Starts(self._starts.values()), {}
        if not starts:
            return
        waiting = self._state.waiting
        for uid, refusal in self._refused.items():
            if uid in self._passed or uid not in waiting:
                continue
            if self._was_passed(waiting.claim(uid), refusal, starts):
                self._passed[uid] = now

    def _was_passed(self, claim: Claim, refusal: Refusal, starts: Starts) -> bool:
        """Has a claim behind this one started with room or right that it could have used?"""
        position, row = self._state.waiting.position(claim), self._row(refusal)
        if refusal.reason in NO_ROOM:
            behind = starts.behind_in_room(position, row)
            return any(self._took_room(claim, each) for each in behind)
        account = self._account(refusal)
        if row is None or account is None:
            return False
        behind = starts.behind_in_right(position, row, account)
        return any(not self._is_fenced(claim, row, each) for each in behind)

    def _row(self, refusal: Refusal) -> int | None:
        """The row of the resource that a refused claim waits for, if it waits for one."""
        resources, name = self._state.resources, refusal.resource
        return resources.row(name) if name is not None and name in resources else None

    def _account(self, refusal: Refusal) -> int | None:
        """The account whose right a refused claim waits for; None if its quota is gone."""
        account = ROOT if refusal.reason is Reason.BORROWING_EXHAUSTED else str(refusal.quota)
        slots = self._state.tree.slots
        if account not in slots:
            return None
        return slots[account]

    def _took_room(self, claim: Claim, start: Start) -> bool:
        """Has what was started taken room on nodes that the claim may run on?"""
        open_to = self._state.placement.nodes_by_rules(claim.asks[0])
        return bool(open_to[list(start.nodes)].any())

    def _is_fenced(self, claim: Claim, row: int, start: Start) -> bool:
        """Has what was started used what another lending group is guaranteed, and no more?"""
        tree, used = self._state.tree, self._state.ledger.used
        groups = set(tree.groups.values()).intersection(start.path)
        for part in claim.parts or (claim,):
            groups -= set(tree.path(part.quota))
        return any(used.get(row, slot) <= tree.min.get(row, slot) for slot in groups)

    def _forget(self) -> None:
        """Forget claims that no longer wait, and pods that no longer run."""
        waiting, pods = self._state.waiting, self._state.pods

        def is_claim(uid: str) -> bool:
            return uid in waiting and waiting.claim(uid).uid == uid

        for refused in [uid for uid in self._refused if not is_claim(uid)]:
            del self._refused[refused]
        for known in (self._passed, self._untriable):
            for uid in [uid for uid in known if not is_claim(uid)]:
                del known[uid]
        for uid in [uid for uid in self._backfills if uid not in pods]:
            del self._backfills[uid]

    def _end(self) -> None:
        """End the reservations of claims that have changed, or whose nodes or bounds have."""
        state = self._state
        for uid, each in list(self.active.items()):
            claim = state.waiting.claim(uid) if uid in state.waiting else None
            if claim is not None and claim.uids() == each.claim.uids():
                each.claim = claim
                if self._still_holds(each):
                    continue
            del self.active[uid]
            for pod in each.claim.uids():
                if pod in state.reserved:
                    state.drop_nomination(pod)

    def _still_holds(self, reservation: Reservation) -> bool:
        """Are all its pods held on nodes that they may run on, and do its bounds let it start?"""
        state, claim = self._state, reservation.claim
        if not all(uid in state.reserved for uid in claim.uids()):
            return False
        if not self._is_near(reservation):
            return False
        return self._may_run_there(reservation) and all(
            self._could_start(claim, state.nodes.known[node].charge_class)
            for node in reservation.nodes
        )

    def _could_start(self, claim: Claim, node_class: str | None) -> bool:
        """Could its quotas let the claim start on nodes of this class, once other pods end?"""
        could_start = self._policy.gates.could_start
        return all(could_start(part, node_class) for part in claim.parts or (claim,))

    def _is_near(self, reservation: Reservation) -> bool:
        """Are its nodes in one domain, if the gang must be, and that of its running pods?"""
        state, topology = self._state, reservation.claim.topology
        if topology is None or not topology.required:
            return True
        slots = [state.nodes.slots[node] for node in reservation.nodes]
        return any(
            set(level.domains.of_slot[slots].tolist()) <= {number}
            for level in GangDomains(state, reservation.claim, topology).levels[-1:]
            if level.key == topology.levels[-1]
            for number in level.allowed.tolist()
        )

    def _may_run_there(self, reservation: Reservation) -> bool:
        """Are its nodes open to its pods, by constraints and by rules about other pods?"""
        state, claim = self._state, reservation.claim
        nodes, asks = state.nodes, zip(claim.asks, reservation.nodes, strict=True)
        with state.speculating() as speculation:
            if any(ask.rule_set is not None for ask in claim.asks):
                speculation.set_aside(claim.uids())
            return all(
                node in nodes.known and state.placement.nodes_by_rules(ask)[nodes.slots[node]]
                for ask, node in asks
            )

    def _candidates(self, now: int) -> list[Claim]:
        """The claims that may get a reservation now, those passed longest first.

        Behind them those for which no nodes were found before.
        """
        state, due = self._state, []
        for uid, passed in self._passed.items():
            claim = state.waiting.claim(uid)
            held = any(each in state.ledger.holding for each in claim.uids())
            if held or claim.missing or self._since(claim) + self._patience(claim) > now:
                continue
            failed = self._without_nodes.get(uid)
            if failed != self._versions():
                due.append((failed is not None, passed, claim.key, claim))
        return [claim for *_, claim in sorted(due, key=lambda each: each[:3])]

    def _versions(self) -> tuple[int, ...]:
        """What must change before nodes are sought again for a claim for which none were found.

        A pod whose Bind is not confirmed has no known end yet: with it, the claim has other nodes.
        """
        state = self._state
        changes = (state.nodes.version, state.tree.version, state.devices.version)
        return state.departures, len(state.bound_pods), *changes

    def _within_share(self, claim: Claim) -> bool:
        """Do all reservations together ask for at most `reserveShare` of every resource?"""
        asked: dict[int, int] = {}
        for each in (claim, *(each.claim for each in self.active.values())):
            for row, amount in _room(each):
                asked[row] = asked.get(row, 0) + amount
        capacity, share = self._state.capacity, self._knobs.reserve_share
        return all(amount * 100 <= share * capacity.lent(row) for row, amount in asked.items())

    def _reserve(self, claim: Claim) -> bool:
        """Keep room and right for a claim; False if its bounds or the nodes never let it start."""
        state = self._state
        found = self._choose(claim)
        if found is None:
            self._without_nodes[claim.uid] = self._versions()
            return False
        for pod, node in zip(claim.pods, found.nodes, strict=True):
            gpu = state.placement.shape_ask(pod.shape).gpu
            devices = () if gpu is None else state.devices.idle_first(gpu, node)
            quota = state.tree.quota_of(pod)
            state.ledger.hold(pod.uid, state.bookings.booking(pod, quota, node, devices))
            state.reserved[pod.uid] = None
        again = state.claims.of(claim.pods, claim.others, surplus=claim.surplus)
        found.claim = again
        self.active[claim.uid] = found
        state.waiting.add(again)
        return True

    def _choose(self, claim: Claim) -> Reservation | None:
        """A node for each pod, those with room first, by the known ends of pods."""
        state = self._state
        every = sorted({each for ask in set(claim.asks) for each in state.placement.classes(ask)})
        classes = [each for each in every if self._could_start(claim, each)]
        if not classes:
            return None
        outlook = Outlook(state, classes)
        for nodes in self._regions(claim, outlook):
            outlook.begin(nodes)
            found = [outlook.choose(ask) for ask in claim.asks]
            if all(node is not None for node in found):
                return Reservation(claim, tuple(map(str, found)))
        return None

    def _regions(self, claim: Claim, outlook: Outlook) -> Iterator[Mask | None]:
        """The nodes to choose from: all; for a gang that must be in one domain, those of each."""
        topology = claim.topology
        if topology is not None:
            for level in GangDomains(self._state, claim, topology).levels:
                outlook.begin(None)
                numbers = outlook.soonest(claim.asks, level.domains, level.allowed)
                for number in numbers[:_MOST_DOMAINS]:
                    yield level.domains.of_slot == number
        if topology is None or not topology.required:
            yield None

    def known_start(self, reservation: Reservation) -> int | None:
        """When all its nodes have room, if the pods there have known ends."""
        room: dict[str, dict[int, int]] = {}
        for ask, node in zip(reservation.claim.asks, reservation.nodes, strict=True):
            amounts = room.setdefault(node, {})
            for row, amount in ask.room:
                amounts[row] = amounts.get(row, 0) + amount
        return known_start(self._state, room)

    def describe(self, claim: Claim, now: int) -> Refusal:
        """Why a claim with a reservation waits."""
        each = self.active[claim.uid]
        nodes = ", ".join(dict.fromkeys(each.nodes))
        cause = "its gang keeps what it finds" if self._keeps_room(claim) else _PASSED
        words = f"room and right are reserved for it on {nodes}, as {cause}"
        start = self.known_start(each)
        if start is not None and start > now:
            words += f"; by the known ends of pods it starts in {-(-(start - now) // SECOND)}s"
        else:
            words += "; it waits until enough pods have ended"
        watch = (ROOM, Watch(quota=ROOT), Watch(quota=claim.quota))
        return Refusal(Reason.RESERVED, words, claim.quota, watch=watch)

    def paths(self) -> Iterator[str]:
        """The first pods of the claims that have reservations, as messages name them."""
        return (each.claim.pods[0].path for each in self.active.values())


def _room(claim: Claim) -> Vector:
    """What a claim asks for on nodes, all pods together."""
    total: dict[int, int] = {}
    for ask in claim.asks:
        for row, amount in ask.room:
            total[row] = total.get(row, 0) + amount
    return tuple(total.items())
