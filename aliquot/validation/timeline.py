"""Documents sorted into changes over time, by their arrival and by the steps of timelines.

A document that cannot be read is a finding and does not stop the others. If its kind and name can
be read, a placeholder with nothing else takes its place, so that an object that names it is not
reported as well.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from aliquot.dialects.core import documents, manifest
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.findings import Finding, refused
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.objects import Step, TimelineWire
from aliquot.dialects.core.simulation_annotations import arrival
from aliquot.dialects.core.times import duration
from aliquot.errors import InputError
from aliquot.mirror.store import Change


@dataclass(slots=True)
class Changes:
    """The changes so far, and the findings about their documents."""

    findings: list[Finding] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """How many documents there were of each kind that has no part in scheduling."""
    files: dict[str, str] = field(default_factory=dict)
    """The file of every place, in the order of reading."""
    placeholders: set[str] = field(default_factory=set)
    """The places of objects that could not be read."""
    _arrivals: dict[int, list[Manifest]] = field(default_factory=dict)
    _steps: list[Change] = field(default_factory=list)

    def add(self, found: Document | Finding) -> None:
        """Add the next document of a file."""
        if isinstance(found, Finding):
            self._note(found)
        elif (read := self._read(found)) is not None:
            if isinstance(read[0].content, TimelineWire):
                self._add_steps(read[0].content, found)
            else:
                self._add_arrival(*read)

    def in_order(self) -> list[Change]:
        """All changes. At one moment, what arrives comes before the steps of timelines."""
        arrivals = [
            Change(at, self._without_duplicates(manifests))
            for at, manifests in self._arrivals.items()
        ]
        return sorted([*arrivals, *self._steps], key=lambda change: change.at)

    def _note(self, finding: Finding) -> None:
        self.files[finding.place] = finding.file
        self.findings.append(finding)

    def _add_arrival(self, read: Manifest, at: int) -> None:
        self._arrivals.setdefault(at, []).append(read)

    def _read(self, document: Document) -> tuple[Manifest, int] | None:
        """An object and its arrival; None if its kind is skipped, or it cannot be identified."""
        self.files[document.place] = document.source
        try:
            read = manifest.read(document)
            if read is not None:
                return read, arrival(read)
        except InputError as error:
            self._note(refused(error, document.place, document.source))
            return self._placeholder(document)
        self._skip(document)
        return None

    def _placeholder(self, document: Document) -> tuple[Manifest, int] | None:
        """The object with kind and name only, if these can be read."""
        body = {key: document.body.get(key) for key in ("apiVersion", "kind")}
        metadata = document.body.get("metadata")
        if isinstance(metadata, dict):
            body["metadata"] = {
                key: metadata[key] for key in ("name", "namespace") if key in metadata
            }
        try:
            bare = manifest.read(Document(document.place, body, document.source))
        except InputError:
            return None
        self.placeholders.add(document.place)
        return (bare, 0) if bare is not None else None

    def _skip(self, document: Document) -> None:
        """Count a skipped kind; warn if it resembles one that is read."""
        kind = str(document.body["kind"])
        self.skipped[kind] += 1
        meant = manifest.similar_kind(document)
        if meant is not None:
            have = f"{kind} of {document.body.get('apiVersion')}"
            problem = f"skipped {have}; did you mean {meant}?"
            self._note(
                Finding("warning", document.place, "", "kind", problem, file=document.source)
            )

    def _add_steps(self, timeline: TimelineWire, document: Document) -> None:
        for index, step in enumerate(timeline.steps):
            place = f"{document.place}: Timeline steps[{index}]"
            try:
                at = duration(step.at, place, "at")
            except InputError as error:
                self._note(refused(error, document.place, document.source))
                continue
            applied = self._applied(step, at, place, document.source)
            self._steps.append(Change(at, applied, self._deleted(step, place, document.source)))

    def _applied(self, step: Step, at: int, place: str, source: str) -> tuple[Manifest, ...]:
        """The objects that a step applies at its time; those that arrive later are added apart."""
        applied = []
        for number, body in enumerate(step.apply or []):
            for found in documents.unpack(body, f"{place}.apply[{number}]", source):
                if isinstance(found, Finding):
                    self._note(found)
                    continue
                read = self._read(found)
                if read is None:
                    continue
                if isinstance(read[0].content, TimelineWire):
                    problem = "a timeline cannot apply a Timeline"
                    self._note(Finding("error", found.place, "", "kind", problem, file=source))
                elif read[1] > at:
                    self._add_arrival(*read)
                else:
                    applied.append(read[0])
        return self._without_duplicates(applied)

    def _deleted(self, step: Step, place: str, source: str) -> tuple[tuple[Key, str], ...]:
        deleted = []
        for number, each in enumerate(step.delete or []):
            key = manifest.key(each.kind, each.namespace, each.name)
            deleted.append((key, f"{place}.delete[{number}]"))
            self.files[deleted[-1][1]] = source
        return tuple(sorted(deleted, key=_deletion_order))

    def _without_duplicates(self, manifests: Iterable[Manifest]) -> tuple[Manifest, ...]:
        """Each object once, by its first document; a second one is an error."""
        first: dict[Key, Manifest] = {}
        for each in manifests:
            other = first.setdefault(each.key, each)
            if other is not each:
                error = each.error("metadata.name", f"stands twice; also in {other.place}")
                self._note(refused(error, each.place, self.files[each.place]))
        return tuple(first.values())


def _deletion_order(deletion: tuple[Key, str]) -> int:
    """Pods first, then others, nodes and namespaces last: deleting those deletes pods as well."""
    kind = deletion[0][0]
    return ("Pod", kind, "Node", "Namespace").index(kind)
