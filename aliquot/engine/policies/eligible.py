"""Eligible victims: which pods may be evicted for a claim, how much of what, and by which rule.

A policy yields groups of eligible victims in ranks, the best rank first; the victim search picks
from the first rank that suffices. A `Right` is what the claim lacks in the quotas: an amount of a
resource in an account of the tree.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.model.pod import Pod
from aliquot.engine.model.reasons import Reason
from aliquot.engine.state import State

Mask = NDArray[np.bool_]
"""Over the bound pods (see `books.bound_pods`), or over the nodes."""


class Right(NamedTuple):
    """What must come free in an account (a slot of the tree) before a gate opens."""

    slot: int
    row: int


Rights = dict[Right, int]
Account = object
"""What a limit is on: a quota (its slot in the tree); a namespace in a quota (`namespace_account`);
a gang (`gang_account`); or a quota's guarantee, which is never soft (`kept_account`)."""

Limits = dict[tuple[Account, int], int]
"""What may be taken from an account at most, by account and row."""


def namespace_account(quota: str | None, namespace: str) -> Account:
    """The account of a namespace in a quota."""
    return "namespace", quota, namespace


def gang_account(gang: str | None) -> Account:
    """The account of a gang."""
    return "gang", gang


def kept_account(slot: int) -> Account:
    """The account of a quota for the amount that it keeps in any case."""
    return "kept", slot


class EvictionOrder(NamedTuple):
    """The order in which pods are evicted where it is not that of priorities; over bound pods."""

    places: NDArray[np.int64]
    """The place of each pod, 0 for the first to be evicted."""
    levels: NDArray[np.int64]
    """The same, but equal for pods in neighbouring places that are equally important: of these
    the fewest, then the youngest are evicted. The levels stand for priorities."""


@dataclass(frozen=True, slots=True)
class Eligible:
    """A group of pods that may be evicted for a claim by one rule, with what limits that."""

    evictable: Mask
    """Over the bound pods."""
    reason: Reason
    explain: Callable[[Pod], str]
    """The message of a victim's eviction."""
    nodes: Mask | None = None
    """The nodes on which the claim may start by this rule; None for all."""
    limits: Limits = field(default_factory=dict)
    """How much may be taken from each account; accounts without one are not limited."""
    soft: frozenset[tuple[Account, int]] = frozenset()
    """Limits that the last victim may exceed: a pod is evictable while anything is left of them."""
    rights: Rights = field(default_factory=dict)
    """What must come free by this rule, besides the claim's own rights."""
    waived: frozenset[Right] = frozenset()
    """Rights of the claim that need not come free by this rule."""
    order: EvictionOrder | None = None
    """The order of eviction; None for that by priority, then the youngest."""


def evictable_pods(state: State, now: int) -> Mask:
    """Bound pods that the system does not need, and that have run for `minRuntime`.

    Whether pods that are not preemptible are among the victims is decided by `shields`.
    """
    running = state.bound_pods
    mask: Mask = (running.node >= 0) & ~running.needed
    if state.knobs.eviction.min_runtime:
        mask &= running.started <= now - state.knobs.eviction.min_runtime
    return mask
