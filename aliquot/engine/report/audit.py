"""The audit of the books: does the ledger agree with the cluster?

Every pod that the cluster shows as bound must be booked once, on its node, with its request, in its
quota; the columns of quotas and nodes must be the sums of the bookings, and volumes be used and
reserved as these say. Pods that are assumed
and not bound yet are known to the engine alone, and are not compared.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from aliquot.engine.books.changes import Changes
from aliquot.engine.books.ledger import Stage
from aliquot.engine.books.volumes import Volumes
from aliquot.engine.columns import Columns
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.state import State

Bound = Callable[[str], Pod | None]
"""The pod with this uid as the cluster shows it, if it is bound and has not ended."""

_COLUMNS = ("wanted", "held", "used", "taken")


def violations(state: State, uids: Iterable[str], bound: Bound) -> Iterator[str]:
    """A sentence for each violation, and an empty one for each pod that is booked right.

    Each step is consistent in itself, so the caller may apply events between two.
    """
    for uid in dict.fromkeys((*uids, *state.ledger.entries)):
        yield _of_pod(uid, state, bound(uid))
    ledger = state.ledger
    columns = (ledger.wanted, ledger.held, ledger.used, ledger.taken)
    yield from [
        each
        for word, column, sums in zip(_COLUMNS, columns, ledger.fold(), strict=True)
        for each in _compare(state, word, column, sums)
    ]
    if not _volumes_agree(state):
        yield "what pods use and reserve of volumes is not what their bookings say"


def _of_pod(uid: str, state: State, pod: Pod | None) -> str:
    """What is wrong with a pod's booking: its node, its request or its quota; empty if nothing."""
    entry = state.ledger.entries.get(uid)
    committed = entry is not None and entry.stage is Stage.COMMITTED
    if pod is None:
        return f"pod {uid} is booked, and does not run" if committed else ""
    ask = state.placement.shape_ask(pod.shape)
    if entry is None or not committed:
        return f"pod {pod.path} runs on {pod.node}, and is not booked"
    node = state.nodes.known.get(pod.node or "")
    # Once its node is gone, the class by which a pod was charged is not known any more.
    charge = ask.charge(node.charge_class) if node is not None else entry.booking.charge
    if uid in state.stranded:
        charge = ()
    should = (state.tree.quota_of(pod), charge, pod.node, ask.room)
    if entry.booking[:4] != should:
        return f"pod {pod.path} is booked as {entry.booking[:4]}, and should be as {should}"
    return ""


def _volumes_agree(state: State) -> bool:
    """Are the users of volumes, and what is reserved, the fold of the bookings?"""
    folded = Volumes(Changes())
    for entry in state.ledger.entries.values():
        folded.post(entry.booking, +1)
    return folded.figures() == state.volumes.figures()


def _compare(
    state: State, word: str, columns: Columns, sums: Mapping[tuple[int, int], int]
) -> Iterator[str]:
    rows, slots = columns.data.nonzero()
    places = state.nodes.slots if word == "taken" else state.tree.slots
    for row, slot in sorted({*sums, *zip(rows.tolist(), slots.tolist(), strict=True)}):
        have, should = int(columns.data[row, slot]), min(sums.get((row, slot), 0), LIMIT)
        if have != should:
            what = f"{word} of {state.resources.names[row]} at {places.names[slot] or 'the root'}"
            yield f"{what} is {have}, the bookings there add up to {should}"
