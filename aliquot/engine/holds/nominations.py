"""Nominations: room and right that were freed for a claim are held until it starts or times out.

They are held until the pods that the claim waits for are gone, and `holdFor` after that. A pod that
terminates within its grace period is waited for, however long that is. One whose eviction was
refused, or that is still there `holdFor` after its grace period, is not: the nomination ends, and
the claim is tried again with other victims. Which claims a nomination counts against is decided in
`holds.precedence`.
"""

from collections.abc import Iterable

from aliquot.engine.books.ledger import Entry, Stage
from aliquot.engine.model.importance import ImportanceKey, importance
from aliquot.engine.policies import Policy
from aliquot.engine.policies.eligible import Right
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


class Nominations:
    """The nominated pods, until when, and the leaving pods that each waits for."""

    def __init__(self, state: State, policy: Policy, hold_for: int) -> None:
        self._state = state
        self._policy = policy
        self._hold_for = hold_for
        self._keys: dict[str, ImportanceKey] = {}
        """The nominated pods, with the importance of the claims that they belong to."""
        self._until: dict[str, int] = {}
        """When the nomination of a pod ends, once all pods that it waits for are gone."""
        self._deadlines: dict[str, int] = {}
        """Until when a leaving pod is waited for."""
        self._claimants: dict[str, tuple[str, ...]] = {}
        """The nominated pods that wait for a leaving pod, by the uid of that pod."""
        self._awaited: dict[str, dict[str, None]] = {}
        """The leaving pods that a nominated pod waits for."""
        self._waived: dict[str, frozenset[Right]] = {}
        """Of each nominated claim, the rights that it does without: it uses what is idle."""
        self._ended: dict[str, tuple[int, ...]] = {}
        """The claims whose nomination timed out, with the versions of the books at that time."""
        self._held = state.changes.held.cursor(deciding=True)
        self._latest: dict[str | None, ImportanceKey] = {}
        """Of each quota, the key of the least important claim that was nominated since the cycle
        began, or before and is still."""
        self._unsure: set[str | None] = set()
        """The quotas in which a node is held for a pod whose claim was not noted."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._keys

    def nominate(
        self,
        claim: Claim,
        victims: Iterable[str],
        now: int,
        lacks_right: bool = False,
        waived: frozenset[Right] = frozenset(),
    ) -> None:
        """Note that the claim is nominated, and waits for these victims.

        And for the pods that leave its nodes. If it has no victims and `lacks_right`, it waits for
        the leaving pods of all quotas. Rights that are `waived` need not come free for it.
        """
        self._waived[claim.uid] = waived
        self._note_keys(dict.fromkeys(claim.uids(), claim.key))
        awaited = dict.fromkeys((*victims, *self._leaving_from(claim)))
        for uid in awaited:
            before = self._claimants.get(uid, ()) if uid in self._deadlines else ()
            self._deadlines[uid] = self._deadline_of(uid, now)
            self._claimants[uid] = tuple(dict.fromkeys((*before, *claim.uids())))
            self._note_awaited(uid, claim.uids())
        if not awaited:
            until = self._last_departure(now) if lacks_right else now + self._hold_for
            self._until.update(dict.fromkeys(claim.uids(), until))

    def _note_awaited(self, victim: str, claimants: Iterable[str]) -> None:
        for uid in claimants:
            self._awaited.setdefault(uid, {})[victim] = None

    def _leaving_from(self, claim: Claim) -> list[str]:
        """The leaving pods on the nodes that are held for the claim."""
        state, entries = self._state, self._state.ledger.entries
        nodes = {entries[uid].node for uid in claim.uids()}
        here = sorted(uid for node in nodes for uid in state.ledger.by_node.get(node, ()))
        return [uid for uid in here if uid in state.leaving]

    def _last_departure(self, now: int) -> int:
        """Until when the leaving pods of quotas are waited for."""
        leaving, entries = self._state.leaving, self._state.ledger.entries
        with_quota = (uid for uid in leaving if entries[uid].booking.quota is not None)
        return max((self._deadline_of(uid, now) for uid in with_quota), default=now)

    def _deadline_of(self, uid: str, now: int) -> int:
        """Until when a leaving pod is waited for: `holdFor` after its grace period.

        One of a disruption budget, long enough for that to be respected before it is deleted.
        """
        state = self._state
        pod, knobs = state.pods[uid], state.knobs.eviction
        if state.ends_in_time(pod) and pod.gone_by is not None:
            return pod.gone_by + self._hold_for
        if uid in self._deadlines:
            return self._deadlines[uid]
        respected = knobs.delete_after if state.budgets.on(pod) else 0
        return now + min(pod.grace_period, knobs.max_grace) + max(self._hold_for, respected)

    def expire(self, now: int) -> None:
        """End nominations that have lasted too long; stop waiting for pods that are overdue."""
        state = self._state
        for uid in [uid for uid, until in self._deadlines.items() if until <= now]:
            if uid in state.leaving and self._deadline_of(uid, now) <= now:
                state.leaving.mark_overdue(uid)
        self._drop_without_victims()
        self._deadlines = {
            uid: self._deadline_of(uid, now) for uid in self._deadlines if uid in state.leaving
        }
        self._claimants = {uid: self._claimants[uid] for uid in self._deadlines}
        self._awaited.clear()
        for uid, claimants in self._claimants.items():
            self._note_awaited(uid, claimants)
        self._note_held(now)
        for uid in sorted(uid for uid, until in self._until.items() if until <= now):
            if uid in state.waiting:
                self._ended[state.waiting.claim(uid).uid] = self._versions()
            state.drop_nomination(uid)
            del self._until[uid], self._keys[uid]

    def _note_held(self, now: int) -> None:
        """Start the clock of nominations that wait for no pod any more; note new ones."""
        state, reserved = self._state, self._state.reserved
        held = [uid for uid in state.ledger.holding if uid not in reserved]
        claims = {uid: state.waiting.claim(uid) for uid in held}
        unknown = {claims[uid].uid: claims[uid] for uid in held if uid not in self._keys}
        for claim in unknown.values():  # the cluster shows nominations from before a restart
            self.nominate(claim, (), now)
        self._keys = {}
        uids = {claim.uid for claim in claims.values()}
        self._waived = {uid: each for uid, each in self._waived.items() if uid in uids}
        self._held.read()
        self._latest.clear()
        self._unsure.clear()
        self._note_keys({uid: claim.key for uid, claim in claims.items()})
        awaiting = {uid for claimants in self._claimants.values() for uid in claimants}
        end = now + self._hold_for
        self._until = {uid: self._until.get(uid, end) for uid in held if uid not in awaiting}

    def _note_keys(self, keys: dict[str, ImportanceKey]) -> None:
        """Note the keys of nominated pods."""
        self._keys.update(keys)
        for uid in keys:
            self._note_latest(uid)

    def _note_latest(self, uid: str) -> None:
        """Note the key of a nominated pod as that of its quota, if none there is later."""
        entry, key = self._state.ledger.entries.get(uid), self._keys.get(uid)
        if entry is None:
            return  # it is set aside, and noted when that ends
        quota = entry.booking.quota
        if key is not None:
            self._latest[quota] = max(self._latest.get(quota, key), key)
        elif entry.stage is Stage.HELD:
            self._unsure.add(quota)

    def may_be_later(self, quota: str | None, key: ImportanceKey) -> bool:
        """May a pod of the quota be nominated for a less important claim than this?

        It spares looking through all of them; a later one that is gone may still count.
        """
        for uid in self._held.read():
            self._note_latest(uid)
        return quota in self._unsure or key < self._latest.get(quota, key)

    def _versions(self) -> tuple[int, ...]:
        """What must change before a claim whose nomination timed out may be nominated again."""
        state = self._state
        changes = (state.nodes.version, state.devices.version, state.tree.version)
        return state.departures, *changes, state.gpu_quotas.version

    def may_nominate(self, claim: Claim) -> bool:
        """Did no nomination of the claim time out, or has anything changed since?

        A pod must have left, or a node or quota have changed.
        """
        return self._ended.get(claim.uid) != self._versions()

    def _drop_without_victims(self) -> None:
        """Drop nominations that wait for a pod which is not leaving any more.

        And those for which room or right no longer suffices without that pod.
        """
        state = self._state
        kept = [uid for uid in self._deadlines if uid in state.pods and uid not in state.leaving]
        for victim in kept:
            del self._deadlines[victim]
            for uid in self._claimants.pop(victim):
                if uid in state.ledger.holding and uid not in state.reserved:
                    state.drop_nomination(uid)
                    self._until.pop(uid, None)
        if kept:
            self.drop_insufficient()

    def drop_insufficient(self) -> None:
        """Drop the nominations for which room or right would not suffice, the last ones first."""
        for uid in self._least_important_first(self._nominated()):
            entry = self._state.ledger.entries[uid]
            if entry.stage is Stage.HELD and not (self._fits_node(entry) and self._has_right(uid)):
                self._drop(uid)

    def forget_victim(self, uid: str) -> None:
        """Wait for this pod no longer: it is not evicted after all."""
        self._deadlines.pop(uid, None)
        for claimant in self._claimants.pop(uid, ()):
            self._awaited.get(claimant, {}).pop(uid, None)

    def _nominated(self) -> list[str]:
        """The pods that are nominated, reservations aside."""
        reserved = self._state.reserved
        return [uid for uid in self._state.ledger.holding if uid not in reserved]

    def is_awaited(self, victim: str) -> bool:
        """Does a nominated pod wait for this victim?"""
        return bool(self.claimants_of(victim))

    def claimants_of(self, victim: str) -> list[str]:
        """The nominated pods that wait for this victim."""
        holding = self._state.ledger.holding
        return [uid for uid in self._claimants.get(victim, ()) if uid in holding]

    def awaited_nodes(self, claim: Claim) -> list[str]:
        """The nodes that the claim holds until its victims are gone; none if that is not enough.

        Where it will have room and right there, it need not look for other victims.
        """
        state, uids = self._state, claim.uids()
        held = (uid in state.ledger.holding and uid not in state.reserved for uid in uids)
        if not all(held) or not self.waits_for_victims(claim):
            return []
        entries = [state.ledger.entries[uid] for uid in uids]
        enough = all(map(self._fits_node, entries)) and self._has_right(claim.uid)
        return self.nodes_of(claim) if enough else []

    def claims_awaiting(self, victim: str) -> list[Claim]:
        """The nominated claims that wait for this victim."""
        state = self._state
        uids = (uid for uid in self.claimants_of(victim) if uid in state.waiting)
        claims = (state.waiting.claim(uid) for uid in uids)
        return list({claim.uid: claim for claim in claims}.values())

    def waits_for_victims(self, claim: Claim) -> bool:
        """Does a pod leave that the claim waits for?"""
        return any(uid in self._state.leaving for uid in self.victims_of(claim))

    def victims_of(self, claim: Claim) -> list[str]:
        """The victims that a nominated claim waits for."""
        victims = (self._awaited.get(uid, ()) for uid in claim.uids())
        return list(dict.fromkeys(victim for each in victims for victim in each))

    def deadline(self, now: int) -> int | None:
        """When the next nomination ends; one that has ended does so in the next cycle."""
        ends = (*self._until.values(), *self._deadlines.values())
        return min((until for until in ends if until > now), default=None)

    def node_class(self, claim: Claim) -> str | None:
        """The class of the node nominated for a claim, where its charge depends on the class.

        Its victims freed right for that charge; on another class it might be charged more. None as
        well for a gang that is held on nodes of several classes.
        """
        entry = self._state.ledger.entries.get(claim.pods[0].uid)
        if entry is None or entry.stage is not Stage.HELD or not claim.is_charged_by_class():
            return None
        if claim.parts:
            return None  # each part may be on nodes of another class
        entries = (self._state.ledger.entries.get(uid) for uid in claim.uids())
        nodes = (self._state.nodes.at(each.node) for each in entries if each is not None)
        found = {None if node is None else node.charge_class for node in nodes}
        return found.pop() if len(found) == 1 else None

    def key_of(self, uid: str) -> ImportanceKey:
        """The importance of a nominated pod's claim; of the pod, if its claim is yet to be made."""
        known, waiting = self._keys.get(uid), self._state.waiting
        if known is not None:
            return known
        return waiting.claim(uid).key if uid in waiting else importance(self._state.pods[uid])

    def nodes_of(self, claim: Claim) -> list[str]:
        """The nodes nominated for a claim."""
        if not self._state.ledger.holding:
            return []
        entries, holding = self._state.ledger.entries, self._state.ledger.holding
        nodes = (entries[uid].booking.node for uid in claim.uids() if uid in holding)
        return [node for node in nodes if node is not None]

    def vacated(self, claim: Claim, nodes: list[str]) -> list[str]:
        """Of these nodes, which were nominated for a claim, those that it was not placed on."""
        entries = self._state.ledger.entries
        for pod in claim.pods if nodes else ():
            node = entries[pod.uid].booking.node
            if node in nodes:
                nodes.remove(node)
        return nodes

    def displace(self, claim: Claim, held: list[str], vacated: list[str]) -> None:
        """Drop the `held` nominations for which the claim has left no room or right.

        A displaced pod is moved to one of the `vacated` nodes if it fits: these were nominated for
        the claim, which does not need them any longer, and no further victim is needed.
        """
        if not held:
            return
        entries, reserved = self._state.ledger.entries, self._state.reserved
        nodes = {entries[pod.uid].node for pod in claim.pods}
        for uid in self._least_important_first(
            uid for uid in held if entries[uid].stage is Stage.HELD and uid not in reserved
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
        if waiting.uids() != (uid,) or waiting.topology is not None:
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
                for victim in self.victims_of(claim):
                    self._claimants[victim] = (*self._claimants[victim], uid)
                    self._note_awaited(victim, (uid,))
                return True
        return False

    def _fits_node(self, entry: Entry) -> bool:
        """Is its node not overcommitted once the leaving pods are gone, reservations aside?"""
        state = self._state
        here = (uid for uid in state.ledger.by_node[entry.node] if uid in state.reserved)
        reserved = [dict(state.ledger.entries[uid].booking.room) for uid in here]
        return all(
            state.placement.free_soon(row, state.leaving.room)[entry.node]
            + sum(each.get(row, 0) for each in reserved)
            >= 0
            for row, _ in entry.booking.room
        )

    def _has_right(self, uid: str) -> bool:
        """Would the gates let this nominated claim start once the leaving pods are gone?"""
        claim = self._state.waiting.claim(uid)
        waived = self._waived.get(claim.uid, frozenset())
        return all(self._lacking(part) <= waived for part in claim.parts or (claim,))

    def _lacking(self, part: Claim) -> set[Right]:
        """The rights that a nominated claim lacks, or a part of one, with the others in place."""
        node_class = self.node_class(part)
        held = [each for each in part.uids() if each in self._state.ledger.holding]
        with self._state.speculating() as speculation:
            mine = self._state.waiting.claim(part.uid).uids()
            reserved = [uid for uid in self._state.reserved if uid not in mine]
            speculation.set_aside([*held, *reserved])
            return set(self._policy.gates.rights(part, node_class))
