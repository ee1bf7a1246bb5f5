"""Documents sorted into changes over time: what comes when, and what a timeline changes.

A document that cannot be read is a finding and does not stop the others. As far as it can be known
by kind and name, something bare stands in for it, so that whoever names it is not blamed, too.
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
    """The changes so far, and what is to be said about the documents they come from."""

    findings: list[Finding] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """How many there were of each kind that has no part here."""
    files: dict[str, str] = field(default_factory=dict)
    """The file of every place, in the order of reading."""
    stand_ins: set[str] = field(default_factory=set)
    """The places of objects that could not be read."""
    _arriving: dict[int, list[Manifest]] = field(default_factory=dict)
    _steps: list[Change] = field(default_factory=list)

    def take(self, found: Document | Finding) -> None:
        """Sort in what a file holds next."""
        if isinstance(found, Finding):
            self._note(found)
        elif (read := self._read(found)) is not None:
            if isinstance(read[0].content, TimelineWire):
                self._take_steps(read[0].content, found)
            else:
                self._arrive(*read)

    def in_order(self) -> list[Change]:
        """All changes. At one moment, what arrives comes before the steps of timelines."""
        arrivals = [
            Change(at, self._without_duplicates(manifests))
            for at, manifests in self._arriving.items()
        ]
        return sorted([*arrivals, *self._steps], key=lambda change: change.at)

    def _note(self, finding: Finding) -> None:
        self.files[finding.place] = finding.file
        self.findings.append(finding)

    def _arrive(self, read: Manifest, at: int) -> None:
        self._arriving.setdefault(at, []).append(read)

    def _read(self, document: Document) -> tuple[Manifest, int] | None:
        """An object and when it comes; None if it has no part here, or cannot be told."""
        self.files[document.place] = document.source
        try:
            read = manifest.read(document)
            if read is not None:
                return read, arrival(read)
        except InputError as error:
            self._note(refused(error, document.place, document.source))
            return self._stand_in(document)
        self._pass_over(document)
        return None

    def _stand_in(self, document: Document) -> tuple[Manifest, int] | None:
        """The object without all that may be wrong with it, if it can be told which one it is."""
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
        self.stand_ins.add(document.place)
        return (bare, 0) if bare is not None else None

    def _pass_over(self, document: Document) -> None:
        """Count a kind that has no part here; one that looks like a slip is worth a word."""
        kind = str(document.body["kind"])
        self.skipped[kind] += 1
        meant = manifest.similar_kind(document)
        if meant is not None:
            have = f"{kind} of {document.body.get('apiVersion')}"
            problem = f"skipped {have}; did you mean {meant}?"
            self._note(
                Finding("warning", document.place, "", "kind", problem, file=document.source)
            )

    def _take_steps(self, timeline: TimelineWire, document: Document) -> None:
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
        """What a step applies at once; what arrives later is sorted in there."""
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
                    self._arrive(*read)
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
        """Each object once, as it stands first; it is an error that it comes again."""
        first: dict[Key, Manifest] = {}
        for each in manifests:
            other = first.setdefault(each.key, each)
            if other is not each:
                error = each.error("metadata.name", f"stands twice; also in {other.place}")
                self._note(refused(error, each.place, self.files[each.place]))
        return tuple(first.values())


def _deletion_order(deletion: tuple[Key, str]) -> int:
    """Pods before what would take them along."""
    kind = deletion[0][0]
    return ("Pod", kind, "Node", "Namespace").index(kind)
