"""Scenarios as code: objects, steps over time, and what is expected after each step.

A scenario is an ordinary simulation, stopped after each step and compared with what is expected. A
difference names what is expected and what is, with the reason where there is one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from aliquot.dialects import configuration
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document, unpack
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import ALIQUOT_GROUP, convert
from aliquot.dialects.core.objects import Metadata, Wire
from aliquot.dialects.core.times import duration, seconds
from aliquot.dialects.policy import resolve
from aliquot.errors import InputError
from aliquot.simulation.comparison import compare
from aliquot.simulation.expectation import Expect
from aliquot.simulation.outcome import outcome
from aliquot.simulation.simulation import Simulation
from aliquot.validation import files
from aliquot.validation.inputs import Inputs, collect

API_VERSION = f"{ALIQUOT_GROUP}/v1alpha1"


class ScenarioStep(Wire, forbid_unknown_fields=True):
    """The changes at one moment, and what should hold after them."""

    at: str | int | float = 0
    apply: list[dict[str, Any]] | None = None
    delete: list[dict[str, Any]] | None = None
    expect: Expect | None = None


class ScenarioWire(Wire, forbid_unknown_fields=True):
    """The whole file."""

    api_version: str
    kind: Literal["Scenario"]
    metadata: Metadata
    steps: list[ScenarioStep]
    description: str = ""
    policy: configuration.PolicyName | None = None
    configuration: dict[str, Any] | None = None
    objects: list[dict[str, Any]] | None = None
    files: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario that is read and checked, ready to run."""

    name: str
    place: str
    inputs: Inputs
    policy: str
    settings: Configuration
    steps: list[tuple[int, Expect]]


@dataclass(slots=True)
class Verdict:
    """The result of a scenario: its differences, none if it passed."""

    scenario: Scenario
    differences: list[str] = field(default_factory=list)


def load(paths: Sequence[str]) -> list[Scenario]:
    """The scenarios of files and folders; the first error is raised."""
    found, errors = examine(paths)
    for error in errors:
        raise error
    return found


def examine(paths: Sequence[str]) -> tuple[list[Scenario], list[InputError]]:
    """The scenarios of files and folders, and what could not be read as one.

    Documents of other kinds are skipped. A broken one says nothing about the others.
    """
    found: list[Scenario] = []
    errors: list[InputError] = []
    for each in (each for path in paths for each in files.scan_each(path)):
        try:
            if isinstance(each, Finding):
                raise each.error()
            if each.body.get("kind") == "Scenario":
                found.append(_read(each))
        except InputError as error:
            errors.append(error)
    if not found and not errors:
        raise InputError(", ".join(paths), "", "there is no Scenario in it")
    return found, errors


def run(scenario: Scenario) -> Verdict:
    """Run a scenario to its end and compare after each step."""
    simulation = Simulation(
        scenario.inputs, scenario.policy, configuration.knobs(scenario.settings)
    )
    verdict = Verdict(scenario)
    seen = 0
    for at, expect in scenario.steps:
        simulation.run(at)
        result = outcome(simulation)
        evictions = result["evictions"][seen:]
        seen = len(result["evictions"])
        verdict.differences += [
            f"at {seconds(at)}s: {difference}" for difference in compare(expect, result, evictions)
        ]
    return verdict


def _read(document: Document) -> Scenario:
    place = document.place
    read = convert(document.body, ScenarioWire, f"{place}: Scenario")
    name = read.metadata.name
    place = f"{place}: Scenario {name}"
    if read.api_version != API_VERSION:
        raise InputError(place, "apiVersion", f"is {read.api_version!r}, must be {API_VERSION!r}")
    bodies = [*_from_files(read, document, place)]
    for index, body in enumerate(read.objects or []):
        bodies += unpack(body, f"{place}: objects[{index}]")
    moments = [duration(step.at, place, f"steps[{i}].at") for i, step in enumerate(read.steps)]
    if moments != sorted(moments):
        raise InputError(place, "steps", "must be in order of time")
    settings = _settings(read, place)
    inputs = collect([*bodies, _timeline(read, document)], settings, read.policy)
    policy, _ = resolve(read.policy, settings, inputs.manifests())
    expected = [step.expect or Expect() for step in read.steps]
    return Scenario(
        name, place, inputs, policy, settings, list(zip(moments, expected, strict=True))
    )


def _from_files(read: ScenarioWire, document: Document, place: str) -> Iterator[Document | Finding]:
    for index, file in enumerate(read.files or []):
        try:
            yield from files.scan(str(Path(document.source).parent / file))
        except InputError as error:
            raise InputError(place, f"files[{index}]", str(error)) from None


def _timeline(read: ScenarioWire, document: Document) -> Document:
    """The steps of a scenario as a Timeline document."""
    steps = [
        {"at": step.at, "apply": step.apply or [], "delete": step.delete or []}
        for step in read.steps
    ]
    body = {
        "apiVersion": API_VERSION,
        "kind": "Timeline",
        "metadata": {"name": read.metadata.name or "steps"},
        "steps": steps,
    }
    return Document(document.place, body, document.source)


def _settings(read: ScenarioWire, place: str) -> Configuration:
    if read.configuration is None:
        return Configuration()
    return configuration.read(Document(f"{place}: configuration", read.configuration))
