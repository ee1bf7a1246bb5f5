"""Nominations: room and right that were freed for a claim are held until it starts or times out.

A nomination counts against every other claim, except a more important one of the same quota that is
owed it (see `Gates.is_owed`). A victim that has not terminated `holdFor` after its eviction is not
waited for any longer: the claim's nomination ends, and the claim is tried again with other victims.
"""

from collections.abc import Iterable

from aliquot.engine.books.ledger import Entry, Stage
from aliquot.engine.model.importance import ImportanceKey, importance
from aliquot.engine.policies import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


class Nominations:
    """The nominated pods, until when, and the victims that each waits for."""

    def __init__(self, state: State, policy: Policy, hold_for: int) -> None:
        self._state = state
        self._policy = policy
        self._hold_for = hold_for
        self._until: dict[str, int] = {}
        """When the nomination of a pod ends, by its uid."""
        self._keys: dict[str, ImportanceKey] = {}
        """The importance of the claims that nominated pods belong to."""
        self._victim_deadlines: dict[str, int] = {}
        """Until when a victim is waited for."""
        self._claimants: dict[str, tuple[str, ...]] = {}
        """The nominated pods that wait for a victim, by the victim's uid."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._until

    def nominate(self, claim: Claim, victims: Iterable[str], now: int) -> None:
        """Note that the claim is nominated, and waits for these victims."""
        deadline = now + self._hold_for
        self._until.update(dict.fromkeys(claim.uids(), deadline))
        self._keys.update(dict.fromkeys(claim.uids(), claim.key))
        for uid in victims:
            self._victim_deadlines[uid] = deadline
            self._claimants[uid] = tuple(claim.uids())

    def expire(self, now: int) -> None:
        """End nominations older than `holdFor`, and stop waiting for victims that are overdue."""
        state, deadline = self._state, now + self._hold_for
        self._drop_without_victims()
        leaving = self._victim_deadlines.items()
        self._victim_deadlines = {uid: until for uid, until in leaving if uid in state.leaving}
        for uid in [uid for uid, until in self._victim_deadlines.items() if until <= now]:
            state.leaving.mark_overdue(uid)
        holding = state.ledger.holding
        self._until = {uid: self._until.get(uid, deadline) for uid in holding}
        self._keys = {uid: state.waiting.claim(uid).key for uid in holding}
        for uid in sorted(uid for uid, until in self._until.items() if until <= now):
            state.drop_nomination(uid)
            del self._until[uid]

    def _drop_without_victims(self) -> None:
        """Drop nominations that wait for a victim which is not leaving any more.

        And those for which room or right no longer suffices without that victim.
        """
        state = self._state
        kept = [
            uid for uid in self._victim_deadlines if uid in state.pods and uid not in state.leaving
        ]
        for victim in kept:
            del self._victim_deadlines[victim]
            for uid in self._claimants[victim]:
                if uid in state.ledger.holding:
                    state.drop_nomination(uid)
                    self._until.pop(uid, None)
        for uid in self._least_important_first(state.ledger.holding) if kept else ():
            entry = state.ledger.entries[uid]
            if entry.stage is Stage.HELD and not (self._fits_node(entry) and self._has_right(uid)):
                self._drop(uid)
        known = self._victim_deadlines
        self._claimants = {uid: pods for uid, pods in self._claimants.items() if uid in known}

    def is_awaited(self, victim: str) -> bool:
        """Does a nominated pod wait for this victim?"""
        holding = self._state.ledger.holding
        return any(uid in holding for uid in self._claimants.get(victim, ()))

    def deadline(self, now: int) -> int | None:
        """When the next nomination ends; one that has ended does so in the next cycle."""
        return min((until for until in self._until.values() if until > now), default=None)

    def node_class(self, claim: Claim) -> str | None:
        """The class of the node nominated for a claim, where its charge depends on the class.

        Its victims freed right for that charge; on another class it might be charged more.
        """
        entry = self._state.ledger.entries.get(claim.pods[0].uid)
        if entry is None or entry.stage is not Stage.HELD or not claim.asks[0].by_class:
            return None
        node = self._state.nodes.at(entry.node)
        return None if node is None else node.node_class

    def less_important(self, claim: Claim) -> list[str]:
        """The nominated pods of less important claims of its quota, if the claim may displace them.

        A claim that borrows may not: what was reclaimed for a min must not be borrowed, or the
        displaced claim would preempt again and again.
        """
        state = self._state
        held = state.ledger.holding_in.get(claim.quota, ())
        if not held or not (claim.quota is None or self._policy.gates.is_owed(claim)):
            return []
        keys, key = self._keys, claim.key
        return [uid for uid in held if (keys.get(uid) or self._claim_key(uid)) > key]

    def _claim_key(self, uid: str) -> ImportanceKey:
        """The importance of a nominated pod's claim; of the pod, if its claim is yet to be made."""
        waiting = self._state.waiting
        return waiting.claim(uid).key if uid in waiting else importance(self._state.pods[uid])

    def nodes_of(self, claim: Claim) -> list[str]:
        """The nodes nominated for a claim."""
        entries, holding = self._state.ledger.entries, self._state.ledger.holding
        nodes = (entries[uid].booking.node for uid in claim.uids() if uid in holding)
        return [node for node in nodes if node is not None]

    def displace(self, claim: Claim, held: list[str], vacated: list[str]) -> None:
        """Drop the `held` nominations for which the claim has left no room or right.

        A displaced pod is moved to one of the `vacated` nodes if it fits: these were nominated for
        the claim, which does not need them any longer, and no further victim is needed.
        """
        entries = self._state.ledger.entries
        nodes = {entries[pod.uid].node for pod in claim.pods}
        for uid in self._least_important_first(
            uid for uid in held if entries[uid].stage is Stage.HELD
        ):
            entry = entries[uid]
            no_room = entry.node in nodes and not self._fits_node(entry)
            loses = entry.stage is Stage.HELD and (no_room or not self._has_right(uid))
            if loses and not self._move_to_vacated(uid, claim, vacated):
                self._drop(uid)

    def _least_important_first(self, held: Iterable[str]) -> list[str]:
        """These pods, those of the least important claim first."""
        claim = self._state.waiting.claim
        return sorted(held, key=lambda uid: claim(uid).key, reverse=True)

    def _drop(self, uid: str) -> None:
        """Drop the nominations of all pods of this pod's claim."""
        state = self._state
        for each in state.waiting.claim(uid).uids():
            if each in state.ledger.holding:
                state.drop_nomination(each)

    def _move_to_vacated(self, uid: str, claim: Claim, vacated: list[str]) -> bool:
        """Nominate a node that the claim has vacated for a displaced pod, if it fits there."""
        state = self._state
        waiting = state.waiting.claim(uid)
        if waiting.uids() != (uid,):
            return False
        may_run = state.placement.open_nodes(waiting.asks[0])
        for node in vacated:
            if not may_run[state.nodes.slots[node]]:
                continue
            pod = state.pods[uid]
            state.ledger.hold(uid, state.bookings.booking(pod, state.tree.quota_of(pod), node))
            entry = state.ledger.entries[uid]
            if self._fits_node(entry) and self._has_right(uid):
                vacated.remove(node)
                for victim, pods in self._claimants.items():
                    if set(pods) & set(claim.uids()):
                        self._claimants[victim] = (*pods, uid)
                return True
        return False

    def _fits_node(self, entry: Entry) -> bool:
        """Is its node not overcommitted once the leaving pods are gone?"""
        placement, leaving = self._state.placement, self._state.leaving.room
        return all(
            placement.free_soon(row, leaving)[entry.node] >= 0 for row, _ in entry.booking.room
        )

    def _has_right(self, uid: str) -> bool:
        """Would the gates let this nominated claim start once the leaving pods are gone?"""
        claim = self._state.waiting.claim(uid)
        node_class = self.node_class(claim)
        held = [each for each in claim.uids() if each in self._state.ledger.holding]
        with self._state.speculating() as speculation:
            speculation.set_aside(held)
            return not self._policy.gates.rights(claim, node_class)
