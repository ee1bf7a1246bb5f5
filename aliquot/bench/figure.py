"""What a benchmark says: figures, each beside its budget where there is one."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure, and the budget it is held against, if there is one."""

    what: str
    value: float
    unit: str
    budget: str = ""
    """A bound, such as `>= 20,000`; empty if there is none."""
    on: str = ""
    """What it was measured on, where one run has several such things."""

    @property
    def met(self) -> bool | None:
        """Is it within the budget? None if there is none."""
        if not self.budget:
            return None
        sign, bound = self.budget.split()
        limit = float(bound.replace(",", ""))
        return self.value >= limit if sign == ">=" else self.value <= limit


def as_json(figures: list[Figure]) -> list[dict[str, Any]]:
    """Figures as plain data."""
    return [{**asdict(figure), "met": figure.met} for figure in figures]
