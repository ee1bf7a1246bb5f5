"""The claims of gangs: the waiting pods of a gang are put together into claims.

While its core (`minMember` pods) does not run, a gang has one claim: the pods that its core lacks,
with its other waiting pods beside them as substitutes for pods that no node holds. Once the core
runs, each further pod claims by itself. Claims are made anew only for gangs that have changed.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.gang import Gang, select_core
from aliquot.engine.model.importance import ImportanceKey, importance
from aliquot.engine.model.pod import Pod
from aliquot.engine.placement.ask import Ask
from aliquot.engine.queue.claim import Claim, Pods
from aliquot.engine.state import State


class GangClaims:
    """Follows the gangs that change, and makes their claims."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._changed = state.changes.gangs.cursor()

    def refresh(self) -> None:
        """Put the claims of the gangs that have changed into the queue."""
        known = self._state.gangs.known
        for name in dict.fromkeys(self._changed.read()) if self._changed else ():
            if name in known:
                for claim in _claims(self._state, known[name]):
                    _enqueue(self._state, claim)

    def lookup(self) -> Callable[[str], Claim]:
        """A function from the uid of a waiting pod to its claim.

        Also of gangs whose claims are not in the queue yet, which this does not change.
        """
        state, changed = self._state, set(self._changed.unread())

        def claim_of(uid: str) -> Claim:
            gang = state.gangs.of(state.pods[uid])
            if gang is not None and gang.name in changed:
                for claim in _claims(state, gang):
                    if any(pod.uid == uid for pod in claim.members):
                        return claim
            return state.waiting.claim(uid)

        return claim_of


def substitute(state: State, claim: Claim, most: Mapping[Ask, int]) -> bool:
    """Choose the claim's pods anew, at most `most` of each ask; False if too few are left."""
    gang = state.gangs.of(claim.pods[0])
    assert gang is not None
    remaining, placeable = dict(most), []
    for pod in claim.members:
        ask = state.placement.ask(pod)
        if remaining.get(ask, 1) > 0:
            placeable.append(pod)
            if ask in remaining:
                remaining[ask] -= 1
    found = select_core(gang, sorted(placeable, key=_core_order), present_by_task(state, gang))
    if found.missing or not found.core:
        return False
    chosen = {pod.uid for pod in found.core}
    others = tuple(pod for pod in claim.members if pod.uid not in chosen)
    set_pods(state, claim, found.core, others)
    return True


def set_pods(state: State, claim: Claim, pods: Pods, others: Pods) -> None:
    """Make these pods of the gang the ones that the claim is for."""
    claim.pods, claim.others = pods, others
    same = state.claims.of(pods, others)
    claim.asks, claim.quota, claim.parts = same.asks, same.quota, same.parts


def present_by_task(state: State, gang: Gang) -> Counter[str]:
    """How many pods of each task run and are not leaving, or have succeeded."""
    return Counter(dict(gang.done)) + Counter(pod.task for pod in staying_pods(state, gang.name))


def staying_pods(state: State, gang: str) -> list[Pod]:
    """The pods of a gang that are bound or assumed, and not leaving."""
    members = (state.pods[uid] for uid in state.gangs.members.get(gang, ()))
    return [pod for pod in members if _is_placed(state, pod) and state.is_staying(pod)]


def _is_placed(state: State, pod: Pod) -> bool:
    entry = state.ledger.entries.get(pod.uid)  # None while its nomination is set aside
    return entry is not None and entry.stage >= Stage.ASSUMED


def _claims(state: State, gang: Gang) -> list[Claim]:
    """One claim for an incomplete core or the pods that the core lacks; else one for each pod."""
    members = [state.pods[uid] for uid in state.gangs.members.get(gang.name, ())]
    waiting = [pod for pod in members if not (pod.blocked or _is_placed(state, pod))]
    if not waiting:
        return []
    holding = state.ledger.holding
    waiting.sort(key=lambda pod: (pod.uid not in holding, _core_order(pod)))
    found = select_core(gang, waiting, present_by_task(state, gang))
    if found.missing:
        waiting.sort(key=importance)
        return [state.claims.of(tuple(waiting), missing=found.missing)]
    if found.core:
        core = tuple(sorted(found.core, key=importance))
        return [state.claims.of(core, found.others)]
    return [state.claims.of((pod,), surplus=True) for pod in waiting]


def _core_order(pod: Pod) -> tuple[int, bool, ImportanceKey]:
    """By importance, but of equal priority first the pods that may preempt.

    A core with one pod that says `preemptionPolicy: Never` does not preempt at all, and whether it
    has one must not depend on names.
    """
    return -pod.priority, not pod.preempts, importance(pod)


def _enqueue(state: State, claim: Claim) -> None:
    """Add a claim to the waiting ones, unless the same claim waits already."""
    if claim.uid not in state.waiting or not claim.is_like(state.waiting.claim(claim.uid)):
        state.waiting.add(claim)
