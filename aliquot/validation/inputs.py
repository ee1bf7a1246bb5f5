"""What a simulation starts from: files, folders or standard input, read and checked as a whole.

Everything is read, and every state that a timeline leads through is checked, before anything runs:
bad input never leaves half a result behind.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from aliquot.dialects import configuration, policy
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Key, Manifest, key
from aliquot.dialects.kep9.quotas import KINDS
from aliquot.dialects.nos.cards import Cards, cards
from aliquot.dialects.quota_index import Special
from aliquot.dialects.volcano import gangs
from aliquot.dialects.volcano.made_groups import group_name
from aliquot.errors import InputError
from aliquot.mirror.store import Change
from aliquot.validation import files, history, pods_and_queues, pods_in_the_way
from aliquot.validation.timeline import Changes


@dataclass(slots=True)
class Inputs:
    """Changes in order of time, what was passed over, and what there is to say about them."""

    changes: list[Change] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """The file of every place, in the order of reading."""
    stand_ins: set[str] = field(default_factory=set)
    """The places of objects that could not be read and are known only by name."""
    cards: Cards = field(default_factory=Cards)
    """What the GPUs of the nodes come to in GB."""
    objections: list[Finding] = field(default_factory=list)
    """What a cluster would refuse because of pods; a simulation shows what becomes of them."""
    special: Special = ""
    """Whose quotas are expected to be there that nobody wrote?"""

    def manifests(self) -> Iterator[Manifest]:
        """Every object that ever comes."""
        return (each for change in self.changes for each in change.apply)

    def states(self) -> Iterator[history.State]:
        """Every state that the changes lead through."""
        return history.walk(self.changes, self.stand_ins, self.cards, self.special)


def load(paths: Iterable[str], settings: Configuration) -> Inputs:
    """Read files and folders (`-` is standard input); the first error is raised."""
    return collect((each for path in paths for each in files.scan(path)), settings)


def collect(found: Iterable[Document | Finding], settings: Configuration) -> Inputs:
    """Read documents into inputs that can be simulated; the first error is raised."""
    inputs = examine(found, settings)
    for finding in inputs.findings:
        if finding.severity == "error":
            raise finding.error()
    return inputs


def examine(found: Iterable[Document | Finding], settings: Configuration) -> Inputs:
    """Read documents and check every state they lead to; errors are among the findings."""
    read = Changes()
    for each in found:
        read.take(each)
    inputs = Inputs(read.in_order(), read.skipped, read.findings, read.files, read.stand_ins)
    inputs.cards = cards(settings.gpu, inputs.manifests())
    inputs.special = policy.special_quotas(policy.expected(settings, inputs.manifests()))
    _check(inputs, settings)
    return inputs


def _check(inputs: Inputs, settings: Configuration) -> None:
    """Note what is to be said of every state: each thing once, with the time it first comes up."""
    ever = {each.name for each in inputs.manifests() if each.kind in KINDS}
    keys = {key for each in inputs.manifests() for key in _keys(each)}
    parents_hold_pods = settings.hierarchy.parent_pods == "implicitChild"
    seen: set[Finding] = set()

    def note(found: Iterable[Finding], at: int, into: list[Finding]) -> None:
        for each in found:
            if each not in seen:
                seen.add(each)
                into.append(replace(each, at=at, file=inputs.files[each.place]))

    for state in inputs.states():
        at = state.change.at
        note(history.found(state), at, inputs.findings)
        note(pods_in_the_way.strangers(state, ever), at, inputs.findings)
        note(pods_and_queues.queue_strangers(state, keys), at, inputs.findings)
        note(pods_in_the_way.objections(state, parents_hold_pods), at, inputs.objections)
        note(pods_and_queues.queue_objections(state, keys), at, inputs.objections)


def _keys(manifest: Manifest) -> list[Key]:
    """What an object is known by, and the group that is made for it."""
    group = group_name(manifest)
    made = [] if group is None else [key(gangs.KIND, manifest.namespace, group)]
    return [manifest.key, *made]


def load_configuration(file: str | None) -> Configuration:
    """The configuration of a file, or the default one."""
    return Configuration() if file is None else configuration.read(configuration_document(file))


def configuration_document(file: str) -> Document:
    """The one document of such a file, as it was written."""
    found = list(files.parse(file))
    if len(found) != 1:
        raise InputError(file, "", f"expected one Configuration, found {len(found)} documents")
    return found[0]
