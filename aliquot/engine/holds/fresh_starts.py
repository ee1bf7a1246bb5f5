"""Fresh starts: a start that was decided in this cycle can still be taken back without an eviction.

Claims are tried one by one, so a claim that borrows may have started before a claim of another
quota is tried that would take what it borrowed back at once: inside a quota a claim above min can
come before one within min. The Bind has not been handed out yet, so it is withdrawn: its pods wait
again, and are tried again in the same cycle, later each time.

A cheap test comes first: without which starts could a refused claim start, by quota? Each claim is
withdrawn a few times by it at most; starts that are not in the way are put back. It is right but
for circles of claims and the sizes of pods. So at last the victim search looks among the starts as
if they ran: what it would evict is withdrawn, and the repeat guard ends circles, as for evictions.

Where a bounded cycle leaves claims untried, the Binds that they could take back are kept back.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import dropwhile, islice

from aliquot.engine.books.label_sets import Selection
from aliquot.engine.books.ledger import Stage
from aliquot.engine.gang_claims import staying_pods
from aliquot.engine.model.gang import select_core
from aliquot.engine.model.reasons import Refusal
from aliquot.engine.policies import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.lane import Lane
from aliquot.engine.state import State

_MOST_TRIED = 64
"""How many of the last starts are considered for one claim: setting one aside takes some 10 us, so
this costs less than the victim search that it replaces."""
_MOST_WITHDRAWN = 2
"""How often a start is withdrawn in a cycle at most: each time it comes later, so that two claims
do not take turns for ever. Of 1,500 random starts, more than twice helped in none."""
_MOST_PUT_BACK = 16
"""Of so many starts each is tried to be put back. Their number squared times 10 us is the cost."""

Assume = Callable[[Claim], Refusal | None]
"""Assumes a claim, or says why not."""


class StartsByQuota:
    """The claims that have started in each quota, and how many there are of each priority.

    What has started is sorted when it is asked for: while no claim is refused, nothing asks.
    """

    def __init__(self) -> None:
        self._unsorted: list[Claim] = []
        self._claims: dict[str, dict[str, Claim]] = {}
        self._priorities: dict[str, Counter[int]] = {}
        self.add = self._unsorted.append

    def claims(self) -> dict[str, dict[str, Claim]]:
        """The claims by uid, in the order of their starts, of each quota that has some."""
        for claim in self._unsorted:
            quota = str(claim.quota)
            self._claims.setdefault(quota, {})[claim.uid] = claim
            self._priorities.setdefault(quota, Counter())[claim.priority] += 1
        self._unsorted.clear()
        return self._claims

    def remove(self, claim: Claim) -> None:
        """The claim's start was handed out, or taken back."""
        claims, quota = self.claims(), str(claim.quota)
        del claims[quota][claim.uid]
        self._priorities[quota][claim.priority] -= 1
        if not claims[quota]:
            del claims[quota], self._priorities[quota]

    def has_less_important(self, claim: Claim) -> bool:
        """Has a claim of lower priority started in this one's quota?"""
        started = self._priorities.get(str(claim.quota)) if self.claims() else None
        return started is not None and any(
            number and each < claim.priority for each, number in started.items()
        )


