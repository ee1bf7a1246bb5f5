"""The claims of gangs: the waiting pods of a gang are put together into claims.

While its core (`minMember` pods) does not run, a gang has one claim: the pods that its core lacks,
with its other waiting pods beside them as substitutes for pods that no node holds. Once the core
runs, each further pod claims by itself. Gangs that start together have one claim for all of their
cores. Claims are made anew only for gangs that have changed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.gang import CoreSelection, select_core
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
        group = self._state.gangs.group
        changed = dict.fromkeys(self._changed.read()) if self._changed else ()
        for names in dict.fromkeys(group(name) for name in changed):
            for claim in _claims(self._state, names):
                _enqueue(self._state, claim)

    def claim_rest(self, claim: Claim) -> None:
        """The core of a gang has started: its other waiting pods claim one by one."""
        if claim.others:
            waiting, changes = self._state.waiting, self._state.waiting.changes
            self._state.gangs.note_change(claim.pods[0])
            self.refresh()
            waiting.changes = changes  # the same pods wait: demand has not changed

    def waiting(self) -> Iterator[Claim]:
        """All waiting claims, those of gangs as they are now, which this does not change."""
        state, changed = self._state, set(self._changed.unread())
        groups = dict.fromkeys(state.gangs.group(name) for name in sorted(changed))
        anew = {name for group in groups for name in group if name in state.gangs.known}
        for claim in state.waiting.claims():
            if claim.gang is None or claim.gang not in anew:
                yield claim
        for group in groups:
            yield from _claims(state, group)

    def lookup(self) -> Callable[[str], Claim]:
        """A function from the uid of a waiting pod to its claim.

        Also of gangs whose claims are not in the queue yet, which this does not change.
        """
        state, changed = self._state, set(self._changed.unread())

        def claim_of(uid: str) -> Claim:
            gang = state.gangs.of(state.pods[uid])
            names = state.gangs.group(gang.name) if gang is not None else ()
            if not changed.isdisjoint(names):
                for claim in _claims(state, names):
                    if any(pod.uid == uid for pod in claim.members):
                        return claim
            return state.waiting.claim(uid)

        return claim_of


def substitute(state: State, claim: Claim, most: Mapping[Ask, int]) -> bool:
    """Choose the claim's pods anew, at most `most` of each ask; False if too few are left."""
    remaining, placeable = dict(most), []
    for pod in claim.members:
        ask = state.placement.ask(pod)
        if remaining.get(ask, 1) > 0:
            placeable.append(pod)
            if ask in remaining:
                remaining[ask] -= 1
    core: list[Pod] = []
    for name in dict.fromkeys(str(pod.gang) for pod in claim.members):
        own = sorted((pod for pod in placeable if pod.gang == name), key=_core_order)
        found = select_core(state.gangs.known[name], own, present_by_task(state, name))
        if found.missing or not found.core:
            return False
        core += found.core
    chosen = {pod.uid for pod in core}
    others = tuple(pod for pod in claim.members if pod.uid not in chosen)
    set_pods(state, claim, _most_important_first(core), others)
    return True


def set_pods(state: State, claim: Claim, pods: Pods, others: Pods) -> None:
    """Make these pods of the gang the ones that the claim is for."""
    claim.pods, claim.others = pods, others
    same = state.claims.of(pods, others)
    claim.asks, claim.quota, claim.parts = same.asks, same.quota, same.parts


def present_by_task(state: State, gang: str) -> Counter[str]:
    """How many pods of each task of a gang run and are not leaving, or have succeeded."""
    done = Counter(dict(state.gangs.known[gang].done))
    return done + Counter(pod.task for pod in staying_pods(state, gang))


def staying_pods(state: State, gang: str) -> list[Pod]:
    """The pods of a gang that are bound or assumed, and not leaving."""
    members = (state.pods[uid] for uid in state.gangs.members.get(gang, ()))
    return [pod for pod in members if _is_placed(state, pod) and state.is_staying(pod)]


def _is_placed(state: State, pod: Pod) -> bool:
    entry = state.ledger.entries.get(pod.uid)  # None while its nomination is set aside
    return entry is not None and entry.stage >= Stage.ASSUMED


class _Waiting(NamedTuple):
    """A gang's waiting pods, and those that its core lacks, if it does not run."""

    pods: list[Pod]
    core: CoreSelection


def _claims(state: State, names: Iterable[str]) -> list[Claim]:
    """The claims of gangs that start together; of most gangs, which start alone.

    One claim for cores that lack pods, or for all that the cores lack; else one for each pod.
    """
    found = [_waiting(state, name) for name in names if name in state.gangs.known]
    missing = sum(each.core.missing for each in found) + _unknown(state, names)
    started = [each for each in found if not (each.core.missing or each.core.core)]
    others = [each for each in found if each.core.missing or each.core.core]
    claims = [state.claims.of((pod,), surplus=True) for each in started for pod in each.pods]
    waiting = [pod for each in others for pod in each.pods]
    if missing and waiting:
        whole = _most_important_first(waiting)
        return [state.claims.of(whole, missing=missing), *claims]
    if waiting:
        core = _most_important_first(pod for each in others for pod in each.core.core)
        rest = tuple(pod for each in others for pod in each.core.others)
        claims.insert(0, state.claims.of(core, rest))
    return claims


def _waiting(state: State, name: str) -> _Waiting:
    gang, pods = state.gangs.known[name], state.pods
    entries, holding = state.ledger.entries, state.ledger.holding
    waiting, present = list[Pod](), Counter(dict(gang.done))
    for uid in state.gangs.members.get(name, ()):
        pod, entry = pods[uid], entries.get(uid)
        if entry is not None and entry.stage >= Stage.ASSUMED:
            present[pod.task] += state.is_staying(pod)
        elif not pod.blocked:
            waiting.append(pod)
    waiting.sort(key=_core_order)
    if holding:
        waiting.sort(key=lambda pod: pod.uid not in holding)
    return _Waiting(waiting, select_core(gang, waiting, present))


def _unknown(state: State, names: Iterable[str]) -> int:
    """How many pods gangs lack at least that are named by others and do not exist."""
    return sum(name not in state.gangs.known for name in names)


def lacking(state: State, claim: Claim) -> str:
    """Which gang lacks pods that a claim starts with, and how many, in words."""
    names = state.gangs.group(str(claim.gang))
    for name in sorted(names, key=lambda each: each != claim.gang):
        gang = state.gangs.known.get(name)
        if gang is None:
            return f"gang {claim.gang} starts together with gang {name}, which does not exist"
        missing = _waiting(state, name).core.missing
        if missing:
            words = f"gang {name}: {gang.min_member} pods start together, {missing} of them"
            words += " is missing" if missing == 1 else " are missing"
            with_it = f"; gang {claim.gang} starts together with it"
            return words if name == claim.gang else words + with_it
    return f"gang {claim.gang}: pods are missing"


def _most_important_first(pods: Iterable[Pod]) -> Pods:
    return tuple(sorted(pods, key=importance))


def _core_order(pod: Pod) -> tuple[int, bool, ImportanceKey]:
    """By importance, but of equal priority first the pods that may preempt.

    A core with one pod that says `preemptionPolicy: Never` does not preempt at all, and whether it
    has one must not depend on names.
    """
    key = importance(pod)
    return key[0], not pod.preempts, key


def _enqueue(state: State, claim: Claim) -> None:
    """Add a claim to the waiting ones, unless the same claim waits already."""
    if claim.uid not in state.waiting or not claim.is_like(state.waiting.claim(claim.uid)):
        state.waiting.add(claim)
