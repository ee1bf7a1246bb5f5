"""Documents sorted into changes over time, by their arrival and by the steps of timelines.

A document that cannot be read is a finding and does not stop the others. What can be read of it
takes its place, so that all of its errors are found, and no object that names it is reported as
well; at least a placeholder with kind and name.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from aliquot.dialects.core import documents, manifest
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.findings import Finding, refused
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.objects import Step, TimelineWire
from aliquot.dialects.core.simulation_annotations import arrival
from aliquot.dialects.core.times import duration
from aliquot.dialects.frameworks import gangs as job_gangs
from aliquot.dialects.frameworks.objects import JobWire
from aliquot.dialects.schemas import known_kinds
from aliquot.dialects.schemas.misfits import Steps
from aliquot.errors import InputError
from aliquot.json import Body, fresh
from aliquot.mirror.store import Change
from aliquot.validation.shapes import Shape, check_shape, count_newer, was_accepted

_NO_PODS = "no pods are made of it"
UNREAD = {
    ("scheduling.koordinator.sh", "Reservation"): "no room is kept for it",
    ("batch.volcano.sh", "CronJob"): _NO_PODS,
    ("flow.volcano.sh", "JobFlow"): _NO_PODS,
    ("training.volcano.sh", "HyperJob"): _NO_PODS,
    ("tensor-fusion.ai", "TensorFusionWorkload"): _NO_PODS,
    ("tensor-fusion.ai", "TensorFusionConnection"): _NO_PODS,
}
"""Kinds of the five designs that decide about scheduling and are not read, with what is lost. Of
these every command warns, not only `validate`; not of those of a dump, which has their pods."""

_HINT = " (`aliquot what-if` lays one over the other: --from OBJECTS -f CHANGES)"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of names that Kubernetes generates."""
_GENERATED = 5
"""How many letters it adds."""


