"""The clusters of the campaign: nodes, and four teams under one of the four policies.

All of them share 96 cpus on six nodes. What a pod counts for follows from its labels, annotations
and namespace, and is stated here once, for load and checker: without a line of the package.
"""

from dataclasses import dataclass
from typing import Literal

from aliquot.json import Body
from tests.build.manifests import (
    GROUP_NAME,
    KEP9,
    KOORDINATOR,
    NOS,
    QUEUE_NAME,
    limited_pod,
    pod_group,
    priority_class,
    queue,
    quota,
    ready_node,
    tree_quota,
)

TEAMS = ("t-1", "t-2", "t-3", "t-4")
NODES, CPUS = 6, 16
_MIN, _MAX = 24, 60
PRIORITIES = {"low": 0, "high": 1000}

Name = Literal["kep9", "nos", "hierarchy", "queues"]
NAMES: tuple[Name, ...] = ("kep9", "nos", "hierarchy", "queues")
_SCHEDULERS = {
    "kep9": "capacityscheduler",
    "nos": "nos-scheduler",
    "hierarchy": "koord-scheduler",
    "queues": "volcano",
}


@dataclass(frozen=True)
class World:
    """One cluster, by the design that its quotas are of."""

    name: Name

    @property
    def flat(self) -> bool:
        """Is what is borrowed bounded by the sum of min?"""
        return self.name in ("kep9", "nos")

    @property
    def quota_kind(self) -> str:
        """What its quotas are: kind, with group where two have the same."""
        groups = {"kep9": KEP9, "nos": NOS, "hierarchy": KEP9}
        return "Queue" if self.name == "queues" else f"ElasticQuota.{groups[self.name]}"

    def objects(self) -> list[Body]:
        """Nodes, priorities and quotas."""
        classes = [priority_class(name, value) for name, value in PRIORITIES.items()]
        return [*self.nodes(), *classes, *self._quotas()]

    def nodes(self) -> list[Body]:
        """All nodes."""
        return [ready_node(f"n-{number + 1}", cpu=CPUS) for number in range(NODES)]

    def _quotas(self) -> list[Body]:
        low, high = {"cpu": _MIN}, {"cpu": _MAX}
        if self.name == "queues":
            return [
                queue(team, {"cpu": 8}, high, weight=weight)
                for weight, team in enumerate(TEAMS, start=1)
            ]
        if self.name == "hierarchy":
            half = {"cpu": 2 * _MIN}
            parents = [
                tree_quota(f"t-1/{each}", half, {"cpu": 80}, KEP9, parent="root", is_parent="true")
                for each in ("left", "right")
            ]
            leaves = [
                tree_quota(f"{team}/{team}", low, high, KEP9, parent=parent)
                for team, parent in zip(TEAMS, ("left", "left", "right", "right"), strict=True)
            ]
            return [*parents, *leaves]
        group = NOS if self.name == "nos" else KEP9
        return [quota(f"{team}/{team}", low, high, group) for team in TEAMS]

    def pod(self, team: str, name: str, cpus: int, priority: str, gang: str | None) -> Body:
        """A pod of a team."""
        annotations, labels = {}, {}
        if gang is not None:
            annotations[GROUP_NAME] = gang
        elif self.name == "queues":
            annotations[QUEUE_NAME] = team
        if self.name == "hierarchy":
            labels[f"{KOORDINATOR}name"] = team
        return limited_pod(
            f"{team}/{name}",
            {"cpu": cpus},
            schedulerName=_SCHEDULERS[self.name],
            priorityClassName=priority,
            annotations=annotations,
            labels=labels,
        )

    def gang(self, team: str, name: str, members: int) -> Body:
        """The group of a gang."""
        where = {"queue": team} if self.name == "queues" else {}
        return pod_group(f"{team}/{name}", minMember=members, **where)


def gang_of(pod: Body) -> str | None:
    """The gang that a pod is of."""
    said = pod["metadata"].get("annotations") or {}
    name: str | None = said.get(GROUP_NAME)
    return name
