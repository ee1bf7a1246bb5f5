"""What objects take of a ResourceQuota: exactly, in nanos, by the words of quotas. Pure."""

from collections import Counter
from collections.abc import Iterable

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
"""Storages that have a word of their own for how many there are."""


def of_pod(pod: Body) -> Usage:
    """What a pod takes."""
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


def ended(pod: Body) -> bool:
    """Has a pod given back what it took?"""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def unsaid(pod: Body, hard: Iterable[str]) -> dict[str, list[str]]:
    """By word of a quota, the containers that do not say what they take of it, but must."""
    spec, found = pod.get("spec") or {}, {}
    for word in hard:
        side, _, resource = word.partition(".")
        if word in _PLAIN:
            side, resource = "requests", word
        if side not in ("requests", "limits") or resource not in _PLAIN[:2]:
            continue
        silent = [
            str(each.get("name"))
            for each in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
            if resource not in ((each.get("resources") or {}).get(side) or {})
        ]
        if silent and resource not in ((spec.get("resources") or {}).get(side) or {}):
            found[word] = silent
    return found


def _peak(spec: Body, side: str) -> Usage:
    """The most that a pod takes at a time: its containers together, or an init container."""
    running: Usage = Counter()
    for each in spec.get("containers") or ():
        running += _said(each, side)
    peak, beside = running, Counter[str]()
    for each in spec.get("initContainers") or ():
        if each.get("restartPolicy") == "Always":
            beside += _said(each, side)
            peak = peak + _said(each, side)
        else:
            peak |= beside + _said(each, side)
    whole = _amounts((spec.get("resources") or {}).get(side))
    peak = Counter({**peak, **whole})
    return peak + _amounts(spec.get("overhead"))


def _said(container: Body, side: str) -> Usage:
    return _amounts((container.get("resources") or {}).get(side))


def _amounts(written: Body | None) -> Usage:
    return Counter({key: nanos(value) for key, value in (written or {}).items()})


def nanos(value: object) -> int:
    """A quantity, exactly; 0 if it is none, which others have to complain of."""
    try:
        return quantity.parse(str(value)).nanos
    except QuantityError:
        return 0


def text(amount: int, like: object) -> str:
    """An amount as a quantity, in the notation of another one."""
    try:
        form = quantity.parse(str(like)).form
    except QuantityError:
        form = "decimal"
    return str(quantity.Quantity(amount, form))
