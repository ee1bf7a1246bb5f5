"""Everything there is to say about the input, without running it.

The errors are what `aliquot simulate` refuses, because a simulation starts from the same
examination and raises the first of them; and what a cluster would refuse because of pods that are
still there, which a simulation finds out for itself.
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
    """What was looked at, and what was found, in the order in which it was written."""

    inputs: Inputs
    findings: list[Finding]

    def count(self, severity: str) -> int:
        """How many findings there are of a severity."""
        return sum(each.severity == severity for each in self.findings)


def validate(paths: Iterable[str], settings: Configuration) -> Report:
    """Examine files and folders (`-` is standard input)."""
    given = inputs.examine((each for path in paths for each in files.scan(path)), settings)
    about_policy = _about_policy(given, settings)
    about_pods = [*given.objections, *unschedulable.findings(given.states())]
    found = [*given.findings, *about_policy, *about_pods]
    order = {place: number for number, place in enumerate(given.files)}
    placed = [replace(each, file=given.files[each.place]) for each in found]
    return Report(given, sorted(placed, key=lambda each: order[each.place]))


def _about_policy(given: Inputs, settings: Configuration) -> Iterator[Finding]:
    """Objects may ask for a policy that is not there; those refused anyway need not say it, too.

    Where the policy is configured, they are not asked, and it must be there.
    """
    if policy.configured(settings) != "auto":
        policy.resolve(None, settings, ())
        return
    refusal = policy.choose(given.manifests()).refusal()
    refused = {each.place for each in given.findings if each.severity == "error"}
    if refusal is not None and refusal.place not in refused:
        yield refusal
