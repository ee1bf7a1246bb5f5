"""What is held: room and right that were freed for a claim, until it lands or times out.

What is held for one counts against every other claim, except a more important one of the same
quota that is owed it. Whoever was to make way and has not gone in time is not waited for any
longer: the claim looks for somebody else.
"""

from collections.abc import Iterable

from aliquot.engine.books.ledger import Entry, Stage
from aliquot.engine.model.importance import ImportanceKey
from aliquot.engine.policies import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


class Nominations:
    """Until when something is held, and for whom."""

    def __init__(self, state: State, policy: Policy, hold_for: int) -> None:
        self._state = state
        self._policy = policy
        self._hold_for = hold_for
        self._until: dict[str, int] = {}
        self._keys: dict[str, ImportanceKey] = {}
        """How important those are for whom something is held."""
        self._gone_by: dict[str, int] = {}
        self._awaited_by: dict[str, tuple[str, ...]] = {}
        """Whoever waits for a victim to go."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._until

    def begin(self, claim: Claim, victims: Iterable[str], now: int) -> None:
        """Wait for these victims to go, so that the claim can start."""
        deadline = now + self._hold_for
        self._until.update(dict.fromkeys(claim.uids(), deadline))
        self._keys.update(dict.fromkeys(claim.uids(), claim.key))
        for uid in victims:
            self._gone_by[uid] = deadline
            self._awaited_by[uid] = tuple(claim.uids())

    def expire(self, now: int) -> None:
        """Nothing is held for longer than `holdFor`, and nobody waited for."""
        state, deadline = self._state, now + self._hold_for
        self._give_up_in_vain()
        leaving = self._gone_by.items()
        self._gone_by = {uid: until for uid, until in leaving if uid in state.leaving}
        for uid in [uid for uid, until in self._gone_by.items() if until <= now]:
            state.leaving.mark_overdue(uid)
        holding = state.ledger.holding
        self._until = {uid: self._until.get(uid, deadline) for uid in holding}
        self._keys = {uid: state.waiting.claim(uid).key for uid in holding}
        for uid in [uid for uid, until in self._until.items() if until <= now]:
            state.give_up_hold(uid)
            del self._until[uid]

    def _give_up_in_vain(self) -> None:
        """Whoever waits for somebody who will not go looks for somebody else.

        So do others who counted on it, because a claim has started with what was freed for them.
        """
        state = self._state
        staying = [uid for uid in self._gone_by if uid in state.pods and uid not in state.leaving]
        for victim in staying:
            del self._gone_by[victim]
            for uid in self._awaited_by[victim]:
                if uid in state.ledger.holding:
                    state.give_up_hold(uid)
                    self._until.pop(uid, None)
        for uid in self._least_first(state.ledger.holding) if staying else ():
            entry = state.ledger.entries[uid]
            if entry.stage is Stage.HELD and not (self._will_hold(entry) and self._has_right(uid)):
                self._give_up(uid)
        known = self._gone_by
        self._awaited_by = {uid: who for uid, who in self._awaited_by.items() if uid in known}

    def is_awaited(self, victim: str) -> bool:
        """Does anybody for whom something is held wait for this one to go?"""
        holding = self._state.ledger.holding
        return any(uid in holding for uid in self._awaited_by.get(victim, ()))

    def deadline(self) -> int | None:
        """When the next one ends."""
        return min(self._until.values(), default=None)

    def node_class(self, claim: Claim) -> str | None:
        """The class of the node that is held for a claim, where its charge depends on that.

        Others went so that it could start there; elsewhere it might be charged more.
        """
        entry = self._state.ledger.entries.get(claim.pods[0].uid)
        if entry is None or entry.stage is not Stage.HELD or not claim.asks[0].by_class:
            return None
        node = self._state.nodes.at(entry.node)
        return None if node is None else node.node_class

    def lesser(self, claim: Claim) -> list[str]:
        """What is held for less important claims of its quota, if that may give way to it.

        Not to a claim that borrows: what was taken back for a min is not for borrowing, or others
        would be asked to give again and again.
        """
        state = self._state
        held = state.ledger.holding_in.get(claim.quota, ())
        if not held or not (claim.quota is None or self._policy.is_owed(state, claim)):
            return []
        keys, waiting = self._keys, state.waiting
        return [uid for uid in held if (keys.get(uid) or waiting.claim(uid).key) > claim.key]

    def nodes_of(self, claim: Claim) -> list[str]:
        """Where room is held for a claim."""
        entries, holding = self._state.ledger.entries, self._state.ledger.holding
        nodes = (entries[uid].booking.node for uid in claim.uids() if uid in holding)
        return [node for node in nodes if node is not None]

    def displace(self, claim: Claim, held: list[str], left: list[str]) -> None:
        """Lesser claims lose what was held for them where there is no room or right any more.

        On the nodes in `left` room was held for this claim, which it does not need any longer. Who
        makes way there makes way for a lesser claim instead: what came free for one was taken by
        the other, and nobody else need go.
        """
        entries = self._state.ledger.entries
        nodes = {entries[pod.uid].node for pod in claim.pods}
        for uid in self._least_first(uid for uid in held if entries[uid].stage is Stage.HELD):
            entry = entries[uid]
            no_room = entry.node in nodes and not self._will_hold(entry)
            loses = entry.stage is Stage.HELD and (no_room or not self._has_right(uid))
            if loses and not self._exchange(uid, claim, left):
                self._give_up(uid)

    def _least_first(self, held: Iterable[str]) -> list[str]:
        """The least important claim first."""
        claim = self._state.waiting.claim
        return sorted(held, key=lambda uid: claim(uid).key, reverse=True)

    def _give_up(self, uid: str) -> None:
        """Nothing is held for a claim any longer."""
        state = self._state
        for each in state.waiting.claim(uid).uids():
            if each in state.ledger.holding:
                state.give_up_hold(each)

    def _exchange(self, uid: str, claim: Claim, left: list[str]) -> bool:
        """Hold room for a lesser pod where it was held for this claim, if that will do."""
        state = self._state
        waiting = state.waiting.claim(uid)
        if waiting.uids() != (uid,):
            return False
        may_run = state.placement.open_nodes(waiting.asks[0])
        for node in left:
            if not may_run[state.nodes.slots[node]]:
                continue
            pod = state.pods[uid]
            state.ledger.hold(uid, state.bookings.booking(pod, state.tree.quota_of(pod), node))
            entry = state.ledger.entries[uid]
            if self._will_hold(entry) and self._has_right(uid):
                left.remove(node)
                for victim, who in self._awaited_by.items():
                    if set(who) & set(claim.uids()):
                        self._awaited_by[victim] = (*who, uid)
                return True
        return False

    def _will_hold(self, entry: Entry) -> bool:
        """Is there room for everybody on its node, once those have left who are leaving?"""
        placement, leaving = self._state.placement, self._state.leaving.room
        return all(
            placement.free_soon(row, leaving)[entry.node] >= 0 for row, _ in entry.booking.room
        )

    def _has_right(self, uid: str) -> bool:
        """Would the gates let this held claim start, once everybody who leaves has left?"""
        claim = self._state.waiting.claim(uid)
        node_class = self.node_class(claim)
        held = [each for each in claim.uids() if each in self._state.ledger.holding]
        with self._state.ledger.excluding(held):
            return not self._policy.rights(self._state, claim, node_class)
