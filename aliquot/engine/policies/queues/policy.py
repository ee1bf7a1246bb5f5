"""Volcano queues: each queue may use what it deserves, and its namespaces share that by weight.

A claim may start while its queue and every queue above it stay within deserved; idle capacity
beyond that may be used, and is given back on demand. Queues take turns by used / deserved; in a
queue, namespaces by dominant share / weight within that queue; in a namespace, jobs by priority,
gang readiness and share. The knob `priorityBands` puts priority before fairness. A claim reclaims
from queues above deserved only if its own queue ends within deserved (see `reclaim`); inside its
queue, victims are found by the order of turns read backwards (see `preemption`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from aliquot.engine.books.ledger import Stage
from aliquot.engine.books.quota_tree import ROOT
from aliquot.engine.model.knobs import Knobs
from aliquot.engine.model.quantity import LIMIT, text
from aliquot.engine.model.reasons import Reason, Refusal, Watch, ask_text, held_text
from aliquot.engine.model.summaries import NamespaceFigures, QueueSummary, QuotaSummary
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.eligible import Eligible, Right, Rights
from aliquot.engine.policies.interface import Policy
from aliquot.engine.policies.queues import reclaim as queue_reclaim
from aliquot.engine.policies.queues.claimant import QueueClaimant
from aliquot.engine.policies.queues.deserved import Deserved
from aliquot.engine.policies.queues.drf import DominantShares
from aliquot.engine.policies.queues.preemption import QueuePreemption
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group
from aliquot.engine.state import State

_SCALE = 2**160
"""The fixed-point scale of used / deserved: both are below 2**63, so different ratios differ by
more than 2**-126, and never count as equal."""
_INFINITE = LIMIT * _SCALE


class Queues(Policy):
    """The policy of queues."""

    protected_namespaces = frozenset({"kube-system"})
    preempts_equals = True

    def __init__(self, knobs: Knobs) -> None:
        self._priority_bands = knobs.queues.priority_bands
        self._figures: tuple[Deserved, DominantShares] | None = None
        self._changed: dict[str, None] = {}
        self._last_turn: dict[Group, int] = {}
        """When a queue or namespace last had its turn: of equals, the longest ago is next."""
        self._turns = 0
        self._nominated_bounds: dict[str, dict[tuple[int, int], int]] = {}
        """What the queues of a nominated claim may use with it, by the claim's uid."""

    def begin(self, state: State, now: int) -> Iterable[str]:
        """Refresh the shares; the queues that deserve more or less than they did."""
        self._refreshed(state)[1].refresh()
        news, self._changed = self._changed, {}
        for name in news:
            state.changes.victims.append(name)
        return news

    def path(self, state: State, claim: Claim) -> tuple[Group, ...]:
        """The claim's queues from the top down, its namespace, its job: each takes turns.

        Only pods beyond the core of a running gang count as of a job of their own; all other claims
        of a namespace are ordered together. Claims without a queue are a group of their own.
        """
        if claim.quota is None:
            return (None,)
        lineage = reversed([("queue", each.name) for each in state.tree.ancestry(claim.quota)])
        namespace = claim.pods[0].namespace
        job = str(claim.gang) if claim.surplus else ""
        return (*lineage, ("namespace", claim.quota, namespace), ("job", job))

    def turn(self, state: State, group: Group, claim: Claim) -> object:
        """The smaller share comes first; of equal ones, the one whose last turn is longest ago.

        In a namespace, priority comes first, then gangs that do not run yet. With `priorityBands`,
        priority comes first everywhere. By what was deserved when the cycle began.
        """
        deserved, drf = self._figures or self._refreshed(state)
        first = -claim.priority if self._priority_bands else 0
        match group:
            case None:
                return first, 0, 0, 0
            case ("queue", str(name)):
                quota = state.tree.quotas.get(name)
                if quota is None:  # deleted: its claims are in other groups by now
                    return first, 0, 0, 0
                share = self._share(deserved, state.tree.slots[name])
                return first, -quota.priority, share, self._last_turn.get(group, 0)
            case ("namespace", str(queue), str(namespace)):
                share = drf.namespace_turn(queue, namespace)
                return first, share, self._last_turn.get(group, 0)
            case ("job", str(gang)):
                return -claim.priority, bool(gang), drf.gang_turn(gang) if gang else 0
        raise AssertionError(group)

    def started(self, state: State, claim: Claim) -> None:
        """The claim's queues and namespace have had their turn."""
        self._turns += 1
        self._last_turn.update(dict.fromkeys(self.path(state, claim)[:-1], self._turns))

    def gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """Used, plus nominations, plus the claim, within deserved, up to the root.

        A nominated claim may start within what its queues used when it was nominated.
        """
        refusal = self._admission_gate(state, claim)
        if claim.quota is None or refusal is not None or self._is_outside(state, claim):
            return refusal
        if claim.held and self._fits_idle(state, claim, node_class):
            return None
        deserved, charge = self._refreshed(state)[0], claim.charge(node_class)
        nominated_bounds = self._nominated_bounds.get(claim.uid, {}) if claim.held else {}
        for slot in state.tree.lineage(claim.quota):
            for row, amount in charge:
                if row in deserved.rows:
                    most = max(deserved.get(row, slot), nominated_bounds.get((slot, row), 0))
                    if deserved.taken(row, slot) + amount > most:
                        return self._refusal(state, claim, slot, row, amount)
        return None

    def idle_gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """Preemptible pods of reclaimable queues may use idle capacity beyond deserved.

        Except the unused guarantees of other queues.
        """
        assert claim.quota is not None
        reclaimable = claim.preemptible and state.tree.quotas[claim.quota].reclaimable
        if reclaimable and self._fits_idle(state, claim, node_class):
            return self._admission_gate(state, claim)
        return self.gate(state, claim, node_class)

    def could_keep_idle(self, state: State, claim: Claim) -> bool:
        """Not if its queue deserves nothing at all of something that it asks for."""
        deserved, slot = self._refreshed(state)[0], state.tree.slots[str(claim.quota)]
        return all(deserved.get(row, slot) for row, _ in claim.charge(None) if row in deserved.rows)

    def started_on_idle(self, claim: Claim) -> None:
        """Nothing to note: a queue above deserved is reclaimed from whatever it started on."""

    def rights(self, state: State, claim: Claim, node_class: str | None) -> Rights:
        """What must come free in the claim's queues, to be within capability and deserved.

        A queue above deserved may stay there, but must not grow: the claim replaces other pods.
        """
        rights: Rights = {}
        if self._is_outside(state, claim):
            return rights
        deserved = self._refreshed(state)[0]
        for slot in state.tree.lineage(str(claim.quota)):
            for row, amount in claim.charge(node_class):
                most = state.tree.max.get(row, slot)
                if row in deserved.rows:
                    has = max(deserved.get(row, slot), state.ledger.used.get(row, slot))
                    most = min(most, has)
                rights[Right(slot, row)] = deserved.after_leaving(row, slot) + amount - most
        return {right: short for right, short in rights.items() if short > 0}

    def nominated(self, state: State, claim: Claim) -> None:
        """Note what its queues use now: its gate grants as much once the victims are gone."""
        deserved = self._refreshed(state)[0]
        self._nominated_bounds = {
            uid: most for uid, most in self._nominated_bounds.items() if uid in state.waiting
        }
        if not self._is_outside(state, claim):
            self._nominated_bounds[claim.uid] = {
                (slot, row): state.ledger.used.get(row, slot)
                for slot in state.tree.lineage(str(claim.quota))
                for row in deserved.rows
            }

    def eligible_victims(
        self, state: State, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Eligible]]:
        """Within deserved, pods of queues above theirs; then pods of its own queue."""
        claimant = reclaim_rules.Claimant(state, claim, node_class, rights, now, lambda *_: LIMIT)
        return reclaim_rules.ranks(claimant, self._eligible_victims(claimant, node_class))

    def _eligible_victims(
        self, claimant: reclaim_rules.Claimant, node_class: str | None
    ) -> Iterator[list[Eligible]]:
        if self._admission_gate(claimant.state, claimant.claim) is not None:
            return
        queue_claimant = QueueClaimant(claimant, node_class, *self._refreshed(claimant.state))
        yield from queue_reclaim.eligible_victims(queue_claimant)
        yield from QueuePreemption(queue_claimant, self._priority_bands).eligible_victims()

    def could_start(self, state: State, claim: Claim) -> bool:
        """Not if the claim asks for more than its queue, or one above it, deserves."""
        if claim.quota is None:
            return True
        deserved = self._refreshed(state)[0]
        return super().could_start(state, claim) and all(
            amount <= deserved.get(row, slot)
            for slot in state.tree.lineage(claim.quota)
            for row, amount in claim.charge(None)
            if row in deserved.rows
        )

    def is_owed(self, state: State, claim: Claim) -> bool:
        """Is the claim within what its queue deserves, nominations aside?"""
        if claim.quota is None:
            return False
        deserved, slot = self._refreshed(state)[0], state.tree.slots[claim.quota]
        return all(
            state.ledger.used.get(row, slot) + amount <= deserved.get(row, slot)
            for row, amount in claim.charge(None)
            if row in deserved.rows
        )

    def complete(self, state: State, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """The runtime of a queue is what it deserves."""
        deserved, names = self._refreshed(state)[0], state.resources.names
        completed = []
        for each in summaries:
            slot = state.tree.slots[each.name]
            shown = {*each.used, *each.min, *each.max}
            rows = {names[row]: row for row in sorted(deserved.rows) if names[row] in shown}
            runtime = {name: deserved.get(row, slot) for name, row in rows.items()}
            completed.append(replace(each, runtime=runtime))
        return completed

    def queues(self, state: State, quotas: Iterable[QuotaSummary]) -> list[QueueSummary]:
        """The figures of every queue, and of the namespaces in it."""
        drf = self._refreshed(state)[1]
        drf.refresh()
        names, used = state.resources.names, _in_use(state)
        found = []
        for summary in self.complete(state, list(quotas)):
            inside = {
                namespace: NamespaceFigures(
                    drf.weight(namespace),
                    drf.share(sums),
                    {
                        names[row]: n
                        for row, n in sorted(sums.items())
                        if names[row] in summary.used
                    },
                )
                for (queue, namespace), sums in sorted(used.items())
                if queue == summary.name
            }
            weight = state.tree.quotas[summary.name].default_weight or 1
            figures = summary.runtime, summary.used, inside
            found.append(QueueSummary(summary.name, weight, *figures))
        return found

    def _refreshed(self, state: State) -> tuple[Deserved, DominantShares]:
        """The shares as they are now; changed ones are noted for the next cycle's wake-ups."""
        if self._figures is None:
            self._figures = Deserved(state), DominantShares(state)
        deserved = self._figures[0]
        names = state.tree.slots.names
        changed = deserved.refresh()
        self._changed.update({name: None for slot in changed if (name := names[slot])})
        return self._figures

    def _share(self, deserved: Deserved, slot: int) -> int:
        """Used / deserved of a queue in its dominant resource, on `_SCALE`."""
        most = 0
        for row in deserved.rows:
            taken = deserved.taken(row, slot)
            if taken:
                share = deserved.get(row, slot)
                most = max(most, taken * _SCALE // share if share else _INFINITE)
        return most

    def _fits_idle(self, state: State, claim: Claim, node_class: str | None) -> bool:
        """Does the claim fit what no pod uses and no other queue is guaranteed?"""
        deserved, root = self._refreshed(state)[0], state.tree.slots[ROOT]
        lineage = state.tree.lineage(str(claim.quota))
        return all(
            deserved.taken(row, root) + amount + deserved.unused_guarantees(row, lineage)
            <= deserved.total[row]
            for row, amount in claim.charge(node_class)
            if row in deserved.rows
        )

    def _is_outside(self, state: State, claim: Claim) -> bool:
        return claim.quota is None or state.tree.quotas[claim.quota].unshared

    def _admission_gate(self, state: State, claim: Claim) -> Refusal | None:
        """Refuses pods that name a queue which does not exist, or one with queues below it."""
        named = claim.pods[0].quota
        if named is not None and named not in state.tree.quotas:
            words = f"there is no queue {named}"
            return Refusal(Reason.QUEUE_MISSING, words, named, watch=(Watch(quota=ROOT),))
        if claim.quota is None or not state.tree.quotas[claim.quota].is_parent:
            return None
        words = f"queue {claim.quota} is a parent: pods belong to the queues below it"
        watch = (Watch(quota=claim.quota),)
        return Refusal(Reason.PARENT_QUOTA, words, claim.quota, watch=watch)

    def _refusal(
        self, state: State, claim: Claim, slot: int, row: int, amount: int
    ) -> Refusal | None:
        """The refusal with its numbers; None where no node could hold the claim even when empty.

        Then placement refuses it, with the reason that matters.
        """
        if not all(map(state.placement.could_hold, claim.asks)):
            return None
        deserved = self._refreshed(state)[0]
        name, resource = str(state.tree.slots.names[slot]), state.resources.names[row]
        above = "" if name == claim.quota else f", above {claim.quota}"
        held = state.ledger.held.get(row, slot)
        used = deserved.taken(row, slot) - held
        return Refusal(
            Reason.QUEUE_OVER_DESERVED,
            f"queue {name}{above}: deserves {text(resource, deserved.get(row, slot))} {resource}, "
            f"used {text(resource, used)}{held_text(resource, held)}, "
            f"{ask_text(claim.size, resource, amount)}",
            quota=name,
            resource=resource,
            watch=(Watch(quota=name),),
        )


def _in_use(state: State) -> dict[tuple[str | None, str], dict[int, int]]:
    """What the pods of each namespace use in each queue, without nominations.

    A namespace whose pods all wait is listed with zeros.
    """
    found: dict[tuple[str | None, str], dict[int, int]] = {}
    for uid, pod in state.pods.items():
        entry = state.ledger.entries[uid]
        sums = found.setdefault((entry.booking.quota, pod.namespace), {})
        for row, amount in entry.booking.charge:
            sums[row] = sums.get(row, 0) + (amount if entry.stage >= Stage.ASSUMED else 0)
    return found
