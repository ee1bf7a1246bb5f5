"""Selector requirements: what a label or field must be, with the meaning Kubernetes gives them.

Node affinity, disruption budgets and label selectors of the API are all made of these; a
requirement that cannot be read matches nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_FEW_VALUES = 8
"""Up to so many values are compared one by one, which takes no longer than a look into a set."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of a selector: a label (or field), an operator, values."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    lookup: frozenset[str] | tuple[str, ...] = field(init=False, compare=False, repr=False)
    """The same values, to look one up among thousands of them."""

    def __post_init__(self) -> None:
        given = self.values
        many = isinstance(given, tuple) and len(given) > _FEW_VALUES
        texts = many and all(type(each) is str for each in given)
        object.__setattr__(self, "lookup", frozenset(given) if texts else given)


@dataclass(frozen=True, slots=True)
class Term:
    """Requirements that must all hold. A term without any matches nothing, as in Kubernetes."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


Selectors = tuple[tuple[Requirement, ...], ...]
"""Label selectors; one without requirements selects everything."""


def selects(selector: tuple[Requirement, ...], labels: Mapping[str, str]) -> bool:
    """Do all requirements hold for these labels?"""
    return all(requirement_matches(each, labels) for each in selector)


def requirement_matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Does a requirement hold for these labels?"""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.lookup
        case "NotIn":
            return value not in requirement.lookup
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
        case _:
            return False


def _compares(requirement: Requirement, value: str | None) -> bool:
    bound = whole_number(requirement.values[0]) if requirement.values else None
    have = whole_number(value or "")
    if have is None or bound is None:
        return False
    return have > bound if requirement.operator == "Gt" else have < bound


def whole_number(text: str) -> int | None:
    """The number that a label or bound is, for `Gt` and `Lt`; None if it is none."""
    return int(text) if _NUMBER.fullmatch(text) else None
