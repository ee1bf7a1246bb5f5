"""Files, folders and standard input as documents; what gzip has compressed is read as well.

A source that cannot be read (no such file, not UTF-8, not YAML) is refused as a whole.
"""

import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from aliquot.dialects.core import documents
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.findings import Finding, refused
from aliquot.errors import InputError

_SUFFIXES = (".yaml", ".yml", ".json")
_STANDARD_INPUT = "standard input"
_GZIP = b"\x1f\x8b"
"""How what gzip has compressed begins, and no text does."""


class Sources:
    """Files and standard input, which can be read a second time."""

    def __init__(self) -> None:
        self._standard_input = ""

    def scan(self, path: str) -> Iterator[Document | Finding]:
        """The documents of a file, of all files of a folder, or of standard input (`-`)."""
        for text, source in _read_sources(path):
            if path == "-":
                self._standard_input = text
            yield from documents.scan(text, source)

    def text(self, source: str) -> str:
        """The text of a source that was read."""
        if source == _STANDARD_INPUT:
            return self._standard_input
        return text(_unpacked(_bytes(Path(source)), source), source)


def scan(path: str) -> Iterator[Document | Finding]:
    """The documents of a file, of all files of a folder, or of standard input (`-`)."""
    return Sources().scan(path)


def scan_each(path: str) -> Iterator[Document | Finding]:
    """The same, but a source that cannot be read is a finding, and the others are read."""
    try:
        sources = [path] if path == "-" else [str(file) for file in _files(Path(path))]
    except InputError as error:
        yield refused(error, error.place, path)
        return
    for source in sources:
        try:
            yield from scan(source)
        except InputError as error:
            yield refused(error, error.place, source)


def parse(path: str) -> Iterator[Document]:
    """The same; the first document that is no object with a kind is refused."""
    for text, source in _read_sources(path):
        yield from documents.parse(text, source)


def _read_sources(path: str) -> Iterator[tuple[str, str]]:
    for content, source in contents(path):
        yield text(content, source), source


def contents(path: str) -> Iterator[tuple[bytes, str]]:
    """The content and the name of a file, of all files of a folder, or of standard input."""
    if path != "-":
        for file in _files(Path(path)):
            yield _unpacked(_bytes(file), str(file)), str(file)
    elif sys.stdin is None:
        raise InputError(_STANDARD_INPUT, "", "is closed")
    else:
        yield _unpacked(sys.stdin.buffer.read(), _STANDARD_INPUT), _STANDARD_INPUT


def _unpacked(content: bytes, source: str) -> bytes:
    if not content.startswith(_GZIP):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(source, "", f"not gzip: {error}".lower()) from None


def text(content: bytes, source: str) -> str:
    """Content as text; what is not UTF-8 is refused."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(source, "", "is not text in UTF-8") from None


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(str(file), "", (error.strerror or str(error)).lower()) from None


def _files(path: Path) -> list[Path]:
    try:
        path.stat()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise InputError(str(path)[:200], "", problem.lower()) from None
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
    if not found:
        raise InputError(str(path), "", f"holds no {', '.join(_SUFFIXES)} files")
    return found
