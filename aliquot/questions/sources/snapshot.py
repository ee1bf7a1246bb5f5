"""Snapshots: everything that decides in one file, to ask offline and to attach to a bug report.

A snapshot is a `kind: List`, as kubectl dumps one, with a header in front that says when and of
what it was taken, and under which settings; so whatever reads a dump reads a snapshot. It is
compact JSON, compressed with gzip unless the name of the file ends with `.json`: a question to
50,000 pods begins in seconds.
"""

import gzip
from pathlib import Path
from typing import Any

import msgspec

from aliquot.dialects import configuration
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.shown_times import ShownTimes
from aliquot.dialects.core.times import moment, timestamp
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.questions.sources.essentials import essential, number_images
from aliquot.questions.sources.reach import HOME
from aliquot.questions.sources.source import Source
from aliquot.version import __version__

VERSION = 1
"""Of the format: a reader refuses a later one."""
_START = b'{"snapshot":'
"""How a snapshot begins; a dump of kubectl does not."""
_LEVEL = 6
"""Of compression: a tenth of the size; the highest takes three times as long for a hundredth."""


class Header(msgspec.Struct, rename="camel", omit_defaults=True):
    """What a snapshot says of itself."""

    version: int
    taken: str
    source: str
    aliquot: str = ""
    configuration: dict[str, Any] = msgspec.field(default_factory=dict)
    policy: str | None = None
    absent: list[str] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    namespace: str = HOME


class _File(msgspec.Struct, rename="camel"):
    snapshot: Header
    items: list[Body]


class _Written(msgspec.Struct, rename="camel"):
    snapshot: Header
    api_version: str
    kind: str
    items: list[Body]


_decode = msgspec.json.Decoder(_File).decode


def write(source: Source, file: Path, now: int) -> int:
    """Write what decides of a source to a file; returns its size in bytes."""
    bodies = [each.body for each in source.documents]
    if not source.accepted:
        bodies = [essential(each) for each in bodies]
        number_images(bodies)
    header = Header(
        version=VERSION,
        taken=moment(_taken(source, now)),
        source=source.name,
        aliquot=__version__,
        configuration=msgspec.to_builtins(source.settings),
        policy=source.policy,
        absent=list(source.absent),
        notes=list(source.notes),
        namespace=source.home,
    )
    content = msgspec.json.encode(_Written(header, "v1", "List", bodies))
    if file.suffix != ".json":
        content = gzip.compress(content, _LEVEL, mtime=0)
    try:
        file.write_bytes(content)
    except OSError as error:
        raise InputError(str(file), "", (error.strerror or str(error)).lower()) from None
    return len(content)


def _taken(source: Source, now: int) -> int:
    """When the objects of a source were read; of a dump, which does not say, as they show."""
    if source.taken is not None:
        return source.taken
    shown = ShownTimes()
    for each in source.documents:
        shown.add(each.body)
    found = shown.latest()
    return now if found is None else found


def is_one(content: bytes) -> bool:
    """Is this the content of a snapshot?"""
    return content.startswith(_START)


def read(
    content: bytes, place: str, settings: Configuration | None = None, policy: str | None = None
) -> Source:
    """The source that a snapshot holds; `settings` and `policy` go before its own."""
    try:
        found = _decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(place, "", f"not a snapshot: {error}") from None
    header = found.snapshot
    if header.version > VERSION:
        problem = f"is {header.version}; this Aliquot ({__version__}) reads {VERSION}"
        raise InputError(place, "snapshot.version", problem)
    taken = timestamp(header.taken, place, "snapshot.taken")
    return Source(
        f"snapshot {place}",
        [Document(f"{place}, items[{n}]", body, place) for n, body in enumerate(found.items)],
        settings or _settings(header, place),
        policy or header.policy,
        taken,
        tuple(header.absent),
        tuple(header.notes),
        header.namespace,
    )


def _settings(header: Header, place: str) -> Configuration:
    body = {"apiVersion": configuration.API_VERSION, "kind": "Configuration"}
    named = Document(f"{place}: snapshot.configuration", {**body, **header.configuration})
    return configuration.read(named)
