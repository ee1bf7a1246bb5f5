"""The checker: follows every event of a cluster, and knows nothing but its objects.

At every event: no node holds more than it has, no quota more than its max by a bind of ours, no pod
is bound twice, no pod is evicted out of a team that is within its min. At rest: no pod waits that
could start, and every pod that was evicted for a claim was needed for it. It shares no code with
the package: amounts are added up as `tests.cluster.plane.books` does.
"""

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from aliquot.json import Body
from tests.build.manifests import KOORDINATOR, QUEUE_NAME
from tests.cluster.chaos.world import World, gang_of
from tests.cluster.plane.books import Amounts, amount, asked, path, total

_SLACK = 2.0
"""Seconds that news may take to a scheduler whose watches are sound: after that, an eviction out of
a team that has scaled down, or a bind above a max that was lowered, is one of ours."""
_UNIT = 10.0
"""Seconds within which the members of an evicted gang go: they are one unit."""
_FOR = re.compile(r"evicted for (\S+?):")
_RESERVED, _RESERVE_SHARE = "Reserved", Fraction(1, 10)
"""What a passed claim says that room is kept for, and how much of it may stay idle for all."""
_NAMED = "cpu"
"""The resource that quotas of the campaign name."""


@dataclass(frozen=True)
class Wrong:
    """Something that must not be."""

    at: float
    word: str
    """`double-booked`, `above max`, `bound twice`, `lost` or `needless`."""
    text: str


@dataclass(frozen=True)
class Bound:
    """A pod that was bound: when that was seen, and the second of the day that the server noted."""

    seen: float
    noted: float


@dataclass(frozen=True)
class Eviction:
    """A pod that the scheduler has asked to go."""

    at: float
    uid: str
    path: str
    team: str


@dataclass
class _Bounds:
    """Min and max of a quota, since when, and its parent."""

    since: float
    low: Fraction
    high: Fraction | None
    parent: str | None = None


@dataclass
class _Team:
    """What the checker knows of a quota."""

    bounds: list[_Bounds] = field(default_factory=list)
    """As they were, the newest last."""
    above: bool = False
    """Does it hold more than its min, not counting what is leaving?"""
    above_min: float = 0.0
    """Until when it did so by any change but an eviction, which the scheduler knows of itself."""


