"""Label sets: which pods are selected by which selectors, without a look at every pod.

Rules about other pods select them by namespace and labels. Pods of one namespace whose labels
agree, as far as any selector there names them, are one *label set*: all of its pods are selected
alike. So a selector is compared once with each label set, not with each pod, and labels that no
selector names (the index of a Job's pod) tell no pods apart. Sets are split when a selector names a
new key.
"""

from collections.abc import Iterable, Iterator

from aliquot.engine.model.label_index import Labels
from aliquot.engine.model.pod_rules import PodSelector
from aliquot.engine.model.selector import requirement_matches

NAME_LABEL = "kubernetes.io/metadata.name"
"""The label that every namespace has: its name."""


class LabelSet:
    """Pods of one namespace that all selectors see alike."""

    __slots__ = ("labels", "namespace", "selections")

    def __init__(self, namespace: str, labels: Labels) -> None:
        self.namespace = namespace
        self.labels = labels
        """Their labels, as far as selectors name them."""
        self.selections: dict[Selection, None] = {}
        """What selects them."""


class Selection:
    """Pods that match all of these selectors; required affinities may have several, others one."""

    __slots__ = ("keys", "selectors")

    def __init__(self, selectors: tuple[PodSelector, ...]) -> None:
        self.selectors = selectors
        self.keys = {each.key for one in selectors for each in one.labels or ()}
        """The label keys that it looks at."""


class _Namespace:
    """The label sets of one namespace."""

    def __init__(self) -> None:
        self.labels: dict[str, str] = {}
        self.keys: set[str] = set()
        """The keys of pod labels by which selectors tell its pods apart."""
        self.sets: dict[Labels, LabelSet] = {}
        self.of: dict[Labels, LabelSet] = {}
        """The set of each tuple of labels, in full, that pods have."""


class LabelSets:
    """All label sets and all selections; empty until the first rule about pods is known."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}
        self._namespace_labels: dict[str, dict[str, str]] = {}
        self._selections: dict[tuple[PodSelector, ...], Selection] = {}
        self.split: dict[tuple[str, Labels], None] = {}
        """Namespaces and labels of pods that are in another set now, until they are looked at."""

    def of(self, namespace: str, labels: Labels) -> LabelSet:
        """The label set of a pod."""
        here = self._namespaces.get(namespace) or self._new_namespace(namespace)
        found = here.of.get(labels)
        return self._place(here, namespace, labels) if found is None else found

    def __len__(self) -> int:
        """How much is remembered: selections, label sets, and labels of pods."""
        known = self._namespaces.values()
        return len(self._selections) + sum(len(each.sets) + len(each.of) for each in known)

    def forget(self) -> None:
        """Forget all selections and labels; what namespaces are labelled with stays known."""
        self._namespaces.clear()
        self._selections.clear()
        self.split.clear()

    def select(self, *selectors: PodSelector) -> Selection:
        """What matches all of these selectors, followed from now on."""
        found = self._selections.get(selectors)
        if found is None:
            found = self._selections[selectors] = Selection(selectors)
            for name, here in self._namespaces.items():
                if self._covers(found, here.labels, name):
                    self._add_keys(here, name, found.keys)
                    self._match(found, here.sets.values())
        return found

    def members(self, selection: Selection) -> Iterator[tuple[str, Labels]]:
        """Namespaces and labels of all pods seen so far that are selected."""
        for name, here in self._namespaces.items():
            for labels, label_set in here.of.items():
                if selection in label_set.selections:
                    yield name, labels

    def set_namespace(self, name: str, labels: Labels) -> bool:
        """A namespace has these labels now; may that change what is selected?"""
        given = {NAME_LABEL: name, **dict(labels)}
        if self._namespace_labels.get(name, {NAME_LABEL: name}) == given:
            return False
        self._namespace_labels[name] = given
        here = self._namespaces.get(name)
        if here is None:
            return False
        before = [self._covers(each, here.labels, name) for each in self._selections.values()]
        here.labels = given
        after = [self._covers(each, given, name) for each in self._selections.values()]
        if before == after:
            return False
        self._read_anew(name, here)
        return True

    def _read_anew(self, name: str, here: _Namespace) -> None:
        """Compare all selections with the sets of a namespace again."""
        for label_set in here.sets.values():
            label_set.selections.clear()
        for selection in self._selections.values():
            if self._covers(selection, here.labels, name):
                self._add_keys(here, name, selection.keys)
                self._match(selection, here.sets.values())
        self.split.update(dict.fromkeys((name, labels) for labels in here.of))

    def _new_namespace(self, name: str) -> _Namespace:
        here = self._namespaces[name] = _Namespace()
        here.labels = self._namespace_labels.get(name, {NAME_LABEL: name})
        for selection in self._selections.values():
            if self._covers(selection, here.labels, name):
                here.keys |= selection.keys
        return here

    def _place(self, here: _Namespace, namespace: str, labels: Labels) -> LabelSet:
        """Put pods with these labels into their set."""
        seen = tuple(pair for pair in labels if pair[0] in here.keys)
        found = here.sets.get(seen)
        if found is None:
            found = here.sets[seen] = LabelSet(namespace, seen)
            for selection in self._selections.values():
                if self._covers(selection, here.labels, namespace):
                    self._match(selection, (found,))
        here.of[labels] = found
        return found

    def _add_keys(self, here: _Namespace, name: str, keys: Iterable[str]) -> None:
        """Tell pods apart by these keys as well."""
        new = set(keys) - here.keys
        if not new:
            return
        here.keys |= new
        for labels in list(here.of):
            if any(key in new for key, _ in labels):
                self._place(here, name, labels)
                self.split[name, labels] = None

    @staticmethod
    def _match(selection: Selection, label_sets: Iterable[LabelSet]) -> None:
        for each in label_sets:
            given = dict(each.labels)
            if all(
                one.labels is not None
                and all(requirement_matches(needed, given) for needed in one.labels)
                for one in selection.selectors
            ):
                each.selections[selection] = None

    @staticmethod
    def _covers(selection: Selection, labels: dict[str, str], name: str) -> bool:
        """Can it select pods of a namespace with these labels?"""
        return all(
            name in one.namespaces
            or (
                one.namespace_selector is not None
                and all(requirement_matches(each, labels) for each in one.namespace_selector)
            )
            for one in selection.selectors
        )
