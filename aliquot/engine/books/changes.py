"""The change log: what has changed in the books, in order, with a cursor for each reader.

Free capacity, shares, turns, gang claims and wake-ups are derived from the books, and follow them
by this log. A book that changes appends to it, and need not know who reads. Each reader has a
cursor of its own and sees every change once: no reader can take a change from another. Entries
that all readers have read are dropped when a cycle begins.
"""

from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Log(Generic[T]):
    """An append-only list of changes of one topic."""

    def __init__(self) -> None:
        self._entries: list[T] = []
        self._cursors: list[Cursor[T]] = []
        self._deciding: list[Cursor[T]] = []
        self.append = self._entries.append
        self.extend = self._entries.extend

    def __len__(self) -> int:
        return len(self._entries)

    def cursor(self, deciding: bool = False) -> "Cursor[T]":
        """A new reader, which reads what is appended from now on.

        `deciding`: only cycles read it, and no question does.
        """
        cursor = Cursor(self._entries)
        self._cursors.append(cursor)
        if deciding:
            self._deciding.append(cursor)
        return cursor

    def skip_deciding(self) -> None:
        """Take what is there for read by all readers that only cycles have."""
        for each in self._deciding:
            each.position = len(self._entries)

    def truncate(self, length: int) -> None:
        """Drop the entries behind this length: the changes were taken back, and none was read."""
        assert all(each.position <= length for each in self._cursors), "a cursor has read them"
        del self._entries[length:]

    def trim(self) -> None:
        """Drop the entries that all readers have read."""
        read = min((each.position for each in self._cursors), default=len(self._entries))
        if read:
            del self._entries[:read]
            for each in self._cursors:
                each.position -= read


class Cursor(Generic[T]):
    """How far one reader has read a log."""

    __slots__ = ("_entries", "position")

    def __init__(self, entries: list[T]) -> None:
        self._entries = entries
        self.position = len(entries)

    def __bool__(self) -> bool:
        """Is there something that it has not read?"""
        return self.position < len(self._entries)

    def unread(self) -> list[T]:
        """What was appended since it last read, which stays unread."""
        return self._entries[self.position :]

    def read(self) -> list[T]:
        """What was appended since it last read."""
        entries, position = self._entries, self.position
        self.position = len(entries)
        return entries[position:]


class Freed(NamedTuple):
    """Where something came free: on nodes and in quotas (by slot), in a namespace's GPU quota.

    `volumes` is news of claims, volumes and classes (see `model.volumes`).
    """

    nodes: tuple[int, ...] = ()
    quotas: tuple[int, ...] = ()
    gpus: str | None = None
    volumes: tuple[str, ...] = ()


class NewlyBound(NamedTuple):
    """A pod was bound, or has changed its quota or priority: a possible new victim.

    For claims of higher priority of its quota.
    """

    quota: str | None
    priority: int


class Changes:
    """The change log, by topic."""

    def __init__(self) -> None:
        self.requests = Log[int]()
        """Quotas (by slot) whose own pods request more or less."""
        self.usage = Log[int]()
        """Quotas (by slot) whose usage has changed."""
        self.nodes = Log[int]()
        """Nodes (by slot) whose free capacity has changed."""
        self.freed = Log[Freed]()
        """What came free, for claims that wait for it."""
        self.mounts = Log[str]()
        """Nodes on which pods mount more volumes, or fewer, or that take more or fewer."""
        self.volumes = Log[str]()
        """Volumes that are new, gone, free or no longer free."""
        self.gangs = Log[str]()
        """Gangs that have changed, or a pod of theirs."""
        self.bound = Log[NewlyBound]()
        """Pods that were bound."""
        self.victims = Log[str]()
        """Changes by which a claim may find its first victims: a pod has ended, or was bound above
        its quota's min; a node, quota, gang or share has changed. An entry names it."""
        self.outside = Log[str]()
        """Changes of the cluster from outside, after which an eviction may be made once more (see
        `repeat_guard`); an entry names what has changed."""
        self.held = Log[str]()
        """Pods for which a node is held now."""
        self.lowered = Log[str]()
        """Quotas of which a bound was lowered."""
        self.created = Log[str]()
        """Quotas that are new to the engine, as all are after a restart."""
        self.lost = Log[str]()
        """Pods whose node was lost."""
        self._all: tuple[Log[int] | Log[Freed] | Log[str] | Log[NewlyBound], ...] = (
            *(self.requests, self.usage, self.nodes, self.freed, self.mounts, self.volumes),
            *(self.gangs, self.bound, self.victims, self.outside, self.held),
            *(self.lowered, self.created, self.lost),
        )

    def __len__(self) -> int:
        """How many entries some reader has yet to read, of all topics."""
        return sum(map(len, self._all))

    def skip_deciding(self) -> None:
        """Take for read what only cycles would read: of an engine that never decides."""
        for log in self._all:
            log.skip_deciding()

    def trim(self) -> None:
        """Drop what all readers have read."""
        for log in self._all:
            log.trim()
