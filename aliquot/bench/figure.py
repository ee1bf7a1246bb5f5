"""The figures of a benchmark, each with its budget if it has one.

A module of its own, since all benchmarks and the command line share it.
"""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure and, if there is one, its budget."""

    what: str
    value: float
    unit: str
    budget: str = ""
    """A bound, such as `>= 20,000`; empty without one."""
    on: str = ""
    """What it was measured on, where one run measures several."""

    @property
    def met(self) -> bool | None:
        """Is it within the budget? None without one."""
        if not self.budget:
            return None
        sign, bound = self.budget.split()
        limit = float(bound.replace(",", ""))
        return self.value >= limit if sign == ">=" else self.value <= limit


def as_json(figures: list[Figure]) -> list[dict[str, Any]]:
    """Figures as plain data."""
    return [{**asdict(figure), "met": figure.met} for figure in figures]
