"""`aliquot.load` and `aliquot.simulate`: what the commands do, for notebooks and other programs.

Objects are plain Kubernetes objects, as a YAML or JSON parser gives them. They are copied, so what
is given is never changed. An argument that makes no sense, or an object that does, raises one of
our errors before anything runs.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from aliquot.dialects import configuration
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document, unpack
from aliquot.dialects.core.times import duration
from aliquot.dialects.policy import resolve
from aliquot.errors import ArgumentError
from aliquot.json import DEEPEST, Body, too_deep
from aliquot.simulation.outcome import Result, outcome
from aliquot.simulation.simulation import Simulation
from aliquot.validation import files
from aliquot.validation.inputs import collect, load_configuration

POLICIES = ("auto", "capacity", "fair", "hierarchy", "queues")

Path = str | os.PathLike[str]


def load(paths: Path | Iterable[Path]) -> list[Body]:
    """The objects of files and folders: YAML or JSON, several in a file, lists unpacked."""
    several = [paths] if isinstance(paths, str | os.PathLike) else _items(paths, "paths")
    return [document.body for path in several for document in files.parse(_path(path))]


def simulate(
    objects: Iterable[Mapping[str, Any]],
    policy: str = "auto",
    config: Mapping[str, Any] | Path | None = None,
    until: str | float | None = None,
) -> Result:
    """What would happen to these objects: the outcome, as `aliquot simulate -o json` prints it.

    `config` is a Configuration, as an object or its file; `until` a time such as `2h`, or seconds.
    """
    if policy not in POLICIES:
        raise ArgumentError(f"policy: {policy!r} is none of {', '.join(POLICIES)}")
    settings = _settings(config)
    end = None if until is None else duration(until, "until", "")
    documents = [
        document
        for index, body in enumerate(_items(objects, "objects"))
        for document in unpack(_plain(body, f"objects[{index}]"), f"objects[{index}]")
    ]
    named = None if policy == "auto" and config is not None else policy
    inputs = collect(documents, settings, named)
    chosen, _ = resolve(named, settings, inputs.manifests())
    simulation = Simulation(inputs, chosen, configuration.knobs(settings))
    simulation.run(end)
    return outcome(simulation)


def _settings(config: Mapping[str, Any] | Path | None) -> Configuration:
    if config is None:
        return Configuration()
    if isinstance(config, str | os.PathLike):
        return load_configuration(_path(config))
    return configuration.read(Document("config", _plain(config, "config")))


def _path(path: object) -> str:
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"paths: {path!r:.60} is not the path of a file or folder")
    return os.fsdecode(os.fspath(path))


def _items(given: Any, what: str) -> list[Any]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        hint = "; aliquot.load(paths) reads files" if what == "objects" else ""
        raise ArgumentError(f"{what}: {given!r:.60} is not a list{hint}")
    return list(given)


def _plain(body: Any, place: str) -> Body:
    """A copy with JSON's types only: tuples as lists, times as text."""
    if not isinstance(body, Mapping):
        raise ArgumentError(f"{place}: {body!r:.60} is not an object with kind and metadata")
    try:
        copy: Body = msgspec.json.decode(msgspec.json.encode(dict(body)))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise ArgumentError(f"{place}: cannot be written as JSON: {error}") from None
    if too_deep(copy):
        raise ArgumentError(f"{place}: nested more than {DEEPEST} deep")
    return copy
