"""The report of `aliquot validate`: all findings about the input, without running it.

Its errors are those on which `aliquot simulate` refuses to start, because a simulation starts from
the same inputs and raises the first of them; and what a cluster would refuse because of pods, which
only warns a simulation.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from aliquot.dialects import policy
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.findings import Finding
from aliquot.validation import files, inputs, unschedulable
from aliquot.validation.inputs import Inputs


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
    given = inputs.examine((each for path in paths for each in files.scan(path)), settings)
    about_policy = _about_policy(given, settings)
    about_pods = [*given.refusals, *unschedulable.findings(given.states())]
    found = [*given.findings, *given.about_skipped, *about_policy, *about_pods]
    order = {place: number for number, place in enumerate(given.files)}
    placed = [replace(each, file=given.files[each.place]) for each in found]
    return Report(given, sorted(placed, key=lambda each: order[each.place]))


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
