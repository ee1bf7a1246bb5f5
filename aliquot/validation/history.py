"""The states that a series of changes leads through, and the findings in each.

The commands, the simulation and the webhook all check their input with this, before anything runs.
An error stops nothing: an object that cannot be read is kept from the rules, and the next change
follows.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from aliquot.dialects.core.findings import Finding, refused
from aliquot.dialects.core.manifest import Key, Manifest, all_errors
from aliquot.dialects.core.pod_templates import PodTemplateView
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.kep9 import rules as quota_rules
from aliquot.dialects.koordinator import profiles
from aliquot.dialects.koordinator import rules as tree_rules
from aliquot.dialects.koordinator.tree_rules import check_profiles
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.quota_index import QuotaIndex, Special, build
from aliquot.dialects.tensor_fusion.gpu_rules import GPU_KINDS, check_gpus
from aliquot.dialects.volcano import queue_rules, queues
from aliquot.engine import SystemNamespaces
from aliquot.errors import AliquotError, InputError
from aliquot.mirror.group_membership import group_ref, queue_of
from aliquot.mirror.store import Change, Store
from aliquot.validation import object_rules as rules
from aliquot.validation.capacity import Capacity

_QUOTAS = {*quotas.KINDS, queues.KIND, profiles.KIND}
_KINDS_OF_QUOTA_RULES = {*_QUOTAS, "ResourceQuota", "Node"}


@dataclass(slots=True)
class State:
    """The objects after the last change. It is updated in place: a long trace has many changes."""

    placeholders: Container[str] = ()
    """The places of objects that could not be read, of which only kind and name are known."""
    partial: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The places of objects that could be read only in part, with the fields that are missing."""
    thorough: bool = False
    """Are invalid objects checked by the rules for one object as well?"""
    cards: Cards = field(default_factory=Cards)
    special: Special = ""
    """The dialect whose built-in quotas exist."""
    system: SystemNamespaces = field(default_factory=SystemNamespaces)
    later_quotas: frozenset[str] = frozenset()
    """The names of quotas that later changes bring."""
    later_queues: frozenset[str] = frozenset()
    """The names of queues that later changes bring."""
    change: Change = field(default_factory=lambda: Change(0))
    refusals: list[Finding] = field(default_factory=list)
    """The deletions of the last change that failed, and its objects that could not be read."""
    valid: dict[Key, Manifest] = field(default_factory=dict)
    """The objects that could be read; only these are given to the rules."""
    quota_index: QuotaIndex = field(default_factory=QuotaIndex)
    """The quotas among the valid objects."""
    before: QuotaIndex = field(default_factory=QuotaIndex)
    """The quotas before the last change."""
    replaced: dict[Key, Manifest] = field(default_factory=dict)
    """The objects that the last change replaced or deleted, as they were before."""
    deleted: dict[Key, str] = field(default_factory=dict)
    """The objects that the last change deleted and did not apply again, with the place of that."""
    capacity: Capacity = field(init=False)
    """What the valid nodes have together."""
    _invalid: set[Key] = field(default_factory=set)
    _store: Store = field(default_factory=Store)

    def __post_init__(self) -> None:
        self.capacity = Capacity(self.cards)

    @property
    def applied(self) -> Iterator[Manifest]:
        """The valid objects that the last change applied."""
        return (each for each in self.change.apply if self.valid.get(each.key) is each)

    @property
    def changed_kinds(self) -> set[str]:
        """The kinds of the objects that the last change applied or deleted."""
        applied = {each.kind for each in self.change.apply}
        return applied | {key[0] for key, _ in self.change.delete}

    @property
    def knows_all_nodes(self) -> bool:
        """Are all nodes valid? Else it is not known what the nodes have together."""
        return all(kind != "Node" for kind, _, _ in self._invalid)

    def apply_change(self, change: Change) -> None:
        """Delete, then apply, the objects of the next change."""
        self.change, self.refusals = change, []
        self.replaced, self.deleted = {}, {}
        for key, place in change.delete:
            self._delete(key, place)
        for each in change.apply:
            self._store.put(each)
            self.deleted.pop(each.key, None)
        for each in change.apply:
            self._check(each)
        self.before = self.quota_index
        if self.quotas_changed:
            self.quota_index = build(
                self.valid.values(), self.special, self.system, models=self.cards.models
            )

    @property
    def quotas_changed(self) -> bool:
        """Did the last change apply or delete a quota, a queue, or a node that a tree may have?"""
        touched = (*(each.key for each in self.change.apply), *self.deleted)
        kinds = {*_QUOTAS, "Node"} if self.quota_index.trees else _QUOTAS
        return any(kind in kinds for kind, _, _ in touched)

    def requested_quota(self, manifest: Manifest, view: PodTemplateView) -> str | None:
        """The engine's name of the quota that a pod asks for, if it does."""
        queue = queue_of(group_ref(view, manifest), manifest.namespace, self.valid)
        return self.quota_index.requested_quota(manifest, queue)

    def refused_pods(self, manifest: Manifest) -> Iterator[Finding]:
        """Warn of pod templates whose PriorityClass does not exist."""
        for where, name in self._store.priorities.missing(manifest):
            if manifest.kind != "Pod":
                problem = f"there is no PriorityClass {name}: a server refuses its pods"
                yield manifest.finding("warning", where, problem)

    def _delete(self, key: Key, place: str) -> None:
        try:
            gone = self._store.delete(key, place)
        except InputError as error:
            self.refusals.append(refused(error, place))
            return
        for each in gone:
            self.deleted[each.key] = place
            self._remove(each.key)
            root = self.quota_index.root_of(each) if each.kind == profiles.KIND else None
            if root is not None and root.key not in self._store.objects:
                self._store.put(root)
                self.valid[root.key] = root
            self._invalid.discard(each.key)

    def _remove(self, key: Key) -> None:
        old = self.valid.pop(key, None)
        if old is not None:
            self.replaced[key] = old
            if old.kind == "Node":
                self.capacity.drop(old.name)

    def _check(self, manifest: Manifest) -> None:
        self._remove(manifest.key)
        self._invalid.add(manifest.key)
        if manifest.place in self.placeholders:
            return
        errors = all_errors(manifest, self._store.check)
        missing = self.partial.get(manifest.place, ())
        own = [each for each in errors if not _follows(each.field, missing)]
        self.refusals += [refused(each, manifest.place) for each in own]
        if errors or missing:
            if self.thorough:
                fields = {*missing, *(each.field for each in errors)}
                self.refusals += _also_wrong(manifest, self.cards, fields)
            return
        self.valid[manifest.key] = manifest
        self._invalid.discard(manifest.key)
        if manifest.kind == "Node":
            self.capacity.put(manifest)