class Checker:
    """Follows a cluster; `wrong` is what must not be."""

    def __init__(self, world: World, deleted: set[str]) -> None:
        """`deleted`: the uids of pods that owners and kubelets delete, and not the scheduler."""
        self.wrong: list[Wrong] = []
        self.binds: list[Bound] = []
        self.evictions: list[Eviction] = []
        self.last_change = 0.0
        """When a pod last came, was bound, was asked to go, or went."""
        self.stale_since: float | None = None
        """Since when schedulers may not see what happens; None: they do."""
        self._world = world
        self._deleted = deleted
        self._nodes: dict[str, Body] = {}
        self._teams: dict[str, _Team] = defaultdict(_Team)
        self._pods: dict[str, Body] = {}
        self._bound: dict[str, str] = {}
        """By uid, also of pods that are gone: to which node."""
        self._started: dict[str, float] = {}
        """By path: when a pod of that name was last bound."""
        self._gone: dict[str, float] = {}
        self._leaving: set[str] = set()
        self._gangs_leaving: dict[tuple[str, str], float] = {}
        self._holds: dict[str, dict[str, Amounts]] = defaultdict(dict)
        """What pods hold, by uid, of each node and quota."""
        self._totals: dict[str, Amounts] = defaultdict(dict)
        """The same added up, of each node and quota."""
        self._asks: dict[str, Amounts] = {}
        """What each pod asks for, by uid."""

    # Every event.

    def hear(self, type_: str, kind: str, body: Body, at: float) -> None:
        """Something was added, changed or deleted."""
        if kind == "Pod":
            self._hear_pod(type_, body, at)
        elif kind == "Node":
            name = body["metadata"]["name"]
            if type_ == "DELETED":
                self._nodes.pop(name, None)
            else:
                self._nodes[name] = body
        elif kind in ("ElasticQuota", "Queue"):
            self._hear_quota(body, at)

    def _hear_quota(self, body: Body, at: float) -> None:
        spec, labels = body["spec"], body["metadata"].get("labels") or {}
        guarantee = (spec.get("guarantee") or {}).get("resource") or {}
        low = (spec.get("min") or guarantee).get(_NAMED, 0)
        high = (spec.get("max") or spec.get("capability") or {}).get(_NAMED)
        new = _Bounds(
            at,
            amount(low),
            None if high is None else amount(high),
            labels.get(f"{KOORDINATOR}parent"),
        )
        name = body["metadata"]["name"]
        known = self._teams[name].bounds
        if not known or (known[-1].low, known[-1].high) != (new.low, new.high):
            known.append(new)
            self._note_above_min(name, at)

    def _hear_pod(self, type_: str, pod: Body, at: float) -> None:
        about = pod["metadata"]
        uid, node = about["uid"], pod["spec"].get("nodeName")
        before = self._pods.get(uid)
        if before is None or type_ == "DELETED" or _stage(before) != _stage(pod):
            self.last_change = at
        if node:
            known = self._bound.get(uid)
            if known is None:
                self._bound[uid] = node
                self._started[path(pod)] = at
                self.binds.append(Bound(at, _bound_at(pod)))
            elif known != node:
                self._say(at, "bound twice", f"{path(pod)} to {known}, then to {node}")
        if type_ == "DELETED":
            self._pods.pop(uid, None)
            self._gone[path(pod)] = at
        else:
            self._pods[uid] = pod
        left = before is not None and bool(node) and uid not in self._leaving
        ours = False
        if left and (type_ == "DELETED" or "deletionTimestamp" in about):
            self._leaving.add(uid)
            ours = uid not in self._deleted
            if ours:
                self._evicted(pod, at)
        self._book(pod, type_ != "DELETED", at)
        for name in self._lineage(pod):
            self._note_above_min(name, at, evicted=ours)
        if type_ == "DELETED":
            self._leaving.discard(uid)
            self._asks.pop(uid, None)

    def _book(self, pod: Body, there: bool, at: float) -> None:
        """Add up what its node and its quotas hold now."""
        uid, node = pod["metadata"]["uid"], self._bound.get(pod["metadata"]["uid"])
        over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if node is None:
            return
        quotas = self._lineage(pod)
        if not there or over:
            for place in (f"node {node}", *quotas):
                self._add(place, self._holds[place].pop(uid, {}), -1)
        elif uid not in self._holds[f"node {node}"]:
            for place in (f"node {node}", *quotas):
                self._holds[place][uid] = self._asked(pod)
                self._add(place, self._asked(pod), 1)
            self._check_node(node, pod, at)
            for name in quotas:
                self._check_max(name, pod, at)

    def _check_node(self, name: str, pod: Body, at: float) -> None:
        node = self._nodes.get(name)
        if node is None:
            return  # it went while the bind was on its way; its pods are deleted
        used = self._totals[f"node {name}"]
        for resource, text in node["status"]["allocatable"].items():
            if used.get(resource, 0) > amount(text):
                words = f"{path(pod)}: node {name} holds {used[resource]} of {text} {resource}"
                self._say(at, "double-booked", words)

    def _check_max(self, name: str, pod: Body, at: float) -> None:
        """Above the highest max that the scheduler may have known?"""
        highs = [each.high for each in self._lately(name, at)]
        used = self._used(name)
        if highs and None not in highs and used > max(each for each in highs if each is not None):
            words = f"{path(pod)}: quota {name} holds {used} cpu, max {highs}"
            self._say(at, "above max", words)

    def _note_above_min(self, name: str, at: float, evicted: bool = False) -> None:
        team = self._teams[name]
        above = bool(team.bounds) and self._staying(name) > team.bounds[-1].low
        if above or (team.above and not evicted):
            team.above_min = at
        team.above = above

    def _evicted(self, pod: Body, at: float) -> None:
        """The scheduler asks a pod to go: does its team hold more than its min, or did just now?"""
        *_, team = self._lineage(pod)
        uid, gang = pod["metadata"]["uid"], gang_of(pod)
        self.evictions.append(Eviction(at, uid, path(pod), team))
        unit = (team, gang or uid)
        began = self._gangs_leaving.get(unit, -_UNIT)
        if gang is not None and at - began < _UNIT:
            return
        self._gangs_leaving[unit] = at
        staying = self._staying(team) + self._asked(pod)[_NAMED]
        known = self._teams[team]
        above = staying > known.bounds[-1].low or known.above_min >= self._known_since(at)
        if not above and not self._own_claim(pod, team):
            low = known.bounds[-1].low
            words = f"{path(pod)} evicted: {team} held {staying} cpu, min {low}"
            self._say(at, "needless", f"{words}, since {at - known.above_min:.1f} s")

    def _own_claim(self, victim: Body, team: str) -> bool:
        """Is there a waiting pod of the same quota with a higher priority, or was there?"""
        rank = victim["spec"].get("priority", 0)
        return any(
            each["spec"].get("priority", 0) > rank and team in self._lineage(each)
            for each in self._pods.values()
        )

    # At rest.

    def waiting(self) -> list[Body]:
        """The pods that are bound to no node and are to be."""
        return [
            pod
            for pod in self._pods.values()
            if pod["metadata"]["uid"] not in self._bound
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def startable(self) -> Iterator[str]:
        """The claims that wait although they could start."""
        for claim in self._claims():
            names = ", ".join(path(pod) for pod in claim)
            if self._may(claim) and self._fits(claim) and not self._kept(claim):
                yield f"{names} waits, and there is room and right: {_says(claim[0])}"
            elif self._owed(claim):
                yield f"{names} waits within min, and others borrow: {_says(claim[0])}"

    def unexplained(self, since: float, events: Iterable[Body]) -> int:
        """How many evictions since then no Event explains: those are lost where writes are."""
        told = claimants(events)
        return sum(each.at >= since and each.uid not in told for each in self.evictions)

    def judge_evictions(self, since: float, rested: float, events: Iterable[Body]) -> Iterator[str]:
        """The evictions since then whose claimant waits still.

        While the load changes, a claim may lose its right again: to a more important pod of its own
        team, or by what others come to ask for, unless it stays within its min. Since the load has
        `rested`, it may not.
        """
        whom = claimants(events)
        waits = {path(pod): pod for pod in self.waiting()}
        for each in self.evictions:
            claimant = waits.get(whom.get(each.uid, ""))
            if each.at < since or claimant is None:
                continue
            if each.at >= rested or (
                self._within_min(claimant) and not self._overtaken(claimant, each.at)
            ):
                yield f"{each.path} was evicted for {path(claimant)}, which waits still"

    def _within_min(self, pod: Body) -> bool:
        """Would its claim, all waiting pods of its gang, leave its quota within min?"""
        *_, own = self._lineage(pod)
        low = self._teams[own].bounds[-1].low
        claim = next(each for each in self._claims() if pod in each)
        asks = total(map(self._asked, claim))[_NAMED]
        return self._world.flat and self._used(own) + asks <= low

    def _overtaken(self, claimant: Body, since: float) -> bool:
        """Has a more important pod of its quota started since?"""
        *_, own = self._lineage(claimant)
        rank = claimant["spec"].get("priority", 0)
        return any(
            each["spec"].get("priority", 0) > rank
            and own in self._lineage(each)
            and self._started.get(path(each), 0.0) >= since
            for each in self._pods.values()
        )

    def used(self) -> dict[str, Fraction]:
        """What each quota holds, in cpu."""
        return {name: self._used(name) for name in self._teams}

    def held(self, team: str) -> Fraction:
        """What a team holds now."""
        return self._used(team)

    def bounds(self, team: str) -> tuple[Fraction, Fraction | None]:
        """Min and max of a team now."""
        last = self._teams[team].bounds[-1]
        return last.low, last.high

    def _claims(self) -> Iterator[list[Body]]:
        gangs: dict[tuple[str, str], list[Body]] = defaultdict(list)
        for pod in self.waiting():
            gang = gang_of(pod)
            if gang is None:
                yield [pod]
            else:
                gangs[pod["metadata"]["namespace"], gang].append(pod)
        yield from gangs.values()

    def _may(self, claim: list[Body]) -> bool:
        """Do the bounds of its quotas let it start?"""
        asks = total(map(self._asked, claim))[_NAMED]
        for name in self._lineage(claim[0]):
            high = self._teams[name].bounds[-1].high
            if high is not None and self._used(name) + asks > high:
                return False
        if not self._world.flat:
            return True
        whole = sum((self._used(name) for name in self._teams), Fraction(0))
        lows = (team.bounds[-1].low for team in self._teams.values() if team.bounds)
        return whole + asks <= sum(lows, Fraction(0))

    def _kept(self, claim: list[Body]) -> bool:
        """Would it start in room that is kept for claims with a reservation, within their share?"""
        asks = total(map(self._asked, claim))[_NAMED]
        open_nodes = [name for name, node in self._nodes.items() if _takes_pods(node)]
        whole = sum(
            (amount(self._nodes[name]["status"]["allocatable"][_NAMED]) for name in open_nodes),
            Fraction(0),
        )
        idle = sum((self._free(name)[_NAMED] for name in open_nodes), Fraction(0))
        reserved = total(
            self._asked(pod) for pod in self.waiting() if _says(pod).startswith(f"{_RESERVED} ")
        ).get(_NAMED, Fraction(0))
        return idle - asks < min(reserved, whole * _RESERVE_SHARE)

    def _owed(self, claim: list[Body]) -> bool:
        """Is it one cpu within its min, while another team borrows? Any pod of it makes room."""
        asks = total(map(self._asked, claim))[_NAMED]
        *_, own = self._lineage(claim[0])
        if not self._world.flat or asks != 1:
            return False
        within = self._used(own) + asks <= self._teams[own].bounds[-1].low
        others = (each for each in self._teams if each != own)
        return within and any(
            self._used(each) > self._teams[each].bounds[-1].low for each in others
        )

    def _fits(self, claim: list[Body]) -> bool:
        """Is there room on nodes, largest pod first, fullest node first?"""
        free = {
            name: {
                resource: amount(text)
                - total(self._holds[f"node {name}"].values()).get(resource, 0)
                for resource, text in node["status"]["allocatable"].items()
            }
            for name, node in self._nodes.items()
            if _takes_pods(node)
        }
        for pod in sorted(claim, key=lambda each: -self._asked(each)[_NAMED]):
            asks = self._asked(pod)
            fitting = [
                name
                for name, has in free.items()
                if all(
                    has.get(resource, Fraction(0)) >= number for resource, number in asks.items()
                )
            ]
            if not fitting:
                return False
            best = min(fitting, key=lambda name: free[name][_NAMED])
            for resource, number in asks.items():
                free[best][resource] -= number
        return True

    # Sums.

    def _free(self, node: str) -> Amounts:
        used = self._totals[f"node {node}"]
        has = self._nodes[node]["status"]["allocatable"]
        return {name: amount(text) - used.get(name, 0) for name, text in has.items()}

    def _lineage(self, pod: Body) -> list[str]:
        """The quotas that a pod counts for, from the top; its own is the last."""
        about = pod["metadata"]
        said = about.get("annotations") or {}
        own: str = said.get(QUEUE_NAME) or about["namespace"]
        names = [own]
        while (bounds := self._teams[names[0]].bounds) and bounds[-1].parent not in (None, "root"):
            names.insert(0, str(bounds[-1].parent))
        return names

    def _add(self, place: str, asks: Amounts, sign: int) -> None:
        totals = self._totals[place]
        for resource, number in asks.items():
            totals[resource] = totals.get(resource, Fraction(0)) + sign * number

    def _asked(self, pod: Body) -> Amounts:
        uid = pod["metadata"]["uid"]
        if uid not in self._asks:
            self._asks[uid] = asked(pod)
        return self._asks[uid]

    def recount(self) -> Iterator[str]:
        """Where what was added up event by event is not what all pods together hold."""
        for place, held in self._holds.items():
            whole = total(held.values())
            kept = {key: number for key, number in self._totals[place].items() if number}
            if whole != kept:
                yield f"the checker itself is wrong about {place}: {kept}, and it holds {whole}"

    def _used(self, name: str) -> Fraction:
        return self._totals[name].get(_NAMED, Fraction(0))

    def _staying(self, name: str) -> Fraction:
        """What it holds, without the pods that are leaving."""
        held = self._holds[name]
        going = (held[uid][_NAMED] for uid in self._leaving if uid in held)
        return self._used(name) - sum(going, Fraction(0))

    def _known_since(self, at: float) -> float:
        """What was so since then, the scheduler may still take for so."""
        return min(at, self.stale_since or at) - _SLACK

    def _lately(self, name: str, at: float) -> list[_Bounds]:
        """The bounds that were in force since then."""
        known, since = self._teams[name].bounds, self._known_since(at)
        ended = [each.since for each in known[1:]] + [at]
        return [each for each, end in zip(known, ended, strict=True) if end >= since]

    def _say(self, at: float, word: str, text: str) -> None:
        self.wrong.append(Wrong(at, word, text))


def claimants(events: Iterable[Body]) -> dict[str, str]:
    """For whom each pod was evicted, by its uid: as Events tell."""
    found: dict[str, str] = {}
    for event in events:
        named = _FOR.search(event.get("message") or "")
        if event.get("reason") == "Preempted":
            found[event["involvedObject"].get("uid", "")] = named[1] if named else ""
    return found


def _bound_at(pod: Body) -> float:
    """When the server bound it, in whole seconds; now, if it does not say."""
    for each in (pod.get("status") or {}).get("conditions") or ():
        if each["type"] == "PodScheduled" and each["status"] == "True":
            return datetime.fromisoformat(each["lastTransitionTime"]).timestamp()
    return time.time()


def _stage(pod: Body) -> tuple[object, ...]:
    """What a pod has come to: other changes do not matter."""
    about, phase = pod["metadata"], (pod.get("status") or {}).get("phase")
    return pod["spec"].get("nodeName"), about.get("deletionTimestamp"), phase


def _takes_pods(node: Body) -> bool:
    conditions = node["status"].get("conditions") or ()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not node["spec"].get("unschedulable") and not node["spec"].get("taints")


def _says(pod: Body) -> str:
    for each in (pod.get("status") or {}).get("conditions") or ():
        if each["type"] == "PodScheduled":
            return f"{each.get('reason')} {each.get('message')}"
    return "it says nothing"
