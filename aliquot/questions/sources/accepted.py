"""Objects that a server has accepted, as inputs of a simulation: read as the control plane does.

What makes no sense by itself is left out with a warning, so that one bad object never hides the
others; of several API groups that have an object of one name, the one in force counts; pending pods
of other schedulers are left out. Nothing is checked that a server has checked before.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

import msgspec

from aliquot.dialects import configuration, policy
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core import pod_rules
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest, read
from aliquot.dialects.core.objects import PodSpec, PodStatus, PodWire
from aliquot.dialects.core.pods import DEFAULT_SCHEDULER
from aliquot.dialects.nos.cards import cards
from aliquot.errors import InputError
from aliquot.kube.watch.valid_objects import ValidObjects
from aliquot.mirror.store import Change, Store
from aliquot.validation.inputs import Inputs

_template_of = attrgetter(
    *(
        each.name
        for each in msgspec.structs.fields(PodSpec)
        if each.name not in ("node_name", "volumes")
    )
)
"""What pods of one template have in common."""
_CHECKED_FIRST = ("PriorityClass", "Node")
"""The kinds by which others are checked."""


def accepted_inputs(
    documents: Iterable[Document], settings: Configuration, named_policy: str | None
) -> Inputs:
    """What a simulation takes: all objects at one moment; what was left out is among findings."""
    inputs = Inputs()
    manifests = list(_read(documents, settings, inputs))
    found = _in_force(manifests, inputs)
    inputs.changes = [Change(0, tuple(found))]
    inputs.cards = cards(settings.gpu, found)
    inputs.system = configuration.system_namespaces(settings)
    chosen = policy.expected(settings, found, named_policy)
    inputs.special = policy.special_quotas(chosen)
    return inputs


def other_scheduler(content: PodWire, settings: Configuration) -> str | None:
    """The scheduler of a pending pod that none of our profiles names; None for any other pod."""
    spec = content.spec
    if spec is not None and spec.node_name:
        return None
    named = (spec.scheduler_name if spec is not None else None) or DEFAULT_SCHEDULER
    return None if any(each.scheduler_name == named for each in settings.profiles) else named


def _read(
    documents: Iterable[Document], settings: Configuration, inputs: Inputs
) -> Iterator[Manifest]:
    """The objects that have a part in scheduling; others are counted."""
    services = bool(settings.placement.default_constraints)
    for document in documents:
        inputs.files[document.place] = document.source
        try:
            manifest = read(document, services=services)
        except InputError as error:
            inputs.findings.append(_left_out(document.place, error))
            continue
        if manifest is None:
            inputs.skipped[str(document.body.get("kind"))] += 1
        elif not (
            isinstance(manifest.content, PodWire) and other_scheduler(manifest.content, settings)
        ):
            yield manifest


def _in_force(manifests: Sequence[Manifest], inputs: Inputs) -> list[Manifest]:
    """The valid objects; of those of one name in several API groups, the one in force."""
    store, valid, running = Store(), ValidObjects(), list[Manifest]()
    templates = _Templates()
    for each in sorted(manifests, key=lambda each: each.kind not in _CHECKED_FIRST):
        checked = each if templates.has(each) else _checked(each, store, inputs)
        if checked is None:
            continue
        if checked is each:
            templates.add(each)
        if checked.kind == "Pod":
            running.append(checked)
        else:
            valid.put(checked)
            store.put(checked)
    return [*valid.all_in_force(), *running]


class _Templates:
    """What was found valid of pods of one template, so that their likes are not checked again."""

    def __init__(self) -> None:
        self._valid: set[bytes] = set()
        self._last: tuple[Manifest, bytes] | None = None
        self._encoder = msgspec.json.Encoder()

    def has(self, manifest: Manifest) -> bool:
        """Was a pod found valid that differs from this one in name, age and node alone?"""
        content = manifest.content
        if not isinstance(content, PodWire) or content.spec is None or content.spec.volumes:
            self._last = None
            return False
        spec, metadata, status = content.spec, content.metadata, content.status or PodStatus()
        about = (metadata.labels, metadata.annotations, metadata.deletion_timestamp)
        shown = (status.container_statuses, status.init_container_statuses, status.phase)
        key = self._encoder.encode((_template_of(spec), about, shown))
        self._last = (manifest, key)
        return key in self._valid

    def add(self, manifest: Manifest) -> None:
        """The object that was asked about last is valid."""
        if self._last is not None and self._last[0] is manifest:
            self._valid.add(self._last[1])


def _checked(manifest: Manifest, store: Store, inputs: Inputs) -> Manifest | None:
    """The object if it is valid; a pod on a node that is not without its rules, as it uses room."""
    try:
        store.check(manifest)
    except InputError as error:
        inputs.findings.append(_left_out(manifest.place, error))
    else:
        return manifest
    content = manifest.content
    if not isinstance(content, PodWire) or not (content.spec and content.spec.node_name):
        return None
    metadata = msgspec.structs.replace(content.metadata, labels=None, annotations=None)
    spec = pod_rules.without_rules(content.spec)
    bare = replace(manifest, content=PodWire(metadata, spec, content.status))
    try:
        store.check(bare)
    except InputError:
        return None
    return bare


def _left_out(place: str, error: InputError) -> Finding:
    """A warning that an object, or its labels and rules, do not count because of an error."""
    title = error.place.removeprefix(place).removeprefix(": ")
    return Finding("warning", place, title, error.field, f"does not count: {error.problem}")
