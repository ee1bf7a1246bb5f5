"""An offer: who may give back for a claim, how much, on which nodes, and by which rule.

A policy makes offers, best first; the victim search picks from them. A `Right` is what is short in
the quotas: an amount of a resource in an account of the tree.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.model.objects import Pod
from aliquot.engine.model.reasons import Reason
from aliquot.engine.state import State

CRITICAL = 2_000_000_000
"""Pods of this priority and above may always preempt and are never victims."""

Mask = NDArray[np.bool_]
"""Over the bound pods (see `running`), or over the nodes."""


class Right(NamedTuple):
    """What must come free in an account (a slot of the tree) before a gate opens."""

    slot: int
    row: int


Rights = dict[Right, int]
Account = object
"""A slot of the tree; or what is narrower than a quota: see `namespace_account`, `gang_account`; or
a quota's guarantee, which nothing passes: see `kept_account`."""

Limits = dict[tuple[Account, int], int]
"""What an account can give at most, by account and row."""


def namespace_account(quota: str | None, namespace: str) -> Account:
    """What a namespace has in a quota."""
    return "namespace", quota, namespace


def gang_account(gang: str | None) -> Account:
    """What a gang has."""
    return "gang", gang


def kept_account(slot: int) -> Account:
    """What a quota has, when it comes to what it must keep."""
    return "kept", slot


@dataclass(frozen=True, slots=True)
class Eligible:
    """The pods that may go, as a mask over the bound pods; limits by quota and resource."""

    evictable: Mask
    reason: Reason
    explain: Callable[[Pod], str]
    nodes: Mask | None = None
    limits: Limits = field(default_factory=dict)
    soft: frozenset[tuple[Account, int]] = frozenset()
    """Limits that the last one to go may pass: each goes as long as something is left to give."""
    rights: Rights = field(default_factory=dict)
    """What must come free beside what every claim needs, for this offer to be taken."""
    waived: frozenset[Right] = frozenset()
    """What need not come free, for this offer."""


def evictable_pods(state: State, now: int) -> Mask:
    """Who could be asked to go: bound, neither critical nor spared, and run for long enough."""
    running = state.running
    mask: Mask = (running.node >= 0) & (running.priority < CRITICAL) & running.preemptible
    for namespace in state.protected_namespaces:
        uids = state.in_namespace(namespace)
        mask[[running.slots[uid] for uid in uids if uid in running.slots]] = False
    if state.knobs.eviction.min_runtime:
        mask &= running.started <= now - state.knobs.eviction.min_runtime
    return mask
