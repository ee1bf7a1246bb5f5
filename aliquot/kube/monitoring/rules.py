"""Rules for Prometheus as values, and how they are written down.

Of a quota's figures only the replica that leads has series, and another one may lead a moment
later: so an expression takes the latest figure of any replica, by the labels of ours alone.
Otherwise an alert that must hold for a day would begin anew with each change of leader.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from aliquot.json import Body
from aliquot.kube.observe.catalogue import EVICTIONS, Metric

Severity = Literal["critical", "warning", "info"]

LATEST = "5m"
"""How old a figure may be: far longer than a change of leader takes, and a scrape."""
GPUS = ".*gpu.*|.*/mig-.*"
"""The resources that are GPUs, parts of them, or their memory, by the names that vendors chose."""

BY_CHOICE = EVICTIONS.where(reason='!="NodeLost"')
"""Evictions but for the pods of lost nodes, which nothing could have kept."""


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert: what must hold, for how long, and what those who are woken read."""

    name: str
    expression: str
    wait: str
    severity: Severity
    summary: str
    description: str

    def body(self) -> Body:
        """As a rule of Prometheus."""
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": self.wait,
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "description": self.description},
        }


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording rule: a series that Prometheus computes."""

    name: str
    expression: str
    labels: dict[str, str] = field(default_factory=dict)

    def body(self) -> Body:
        """As a rule of Prometheus."""
        labels = {"labels": dict(self.labels)} if self.labels else {}
        return {"record": self.name, "expr": self.expression, **labels}


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are evaluated one after the other, every `interval` if it is given."""

    name: str
    rules: Sequence[Alert | Recording]
    interval: str = ""

    def body(self) -> Body:
        """As a group of Prometheus."""
        interval = {"interval": self.interval} if self.interval else {}
        return {"name": self.name, **interval, "rules": [each.body() for each in self.rules]}


def file(groups: Sequence[Group]) -> Body:
    """A file of rules, and the spec of a PrometheusRule."""
    return {"groups": [each.body() for each in groups]}


def latest(metric: Metric, *by: str, **matchers: str) -> str:
    """The latest figure, whichever replica has it."""
    return f"max by ({', '.join(by)}) (last_over_time({metric.where(**matchers)}[{LATEST}]))"
