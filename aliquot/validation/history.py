"""Every state that changes lead through, one after the other, and what is wrong in each.

The one walk for whoever checks input before anything runs. It never stops at an error: an object
that makes no sense is kept from the rules, and the walk goes on.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from aliquot.dialects.core.findings import Finding, refused
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.pod_templates import PodTemplateView
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.kep9 import rules as quota_rules
from aliquot.dialects.koordinator import rules as tree_rules
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.quota_index import QuotaIndex, Special, build
from aliquot.dialects.tensor_fusion.gpu_rules import GPU_KINDS, check_gpus
from aliquot.dialects.volcano import queue_rules, queues
from aliquot.errors import InputError
from aliquot.mirror.group_membership import group_ref, queue_of
from aliquot.mirror.store import Change, Store
from aliquot.validation import object_rules as rules

_QUOTAS = {*quotas.KINDS, queues.KIND}
_BEARS_ON_QUOTAS = {*_QUOTAS, "ResourceQuota", "Node"}


@dataclass(slots=True)
class State:
    """How the objects stand after the last change. It moves on: a long trace has many changes."""

    stand_ins: Container[str] = ()
    """The places of objects that could not be read and are known only by name."""
    cards: Cards = field(default_factory=Cards)
    special: Special = ""
    """Whose quotas are there although nobody wrote them?"""
    coming: frozenset[str] = frozenset()
    """The names of quotas that later changes bring."""
    coming_queues: frozenset[str] = frozenset()
    """The same of queues."""
    change: Change = field(default_factory=lambda: Change(0))
    refusals: list[Finding] = field(default_factory=list)
    """What of the last change could not be done, or read."""
    sound: dict[Key, Manifest] = field(default_factory=dict)
    """The objects that make sense."""
    quota_index: QuotaIndex = field(default_factory=QuotaIndex)
    """The quotas among them."""
    before: QuotaIndex = field(default_factory=QuotaIndex)
    """The quotas before the last change."""
    replaced: dict[Key, Manifest] = field(default_factory=dict)
    """What the last change replaced or deleted, as it stood before."""
    gone: dict[Key, str] = field(default_factory=dict)
    """What the last change deleted and did not bring again, and where that is written."""
    _broken: set[Key] = field(default_factory=set)
    _store: Store = field(default_factory=Store)

    @property
    def applied(self) -> Iterator[Manifest]:
        """What the last change brought and makes sense."""
        return (each for each in self.change.apply if self.sound.get(each.key) is each)

    @property
    def changed_kinds(self) -> set[str]:
        """The kinds of what was applied or deleted last."""
        applied = {each.kind for each in self.change.apply}
        return applied | {key[0] for key, _ in self.change.delete}

    @property
    def knows_all_nodes(self) -> bool:
        """If a node makes no sense, nobody can say what the nodes have together."""
        return all(kind != "Node" for kind, _, _ in self._broken)

    def move_on(self, change: Change) -> None:
        """Delete, then apply, what the next change brings."""
        self.change, self.refusals = change, []
        self.replaced, self.gone = {}, {}
        for key, place in change.delete:
            self._delete(key, place)
        for each in change.apply:
            self._store.put(each)
            self.gone.pop(each.key, None)
        for each in change.apply:
            self._judge(each)
        self.before = self.quota_index
        if self.quotas_changed:
            self.quota_index = build(self.sound.values(), self.special)

    @property
    def quotas_changed(self) -> bool:
        """Did the last change bring or take any quota?"""
        touched = (*(each.key for each in self.change.apply), *self.gone)
        return any(kind in _QUOTAS for kind, _, _ in touched)

    def requested_quota(self, manifest: Manifest, view: PodTemplateView) -> str | None:
        """The quota that a pod asks for, if it does."""
        priority, _ = self._store.priority(view.spec, manifest, view.spec_field)
        queue = queue_of(group_ref(view, manifest), manifest.namespace, self.sound)
        return self.quota_index.requested_quota(manifest, priority, queue)

    def _delete(self, key: Key, place: str) -> None:
        try:
            gone = self._store.delete(key, place)
        except InputError as error:
            self.refusals.append(refused(error, place))
            return
        for each in gone:
            self.gone[each.key] = place
            self._forget(each.key)
            self._broken.discard(each.key)

    def _forget(self, key: Key) -> None:
        old = self.sound.pop(key, None)
        if old is not None:
            self.replaced[key] = old

    def _judge(self, manifest: Manifest) -> None:
        self._forget(manifest.key)
        self._broken.add(manifest.key)
        if manifest.place in self.stand_ins:
            return
        try:
            self._store.check(manifest)
        except InputError as error:
            self.refusals.append(refused(error, manifest.place))
            return
        self.sound[manifest.key] = manifest
        self._broken.discard(manifest.key)


def walk(
    changes: Sequence[Change], stand_ins: Container[str], cards: Cards, special: Special = ""
) -> Iterator[State]:
    """The state after each change."""
    state = State(stand_ins, cards, special)
    last = _last_coming(changes, quotas.KINDS)
    last_queues = _last_coming(changes, (queues.KIND,))
    for number, change in enumerate(changes):
        if any(each.kind in quotas.KINDS for each in change.apply):
            state.coming = _after(number, last)
        if last_queues:
            state.coming_queues = _after(number, last_queues)
        state.move_on(change)
        yield state


def _last_coming(changes: Iterable[Change], kinds: Container[str]) -> Mapping[str, int]:
    """The number of the last change that brings a quota of these kinds, by its name."""
    return {
        each.name: number
        for number, change in enumerate(changes)
        for each in change.apply
        if each.kind in kinds
    }


def _after(number: int, last: Mapping[str, int]) -> frozenset[str]:
    return frozenset(name for name, when in last.items() if when > number)


def standing(
    objects: Mapping[Key, Manifest], quota_index: QuotaIndex, cards: Cards, special: Special
) -> State:
    """The state of objects that make sense, with the quotas among them, before any change."""
    store = Store()
    for each in objects.values():
        store.put(each)
    return State(
        cards=cards, special=special, sound=dict(objects), quota_index=quota_index, _store=store
    )


def found(state: State, capacity: Mapping[str, int] | None = None) -> Iterator[Finding]:
    """What is wrong, or worth a word, in a state; some of it may have been so before.

    `capacity` is what the nodes have together, where somebody keeps count; else it is added up.
    """
    yield from state.refusals
    for each in state.applied:
        yield from rules.check_object(each, state.cards)
    if state.changed_kinds & _BEARS_ON_QUOTAS:
        known = state.sound.values()
        if capacity is None and state.knows_all_nodes:
            capacity = quota_rules.capacity_of(known, state.cards)
        yield from quota_rules.check_quotas(state.quota_index, known, capacity)
    if state.changed_kinds & GPU_KINDS:
        yield from check_gpus(state.sound.values(), state.cards, state.knows_all_nodes)
    if state.quotas_changed:
        yield from tree_rules.check_tree(state.quota_index, state.coming)
        changed = (state.applied, state.replaced, state.gone)
        yield from tree_rules.check_change(state.before, state.quota_index, *changed)
        yield from queue_rules.check_queues(state.quota_index, state.coming_queues)
        yield from queue_rules.check_queue_change(state.quota_index, state.replaced, state.gone)
