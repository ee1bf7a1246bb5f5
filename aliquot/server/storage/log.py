"""The log: SQLite in WAL mode; no write is acknowledged before it is here.

It holds the current objects and the last resource version, nothing else. One thread writes it, in
batches; it is read once, at the start. Its files hold Secrets: only their owner can read them,
whatever the folder's mode and the umask. Pages that deleted objects leave are given back.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_BESIDE = ("", "-wal", "-shm", "-journal")
"""The endings of SQLite's files; it gives new ones the mode of the first."""
_MOST_FREE_PAGES = 1024
"""Free pages that a compaction leaves: 4 MiB, which the next objects fill again."""
_PAGES_AT_ONCE = 4096
"""Pages given back at a time: 16 MiB, milliseconds, so that no write waits for long."""
_MOST_JOURNAL = 4 * 2**20
"""Bytes to which the write-ahead log shrinks after a burst: what SQLite lets it grow to anyway."""
_INCREMENTAL = 2
"""The value of `PRAGMA auto_vacuum` with which free pages can be given back piece by piece."""
_TABLES = """
CREATE TABLE IF NOT EXISTS objects (
    storage TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (storage, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS version (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER);
INSERT OR IGNORE INTO version VALUES (1, 0);
"""


@dataclass(frozen=True, slots=True)
class Record:
    """One write: the new state of an object; without a body, its deletion."""

    storage: str
    namespace: str
    name: str
    version: int
    body: bytes | None


class Log:
    """The file that the store is restored from."""

    def __init__(self, file: Path, lasting: bool) -> None:
        """Without `lasting` no fsync: it survives a crash of the process, not of the machine."""
        _make_private(file)
        self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._allow_compaction()
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute(f"PRAGMA journal_size_limit={_MOST_JOURNAL}")
        self._connection.execute(f"PRAGMA synchronous={'FULL' if lasting else 'OFF'}")
        self._connection.executescript(_TABLES)

    def version(self) -> int:
        """The last version written."""
        found = self._connection.execute("SELECT version FROM version").fetchone()
        return int(found[0])

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """Every object, with its storage."""
        yield from self._connection.execute("SELECT storage, body FROM objects")

    def write(self, records: Iterable[Record]) -> None:
        """Write a batch in one transaction; return when it is committed."""
        execute, version = self._connection.execute, 0
        execute("BEGIN IMMEDIATE")
        try:
            for each in records:
                version = each.version
                if each.body is None:
                    execute(
                        "DELETE FROM objects WHERE storage=? AND namespace=? AND name=?",
                        (each.storage, each.namespace, each.name),
                    )
                else:
                    execute(
                        "INSERT OR REPLACE INTO objects VALUES (?,?,?,?)",
                        (each.storage, each.namespace, each.name, each.body),
                    )
            execute("UPDATE version SET version=?", (version,))
            execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            raise

    def compact(self) -> None:
        """Give back some of the pages that deleted objects left."""
        if self._pragma("freelist_count") > _MOST_FREE_PAGES:
            # A script: `execute` takes the first step of the statement only, which is one page.
            self._connection.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _allow_compaction(self) -> None:
        """Have SQLite keep track of free pages; a file of an older version is rewritten once."""
        if self._pragma("auto_vacuum") != _INCREMENTAL:
            self._connection.execute(f"PRAGMA auto_vacuum={_INCREMENTAL}")
            self._connection.execute("VACUUM")

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])


def _make_private(file: Path) -> None:
    """Create the file if it is missing, and let only its owner read what is there."""
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    for ending in _BESIDE:
        beside = file.with_name(file.name + ending)
        if beside.exists():
            beside.chmod(0o600)
