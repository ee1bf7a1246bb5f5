"""Inputs: files, folders or standard input, read and checked as a whole.

Everything is read, and every state that a timeline leads through is checked, before a simulation
runs: bad input never leaves half a result behind.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from aliquot.dialects import configuration, policy
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Key, Manifest, key
from aliquot.dialects.core.shown_times import ShownTimes
from aliquot.dialects.kep9.quotas import KINDS
from aliquot.dialects.nos.cards import Cards, cards
from aliquot.dialects.quota_index import Special
from aliquot.dialects.volcano import gangs
from aliquot.dialects.volcano.made_groups import group_name
from aliquot.engine import SystemNamespaces
from aliquot.errors import InputError
from aliquot.mirror.store import Change
from aliquot.validation import files, history, pod_specs, pods_and_queues, pods_in_the_way
from aliquot.validation.quota_admission import QuotaAdmission
from aliquot.validation.timeline import Changes

Watcher = Callable[[history.State], None]
"""What is shown every state of the input, in order."""


@dataclass(slots=True)
class Inputs:
    """Changes in order of time, the kinds that were skipped, and all findings."""

    changes: list[Change] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """The file of every place, in the order of reading."""
    placeholders: set[str] = field(default_factory=set)
    """The places of objects that could not be read, of which only kind and name are known."""
    cards: Cards = field(default_factory=Cards)
    """The GB of the nodes' GPUs, and what quotas count of GPUs."""
    paths: dict[str, tuple[str | int, ...]] = field(default_factory=dict)
    """Where in its file every document stands, by place."""
    partial: dict[str, set[str]] = field(default_factory=dict)
    """The places of objects that could be read only in part, with the fields that are missing."""
    refusals: list[Finding] = field(default_factory=list)
    """What a cluster would refuse because of pods: errors to `validate`, not to a simulation."""
    misshapen: list[Finding] = field(default_factory=list)
    """What the schema of a kind refuses: errors to `validate`, not to a simulation."""
    about_skipped: list[Finding] = field(default_factory=list)
    """Findings about objects that a simulation skips."""
    special: Special = ""
    """The dialect whose built-in quotas are expected to exist."""
    system: SystemNamespaces = field(default_factory=SystemNamespaces)
    moment: int | None = None
    """When the objects were read, in nanoseconds since 1970; None: they show no time."""

    def manifests(self) -> Iterator[Manifest]:
        """Every object of every change."""
        return (each for change in self.changes for each in change.apply)

    def states(self) -> Iterator[history.State]:
        """Every state that the changes lead through."""
        rest = (self.special, self.partial, self.system)
        return history.replay(self.changes, self.placeholders, self.cards, *rest)


def load(paths: Iterable[str], settings: Configuration, named_policy: str | None = None) -> Inputs:
    """Read files and folders (`-` is standard input); the first error is raised."""
    found = (each for path in paths for each in files.scan(path))
    return collect(found, settings, named_policy)


def collect(
    found: Iterable[Document | Finding], settings: Configuration, named_policy: str | None = None
) -> Inputs:
    """Read documents into inputs that can be simulated; the first error is raised.

    `named_policy` overrides the policy of the configuration, as it does in the simulation.
    """
    inputs = examine(found, settings, named_policy=named_policy)
    for finding in inputs.findings:
        if finding.severity == "error":
            raise finding.error()
    return inputs


def examine(
    found: Iterable[Document | Finding],
    settings: Configuration,
    watchers: Sequence[Watcher] = (),
    named_policy: str | None = None,
) -> Inputs:
    """Read documents and check every state they lead to; errors are among the findings.

    `watchers` are shown each state: a replay is most of the work.
    """
    read, shown = Changes(bool(settings.placement.default_constraints)), ShownTimes()
    for each in found:
        read.add(each)
        if isinstance(each, Document):
            shown.add(each.body)
    inputs = Inputs(read.in_order(), read.skipped, read.findings, read.files, read.placeholders)
    inputs.partial, inputs.about_skipped = read.partial, read.about_skipped
    inputs.paths, inputs.moment = read.paths, shown.latest()
    inputs.findings += read.newer_fields()
    inputs.misshapen += read.misshapen
    inputs.cards = cards(settings.gpu, inputs.manifests())
    inputs.system = configuration.system_namespaces(settings)
    chosen = policy.expected(settings, inputs.manifests(), named_policy)
    inputs.special = policy.special_quotas(chosen)
    _check(inputs, settings, watchers)
    return inputs


def _check(inputs: Inputs, settings: Configuration, watchers: Sequence[Watcher]) -> None:
    """Collect the findings of every state: each once, with the time at which it first holds."""
    quota_names = {each.name for each in inputs.manifests() if each.kind in KINDS}
    keys = {key for each in inputs.manifests() for key in _keys(each)}
    parents_hold_pods = settings.hierarchy.parent_pods == "implicitChild"
    seen: set[Finding] = set()
    admission = QuotaAdmission()

    def note(found: Iterable[Finding], at: int, into: list[Finding]) -> None:
        for each in found:
            if each not in seen:
                seen.add(each)
                into.append(replace(each, at=at, file=inputs.files[each.place]))

    for state in inputs.states():
        at = state.change.at
        for watch in watchers:
            watch(state)
        note(history.check_state(state), at, inputs.findings)
        note(pods_in_the_way.find_unknown_quotas(state, quota_names), at, inputs.findings)
        note(pods_and_queues.find_unknown_queues_and_gangs(state, keys), at, inputs.findings)
        note(pods_in_the_way.find_pod_conflicts(state, parents_hold_pods), at, inputs.refusals)
        note(pods_and_queues.find_queue_conflicts(state, keys), at, inputs.refusals)
        note(admission.refused(state), at, inputs.refusals)
        note(pod_specs.find_refused_pod_specs(state), at, inputs.refusals)
    errors = {(each.place, each.field) for each in inputs.findings if each.severity == "error"}
    inputs.misshapen = [each for each in inputs.misshapen if (each.place, each.field) not in errors]


def _keys(manifest: Manifest) -> list[Key]:
    """The key of an object, and that of the PodGroup that is made for it."""
    group = group_name(manifest)
    made = [] if group is None else [key(gangs.KIND, manifest.namespace, group)]
    return [manifest.key, *made]


def load_configuration(file: str | None) -> Configuration:
    """The configuration of a file, or the default one."""
    return Configuration() if file is None else configuration.read(configuration_document(file))


def configuration_document(file: str) -> Document:
    """The one document of a configuration file, as it was written."""
    found = list(files.parse(file))
    if len(found) != 1:
        raise InputError(file, "", f"expected one Configuration, found {len(found)} documents")
    return found[0]
