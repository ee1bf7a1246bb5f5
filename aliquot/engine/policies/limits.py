"""The gates that hold under every policy: a quota is open, and uses no more than its max."""

from aliquot.engine.claim import Claim
from aliquot.engine.quantity import text
from aliquot.engine.reasons import Reason, Refusal, Watch, asked, kept
from aliquot.engine.state import State


def closed_gate(state: State, claim: Claim, node_class: str | None) -> Refusal | None:
    """Neither the claim's quota nor any above it may be closed."""
    if claim.quota is None:
        return None
    for slot in state.tree.closed(claim.quota):
        name = state.tree.slots.names[slot]
        words = f"queue {name} is closed: it lets nobody start any more"
        return Refusal(Reason.QUEUE_CLOSED, words, name, watch=(Watch(quota=name),))
    return None


def max_gate(state: State, claim: Claim, node_class: str | None) -> Refusal | None:
    """Used, plus what is held for others, plus the claim, must stay within max.

    Only resources that the claim asks for count, and of those only the ones that max names.
    """
    if claim.quota is None:
        return None
    in_use, kept_back = state.ledger.used, state.ledger.held
    charge, someone_holds = claim.charge(node_class), bool(state.ledger.holding)
    for slot, limits in state.tree.ceilings(claim.quota):
        for row, amount in charge:
            most = limits.get(row)
            if most is None:
                continue
            used = in_use.get(row, slot)
            held = kept_back.get(row, slot) if someone_holds else 0
            if used + held + amount > most:
                quota = state.tree.slots.names[slot]
                resource = state.resources.names[row]
                return Refusal(
                    Reason.QUOTA_MAX_EXCEEDED,
                    f"quota {quota}: max {text(resource, most)} {resource}, "
                    f"used {text(resource, used)}{kept(resource, held)}, "
                    f"{asked(claim.size, resource, amount)}",
                    quota=quota,
                    resource=resource,
                    watch=(Watch(quota=quota),),
                )
    return None
