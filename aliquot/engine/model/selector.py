"""Selector requirements: what a label or field must be, with the meaning Kubernetes gives them.

Node affinity, disruption budgets and label selectors of the API are all made of these; a
requirement that cannot be read matches nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of a node selector term: a label (or field), an operator, values."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Term:
    """Requirements that must all hold. A term without any matches nothing, as in Kubernetes."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


def requirement_matches(line: Requirement, labels: Mapping[str, str]) -> bool:
    """Does one line of a selector hold for these labels?"""
    value = labels.get(line.key)
    match line.operator:
        case "In":
            return value in line.values
        case "NotIn":
            return value not in line.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(line, value)
        case _:
            return False


def _compares(line: Requirement, value: str | None) -> bool:
    try:
        have, bound = int(value or ""), int(line.values[0])
    except (ValueError, IndexError):
        return False
    return have > bound if line.operator == "Gt" else have < bound
