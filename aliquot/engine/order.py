"""Who is more important: priority, then older, then name. One order for everything.

The same order decides who starts first, which pods of a quota count as in-quota, and, read
backwards, who gives back first.
"""

import re
from collections.abc import Iterable

from aliquot.engine.objects import Amounts, Pod

Natural = tuple[str, str]
Key = tuple[int, int, Natural]
"""Sorts the more important first. Ends in the whole name, so that no two pods are equal."""

_DIGITS = re.compile(r"[0-9]+")
_LONGEST_NUMBER = 20


def importance(pod: Pod) -> Key:
    """The pod's place in the order; smaller is more important."""
    return (-pod.priority, pod.created, natural(pod.path))


def natural(name: str) -> Natural:
    """Order names as people do: `pod-9` before `pod-10`."""
    return _DIGITS.sub(lambda digits: digits[0].zfill(_LONGEST_NUMBER), name), name


def over_quota(pods: Iterable[tuple[Pod, Amounts]], floor: dict[str, int]) -> set[str]:
    """The uids that are over-quota: from the pod with which the sum first passes the floor, on.

    `pods` come in importance order, each with what it is charged; `floor` holds min for every
    resource that counts.
    """
    total = dict.fromkeys(floor, 0)
    over: set[str] = set()
    for pod, charge in pods:
        for resource, amount in charge:
            if resource in total:
                total[resource] += amount
        if over or any(total[resource] > floor[resource] for resource in floor):
            over.add(pod.uid)
    return over
