"""What a scenario expects after a step, compared with the outcome so far.

A difference is a sentence for a reader: what should be, what is, and why where that is known.
Amounts that an outcome does not list are 0, except where none means no bound.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from aliquot.engine import quantity
from aliquot.errors import QuantityError
from aliquot.json import seek
from aliquot.simulation.expectation import Expect, Why
from aliquot.simulation.outcome import Result

ByPath = Mapping[str, Result]
"""Pods by path, or what is listed of other objects by name."""

_BOUNDS = ("max", "runtime")
"""Amounts that are unlimited where they are not listed."""
_PLAIN = ("weight", "availablePercent", "conditions", "namespaces")
"""Fields with keys that are no amounts: one that is not there is not 0."""
_GONE = ("Evicted", "Deleted")
"""The phases of pods that exist no longer: on a cluster their objects are deleted."""
_NOT_THERE: Result = {"phase": "not there", "node": None}


def compare(expect: Expect, result: Result, evictions: list[Result]) -> Iterator[str]:
    """What differs, a line each. `evictions` are those since the step before."""
    pods = {each["pod"]: each for each in result["pods"]}
    pending = {each["pod"]: each for each in result["pending"]}
    yield from _compare_running(expect, pods, pending)
    yield from _compare_pending(expect, pods, pending)
    yield from _compare_absent(expect, pods)
    yield from _compare_order(expect, pods, result["bindings"])
    yield from _compare_evicted(expect, evictions)
    yield from _compare_labels(expect, pods)
    yield from _compare_devices(expect, pods)
    kinds: dict[str, tuple[Mapping[str, object] | None, list[Result]]] = {
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
        pod = pods.get(path, _NOT_THERE)
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
            yield f"{path} should wait, is {pods.get(path, _NOT_THERE)['phase']}"
        else:
            yield from _other_reason(path, ("wait", "waits"), reason, pending[path])


def _compare_absent(expect: Expect, pods: ByPath) -> Iterator[str]:
    """Pods that should not exist, or no longer, and do."""
    for path in expect.absent or ():
        pod = pods.get(path)
        if pod is not None and pod["phase"] not in _GONE:
            yield f"{path} should be absent, is {pod['phase']}"


def _compare_order(expect: Expect, pods: ByPath, bindings: list[Result]) -> Iterator[str]:
    """Pods that should have started one after the other, and have not; a restart counts anew.

    A pod that ran from the start comes before all that were started.
    """
    starts = {each["pod"]: number for number, each in enumerate(bindings)}
    before: str | None = None
    for path in expect.order or ():
        ran = pods.get(path, _NOT_THERE)["node"] is not None
        if path not in starts and not ran:
            yield f"{path} should have started, is {pods.get(path, _NOT_THERE)['phase']}"
            continue
        if before is not None and starts.get(path, -1) < starts.get(before, -1):
            yield f"{path} should have started after {before}, started before it"
        before = path


def _compare_evicted(expect: Expect, evictions: list[Result]) -> Iterator[str]:
    """Other pods were evicted than should be, more or fewer, or for another reason."""
    evicted = [each["pod"] for each in evictions]
    if expect.evictions not in (None, len(evicted)):
        which = f" ({_listed(evicted)})" if evicted else ""
        yield f"there should be {expect.evictions} evictions, there are {len(evicted)}{which}"
    if expect.evicted is not None and sorted(expect.evicted) != sorted(evicted):
        yield f"evicted should be {_listed(expect.evicted)}, is {_listed(evicted)}"
    for path, reason in _reasons(expect.evicted):
        for eviction in (each for each in evictions if each["pod"] == path):
            yield from _other_reason(path, ("be evicted", "was evicted"), reason, eviction)


def _compare_labels(expect: Expect, pods: ByPath) -> Iterator[str]:
    """Pods that are in-quota and should be over-quota, or the other way round."""
    neither = "neither in-quota nor over-quota"
    for path, label in (expect.labels or {}).items():
        have = pods.get(path, {}).get("capacity")
        if have != label:
            yield f"{path} should be {label or neither}, is {have or neither}"


def _compare_devices(expect: Expect, pods: ByPath) -> Iterator[str]:
    """Pods that are on other devices than they should be."""
    none = "no device"
    for path, names in (expect.devices or {}).items():
        chosen = pods.get(path, {}).get("devices", [])
        if sorted(names) != sorted(chosen):
            yield f"{path} should be on {_listed(names, none)}, is on {_listed(chosen, none)}"


def _compare_figures(
    kind: str, expected: Mapping[str, object], listed: list[Result]
) -> Iterator[str]:
    """Quotas, queues or gangs that are not there, or whose figures differ."""
    there = {each["name"]: each for each in listed}
    for name, figures in expected.items():
        if name not in there:
            yield f"{kind} {name} is not there"
        else:
            differences = _differences(msgspec.to_builtins(figures), there[name])
            yield from (f"{kind} {name}: {difference}" for difference in differences)


def _differences(fields: Mapping[str, Any], there: Result, absent: object = None) -> Iterator[str]:
    """The differences in the fields that are named, and in fields inside of them.

    A field that is not there counts as `absent`; it is as expected, too, where none is.
    """
    for word, want in fields.items():
        if want is None and there.get(word) is None:
            continue
        have = _by_type(there.get(word, absent))
        if _is_condition(have) and not isinstance(want, dict):
            want, have = str(want), have["status"]
        if isinstance(want, dict) and isinstance(have, dict):
            inside = _differences(want, have, _default(word, have))
            yield from (f"{word} {difference}" for difference in inside)
        elif not _equal(want, have):
            yield f"{word} should be {_text(want)}, is {_text(have)}"


def _default(word: str, have: Result) -> object:
    """What a field of amounts has where it lists nothing."""
    if word in _BOUNDS:
        return "unlimited"
    nested = any(isinstance(each, dict) for each in have.values())
    return None if word in _PLAIN or nested or _is_condition(have) else 0


def _by_type(have: Any) -> Any:
    """A list of conditions as a map by type, so that one can be expected; others as they are."""
    listed = isinstance(have, list) and all(map(_is_condition, have))
    return {each["type"]: each for each in have} if listed else have


def _is_condition(have: Any) -> bool:
    return seek(have, "type") is not None


def _equal(want: object, have: object) -> bool:
    """Are both the same quantity, however written? A missing value equals only a missing value."""
    if want is None or have is None:
        return want is have
    try:
        return quantity.parse(str(want)).nanos == quantity.parse(str(have)).nanos
    except QuantityError:
        return want == have


def _text(value: object) -> str:
    """A value in a sentence."""
    if isinstance(value, dict):
        return ", ".join(f"{_text(each)} {word}" for word, each in value.items()) or "empty"
    return "none" if value is None else str(value)


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