def _follows(error_field: str, missing: Iterable[str]) -> bool:
    """Does an error about a field follow from another that is missing in it?"""
    return any(each.startswith(error_field) or error_field.startswith(each) for each in missing)


def _also_wrong(manifest: Manifest, cards: Cards, wrong: Collection[str]) -> list[Finding]:
    """What the rules for one object find in what can be read of an invalid one.

    `wrong` are the fields that are invalid. What is found about the same resource, or the same
    field, may follow from that.
    """
    found: list[Finding] = []

    def check(part: Manifest) -> None:
        if part.kind in quotas.KINDS:
            found.extend(quota_rules.min_within_max([(part, quotas.quota(part))]))
        found.extend(rules.check_object(part, cards))

    with suppress(AliquotError):
        all_errors(manifest, check)
    names = {_last_key(each) for each in wrong}
    return [
        each
        for each in found
        if _last_key(each.field) not in names and not _follows(each.field, wrong)
    ]


def _last_key(path: str) -> str:
    """The key of a map that a path ends with, such as a resource; else the whole path."""
    return path.rpartition("[")[2] if path.endswith("]") else path


def replay(
    changes: Sequence[Change],
    placeholders: Container[str],
    cards: Cards,
    special: Special = "",
    partial: Mapping[str, Collection[str]] | None = None,
    system: SystemNamespaces | None = None,
) -> Iterator[State]:
    """The state after each change."""
    state = State(placeholders, partial or {}, True, cards, special, system or SystemNamespaces())
    last = _last_change_of(changes, quotas.KINDS)
    last_queues = _last_change_of(changes, (queues.KIND,))
    for number, change in enumerate(changes):
        if any(each.kind in quotas.KINDS for each in change.apply):
            state.later_quotas = _after(number, last)
        if last_queues:
            state.later_queues = _after(number, last_queues)
        state.apply_change(change)
        yield state


def _last_change_of(changes: Iterable[Change], kinds: Container[str]) -> Mapping[str, int]:
    """The number of the last change that brings a quota of these kinds, by its name."""
    return {
        each.name: number
        for number, change in enumerate(changes)
        for each in change.apply
        if each.kind in kinds
    }


def _after(number: int, last: Mapping[str, int]) -> frozenset[str]:
    return frozenset(name for name, when in last.items() if when > number)


def initial_state(
    objects: Mapping[Key, Manifest], quota_index: QuotaIndex, cards: Cards, special: Special
) -> State:
    """The state of valid objects, with the index of their quotas, before any change."""
    store = Store()
    for each in objects.values():
        store.put(each)
    return State(
        cards=cards,
        special=special,
        system=quota_index.system,
        valid=dict(objects),
        quota_index=quota_index,
        _store=store,
    )


def check_state(state: State, capacity: Mapping[str, int] | None = None) -> Iterator[Finding]:
    """Errors and warnings in a state; some may have held in the state before.

    `capacity` is what the nodes have together, where no history led to this state.
    """
    yield from state.refusals
    for each in state.applied:
        yield from rules.check_object(each, state.cards)
        yield from state.refused_pods(each)
    if state.changed_kinds & _KINDS_OF_QUOTA_RULES:
        known = state.valid.values()
        if capacity is None and state.knows_all_nodes:
            capacity = state.capacity.total
        yield from quota_rules.check_quotas(state.quota_index, known, capacity, state.cards.models)
    if state.changed_kinds & GPU_KINDS:
        yield from check_gpus(state.valid.values(), state.cards, state.knows_all_nodes)
    if state.quotas_changed:
        yield from tree_rules.check_tree(state.quota_index, state.later_quotas)
        changed = (state.applied, state.replaced, state.deleted)
        profiles_of_state = [e for e in state.valid.values() if e.kind == profiles.KIND]
        yield from check_profiles(profiles_of_state)
        yield from tree_rules.check_change(state.before, state.quota_index, *changed)
        yield from queue_rules.check_queues(state.quota_index, state.later_queues)
        yield from queue_rules.check_queue_change(state.quota_index, state.replaced, state.deleted)
