"""What a simulation starts from: files, folders or standard input, read and checked as a whole.

Everything is read, and every state that a timeline leads through is checked, before anything runs:
bad input never leaves half a result behind.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from aliquot.cluster.annotations import arrival
from aliquot.cluster.store import Store
from aliquot.dialects import configuration, documents, manifest, rules
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.documents import Document
from aliquot.dialects.manifest import Key, Manifest
from aliquot.dialects.times import duration, seconds
from aliquot.dialects.wire import TimelineWire
from aliquot.errors import InputError

_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Change:
    """What is applied and deleted at one moment."""

    at: int
    apply: tuple[Manifest, ...] = ()
    delete: tuple[tuple[Key, str], ...] = ()
    """Keys, each with the place that asks for it."""


@dataclass(slots=True)
class Inputs:
    """Changes in order of time, what was passed over, and what is worth a warning."""

    changes: list[Change] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)

    def manifests(self) -> Iterator[Manifest]:
        """Every object that ever comes."""
        return (each for change in self.changes for each in change.apply)


def load(paths: Iterable[str]) -> Inputs:
    """Read files and folders (`-` is standard input)."""
    return collect(document for path in paths for document in documents_in(path))


def load_configuration(file: str | None) -> Configuration:
    """The configuration of a file, or the default one."""
    if file is None:
        return Configuration()
    found = list(documents.parse(_text(Path(file)), file))
    if len(found) != 1:
        raise InputError(file, "", f"expected one Configuration, found {len(found)} documents")
    return configuration.read(found[0])


def collect(found: Iterable[Document]) -> Inputs:
    """Sort documents into changes over time, and check every state they lead to.

    At one moment, objects that arrive come first, then the steps of timelines as they are written.
    """
    inputs = Inputs()
    arriving: dict[int, list[Manifest]] = {}
    steps: list[Change] = []
    for document in found:
        read = manifest.read(document)
        if read is None:
            _pass_over(document, inputs)
        elif isinstance(read.content, TimelineWire):
            steps += _steps(read, arriving, inputs)
        else:
            arriving.setdefault(arrival(read), []).append(read)
    for at, manifests in arriving.items():
        _refuse_duplicates(manifests)
        inputs.changes.append(Change(at, tuple(manifests)))
    inputs.changes = sorted([*inputs.changes, *steps], key=lambda change: change.at)
    _check(inputs)
    return inputs


def documents_in(path: str) -> Iterator[Document]:
    """The documents of a file, of all files in a folder, or of standard input (`-`)."""
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input", "", "is closed")
        yield from documents.parse(sys.stdin.read(), "standard input")
        return
    for file in _files(Path(path)):
        yield from documents.parse(_text(file), str(file))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(str(file), "", "is not text in UTF-8") from None
    except OSError as error:
        raise InputError(str(file), "", (error.strerror or str(error)).lower()) from None


def _files(path: Path) -> list[Path]:
    try:
        path.stat()
    except OSError as error:
        raise InputError(str(path)[:200], "", (error.strerror or str(error)).lower()) from None
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
    if not found:
        raise InputError(str(path), "", f"holds no {', '.join(_SUFFIXES)} files")
    return found


def _pass_over(document: Document, inputs: Inputs) -> None:
    """Count a kind that has no part here; one that looks like a slip is worth a word."""
    inputs.skipped[str(document.body["kind"])] += 1
    meant = manifest.looks_like(document)
    if meant is not None:
        have = f"{document.body['kind']} of {document.body.get('apiVersion')}"
        inputs.warnings.append(f"{document.place}: skipped {have}; did you mean {meant}?")


def _steps(
    timeline: Manifest, arriving: dict[int, list[Manifest]], inputs: Inputs
) -> Iterator[Change]:
    assert isinstance(timeline.content, TimelineWire)
    for index, step in enumerate(timeline.content.steps):
        place = f"{timeline.place}: Timeline steps[{index}]"
        at = duration(step.at, place, "at")
        applied = []
        for number, body in enumerate(step.apply or []):
            for document in documents.unpack(body, f"{place}.apply[{number}]"):
                read = manifest.read(document)
                if read is None:
                    _pass_over(document, inputs)
                elif isinstance(read.content, TimelineWire):
                    raise InputError(document.place, "kind", "a timeline cannot apply a Timeline")
                elif arrival(read) > at:
                    arriving.setdefault(arrival(read), []).append(read)
                else:
                    applied.append(read)
        _refuse_duplicates(applied)
        deleted = [
            (manifest.key(each.kind, each.namespace, each.name), f"{place}.delete[{number}]")
            for number, each in enumerate(step.delete or [])
        ]
        yield Change(at, tuple(applied), tuple(sorted(deleted, key=_deletion_order)))


def _deletion_order(deletion: tuple[Key, str]) -> int:
    """Pods before what would take them along."""
    kind = deletion[0][0]
    return ("Pod", kind, "Node", "Namespace").index(kind)


def _refuse_duplicates(applied: Iterable[Manifest]) -> None:
    first: dict[Key, Manifest] = {}
    for each in applied:
        other = first.setdefault(each.key, each)
        if other is not each:
            raise each.error("metadata.name", f"stands twice; also in {other.place}")


def _check(inputs: Inputs) -> None:
    """Walk through every state; the first error ends it, warnings are collected once."""
    store = Store()
    warned = dict.fromkeys(inputs.warnings)
    for change in inputs.changes:
        for key, place in change.delete:
            store.delete(key, place)
        for each in change.apply:
            store.put(each)
        for finding in _findings(change, store):
            if finding.severity == "error":
                raise finding.error()
            when = f"at {seconds(change.at)}s, " if change.at else ""
            warned[f"{when}{finding.error()}"] = None
    inputs.warnings = list(warned)


def _findings(change: Change, store: Store) -> Iterator[rules.Finding]:
    for each in change.apply:
        store.check(each)
        yield from rules.check_object(each, store.objects)
    quotas = {"ElasticQuota", "ResourceQuota", "Node"}
    kinds = {each.kind for each in change.apply} | {key[0] for key, _ in change.delete}
    if kinds & quotas:
        yield from rules.check_quotas(store.objects)
