"""Pod counts: how many pods of a kind are on each node, and so in each domain.

What is counted is what rules about pods ask for: the pods that a selector selects, and the pods
that have a rule themselves (those with an anti-affinity keep others away). Counts follow the
bookings of the ledger, also tried ones, so that each claim sees the pods that were placed before
it. Counts by domain are arrays that are kept up to date pod by pod; they are made when first asked
for.

Pods that are nominated to a node, but do not run yet, are counted apart: they may repel a pod, but
it cannot rely on them. So are pods that terminate: they do not count where pods are spread.
"""

from collections.abc import Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.label_sets import LabelSet, LabelSets, Selection
from aliquot.engine.books.ledger import Booking, Ledger, Stage
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.model.label_index import Labels
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.pod_rules import NO_RULES, AffinityTerm, PodRules
from aliquot.engine.placement.domains import Domains

_WORD = 2**64 - 1
_MOST_ARRAYS = 8
"""Arrays by domain that are kept of one count: a rule asks for one or two."""
HARD_WEIGHT = 1
"""What a required affinity of a running pod counts among preferences: kube-scheduler's default of
`hardPodAffinityWeight`."""


@cache
def scrambled(slot: int) -> int:
    """A number for a node slot, for fingerprints: no few of them add up to the same as others."""
    mixed = (slot + 1) * 0x9E3779B97F4A7C15 & _WORD
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _WORD
    return mixed ^ mixed >> 31


class NodeCount:
    """A number for each node, most of them 0, and its sums by domain."""

    __slots__ = ("_arrays", "fingerprint", "on")

    def __init__(self) -> None:
        self.on: dict[int, int] = {}
        """By node slot, where not 0."""
        self.fingerprint = 0
        """Equal whenever the same is counted on the same nodes, whatever was tried meanwhile."""
        self._arrays: dict[Domains, tuple[int, NDArray[np.int64]]] = {}

    def __bool__(self) -> bool:
        return bool(self.on)

    def add(self, slot: int, amount: int) -> None:
        """Count more, or less, on a node."""
        now = self.on.get(slot, 0) + amount
        if now:
            self.on[slot] = now
        else:
            del self.on[slot]
        self.fingerprint += amount * scrambled(slot)
        for domains, (version, array) in self._arrays.items():
            if version == domains.version and slot < len(domains.cells):
                array[domains.cells[slot]] += amount

    def by_domain(self, domains: Domains) -> NDArray[np.int64]:
        """The sum of each domain; what is at 0 is in no domain."""
        found = self._arrays.get(domains)
        if found is not None and found[0] == domains.version:
            return found[1]
        array = np.zeros(domains.size, dtype=np.int64)
        slots = np.fromiter(self.on.keys(), dtype=np.int64, count=len(self.on))
        counts = np.fromiter(self.on.values(), dtype=np.int64, count=len(self.on))
        known = slots < len(domains.of_slot)
        np.add.at(array, domains.of_slot[slots[known]], counts[known])
        if found is None and len(self._arrays) >= _MOST_ARRAYS:
            del self._arrays[next(iter(self._arrays))]
        self._arrays[domains] = domains.version, array
        return array


class Counted:
    """Pods of one kind: those that run or are about to, those nominated, those that terminate."""

    __slots__ = ("ending", "held", "running")

    def __init__(self) -> None:
        self.running = NodeCount()
        """Terminating ones included."""
        self.held = NodeCount()
        self.ending = NodeCount()

    def add(self, slot: int, amount: int, held: bool, ending: bool) -> None:
        """Count pods on a node."""
        if held:
            self.held.add(slot, amount)
            return
        self.running.add(slot, amount)
        if ending:
            self.ending.add(slot, amount)

    @property
    def fingerprint(self) -> tuple[int, int, int]:
        """Equal whenever the same pods are counted on the same nodes."""
        return self.running.fingerprint, self.held.fingerprint, self.ending.fingerprint

    def by_domain(self, domains: Domains, with_held: bool) -> NDArray[np.int64]:
        """How many are in each domain."""
        found = self.running.by_domain(domains)
        return found + self.held.by_domain(domains) if with_held and self.held else found

    def lasting_by_domain(self, domains: Domains, with_held: bool) -> NDArray[np.int64]:
        """How many are in each domain that do not terminate."""
        found = self.by_domain(domains, with_held)
        return found - self.ending.by_domain(domains) if self.ending else found


class Holders:
    """The pods that have one term themselves: an anti-affinity, or a preference with its weight."""

    __slots__ = ("counted", "key", "selection")

    def __init__(self, selection: Selection, key: str) -> None:
        self.selection = selection
        self.key = key
        self.counted = Counted()
        """How many pods there are, or the sum of their weights."""


