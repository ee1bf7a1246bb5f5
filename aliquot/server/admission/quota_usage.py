"""What objects use of a ResourceQuota: exact, in nanos, by the keys of `spec.hard`. Pure."""

from collections import Counter
from collections.abc import Iterable

from aliquot.dialects.core.pod_phases import most, phases
from aliquot.engine import quantity
from aliquot.errors import QuantityError
from aliquot.json import Body

Usage = Counter[str]
_ONE = 10**9
_PLAIN = ("cpu", "memory", "ephemeral-storage")
COUNTED = {
    "configmaps": "configmaps",
    "pods": "count/pods",
    "resourcequotas": "resourcequotas",
    "secrets": "secrets",
    "serviceaccounts": "count/serviceaccounts",
}
"""By storage, the key under which a ResourceQuota counts its objects."""


def of_pod(pod: Body) -> Usage:
    """What a pod uses."""
    spec = pod.get("spec") or {}
    found: Usage = Counter({"pods": _ONE, "count/pods": _ONE})
    for resource, amount in _peak(spec, "requests").items():
        found[f"requests.{resource}"] = amount
        if resource in _PLAIN:
            found[resource] = amount
        if resource.startswith("hugepages-"):
            found[resource] = amount
    for resource, amount in _peak(spec, "limits").items():
        found[f"limits.{resource}"] = amount
    return found


def unspecified(pod: Body, hard: Iterable[str]) -> dict[str, list[str]]:
    """By key of a quota, the containers without the request or limit that it demands."""
    spec, found = pod.get("spec") or {}, {}
    for key in hard:
        side, _, resource = key.partition(".")
        if key in _PLAIN:
            side, resource = "requests", key
        if side not in ("requests", "limits") or resource not in _PLAIN[:2]:
            continue
        missing = [
            str(each.get("name"))
            for each in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
            if resource not in ((each.get("resources") or {}).get(side) or {})
        ]
        if missing and resource not in ((spec.get("resources") or {}).get(side) or {}):
            found[key] = missing
    return found


def _peak(spec: Body, side: str) -> Usage:
    """The most that a pod uses at a time: its containers together, or an init container."""
    running: Usage = Counter()
    for each in spec.get("containers") or ():
        running += _container_amounts(each, side)
    init = (
        (_container_amounts(each, side), each.get("restartPolicy") == "Always")
        for each in spec.get("initContainers") or ()
    )
    whole = _amounts((spec.get("resources") or {}).get(side))
    peak = Counter({**most(phases(running, init)), **whole})
    return peak + _amounts(spec.get("overhead"))


def _container_amounts(container: Body, side: str) -> Usage:
    return _amounts((container.get("resources") or {}).get(side))


def _amounts(written: Body | None) -> Usage:
    return Counter({key: nanos(value) for key, value in (written or {}).items()})


def nanos(value: object) -> int:
    """A quantity in nanos; 0 if it is invalid, which the rules of its object refuse."""
    try:
        return quantity.parse(str(value)).nanos
    except QuantityError:
        return 0


def text(amount: int, like: object) -> str:
    """An amount as a quantity, in the form (decimal or binary) of another one."""
    try:
        form = quantity.parse(str(like)).form
    except QuantityError:
        form = "decimal"
    return str(quantity.Quantity(amount, form))
