"""Binds the volumes of a pod before the pod itself is bound, in kube-scheduler's order.

First every volume that was chosen for a claim gets a reference to it, and every claim to be
provisioned for gets the name of the node. The PersistentVolume controller and the provisioners do
the rest; only when all claims are bound is the pod. What is written is based on the version of the
object by which the engine has decided, so that a volume is never taken from another claim.

What was written stays if the binding is given up, as with kube-scheduler: the PersistentVolume
controller may be at work on it, and a provisioner takes its annotation back itself. The engine sees
both, and its next decision goes on from there; so does the next leader's.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus

from aliquot.dialects.core.storage.volumes import SELECTED_NODE
from aliquot.engine import Bind, Pod, VolumeBinding
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CLAIMS, VOLUMES, Resource
from aliquot.kube.exchange.shown_volumes import (
    ShownClaim,
    ShownVolume,
    ShownVolumes,
    claim_of,
    volume_of,
)
from aliquot.kube.execution.writer import WRITE_SECONDS, Urgency, Write, Writer, is_retriable

OPERATION = "bind-volume"
_BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""The annotation of a volume that a controller has chosen for its claim, and not a person: so the
PersistentVolume controller may free it again."""
_LOOK_SECONDS = 1.0
"""How often all that waits is looked at, even if no claim has changed: as often as kube-scheduler
does. A pod whose volumes are bound sooner never says that it waits for them."""


class _GiveUpError(Exception):
    """A volume cannot be bound; the message says why."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a volume or claim that begins a binding."""

    resource: Resource
    namespace: str
    name: str
    body: Body
    is_made: Callable[[Body], bool]
    """Does the object show this change?"""


@dataclass(slots=True)
class _Preparation:
    """A pod whose volumes are being bound."""

    decision: Bind
    claims: dict[str, str]
    """The uid of each claim."""
    versions: dict[str, str]
    """The version of each volume, or claim to be provisioned for, that was changed: while it is
    shown still, the watch has not seen the change."""
    unwritten: deque[_Change]
    deadline: float | None = None
    """When the binding is given up, on the monotonic clock; None: not everything is written."""
    written_at: float = 0.0
    told: str = ""
    """What the pod says that it waits for."""


