"""Selectors, indexed by the labels that they need: which of thousands select a pod?

Pods with equal labels are selected alike, so each set of labels is compared once, and only with the
selectors that stand under one of its labels. That is remembered, and follows when a selector comes
or goes.
"""

from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

from aliquot.engine.model.selector import Requirement, requirement_matches

Labels = tuple[tuple[str, str], ...]
Selector = tuple[Requirement, ...]
Selected = TypeVar("Selected")
_Place = tuple[str, str | None]
MOST_LABEL_SETS = 4_096
"""Sets of labels to remember at least, about as many as a team has pods: beyond, and beyond twice
as many as there are, those who ask should forget them."""


class LabelIndex(Generic[Selected]):
    """Things with selectors, of which all requirements must hold; an empty selector matches none.

    Each stands under one requirement: the labels of the `In` with the fewest values, else the key
    of an `Exists`. Those with neither are compared with all labels.
    """

    def __init__(self) -> None:
        self.version = 0
        """Grows whenever a selector, or a set of labels, is new."""
        self._selectors: dict[Selected, Selector] = {}
        self._by_place: dict[_Place, dict[Selected, None]] = {}
        self._known: dict[Labels, dict[Selected, None]] = {}
        """What selects each set of labels seen so far."""
        self._signatures: dict[Selected, int] = {}
        self._by_selector: dict[Selector, dict[Selected, None]] = {}
        self._selects: dict[Selected, list[dict[Selected, None]]] = {}
        """What each is in, of `_known`: one list for all with the same selector."""

    def __contains__(self, each: Selected) -> bool:
        return each in self._selectors

    def add(self, each: Selected, selector: Selector) -> None:
        """Add one, or give it another selector."""
        self.remove(each)
        self.version += 1
        self._selectors[each] = selector
        for place in _places(selector):
            self._by_place.setdefault(place, {})[each] = None
        alike = self._by_selector.setdefault(selector, {})
        first = next(iter(alike), None)
        if first is None:
            signature, selects = self._compare(selector)
        else:
            signature, selects = self._signatures[first], self._selects[first]
        alike[each], self._signatures[each], self._selects[each] = None, signature, selects
        for found in selects:
            found[each] = None

    def _compare(self, selector: Selector) -> tuple[int, list[dict[Selected, None]]]:
        """A bit for each known set of labels that the selector matches; and what selects these."""
        known = enumerate(self._known.items())
        matched = [
            (number, found) for number, (labels, found) in known if _matches(selector, dict(labels))
        ]
        return sum(1 << number for number, _ in matched), [found for _, found in matched]

    def alike(self, selector: Selector) -> Selected | None:
        """The first of those with this selector, if there is one."""
        return next(iter(self._by_selector.get(selector, ())), None)

    def remove(self, each: Selected) -> None:
        """Remove one; does nothing if it is not here."""
        if each not in self._selectors:
            return
        self.version += 1
        selector = self._selectors.pop(each)
        del self._by_selector[selector][each]
        if not self._by_selector[selector]:
            del self._by_selector[selector]
        for known in self._selects.pop(each):
            del known[each]
        for place in _places(selector):
            found = self._by_place[place]
            del found[each]
            if not found:
                del self._by_place[place]
        del self._signatures[each]

    def matching(self, labels: Labels) -> Collection[Selected]:
        """All that select these labels."""
        found = self._known.get(labels)
        return self._match(labels) if found is None else found

    def signature(self, each: Selected) -> int:
        """Equal for those that select the same sets of labels, of all seen so far."""
        return self._signatures[each]

    @property
    def remembered(self) -> int:
        """How many sets of labels are remembered."""
        return len(self._known)

    def forget_labels(self) -> None:
        """Forget all sets of labels."""
        self.version += 1
        self._known.clear()
        self._signatures = dict.fromkeys(self._signatures, 0)
        for selects in self._selects.values():
            selects.clear()

    def _match(self, labels: Labels) -> Collection[Selected]:
        self.version += 1
        given, bit = dict(labels), 1 << len(self._known)
        matching = [
            each for each in self._candidates(given) if _matches(self._selectors[each], given)
        ]
        found = self._known[labels] = dict.fromkeys(matching)
        lists = (self._selects[each] for each in matching)
        for selects in {id(each): each for each in lists}.values():
            selects.append(found)
        for each in matching:
            self._signatures[each] |= bit
        return found

    def _candidates(self, labels: Mapping[str, str]) -> dict[Selected, None]:
        found = dict(self._by_place.get(_ANYWHERE, {}))
        for key, value in labels.items():
            found.update(self._by_place.get((key, value), {}))
            found.update(self._by_place.get((key, None), {}))
        return found


_ANYWHERE: _Place = ("", None)
"""Where selectors stand that need no label: no label has an empty key."""


def _places(selector: Selector) -> list[_Place]:
    """The labels under which a selector stands in the index."""
    choices = [each for each in selector if each.operator == "In"]
    if choices:
        fewest = min(choices, key=lambda each: len(each.values))
        return [(fewest.key, value) for value in dict.fromkeys(fewest.values)]
    keys = [each.key for each in selector if each.operator == "Exists"]
    return [(keys[0], None)] if keys else [_ANYWHERE] if selector else []


def _matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    return (
        bool(selector)
        and bool(labels)
        and all(requirement_matches(each, labels) for each in selector)
    )
