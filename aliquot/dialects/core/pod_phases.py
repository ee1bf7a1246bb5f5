"""What a pod holds over time: while each init container runs, then while its main containers do.

A pod requests the most that it holds in any of these phases. Placement and quotas, and the
ResourceQuotas of the embedded API server, all count a pod by this rule.
"""

from collections.abc import Iterable, Mapping
from functools import reduce

Sums = dict[str, int]
"""Amounts by resource name."""


def phases(main: Mapping[str, int], init: Iterable[tuple[Mapping[str, int], bool]]) -> list[Sums]:
    """What is held in each phase.

    `main` is what the main containers hold together, `init` what each init container holds, in
    order, and whether it is a sidecar. A sidecar runs beside all that starts after it.
    """
    sidecars: Sums = {}
    found: list[Sums] = []
    for held, is_sidecar in init:
        if is_sidecar:
            add(sidecars, held)
            found.append(dict(sidecars))
        else:
            found.append(total(sidecars, held))
    return [*found, total(sidecars, main)]


def most(found: Iterable[Sums]) -> Sums:
    """The most of each resource that is held in any phase."""
    return reduce(larger, found)


def add(sums: Sums, more: Mapping[str, int]) -> None:
    """Add amounts to sums, in place."""
    for name, amount in more.items():
        sums[name] = sums.get(name, 0) + amount


def total(one: Mapping[str, int], other: Mapping[str, int]) -> Sums:
    """Both together."""
    sums = dict(one)
    add(sums, other)
    return sums


def larger(one: Mapping[str, int], other: Mapping[str, int]) -> Sums:
    """The larger amount of each resource."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
