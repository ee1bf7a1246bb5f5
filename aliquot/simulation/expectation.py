"""What a scenario expects after a step, compared with the outcome so far."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aliquot.dialects.core.objects import Wire
from aliquot.engine import quantity
from aliquot.errors import QuantityError
from aliquot.simulation.outcome import Result

ByPath = Mapping[str, Result]
"""Pods by path, or what is listed of other objects by name."""


class Why(Wire, forbid_unknown_fields=True):
    """Why a pod should wait, or was to be evicted; of the message, a part is enough."""

    reason: str | None = None
    message: str = ""


class Expect(Wire, forbid_unknown_fields=True):
    """What should hold after a step. Only what is listed is compared; `evicted` is exact."""

    running: list[str] | dict[str, str] | None = None
    pending: list[str] | dict[str, str | Why] | None = None
    evicted: list[str] | dict[str, str | Why] | None = None
    labels: dict[str, str | None] | None = None
    quotas: dict[str, dict[str, Any]] | None = None
    queues: dict[str, dict[str, Any]] | None = None
    gangs: dict[str, dict[str, Any]] | None = None
    gpu_quotas: dict[str, dict[str, Any]] | None = None
    devices: dict[str, list[str]] | None = None


def compare(expect: Expect, result: Result, evictions: list[Result]) -> Iterator[str]:
    """What differs, a line each. `evictions` are those since the step before."""
    pods = {each["pod"]: each for each in result["pods"]}
    pending = {each["pod"]: each for each in result["pending"]}
    yield from _compare_running(expect, pods, pending)
    yield from _compare_pending(expect, pods, pending)
    yield from _compare_evicted(expect, evictions)
    yield from _compare_labels(expect, pods)
    yield from _compare_devices(expect, pods)
    kinds = {
        "quota": (expect.quotas, result["quotas"]),
        "queue": (expect.queues, result["queues"]),
        "gang": (expect.gangs, result["gangs"]),
        "quota on GPUs": (expect.gpu_quotas, result["gpuQuotas"]),
    }
    for kind, (expected, listed) in kinds.items():
        yield from _compare_figures(kind, expected or {}, listed)


def _compare_running(expect: Expect, pods: ByPath, pending: ByPath) -> Iterator[str]:
    """Pods that should run and do not, or run on another node."""
    for path, node in _pairs(expect.running):
        pod = pods.get(path, {"phase": "not there", "node": None})
        if pod["phase"] != "Running":
            waits = pending.get(path)
            why = f": {waits['reason']}, {waits['message']}" if waits is not None else ""
            yield f"{path} should run, is {pod['phase']}{why}"
        elif node is not None and pod["node"] != node:
            yield f"{path} should run on {node}, is on {pod['node']}"


def _compare_pending(expect: Expect, pods: ByPath, pending: ByPath) -> Iterator[str]:
    """Pods that should wait and do not, or wait for another reason."""
    for path, reason in _reasons(expect.pending):
        if path not in pending:
            yield f"{path} should wait, is {pods.get(path, {'phase': 'not there'})['phase']}"
        else:
            yield from _other_reason(path, ("wait", "waits"), reason, pending[path])


def _compare_evicted(expect: Expect, evictions: list[Result]) -> Iterator[str]:
    """Other pods were evicted than should be, or for another reason."""
    evicted = [each["pod"] for each in evictions]
    if expect.evicted is not None and sorted(expect.evicted) != sorted(evicted):
        yield f"evicted should be {_listed(expect.evicted)}, is {_listed(evicted)}"
    for path, reason in _reasons(expect.evicted):
        for eviction in (each for each in evictions if each["pod"] == path):
            yield from _other_reason(path, ("be evicted", "was evicted"), reason, eviction)


def _compare_labels(expect: Expect, pods: ByPath) -> Iterator[str]:
    """Pods that are in-quota and should be over-quota, or the other way round."""
    for path, label in (expect.labels or {}).items():
        have = pods.get(path, {}).get("capacity")
        if have != label:
            yield f"{path} should be {label}, is {have}"


def _compare_devices(expect: Expect, pods: ByPath) -> Iterator[str]:
    """Pods that are on other devices than they should be."""
    none = "no device"
    for path, names in (expect.devices or {}).items():
        chosen = pods.get(path, {}).get("devices", [])
        if sorted(names) != sorted(chosen):
            yield f"{path} should be on {_listed(names, none)}, is on {_listed(chosen, none)}"


def _compare_figures(kind: str, expected: ByPath, listed: list[Result]) -> Iterator[str]:
    """Quotas, queues or gangs that are not there, or whose figures differ."""
    there = {each["name"]: each for each in listed}
    for name, fields in expected.items():
        if name not in there:
            yield f"{kind} {name} is not there"
        else:
            differences = _differences(fields, there[name])
            yield from (f"{kind} {name}: {difference}" for difference in differences)


def _differences(fields: Mapping[str, Any], there: Result) -> Iterator[str]:
    """The differences in the fields that are named, and in fields inside of them."""
    for word, want in fields.items():
        have = _by_type(there.get(word))
        if _is_condition(have) and not isinstance(want, dict):
            want, have = str(want), have["status"]
        if isinstance(want, dict) and isinstance(have, dict):
            yield from (f"{word} {difference}" for difference in _differences(want, have))
        elif not _equal(want, have):
            yield f"{word} should be {want}, is {have}"


def _by_type(have: Any) -> Any:
    """A list of conditions as a map by type, so that one can be expected; others as they are."""
    listed = isinstance(have, list) and all(map(_is_condition, have))
    return {each["type"]: each for each in have} if listed else have


def _is_condition(have: Any) -> bool:
    return isinstance(have, dict) and "type" in have


def _equal(want: object, have: object) -> bool:
    """Are both the same quantity, however written? A missing value equals only a missing value."""
    if want is None or have is None:
        return want is have
    try:
        return quantity.parse(str(want)).nanos == quantity.parse(str(have)).nanos
    except QuantityError:
        return want == have


def _pairs(listed: list[str] | dict[str, str] | None) -> Iterable[tuple[str, str | None]]:
    if isinstance(listed, dict):
        return listed.items()
    return ((path, None) for path in listed or ())


def _other_reason(path: str, words: tuple[str, str], want: Why, have: Result) -> Iterator[str]:
    """A pod waits, or was evicted, for another reason than it should, or with another message."""
    should, does = words
    there = f"{does} for {have['reason']} ({have['message']})"
    if want.reason not in (None, have["reason"]):
        yield f"{path} should {should} for {want.reason}, {there}"
    elif want.message not in have["message"]:
        yield f"{path} should {should} for {want.message!r}, {there}"


def _reasons(
    listed: list[str] | dict[str, str | Why] | None,
) -> Iterable[tuple[str, Why]]:
    if not isinstance(listed, dict):
        return ((path, Why()) for path in listed or ())
    return ((path, why if isinstance(why, Why) else Why(why)) for path, why in listed.items())


def _listed(names: Iterable[str], none: str = "nobody") -> str:
    return ", ".join(sorted(names)) or none
