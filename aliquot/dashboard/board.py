"""The board: everything that the page shows, as rows by key, and what of it has changed.

A frame is what differs since the last one; a page that is opened gets all rows at once. Rows are
kept as they were encoded, so that a row that is built anew but is the same is not sent.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from aliquot.dashboard import quota_rows
from aliquot.dashboard.occupancy import Occupancy
from aliquot.dashboard.quota_rows import QuotaRows
from aliquot.dashboard.waiting_list import WaitingList
from aliquot.engine import SECOND, Engine, QuotaSummary, loans

PARTS = ("quotas", "nodes", "waiting", "loans", "namespaces", "gpuQuotas", "teams")
MOST_STORY = 2000
"""What has happened is kept this far back: more than a screen can draw apart."""
_FIRST_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "cpu", "memory")

_SHARED = ("hierarchy", "queues")
"""The policies under which a quota has a share of its own, besides min and max."""

_encode = msgspec.json.Encoder().encode
Rows = dict[str, bytes]
Entry = tuple[str, bytes]
"""What has happened: the pod or quota that it is about, and the entry as it was encoded."""


class Headline(msgspec.Struct, frozen=True):
    """What stands above all views: where it is from, and the sums over the cluster."""

    source: str
    policy: str
    virtual: bool = False
    """Is the time that of a simulation, which begins at 0?"""
    still: bool = False
    """Are these files, of one moment, in which nothing more happens?"""
    now: float = 0
    resources: Sequence[str] = ()
    """The resources that can be looked at, those that quotas bound first."""
    levels: Sequence[str] = ()
    """The node labels by which nodes can be grouped, from wide to narrow."""
    notice: str = ""
    total: dict[str, int] = {}
    used: dict[str, int] = {}
    nodes: int = 0
    running: int = 0
    waiting: int = 0
    limited: bool = False
    """Are the sums left out, for a user who may not see all of the cluster?"""

    def without_sums(self) -> "Headline":
        """For a user who may not see all of the cluster."""
        nothing: dict[str, int] = {}
        return msgspec.structs.replace(
            self, total=nothing, used=nothing, nodes=0, running=0, waiting=0, limited=True
        )


class Board:
    """The rows of every part, and the story, as last told."""

    def __init__(
        self, source: str, policy: str, virtual: bool = False, still: bool = False
    ) -> None:
        self.parts: dict[str, Rows] = {part: {} for part in PARTS}
        self.story: list[Entry] = []
        self.cluster = Headline(source, policy, virtual, still)
        self.resources: list[str] = []
        self._source = source
        self._policy = policy
        self._virtual = virtual
        self._still = still
        self._news: list[Entry] = []
        self._quotas: QuotaRows | None = None

    def note(self, entry: Mapping[str, Any]) -> None:
        """Something has happened: it is told with the next frame."""
        self._news.append((str(entry.get("pod") or entry.get("quota") or ""), _encode(entry)))

    def look(
        self, engine: Engine, occupancy: Occupancy, waiting: WaitingList, now: int, notice: str = ""
    ) -> tuple["Frame", list[QuotaSummary]]:
        """What differs since the last look; and the figures of all quotas."""
        if self._quotas is None:
            self._quotas = QuotaRows(occupancy, self._policy in _SHARED)
        summaries = engine.summarise()
        lent = list(loans(summaries))
        nodes, gone = occupancy.changed_nodes()
        gpu_quotas = occupancy.gpu_quotas
        found = engine.gpu_quotas() if gpu_quotas else ()
        rows = {
            "quotas": self._quotas.rows(summaries, lent),
            "waiting": waiting.rows(engine, occupancy, now),
            "loans": quota_rows.loan_rows(lent),
            "namespaces": quota_rows.namespace_rows(engine.queues()),
            "gpuQuotas": quota_rows.gpu_quota_rows(found, gpu_quotas),
            "teams": quota_rows.team_rows(occupancy.owners),
        }
        frame = Frame(
            {
                "nodes": self._merged("nodes", nodes, gone),
                **{part: self._changed(part, each) for part, each in rows.items()},
            },
            self._news,
            self._cluster(summaries, occupancy, now, notice),
        )
        self.story = (self.story + self._news)[-MOST_STORY:]
        self._news = []
        return frame, summaries

    def whole(self) -> "Frame":
        """Everything as last told, for a page that has just been opened."""
        changes = {part: Change(dict(rows), [], True) for part, rows in self.parts.items()}
        return Frame(changes, self.story, self.cluster, True)

    def _changed(self, part: str, rows: Iterable[tuple[str, Any]]) -> "Change":
        """All rows of a part as they are now, against those last told."""
        before = self.parts[part]
        now = {key: _encode(row) for key, row in rows}
        self.parts[part] = now
        told = {key: row for key, row in now.items() if before.get(key) != row}
        return Change(told, [key for key in before if key not in now])

    def _merged(self, part: str, rows: Mapping[str, Any], gone: Iterable[str]) -> "Change":
        """Some rows of a part as they are now, and those that are gone."""
        kept = self.parts[part]
        told = {key: _encode(row) for key, row in rows.items()}
        told = {key: row for key, row in told.items() if kept.get(key) != row}
        kept.update(told)
        return Change(told, [key for key in gone if kept.pop(key, None) is not None])

    def _cluster(
        self, summaries: list[QuotaSummary], occupancy: Occupancy, now: int, notice: str
    ) -> "Headline":
        total = {name: amount for name, amount in sorted(occupancy.total.items()) if amount}
        used = {name: amount for name, amount in sorted(occupancy.used.items()) if amount}
        named: set[str] = set()
        for each in summaries:
            named |= each.min.keys() | each.max.keys()
            if each.parent is None:
                for name, amount in each.used.items():  # also what is no request: GPU memory
                    used[name] = max(used.get(name, 0), amount)
        self.resources = _in_order(total, named, set(used) - {"pods"})
        self.cluster = Headline(
            self._source,
            self._policy,
            self._virtual,
            self._still,
            now / SECOND,
            self.resources,
            occupancy.levels,
            notice,
            total,
            used,
            len(occupancy.nodes),
            len(occupancy.pods) - len(occupancy.waiting),
            len(occupancy.waiting),
        )
        return self.cluster


def _in_order(total: Mapping[str, int], named: set[str], used: set[str]) -> list[str]:
    """Resources that nodes have: those that quotas bound first, GPUs before all others."""
    usual = {name: place for place, name in enumerate(_FIRST_RESOURCES)}
    known = [name for name in total if name in named or name in used or name in usual]
    return sorted(
        known, key=lambda name: (name not in named, usual.get(name, 1 if "/" in name else 9), name)
    )


class Change:
    """The rows of a part that differ, and the keys that are gone."""

    def __init__(self, told: Rows, gone: list[str], whole: bool = False) -> None:
        self.told = told
        self.gone = gone
        self.whole = whole

    def encoded(self) -> bytes:
        """As JSON: the rows are put together as they are."""
        rows = b",".join(_encode(key) + b":" + row for key, row in self.told.items())
        whole = b'"all":true,' if self.whole else b""
        return b"{" + whole + b'"set":{' + rows + b'},"gone":' + _encode(self.gone) + b"}"

    def __bool__(self) -> bool:
        return bool(self.told or self.gone or self.whole)


class Frame:
    """What is told to a page at once."""

    def __init__(
        self,
        changes: dict[str, Change],
        story: list[Entry],
        cluster: "Headline",
        whole: bool = False,
    ) -> None:
        self.changes = changes
        self.story = story
        self.cluster = cluster
        self.whole = whole
        self._encoded = b""

    def only(self, shows: Callable[[str, str], bool], shows_name: Callable[[str], bool]) -> "Frame":
        """The rows that may be shown: by part and key; and of the story, by name."""
        changes = {
            part: Change(
                {key: row for key, row in each.told.items() if shows(part, key)},
                [key for key in each.gone if shows(part, key)],
                each.whole,
            )
            for part, each in self.changes.items()
        }
        story = [entry for entry in self.story if shows_name(entry[0])]
        return Frame(changes, story, self.cluster.without_sums(), self.whole)

    def encoded(self) -> bytes:
        """As one message of a stream of server-sent events: encoded once, for all pages."""
        self._encoded = self._encoded or self._encode()
        return self._encoded

    def _encode(self) -> bytes:
        parts = [
            b'"' + k.encode() + b'":' + each.encoded() for k, each in self.changes.items() if each
        ]
        if self.story or self.whole:
            whole = b'"all":true,' if self.whole else b""
            parts.append(
                b'"story":{'
                + whole
                + b'"add":['
                + b",".join(entry for _, entry in self.story)
                + b"]}"
            )
        parts.append(b'"cluster":' + _encode(self.cluster))
        return b"data: {" + b",".join(parts) + b"}\n\n"
