"""Origins: a live cluster, or files, that a source is read from, as the options of a command say.

Files are manifests or a dump of them, or one snapshot. `--config` and `--policy` go before what a
cluster or a snapshot says of itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core import documents
from aliquot.dialects.core.documents import Document
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.questions.sources import snapshot
from aliquot.questions.sources.reach import Reach
from aliquot.questions.sources.source import Source
from aliquot.questions.workloads import traces
from aliquot.validation import files
from aliquot.validation.inputs import load_configuration


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a source is read from, and what overrides its own settings."""

    paths: tuple[str, ...] = ()
    """Files and folders; none: the live cluster."""
    reach: Reach = field(default_factory=Reach)
    config: str | None = None
    policy: str | None = None

    def read(self) -> Source:
        """Read it now; a live cluster is listed anew at every call."""
        settings = None if self.config is None else load_configuration(self.config)
        if not self.paths:
            from aliquot.questions.sources.cluster import read_cluster

            return read_cluster(self.reach, settings, self.policy)
        return read_files(self.paths, settings, self.policy)

    def past(self, pod: str) -> Body:
        """The decisions about a pod, from the control plane of a live cluster; files have none.

        Where they may not be read, a note says so.
        """
        if self.paths:
            return {"decisions": [], "note": None}
        from aliquot.questions import history

        try:
            found = history.read_cluster(self.reach, history.Wanted(pod))
        except InputError as error:
            return {"decisions": [], "note": f"what was decided cannot be read: {error}"}
        own = [each for each in found["decisions"] if each["pod"] == pod]
        return {"decisions": own, "note": found["note"]}


def read_files(
    paths: tuple[str, ...], settings: Configuration | None = None, policy: str | None = None
) -> Source:
    """Manifests of files and folders (`-` is standard input), or one snapshot."""
    contents = [found for path in paths for found in files.contents(path)]
    for content, name in contents:
        if not snapshot.is_one(content):
            continue
        if len(contents) > 1:
            raise InputError(name, "", "is a snapshot, which has all objects: name no other file")
        return snapshot.read(content, name, settings, policy)
    found = tuple(_documents(contents))
    return Source(", ".join(paths), found, settings or Configuration(), policy)


def read_all(paths: tuple[str, ...], trace: str | None = None) -> Source:
    """Files and folders, or one snapshot, and the objects of a trace beside them."""
    if trace is None:
        if not paths:
            raise InputError("", "", "name a PATH or a --trace")
        return read_files(paths)
    source = read_files(paths) if paths else Source(trace, ())
    return replace(source, documents=[*source.documents, *traces.read(trace)])


def _documents(contents: list[tuple[bytes, str]]) -> Iterator[Document]:
    for content, name in contents:
        yield from documents.parse(files.text(content, name), name)