class VolumeBinder:
    """Prepares the volumes of `Bind` decisions; calls `ready` or `failed` with the outcome.

    `exists` says whether a pod is there still; `tell` is called with what it waits for.
    """

    def __init__(
        self,
        client: Client,
        writer: Writer,
        shown: ShownVolumes,
        exists: Callable[[str], bool],
        ready: Callable[[Bind], None],
        failed: Callable[[Pod, str], None],
        tell: Callable[[Pod, str], None],
        timeout: float,
    ) -> None:
        self._client = client
        self._writer = writer
        self._shown = shown
        self._exists = exists
        self._ready = ready
        self._failed = failed
        self._tell = tell
        self._timeout = timeout
        self._preparations: dict[str, _Preparation] = {}
        """By the uid of the pod."""
        self._next_look = 0.0
        self._changed: set[str] = set()
        """The claims that have changed since the last look."""
        shown.changed = self._changed

    def bind(self, decision: Bind) -> None:
        """Have the volumes of a pod bound, and wait for that."""
        self._drop(decision.pod.uid)
        try:
            preparation = self._plan(decision)
        except _GiveUpError as problem:
            self._failed(decision.pod, str(problem))
            return
        self._preparations[decision.pod.uid] = preparation
        self._write_next(preparation)

    def check(self) -> None:
        """See which pods can be bound now, and which never can."""
        now = time.monotonic()
        all_due = now >= self._next_look
        if all_due:
            self._next_look = now + _LOOK_SECONDS
        elif not self._changed:
            return
        for preparation in list(self._preparations.values()):
            if all_due or not self._changed.isdisjoint(preparation.claims):
                self._check(preparation, now)
        self._changed.clear()

    def stop(self) -> None:
        """Forget all that is under way: the next engine decides anew."""
        self._preparations.clear()
        self._shown.changed = None

    def _drop(self, uid: str) -> None:
        self._preparations.pop(uid, None)
        self._writer.withdraw(uid, OPERATION)

    # What is written.

    def _plan(self, decision: Bind) -> _Preparation:
        """What has to be written for a pod, by what the engine knew when it decided."""
        preparation = _Preparation(decision, {}, {}, deque())
        for binding in sorted(decision.volumes, key=lambda each: each.volume is None):
            claim = self._claim(binding.claim)
            preparation.claims[binding.claim] = claim.uid
            if binding.volume is not None:
                change = self._taken(binding, claim, binding.volume, preparation)
            else:
                change = self._selected(binding, claim, decision.node, preparation)
            if change is not None:
                preparation.unwritten.append(change)
        return preparation

    def _claim(self, name: str) -> ShownClaim:
        claim = self._shown.claims.get(name)
        if claim is None:
            raise _GiveUpError(f"claim {name} is gone")
        return claim

    def _taken(
        self, binding: VolumeBinding, claim: ShownClaim, name: str, preparation: _Preparation
    ) -> _Change | None:
        """A volume is to refer to its claim; None if it does, or the claim is bound elsewhere."""
        volume = self._shown.volumes.get(name)
        if volume is None:
            raise _GiveUpError(f"volume {name} is gone")
        if not volume.is_free_for(binding.claim, claim.uid):
            raise _GiveUpError(f"volume {name} is taken by claim {volume.claim}")
        if volume.belongs_to(binding.claim, claim.uid) or claim.volume:
            return None
        preparation.versions[name] = volume.version
        return _Change(
            *(VOLUMES, "", name, _with_claim(volume, binding.claim, claim)),
            lambda body: volume_of(body).belongs_to(binding.claim, claim.uid),
        )

    def _selected(
        self, binding: VolumeBinding, claim: ShownClaim, node: str, preparation: _Preparation
    ) -> _Change | None:
        """A claim is to be provisioned for near this node; None if it says so, or is bound."""
        if claim.selected_node == node or claim.volume:
            return None
        if claim.selected_node:
            where = f"claim {binding.claim} is being provisioned for near {claim.selected_node}"
            raise _GiveUpError(f"{where}, not near {node}")
        preparation.versions[binding.claim] = claim.version
        namespace, _, name = binding.claim.partition("/")
        metadata = {"uid": claim.uid, "resourceVersion": claim.version}
        return _Change(
            *(CLAIMS, namespace, name),
            {"metadata": {**metadata, "annotations": {SELECTED_NODE: node}}},
            lambda body: _is_selected(claim_of(body), claim.uid, node),
        )

    def _write_next(self, preparation: _Preparation) -> None:
        """Have the next change written; after the last one, the bindings are waited for.

        One write each: the fence is asked before every one.
        """
        uid = preparation.decision.pod.uid
        if self._preparations.get(uid) is not preparation:
            return
        if not preparation.unwritten:
            preparation.written_at = now = time.monotonic()
            preparation.deadline = now + self._timeout
            self._check(preparation, now)
            return

        async def run() -> None:
            await self._write(preparation)

        self._writer.add(Write(uid, OPERATION, Urgency.DECISION, run))

    async def _write(self, preparation: _Preparation) -> None:
        if self._preparations.get(preparation.decision.pod.uid) is not preparation:
            return
        change = preparation.unwritten[0]
        where = change.resource.path(change.namespace, change.name)
        try:
            await self._client.patch(where, change.body, timeout=WRITE_SECONDS)
        except ApiError as error:
            conflict = error.code == HTTPStatus.CONFLICT
            if not conflict and is_retriable(error):
                raise
            if not conflict or not await self._is_made(change, where):
                words = f"{change.resource.kind} {change.name} was not written: {error.message}"
                self._give_up(preparation, words)
                return
        preparation.unwritten.popleft()
        self._write_next(preparation)

    async def _is_made(self, change: _Change, where: str) -> bool:
        """After a conflict: was it this change that came first, without an answer?"""
        try:
            found = await self._client.get(where, timeout=WRITE_SECONDS)
        except ApiError as error:
            if error.code != HTTPStatus.CONFLICT and is_retriable(error):
                raise
            return False
        return change.is_made(found)

    # What is waited for.

    def _check(self, preparation: _Preparation, now: float) -> None:
        """See whether the pod can be bound now; nothing is seen before all is written."""
        decision = preparation.decision
        if preparation.deadline is None:
            return
        if not self._exists(decision.pod.uid):
            self._give_up(preparation, "the pod is gone")
            return
        try:
            waits = list(self._waits(preparation))
        except _GiveUpError as problem:
            self._give_up(preparation, str(problem))
            return
        if not waits:
            self._drop(decision.pod.uid)
            self._ready(decision)
        elif now >= preparation.deadline:
            self._give_up(preparation, f"{waits[0]}, for {self._timeout:.0f} s by now")
        elif now >= preparation.written_at + _LOOK_SECONDS:
            self._say(preparation, waits)

    def _say(self, preparation: _Preparation, waits: list[str]) -> None:
        count = f"{len(waits)} of {len(preparation.claims)} claims"
        words = f"starts on {preparation.decision.node} when its volumes are bound: {waits[0]}"
        if len(preparation.claims) > 1:
            words = f"{words} ({count} are not bound)"
        if words != preparation.told:
            preparation.told = words
            self._tell(preparation.decision.pod, words)

    def _give_up(self, preparation: _Preparation, problem: str) -> None:
        uid = preparation.decision.pod.uid
        if self._preparations.get(uid) is preparation:
            self._drop(uid)
            self._failed(preparation.decision.pod, problem)

    def _waits(self, preparation: _Preparation) -> Iterator[str]:
        """What each claim waits for that is not bound; raises if one never will be."""
        node = preparation.decision.node
        labels = self._shown.nodes.get(node)
        if labels is None:
            raise _GiveUpError(f"node {node} is gone")
        for binding in preparation.decision.volumes:
            claim = self._claim(binding.claim)
            if claim.uid != preparation.claims[binding.claim]:
                raise _GiveUpError(f"claim {binding.claim} was deleted and made anew")
            name = claim.volume or binding.volume
            volume = self._shown.volumes.get(name) if name else None
            if volume is not None and not volume.is_reachable_from(node, labels):
                raise _GiveUpError(f"volume {name} cannot be reached from node {node}")
            if not claim.volume:
                self._check_begun(binding, claim, preparation)
            fits = volume is not None and volume.belongs_to(binding.claim, claim.uid)
            if not (claim.volume and claim.bound and fits):
                yield _wait(binding, claim, node)

    def _check_begun(
        self, binding: VolumeBinding, claim: ShownClaim, preparation: _Preparation
    ) -> None:
        """Is what was written still there? Nothing is known while the watch is behind it."""
        if binding.volume is None:
            node = preparation.decision.node
            behind = claim.version == preparation.versions.get(binding.claim)
            if claim.selected_node != node and not behind:
                now = f"near {claim.selected_node}" if claim.selected_node else "given up"
                raise _GiveUpError(f"no volume for claim {binding.claim} near {node}: it is {now}")
            return
        volume = self._shown.volumes.get(binding.volume)
        if volume is None:
            raise _GiveUpError(f"volume {binding.volume} is gone")
        behind = volume.version == preparation.versions.get(binding.volume)
        if not volume.belongs_to(binding.claim, claim.uid) and not behind:
            holder = f"claim {volume.claim}" if volume.claim else "no claim"
            raise _GiveUpError(f"volume {binding.volume} belongs to {holder} now")


def _wait(binding: VolumeBinding, claim: ShownClaim, node: str) -> str:
    if claim.volume or binding.volume:
        name = claim.volume or binding.volume
        return f"claim {binding.claim} waits to be bound to volume {name}"
    return f"claim {binding.claim} waits for a volume to be provisioned near {node}"


def _is_selected(claim: ShownClaim, uid: str, node: str) -> bool:
    return claim.uid == uid and claim.selected_node == node


def _with_claim(volume: ShownVolume, name: str, claim: ShownClaim) -> Body:
    """The reference of a volume to its claim, as kube-scheduler writes it.

    A volume that a person keeps for the claim is not marked as chosen by a controller.
    """
    namespace, _, bare = name.partition("/")
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace,
        "name": bare,
        "uid": claim.uid,
        "resourceVersion": claim.version,
    }
    metadata: Body = {"uid": volume.uid, "resourceVersion": volume.version}
    if not volume.claim:
        metadata["annotations"] = {_BOUND_BY_CONTROLLER: "yes"}
    return {"metadata": metadata, "spec": {"claimRef": reference}}
