"""The report of `aliquot validate`: all findings about the input, without running it.

Its errors are what a server with our CRDs and webhook refuses. A simulation, which starts from the
same inputs, raises the first of those that keep it from reading what was meant, and warns of the
others.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from aliquot.dialects import policy
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.crds import DEFINITIONS
from aliquot.validation import files, inputs
from aliquot.validation.inputs import Inputs
from aliquot.validation.lines import with_lines
from aliquot.validation.node_pools import NodePools
from aliquot.validation.unmet_requests import UnmetRequests
from aliquot.validation.unmet_rules import UnmetRules
from aliquot.validation.unmet_topology import UnmetTopology
from aliquot.validation.unmet_volumes import UnmetVolumes
from aliquot.validation.unnamed_resources import UnnamedResources
from aliquot.validation.unschedulable import UnschedulablePods

_OUR_KINDS = {each.kind for each in DEFINITIONS}


@dataclass(frozen=True, slots=True)
class Report:
    """The inputs and their findings, in the order of the files."""

    inputs: Inputs
    findings: list[Finding]

    def count(self, severity: str) -> int:
        """How many findings there are of a severity."""
        return sum(each.severity == severity for each in self.findings)


def validate(paths: Iterable[str], settings: Configuration) -> Report:
    """Examine files and folders (`-` is standard input)."""
    sources = files.Sources()
    unschedulable, unmet, unnamed = UnschedulablePods(), UnmetRequests(settings), UnnamedResources()
    volumes, rules, pools = UnmetVolumes(), UnmetRules(), NodePools()
    near = UnmetTopology(settings)
    states = (unschedulable.check_state, unmet.add_state, unnamed.add_state)
    given = inputs.examine(
        (each for path in paths for each in sources.scan(path)),
        settings,
        (*states, *(each.add_state for each in (volumes, rules, pools, near))),
    )
    about_policy = _about_policy(given, settings)
    found = [*given.findings, *given.about_skipped, *about_policy, *given.misshapen]
    found += given.refusals
    found += _about_requests(unschedulable, unmet)
    found += unnamed.findings()
    found += [*volumes.findings(), *rules.findings(), *pools.findings(), *near.findings()]
    order = {place: number for number, place in enumerate(given.files)}
    placed = [_eased(replace(each, file=given.files[each.place])) for each in found]
    lined = with_lines(placed, given.paths, sources.text)
    return Report(given, sorted(lined, key=lambda each: (order[each.place], each.line)))


def _eased(finding: Finding) -> Finding:
    """An error in the status of a quota, a queue or a GPU as a warning.

    A server that is given the object drops its status. A simulation reads it, and may refuse it.
    """
    is_ours = finding.object.partition(" ")[0] in _OUR_KINDS
    if finding.severity == "error" and finding.field.startswith("status") and is_ours:
        return replace(finding, severity="warning")
    return finding


def _about_requests(unschedulable: UnschedulablePods, unmet: UnmetRequests) -> Iterator[Finding]:
    """Warnings about pods that can never start, and about requests that nothing can meet.

    Of several reasons why a pod can never start, the first is said; of a pod that asks for a
    resource which no node has, that one.
    """
    requests = list(dict.fromkeys(unmet.findings()))
    explained = {each.place for each in requests if "no node has this resource" in each.problem}
    never = [each for each in unschedulable.findings() if each.place not in explained]
    said = {(each.place, each.field) for each in never}
    yield from never
    yield from (each for each in requests if (each.place, each.field) not in said)


def _about_policy(given: Inputs, settings: Configuration) -> Iterator[Finding]:
    """The error that the objects imply two policies, unless the object has an error already.

    A configured policy is checked instead, whatever the objects imply.
    """
    if policy.configured(settings) != "auto":
        policy.resolve(None, settings, ())
        return
    refusal = policy.choose(given.manifests()).refusal()
    refused = {each.place for each in given.findings if each.severity == "error"}
    if refusal is not None and refusal.place not in refused:
        yield refusal