class FreshStarts:
    """The claims that have started in this cycle, and those whose start was withdrawn."""

    def __init__(self, state: State, policy: Policy) -> None:
        self._state = state
        self._turns = policy.turns
        self._started: dict[str, Claim] = {}
        """By uid, in the order of their starts."""
        self._by_quota = StartsByQuota()
        """The same by quota."""
        self._counts = state.placement.rule_sets.counts
        self._withdrawn: Counter[str] = Counter()
        self._starts = 0
        self._refused: dict[Lane, int] = {}
        """The lanes that were refused, each after how many starts."""
        self._shown: dict[str, None] = {}
        """The pods that are among the bound ones, so that the victim search sees them."""
        self._needed_by_others: set[str] = set()
        """The pods that stay although a claim would evict them: starts that may stay need them."""
        self._searched_among = False
        """Are victims searched among the starts that are not handed out?"""
        self._searched = 0
        """How many starts there were when claims were last woken to search among them."""
        self.shown = 0
        """How often starts were put among the bound pods."""
        self._numbers: dict[str, int] = {}
        """How many starts there were before each."""
        self._dependent: dict[str, tuple[Claim, frozenset[Selection]]] = {}
        """The starts that need other pods by their rules, and which pods."""
        self._by_gang: dict[str, dict[str, Claim]] = {}
        """The starts of the pods of each gang, the first first: its core, and those beyond."""

    def begin(self) -> list[Claim]:
        """Begin a cycle; returns the claims whose Binds were kept back by the last one.

        A start that the cluster has overtaken since is no longer one of them: its pods wait again.
        """
        for claim in [each for each in self._started.values() if not self._stands(each)]:
            self._forget(claim)
            for uid in claim.uids():
                self._state.unbind(uid)
        return list(self._started.values())

    def show_again(self) -> None:
        """Claims are tried: go on where the last cycle has searched victims among its starts."""
        if self._searched_among:
            self._show()

    def _stands(self, claim: Claim) -> bool:
        """Are the claim's pods as they were when it started, and the nodes still there?"""
        state = self._state
        return all(
            state.pods.get(pod.uid) == pod
            and state.ledger.entries[pod.uid].stage is Stage.ASSUMED
            and state.ledger.entries[pod.uid].booking.node in state.nodes.known
            and state.quota_of(pod.uid) == claim.quota
            for pod in claim.pods
        )

    def keep(self) -> set[str]:
        """The cycle was bounded and has left claims untried, which could take starts back.

        Those of quotas that borrow, and those of lower priority in their own quota. Their Binds are
        kept back until all were tried: returns the pods.
        """
        if self._turns is None:
            return set()
        untried: dict[str | None, int] = {}
        for claim in self._state.waiting.untried():
            untried[claim.quota] = max(claim.priority, untried.get(claim.quota, claim.priority))
        by_quota = self._by_quota.claims()
        for quota in [each for each in by_quota if not self._turns.borrows(each)]:
            for claim in list(by_quota[quota].values()):
                if claim.priority >= untried.get(quota, claim.priority):
                    self._forget(claim)
        return {uid for each in self._started.values() for uid in each.uids()}

    def hand_out(self) -> None:
        """All claims were tried: what has started is handed out."""
        self._started.clear()
        self._by_quota = StartsByQuota()
        self._withdrawn.clear()
        self._refused.clear()
        self._searched, self._searched_among = self._starts, False
        self._needed_by_others.clear()
        self._numbers.clear()
        self._dependent.clear()
        self._by_gang.clear()
        if self._turns is not None:
            self._turns.handed_out()

    def note(self, claim: Claim) -> None:
        """A claim has started."""
        if self._counts.active and self._turns is not None:
            self._numbers[claim.uid] = self._starts
            needed = self._needs(claim)
            if needed:
                self._dependent[claim.uid] = claim, needed
        for gang in _gangs(claim):
            self._by_gang.setdefault(gang, {})[claim.uid] = claim
        if claim.quota is not None:
            self._started[claim.uid] = claim
            self._by_quota.add(claim)
            self._starts += 1

    def _needs(self, claim: Claim) -> frozenset[Selection]:
        """The pods that a claim needs by its rules: those near it, and those of its spread."""
        sets, found = self._state.placement.rule_sets.counts.label_sets, set[Selection]()
        for ask in claim.asks:
            rules = None if ask.rule_set is None else ask.rule_set.rules
            if rules is not None and rules.affinity:
                found.add(sets.select(*dict.fromkeys(each.selector for each in rules.affinity)))
            if rules is not None:
                found.update(sets.select(each.selector) for each in rules.spread if each.required)
        return frozenset(found)

    def note_refused(self, lane: Lane) -> None:
        """A lane was refused: later starts may give its claims something to take back."""
        if self._turns is not None:
            self._refused[lane] = self._starts

    def refused_before_others(self) -> list[Lane]:
        """The lanes that were refused before the last start, once for each."""
        found = [lane for lane, starts in self._refused.items() if starts < self._starts]
        self._refused.update(dict.fromkeys(found, self._starts))
        return found

    def withdraw_for(self, claim: Claim, assume: Assume) -> set[str]:
        """Withdraw starts that the claim would take back at once, if it can start then.

        The last starts first. Returns the uids of the pods that wait again.
        """
        if self._turns is None or claim.quota is None or claim.parts or not self._started:
            return set()
        return self._withdraw(self._starts_in_the_way(claim, assume))

    def show_to(self, lanes: Iterable[Lane]) -> list[Lane]:
        """Let victims be searched among the starts, and say for which of these lanes.

        Those whose first claim could take some back; none if nothing has started since.
        """
        if self._turns is None or self._searched == self._starts:
            return []
        self._searched = self._starts
        found = [lane for lane in lanes if lane.head is not None and self._in_the_way(lane.head)]
        if found:
            self._searched_among = True
            self._show()
        return found

    def _show(self) -> None:
        self.shown += 1
        for uid in (uid for each in self._started.values() for uid in each.uids()):
            if uid not in self._shown and uid not in self._needed_by_others:
                self._shown[uid] = None
                self._state.show_assumed(uid)

    def hide(self) -> None:
        """The cycle's claims are tried: starts are no victims until they are confirmed."""
        self._unshow(list(self._shown))

    def take_back(self, claim: Claim, victims: Iterable[str]) -> set[str] | None:
        """Withdraw the starts among these victims of a claim; returns the uids that wait again.

        However often they were withdrawn before: their pods do not run, so none can be evicted.
        None if no victim is such a start. If starts that the claim may not take back need one, all
        stay, and victims are not searched among them any more: the set is empty.
        """
        victims = {uid for uid in victims if uid in self._shown}
        found = [each for each in self._started.values() if not victims.isdisjoint(each.uids())]
        if not found:
            return None
        dependents = self._dependents(found)
        if not self._may_go(claim, dependents):
            self._needed_by_others |= victims
            self._unshow(victims)
            return set()
        return self._withdraw([*found, *dependents])

    def _unshow(self, uids: Iterable[str]) -> None:
        for uid in uids:
            if uid in self._shown:
                del self._shown[uid]
                self._state.bound_pods.remove(uid)

    def _withdraw(self, starts: list[Claim]) -> set[str]:
        for each in starts:
            self._forget(each)
            self._withdrawn[each.uid] += 1
            assert self._turns is not None
            self._turns.withdrawn(each)
        uids = [uid for each in starts for uid in each.uids()]
        self._unshow(uids)
        for uid in uids:
            self._state.withdraw(uid)
        return set(uids)

    def _forget(self, claim: Claim) -> None:
        self._dependent.pop(claim.uid, None)
        for gang in _gangs(claim):
            self._by_gang.get(gang, {}).pop(claim.uid, None)
        if claim.quota is None:
            return
        del self._started[claim.uid]
        self._by_quota.remove(claim)

    def _starts_in_the_way(self, claim: Claim, assume: Assume) -> list[Claim]:
        """The last starts without which the claim could start; none if that is not enough."""
        aside, tried = list[Claim](), 0
        candidates = self._candidates(claim)
        if not candidates:
            return []
        with self._state.speculating(claim) as speculation:
            for started in candidates:
                speculation.set_aside(started.uids())
                aside.append(started)
                if len(aside) >= 2 * tried:  # as one claim may need many, not after each
                    tried = len(aside)
                    if assume(claim) is None:
                        break
            else:
                if len(aside) == tried or assume(claim) is not None:
                    return []
        needed = self._needed(claim, aside, assume)
        if not self._may_replace(claim, needed):
            return []
        dependents = self._dependents(needed)
        again = all(self._withdrawn[each.uid] < _MOST_WITHDRAWN for each in dependents)
        return [*needed, *dependents] if again and self._may_go(claim, dependents) else []

    def _dependents(self, starts: list[Claim]) -> list[Claim]:
        """The later starts that need one of these, and those that need them.

        By their rules, or as pods of its gang beyond the core.
        """
        found = {each.uid: each for each in starts}
        queue = list(starts if self._dependent or self._by_gang else ())
        for start in queue:
            for each in (*self._rest_of(start), *self._dependent_on(start)):
                if each.uid not in found:
                    found[each.uid] = each
                    queue.append(each)
        return queue[len(starts) :]

    def _rest_of(self, start: Claim) -> list[Claim]:
        """The later starts of its gangs that could not run without it."""
        found = list[Claim]()
        for name in _gangs(start):
            gang, starts = self._state.gangs.known.get(name), self._by_gang.get(name, {})
            later = list(dropwhile(lambda each: each.uid != start.uid, starts.values()))[1:]
            if gang is None or not later:
                continue
            left = (pod for pod in staying_pods(self._state, name) if pod not in start.pods)
            present = Counter(dict(gang.done)) + Counter(pod.task for pod in left)
            if select_core(gang, (), present).missing:
                found += later
        return found

    def _dependent_on(self, start: Claim) -> list[Claim]:
        """The later starts that need this one by their rules."""
        selections = self._selections(start) if self._dependent else ()
        return [
            each
            for each, needed in self._dependent.values()
            if self._numbers[each.uid] > self._numbers[start.uid]
            and not needed.isdisjoint(selections)
        ]

    def _may_go(self, claim: Claim, dependents: list[Claim]) -> bool:
        """May these starts go with what the claim takes back? Those without a quota may."""
        of_quotas = [each for each in dependents if each.quota is not None]
        return not of_quotas or len(list(self._taken_back(claim, of_quotas))) == len(of_quotas)

    def _may_replace(self, claim: Claim, starts: list[Claim]) -> bool:
        """May the claim take the place of those of these starts that are of its own quota?"""
        assert self._turns is not None
        own = [each for each in starts if each.quota == claim.quota]
        freed: Counter[int] = Counter()
        for uid in (uid for each in own for uid in each.uids()):
            freed.update(dict(self._state.ledger.entries[uid].booking.charge))
        return not own or self._turns.may_replace(claim, freed)

    def _needed(self, claim: Claim, aside: list[Claim], assume: Assume) -> list[Claim]:
        """Those of these starts that are in the way; the others are put back, the first first."""
        needed = aside
        for each in reversed(aside) if 1 < len(aside) <= _MOST_PUT_BACK else ():
            rest = [other for other in needed if other is not each]
            with self._state.speculating(claim) as speculation:
                for other in rest:
                    speculation.set_aside(other.uids())
                if rest and assume(claim) is None:
                    needed = rest
        return needed

    def _in_the_way(self, claim: Claim) -> bool:
        if claim.quota is None or claim.parts:
            return False
        assert self._turns is not None
        others = self._by_quota.claims().keys() - {claim.quota}
        return self.comes_before_own(claim) or bool(
            others and self._turns.takes_back_from(claim, sorted(others))
        )

    def comes_before_own(self, claim: Claim) -> bool:
        """Has a claim of lower priority started in its quota?"""
        return self._by_quota.has_less_important(claim)

    def _candidates(self, claim: Claim) -> list[Claim]:
        """The starts that the claim would take back, the last first."""
        again = (
            each
            for each in reversed(self._started.values())
            if self._withdrawn[each.uid] < _MOST_WITHDRAWN
        )
        return list(islice(self._taken_back(claim, again), _MOST_TRIED))

    def _taken_back(self, claim: Claim, starts: Iterable[Claim]) -> Iterator[Claim]:
        """Those of these starts that the claim would take back.

        Those of quotas from which it reclaims, and those of lower priority in its own quota.
        """
        assert self._turns is not None
        quotas = self._by_quota.claims().keys() - {str(claim.quota)}
        taken_back = self._turns.takes_back_from(claim, sorted(quotas)) if quotas else set()
        if not taken_back and not self.comes_before_own(claim):
            return
        for each in starts:
            if (
                each.priority < claim.priority
                if each.quota == claim.quota
                else each.quota in taken_back
            ):
                yield each

    def _selections(self, claim: Claim) -> set[Selection]:
        """What selects the pods of a claim, whether they have rules themselves or not."""
        sets = self._state.placement.rule_sets.counts.label_sets
        found = (sets.of(pod.namespace, pod.labels) for pod in claim.pods)
        return {each for label_set in found for each in label_set.selections}


def _gangs(claim: Claim) -> dict[str, None]:
    """The gangs of a claim's pods."""
    return {} if claim.gang is None else {str(pod.gang): None for pod in claim.pods}
