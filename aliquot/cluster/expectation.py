"""What a scenario expects after a step, and how that compares with what is."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aliquot.cluster.outcome import Result
from aliquot.dialects.wire import Wire
from aliquot.engine.quantity import parse
from aliquot.errors import QuantityError


class Expect(Wire, forbid_unknown_fields=True):
    """What should be so after a step. Only what is listed is looked at; `evicted` is exact."""

    running: list[str] | dict[str, str] | None = None
    pending: list[str] | dict[str, str] | None = None
    evicted: list[str] | None = None
    labels: dict[str, str | None] | None = None
    quotas: dict[str, dict[str, Any]] | None = None


def compare(expect: Expect, result: Result, evicted: list[str]) -> Iterator[str]:
    """What differs, a line each. `evicted` are the pods evicted since the step before."""
    pods = {each["pod"]: each for each in result["pods"]}
    pending = {each["pod"]: each for each in result["pending"]}
    for path, node in _pairs(expect.running):
        pod = pods.get(path, {"phase": "not there", "node": None})
        if pod["phase"] != "Running":
            why = (
                f": {pending[path]['reason']}, {pending[path]['message']}"
                if path in pending
                else ""
            )
            yield f"{path} should run, is {pod['phase']}{why}"
        elif node is not None and pod["node"] != node:
            yield f"{path} should run on {node}, is on {pod['node']}"
    for path, reason in _pairs(expect.pending):
        if path not in pending:
            yield f"{path} should wait, is {pods.get(path, {'phase': 'not there'})['phase']}"
        elif reason is not None and pending[path]["reason"] != reason:
            have = f"{pending[path]['reason']} ({pending[path]['message']})"
            yield f"{path} should wait for {reason}, waits for {have}"
    if expect.evicted is not None and sorted(expect.evicted) != sorted(evicted):
        yield f"evicted should be {_listed(expect.evicted)}, is {_listed(evicted)}"
    for path, label in (expect.labels or {}).items():
        have = pods.get(path, {}).get("capacity")
        if have != label:
            yield f"{path} should be {label}, is {have}"
    quotas = {each["name"]: each for each in result["quotas"]}
    for name, fields in (expect.quotas or {}).items():
        if name not in quotas:
            yield f"quota {name} is not there"
        else:
            yield from _compare_quota(name, fields, quotas[name])


def _compare_quota(name: str, fields: Mapping[str, Any], quota: Result) -> Iterator[str]:
    for word, want in fields.items():
        have = quota.get(word)
        if not isinstance(want, dict) or not isinstance(have, dict):
            if have != want:
                yield f"quota {name}: {word} should be {want}, is {have}"
            continue
        for resource, figure in want.items():
            if not _equal(figure, have.get(resource)):
                yield f"quota {name}: {word} {resource} should be {figure}, is {have.get(resource)}"


def _equal(want: object, have: object) -> bool:
    """The same quantity, however it is written; what is not there is only equal to nothing."""
    if want is None or have is None:
        return want is have
    try:
        return parse(str(want)).nanos == parse(str(have)).nanos
    except QuantityError:
        return want == have


def _pairs(listed: list[str] | dict[str, str] | None) -> Iterable[tuple[str, str | None]]:
    if isinstance(listed, dict):
        return listed.items()
    return ((path, None) for path in listed or ())


def _listed(paths: list[str]) -> str:
    return ", ".join(sorted(paths)) or "nobody"
