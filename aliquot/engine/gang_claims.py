"""Mustering: the waiting pods of a gang are put together into claims.

While its core does not run, a gang has one claim: the pods that it lacks, and beside them those who
could stand in for one that finds no room. Once the core runs, what is beyond it claims one by one.
Done when something has become of its pods, and not before.
"""

from collections import Counter
from collections.abc import Mapping

from aliquot.engine.books.gangs import booking_name
from aliquot.engine.books.ledger import Booking, Stage
from aliquot.engine.model.gang import Gang, select_core
from aliquot.engine.model.importance import importance
from aliquot.engine.model.pod import Pod
from aliquot.engine.placement.best_node import Ask
from aliquot.engine.queue.claim import Claim, Pods
from aliquot.engine.state import State


def muster_all(state: State) -> None:
    """Put the gangs together of whose pods something has become."""
    gangs = state.gangs
    while gangs.dirty:
        name = next(iter(gangs.dirty))
        del gangs.dirty[name]
        _muster(state, gangs.known[name])


def stand_in(state: State, claim: Claim, most: Mapping[Ask, int]) -> bool:
    """Let others of the gang stand in, with at most so many of each ask; False if they cannot."""
    gang = state.gangs.of(claim.pods[0])
    assert gang is not None
    left, able = dict(most), []
    for pod in claim.members:
        ask = state.placement.ask(pod.shape)
        if left.get(ask, 1) > 0:
            able.append(pod)
            if ask in left:
                left[ask] -= 1
    found = select_core(gang, sorted(able, key=importance), there(state, gang))
    if found.missing or not found.core:
        return False
    chosen = {pod.uid for pod in found.core}
    others = tuple(pod for pod in claim.members if pod.uid not in chosen)
    take(state, claim, found.core, others)
    return True


def take(state: State, claim: Claim, pods: Pods, others: Pods) -> None:
    """Let a claim be for these pods of its gang."""
    claim.pods, claim.others = pods, others
    same = state.claims.of(pods, others)
    claim.asks, claim.parts = same.asks, same.parts


def there(state: State, gang: Gang) -> Counter[str]:
    """How many of each task run and stay, or have ended well."""
    return Counter(dict(gang.done)) + Counter(pod.task for pod in staying(state, gang.name))


def staying(state: State, gang: str) -> list[Pod]:
    """The pods of a gang that run, or are about to, and stay."""
    members = (state.pods[uid] for uid in state.gangs.members.get(gang, ()))
    return [pod for pod in members if _is_placed(state, pod) and state.stays(pod)]


def _is_placed(state: State, pod: Pod) -> bool:
    entry = state.ledger.entries.get(pod.uid)  # none while what is held for it is left out
    return entry is not None and entry.stage >= Stage.ASSUMED


def _muster(state: State, gang: Gang) -> None:
    members = [state.pods[uid] for uid in state.gangs.members.get(gang.name, ())]
    waiting = [
        pod for pod in members if not (pod.gated or pod.terminating or _is_placed(state, pod))
    ]
    _ask_ahead(state, gang, members)
    if not waiting:
        return
    holding = state.ledger.holding
    waiting.sort(key=lambda pod: (pod.uid not in holding, importance(pod)))
    found = select_core(gang, waiting, there(state, gang))
    if found.missing:
        waiting.sort(key=importance)
        _let_wait(state, state.claims.of(tuple(waiting), missing=found.missing))
    elif found.core:
        core = tuple(sorted(found.core, key=importance))
        _let_wait(state, state.claims.of(core, found.others))
    else:
        for pod in waiting:
            _let_wait(state, state.claims.of((pod,), surplus=True))


def _let_wait(state: State, claim: Claim) -> None:
    """Unless it waits like this already."""
    if claim.uid not in state.waiting or not claim.is_like(state.waiting.claim(claim.uid)):
        state.waiting.add(claim)


def _ask_ahead(state: State, gang: Gang, members: list[Pod]) -> None:
    """A gang whose pods are not all there yet asks for what they will need."""
    booked, home = booking_name(gang), state.home_of(gang)
    lacks: dict[int, int] = {}
    closed = home is not None and state.tree.closed(home)
    if not closed and len(members) + sum(number for _, number in gang.done) < gang.min_member:
        lacks = dict(state.resources.vector(gang.min_resources))
        for pod in members:
            for row, amount in state.ledger.entries[pod.uid].booking.charge:
                lacks[row] = lacks.get(row, 0) - amount
    charge = tuple((row, amount) for row, amount in sorted(lacks.items()) if amount > 0)
    if charge:
        state.gangs.requesting[booked] = gang
        state.ledger.wait(booked, Booking(home, charge))
    elif state.gangs.requesting.pop(booked, None) is not None:
        state.ledger.release(booked)
