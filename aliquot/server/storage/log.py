"""The log: SQLite in WAL mode; no write is acknowledged before it is here.

It holds the current objects and the last resource version, nothing else. One thread writes it, in
batches; it is read once, at the start.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

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
        self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._connection.execute("PRAGMA journal_mode=WAL")
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

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
