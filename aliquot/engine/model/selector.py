"""Selector requirements: what a label or field must be, with the meaning Kubernetes gives them.

Node affinity, disruption budgets and label selectors of the API are all made of these; a
requirement that cannot be read matches nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of a selector: a label (or field), an operator, values."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Term:
    """Requirements that must all hold. A term without any matches nothing, as in Kubernetes."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


def requirement_matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Does a requirement hold for these labels?"""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
        case _:
            return False


def _compares(requirement: Requirement, value: str | None) -> bool:
    try:
        have, bound = int(value or ""), int(requirement.values[0])
    except (ValueError, IndexError):
        return False
    return have > bound if requirement.operator == "Gt" else have < bound