class PodCounts:
    """All counts of pods, as a tally of the ledger; nothing is counted until the first rule."""

    def __init__(self, ledger: Ledger, nodes: Nodes) -> None:
        self._ledger = ledger
        self._nodes = nodes
        self.label_sets = LabelSets()
        self.active = False
        """Has any pod rules about other pods?"""
        self.has_begun = False
        """Is the first such rule new? The labels of pods that wait were not looked at before."""
        self.version = 0
        """Grows with every rule that is new, and when namespaces change."""
        self._placed: dict[tuple[str, Labels], dict[tuple[int, bool, bool], int]] = {}
        """By namespace and labels, how many pods are on each node; whether held, or terminating."""
        self._selected: dict[Selection, Counted] = {}
        self._repelling: dict[Selection, dict[str, Holders]] = {}
        """Pods with a required anti-affinity against what is selected, by topology key."""
        self._preferring: dict[Selection, dict[str, Holders]] = {}
        """Pods with a preference about what is selected."""

    def renew(self, pods: Iterable[Pod]) -> None:
        """Forget all rules and labels but those of these pods, and count anew."""
        self.active = False
        self.version += 1
        self.label_sets.forget()
        for each in (self._placed, self._selected, self._repelling, self._preferring):
            each.clear()
        for rules in dict.fromkeys(pod.rules for pod in pods):
            self.note(rules)

    def note(self, rules: PodRules) -> None:
        """A pod with these rules is known."""
        near = rules.affinity or rules.anti_affinity or rules.preferred or rules.spread
        if near and not self.active:
            self.active = self.has_begun = True
            for entry in self._ledger.entries.values():
                if entry.stage >= Stage.HELD:
                    self.post(entry.booking, +1, entry.stage is Stage.HELD)
        if near:
            self._register(rules)

    def post(self, booking: Booking, sign: int, held: bool) -> None:
        """Count a pod on its node, or stop counting it."""
        if booking.node is None:
            return
        slot = self._nodes.slots.take(booking.node)
        ending = booking.terminating
        who = booking.namespace, booking.labels
        placed = self._placed.setdefault(who, {})
        at = slot, held, ending
        placed[at] = placed.get(at, 0) + sign
        if not placed[at]:
            del placed[at]
            if not placed:
                del self._placed[who]
        for selection in self.label_sets.of(*who).selections:
            counted = self._selected.get(selection)
            if counted is not None:
                counted.add(slot, sign, held, ending)
        if booking.rules is not NO_RULES:
            self._post_rules(booking.rules, slot, sign, held)

    def _post_rules(self, rules: PodRules, slot: int, sign: int, held: bool) -> None:
        for term in rules.anti_affinity:
            self._holders(self._repelling, term).counted.add(slot, sign, held, ending=False)
        for weight, term in _preferences(rules):
            amount = sign * weight
            if amount:
                self._holders(self._preferring, term).counted.add(slot, amount, held, ending=False)

    def _register(self, rules: PodRules) -> None:
        """Follow what these rules say of other pods, before any of them is placed."""
        for term in rules.anti_affinity:
            self._holders(self._repelling, term)
        for _, term in _preferences(rules):
            self._holders(self._preferring, term)

    def _holders(self, kinds: dict[Selection, dict[str, Holders]], term: AffinityTerm) -> Holders:
        selection = self.label_sets.select(term.selector)
        by_key = kinds.setdefault(selection, {})
        found = by_key.get(term.topology_key)
        if found is None:
            found = by_key[term.topology_key] = Holders(selection, term.topology_key)
            self.version += 1
            members = self.label_sets.members(selection)
            self.label_sets.split.update(dict.fromkeys(members))
        return found

    def selected(self, selection: Selection) -> Counted:
        """The pods that are selected, counted from now on."""
        found = self._selected.get(selection)
        if found is None:
            found = self._selected[selection] = Counted()
            for who, placed in self._placed.items():
                if selection in self.label_sets.of(*who).selections:
                    for (slot, held, ending), number in placed.items():
                        found.add(slot, number, held, ending)
        return found

    def repelling(self, label_set: LabelSet) -> list[Holders]:
        """The terms by which placed pods keep such pods away."""
        return _about(self._repelling, label_set)

    def preferring(self, label_set: LabelSet) -> list[Holders]:
        """The terms by which placed pods prefer such pods near, or far."""
        return _about(self._preferring, label_set)

    def concerns(self, label_set: LabelSet) -> bool:
        """Is there a rule of other pods about such pods?"""
        kinds = self._repelling, self._preferring
        return any(each in kind for each in label_set.selections for kind in kinds)

    def set_namespace(self, name: str, labels: Labels) -> None:
        """A namespace has these labels now: count anew what is selected by them."""
        if self.label_sets.set_namespace(name, labels):
            self.version += 1
            for selection in list(self._selected):
                del self._selected[selection]


def _preferences(rules: PodRules) -> Iterable[tuple[int, AffinityTerm]]:
    """What a running pod prefers: its required affinities count as well."""
    return (*rules.preferred, *((HARD_WEIGHT, term) for term in rules.affinity))


def _about(kinds: dict[Selection, dict[str, Holders]], label_set: LabelSet) -> list[Holders]:
    return [
        holders
        for selection in label_set.selections
        for holders in kinds.get(selection, {}).values()
        if holders.counted.running or holders.counted.held
    ]
