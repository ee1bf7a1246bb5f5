"""Accounting: hours of each resource by quota and month, as recording rules.

Every minute adds what each quota used, was guaranteed, borrowed and lent in it, and what evictions
lost, with the month (UTC, `202611`) as a label; every hour adds the minutes to the month's total.
The total is the last one plus the hour, so that no history is needed but the total itself: most
Prometheus servers keep less than a month. Minutes that were not scraped are not counted.
"""

from dataclasses import dataclass

from aliquot.kube.monitoring.rules import GPUS, Group, Recording
from aliquot.kube.observe.catalogue import (
    EVICTED_RESOURCE_SECONDS,
    QUOTA_BORROWED,
    QUOTA_LENT,
    QUOTA_MIN,
    QUOTA_USED,
    Metric,
)

MONTH = "aliquot:month"
"""Always 1; its label is the month."""
HOURS = "aliquot:quota_hours"
"""What `:1m`, `:1h` and `:month` are added to."""
TOTAL = f"{HOURS}:month"

FIGURES: dict[str, Metric] = {
    "used": QUOTA_USED,
    "guaranteed": QUOTA_MIN,
    "borrowed": QUOTA_BORROWED,
    "lent": QUOTA_LENT,
}
"""By the label `figure`, the metric that is added up; besides, `lost`."""
LOST = "lost"
_BY = "quota, tree, resource"
_SMOOTH = 5
"""Of what evictions lost, each minute has a fifth of the last five: a rate needs two scrapes."""
_HOUR = 3600
_KEPT = "31d"
"""How old the last total of a month may be: quotas come back, and Prometheus may be down."""


@dataclass(frozen=True, slots=True)
class Periods:
    """Seconds between two evaluations; tests have less time."""

    part: int = 60
    whole: int = _HOUR


def groups(resources: str = GPUS, periods: Periods | None = None) -> list[Group]:
    """The rules, for the resources of this pattern."""
    periods = periods or Periods()
    part, whole = f"{periods.part}s", f"{periods.whole}s"
    if periods == Periods():
        part, whole = "1m", "1h"
    parts = [Recording(f"{HOURS}:1m", *each) for each in _parts(resources, periods.part)]
    hour = f"sum_over_time({HOURS}:1m[{whole}])"
    before = f"last_over_time({TOTAL}[{_KEPT}])"
    return [
        Group("aliquot-accounting", [Recording(MONTH, _month()), *parts], part),
        Group(
            "aliquot-accounting-months",
            [
                Recording(f"{HOURS}:1h", hour),
                Recording(TOTAL, f"({before} + {HOURS}:1h) or {HOURS}:1h"),
            ],
            whole,
        ),
    ]


def _month() -> str:
    now = "vector(time())"
    return f'count_values("month", year({now}) * 100 + month({now}))'


def _parts(resources: str, seconds: int) -> list[tuple[str, dict[str, str]]]:
    """Expression and label of each figure, in hours of the resource."""
    matcher = f'=~"{resources}"'
    month = f"on () group_left (month) {MONTH}"
    found = [
        (
            f"max by ({_BY}) ({metric.where(resource=matcher)}) * {seconds} / {_HOUR} * {month}",
            {"figure": figure},
        )
        for figure, metric in FIGURES.items()
    ]
    lost = EVICTED_RESOURCE_SECONDS.where(resource=matcher)
    increase = f"sum by ({_BY}) (increase({lost}[{_SMOOTH * seconds}s]))"
    found.append((f"{increase} / {_SMOOTH} / {_HOUR} * {month}", {"figure": LOST}))
    return found