@dataclass(slots=True)
class Changes:
    """The changes so far, and the findings about their documents."""

    services: bool = False
    """Have Services a part in scheduling, because pods are spread by default?"""
    findings: list[Finding] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """How many documents there were of each kind that has no part in scheduling."""
    files: dict[str, str] = field(default_factory=dict)
    """The file of every place, in the order of reading."""
    placeholders: set[str] = field(default_factory=set)
    """The places of objects that could not be read."""
    partial: dict[str, set[str]] = field(default_factory=dict)
    """The places of objects that could be read only in part, with the fields that are missing."""
    misshapen: list[Finding] = field(default_factory=list)
    """What the schema of an API server would refuse of objects that can be read."""
    about_skipped: list[Finding] = field(default_factory=list)
    """Findings about objects of kinds that have no part in scheduling."""
    paths: dict[str, tuple[str | int, ...]] = field(default_factory=dict)
    """Where in its file every document stands, by place."""
    _newer: list[tuple[Document, Shape]] = field(default_factory=list)
    _generated: Counter[tuple[str, str, str]] = field(default_factory=Counter)
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
        if finding.path:
            self.paths[finding.place] = finding.path
        self.findings.append(finding)

    def _add_arrival(self, read: Manifest, at: int) -> None:
        self._arrivals.setdefault(at, []).append(read)

    def newer_fields(self) -> list[Finding]:
        """The warnings about fields that are unknown here, and known to a newer server."""
        return count_newer(self._newer)

    def _read(self, document: Document) -> tuple[Manifest, int] | None:
        """An object and its arrival; None if its kind is skipped, or it cannot be identified."""
        self.files[document.place] = document.source
        self.paths[document.place] = document.path
        shape = check_shape(document)
        if shape.newer:
            self._newer.append((document, shape))
        document = self._named(document)
        try:
            read = manifest.read(document, services=self.services)
            if read is None:
                self._skip(document, shape)
                return None
            arrives = arrival(read)
        except InputError as error:
            return self._unreadable(document, shape, error)
        for each in shape.unknown:
            self._note(each)
        self.misshapen += shape.refusals
        return read, arrives

    def _named(self, document: Document) -> Document:
        """A document with a name: one that asks for a generated name gets the next one."""
        metadata = document.body.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("name"):
            return document
        prefix = metadata.get("generateName")
        if not isinstance(prefix, str) or not prefix:
            return document
        number = (str(document.body["kind"]), str(metadata.get("namespace")), prefix)
        name = f"{prefix}{_suffix(self._generated[number])}"
        self._generated[number] += 1
        return replace(document, body={**document.body, "metadata": {**metadata, "name": name}})

    def _unreadable(
        self, document: Document, shape: Shape, error: InputError
    ) -> tuple[Manifest, int] | None:
        """Note what is wrong with a document, and take what can be read of it in its place."""
        found = [*shape.unknown, *shape.refusals]
        own = refused(error, document.place, document.source)
        if not any(each.field == own.field for each in found):
            found.append(own)
        for each in found:
            self._note(each)
        body = without(document.body, shape.misfit_steps)
        try:
            bare = replace(document, body=body)
            part = manifest.read(bare, check_names=False, services=self.services)
        except InputError:
            part = None
        if part is not None:
            known = {each.field for each in found}
            others = manifest.all_errors(part, manifest.refuse_names)
            in_job = manifest.all_errors(part, _check_job)
            for other in (*others, *in_job):
                if other.field not in known:
                    self._note(refused(other, document.place, document.source))
            if in_job:
                return self._placeholder(document)  # its pods cannot be read
        if part is None or not part.name:
            return self._placeholder(document)
        self.partial[document.place] = {each.field for each in found}
        return part, 0

    def _placeholder(self, document: Document) -> tuple[Manifest, int] | None:
        """The object with kind and name only, if these can be read."""
        body = {key: document.body.get(key) for key in ("apiVersion", "kind")}
        metadata = document.body.get("metadata")
        if isinstance(metadata, dict):
            body["metadata"] = {
                key: metadata[key] for key in ("name", "namespace") if key in metadata
            }
        try:
            bare = manifest.read(replace(document, body=body), services=self.services)
        except InputError:
            return None
        self.placeholders.add(document.place)
        return (bare, 0) if bare is not None else None

    def _skip(self, document: Document, shape: Shape) -> None:
        """Count a skipped kind; warn if it is unknown."""
        kind, version = str(document.body["kind"]), str(document.body["apiVersion"])
        self.skipped[kind] += 1
        self.about_skipped += [*shape.unknown, *shape.refusals]
        group = known_kinds.group_of(version)
        what = UNREAD.get((group, kind))
        if what and not was_accepted(document.body):
            problem = f"{kind} of {version} ({what}) is not known here, and not checked"
            self._note(self._about_kind(document, problem))
            return
        if group.endswith(manifest.ALIQUOT_GROUP) or known_kinds.versions(group, kind):
            return
        meant = known_kinds.nearest_kind(version, kind)
        if meant is None:
            if not was_accepted(document.body):
                problem = f"{kind} of {version} is not known here, and not checked"
                self.about_skipped.append(self._about_kind(document, problem))
            return
        meant_version, _, meant_kind = meant.partition(" ")
        problem = f"skipped {kind} of {version}; did you mean {meant_kind} of {meant_version}?"
        self._note(self._about_kind(document, problem))

    def _about_kind(self, document: Document, problem: str) -> Finding:
        title = manifest.title_of(document.body)
        return Finding("warning", document.place, title, "kind", problem, file=document.source)

    def _add_steps(self, timeline: TimelineWire, document: Document) -> None:
        for index, step in enumerate(timeline.steps):
            place = f"{document.place}: Timeline steps[{index}]"
            try:
                at = duration(step.at, place, "at")
            except InputError as error:
                self._note(refused(error, document.place, document.source))
                continue
            applied = self._applied(step, at, place, document, index)
            self._steps.append(Change(at, applied, self._deleted(step, place, document, index)))

    def _applied(
        self, step: Step, at: int, place: str, document: Document, index: int
    ) -> tuple[Manifest, ...]:
        """The objects that a step applies at its time; those that arrive later are added apart."""
        applied, source = [], document.source
        for number, body in enumerate(step.apply or []):
            inside = (*document.path, "steps", index, "apply", number)
            for found in documents.unpack(body, f"{place}.apply[{number}]", source, inside):
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

    def _deleted(
        self, step: Step, place: str, document: Document, index: int
    ) -> tuple[tuple[Key, str], ...]:
        deleted = []
        for number, each in enumerate(step.delete or []):
            key = manifest.key(each.kind, each.namespace, each.name)
            deleted.append((key, f"{place}.delete[{number}]"))
            self.files[deleted[-1][1]] = document.source
            self.paths[deleted[-1][1]] = (*document.path, "steps", index, "delete", number)
        return tuple(sorted(deleted, key=_deletion_order))

    def _without_duplicates(self, manifests: Iterable[Manifest]) -> tuple[Manifest, ...]:
        """Each object once, by its first document; a second one is an error."""
        first: dict[Key, Manifest] = {}
        for each in manifests:
            other = first.setdefault(each.key, each)
            if other is not each:
                error = each.error("metadata.name", f"stands twice; also in {other.place}{_HINT}")
                self._note(refused(error, each.place, self.files[each.place]))
        return tuple(first.values())


def _deletion_order(deletion: tuple[Key, str]) -> int:
    """Pods first, then others, nodes and namespaces last: deleting those deletes pods as well."""
    kind = deletion[0][0]
    return ("Pod", kind, "Node", "Namespace").index(kind)


def _check_job(read: Manifest) -> None:
    """Read all that is ever read of a job of a framework; nothing of other objects."""
    if isinstance(read.content, JobWire):
        job_gangs.check(read)


def _suffix(number: int) -> str:
    """The end of a generated name: the same in every run, as no random one would be."""
    letters = []
    for _ in range(_GENERATED):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(reversed(letters))


def without(body: Body, paths: Iterable[Steps]) -> Body:
    """A copy of an object without the values at some paths."""
    kept: Body = fresh(body)
    for *above, last in reversed(list(paths)):
        holder: Any = kept
        for step in above:
            holder = _inside(holder, step)
        if isinstance(holder, dict):
            holder.pop(last, None)
        elif isinstance(holder, list) and isinstance(last, int) and last < len(holder):
            del holder[last]
    return kept


def _inside(holder: Any, step: str | int) -> Any:
    if isinstance(holder, dict):
        return holder.get(step)
    if isinstance(holder, list) and isinstance(step, int) and step < len(holder):
        return holder[step]
    return None
