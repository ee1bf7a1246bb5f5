"""The executor: carries out the engine's decisions, and reports failures back to it.

Bindings and evictions are written at once. A nomination is written only after all evictions for it:
if the replica ends in between, the next leader finds either a pending pod without a nomination, or
one whose victims are on their way out, never a nomination to a node that is still full.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import structlog

from aliquot.engine import (
    Bind,
    BindFailed,
    Decision,
    Engine,
    Event,
    Evict,
    EvictFailed,
    NodeSet,
    Nominate,
    Pod,
    PodGone,
    PodSet,
    Reason,
    Wait,
)
from aliquot.kube.api.client import Client
from aliquot.kube.control.bind_backoff import BindBackoff
from aliquot.kube.control.binder import Binder
from aliquot.kube.control.events import Events, of_pod
from aliquot.kube.control.evictor import Evictor
from aliquot.kube.control.intake import Intake
from aliquot.kube.control.pod_status import PodStatusWriter, refusal_of
from aliquot.kube.control.writer import Writer
from aliquot.kube.observe.metrics import Metrics

BINDING_FAILED = "BindingFailed"
"""The reason in the condition of a pod whose binding was refused."""
_NO_EVENT = {Reason.SCHEDULING_GATED, Reason.WAITING_FOR_VICTIMS}
"""Reasons without a FailedScheduling event: a user's gate, or a pod about to start."""
_log = structlog.get_logger()


@dataclass(slots=True)
class _Preemption:
    """A nomination whose evictions are not all answered yet."""

    decision: Nominate
    unanswered: set[str]
    """The uids of the victims whose eviction is not yet answered."""


class Executor:
    """Carries out the decisions of one engine."""

    def __init__(
        self,
        engine: Engine,
        intake: Intake,
        client: Client,
        writer: Writer,
        events: Events,
        metrics: Metrics,
        wake: Callable[[], None],
        delete_after: float | None = None,
    ) -> None:
        self._engine = engine
        self._intake = intake
        self._writer = writer
        self._events = events
        self._metrics = metrics
        self._wake = wake
        self._pod_status = PodStatusWriter(client, writer)
        self._binder = Binder(client, writer, self._bound, self._bind_failed)
        self._evictor = Evictor(
            *(client, writer, self._is_wanted),
            *(self._evicted, self._evict_failed, delete_after),
        )
        self._preemptions: dict[str, _Preemption] = {}
        """The preemptions under way, by the uids of their victims."""
        self._bind_backoff = BindBackoff(self._backoff_ended)
        self._nominated: dict[str, str] = {}
        """The node of each pod whose nomination is in the cluster, or about to be written."""
        self._lost: dict[str, str] = {}
        """The node of each pod that was lost with it: the node may come back with the pod."""

    def forward(self, event: Event) -> None:
        """Apply an event to the engine, unless its pod is kept back.

        The nomination in a pod's status is left out: the engine has its own, which the cluster only
        repeats.
        """
        if isinstance(event, PodSet):
            record = self._intake.mirror.records.get(event.pod.uid)
            if self._bind_backoff.keeps_back(
                event.pod, record.group_ref.gang if record is not None else None
            ):
                return
            if event.pod.nominated is not None:
                event = PodSet(replace(event.pod, nominated=None))
        if isinstance(event, PodGone):
            self._bind_backoff.gone(event.uid)
            self._lost.pop(event.uid, None)
        self._engine.apply(event)
        if isinstance(event, NodeSet) and self._lost:
            self._node_returned(event.node.name)

    def execute(self, decisions: Iterable[Decision]) -> None:
        """Have the writer write all of these."""
        decisions = list(decisions)
        self._metrics.decided(decisions)
        for decision in decisions:
            match decision:
                case Bind(pod):
                    self._writer.withdraw(pod.uid, "condition")
                    self._binder.bind(decision)
                case Evict():
                    self._evict(decision)
                case Nominate():
                    self._preempt(decision)
                case Wait():
                    self._refuse(decision)
        self._update_nominations()

    def stop(self) -> None:
        """End all backoffs; what was decided is left as it is."""
        self._bind_backoff.stop()

    def _evict(self, decision: Evict) -> None:
        if decision.reason is Reason.NODE_LOST:
            _log.info("lost with its node", pod=decision.pod.path, why=decision.message)
            self._lost[decision.pod.uid] = self._engine.booked_node(decision.pod.uid) or ""
            return
        self._evictor.evict(decision)

    def _preempt(self, decision: Nominate) -> None:
        """Evict the victims of a claim; its nominations are written once all are answered."""
        self._nominated |= {
            pod.uid: node for pod, node in zip(decision.pods, decision.nodes, strict=True)
        }
        preemption = _Preemption(decision, {each.pod.uid for each in decision.victims})
        for victim in decision.victims:
            self._preemptions[victim.pod.uid] = preemption
            self._evictor.evict(victim)
        if not decision.victims:
            self._write_nominations(decision)

    def _write_nominations(self, decision: Nominate) -> None:
        """Write the nominations of a claim, as far as the engine still has them."""
        for pod, node in zip(decision.pods, decision.nodes, strict=True):
            if self._engine.nominated_node(pod.uid) == node:
                self._pod_status.nominate(pod, node)

    def _refuse(self, decision: Wait) -> None:
        pod, refusal = decision.pod, refusal_of(decision.refusal)
        shown = self._intake.pods.shown.get(pod.uid)
        if shown is None or shown.refusal == refusal:
            return
        self._pod_status.refuse(pod, refusal, known=shown.refusal is not None)
        if decision.refusal.reason not in _NO_EVENT:
            self._events.record(of_pod(pod), "Warning", "FailedScheduling", refusal[1])
        shown.refusal = refusal

    def _update_nominations(self) -> None:
        """Clear or change written nominations that the engine has given up or moved."""
        shown = self._intake.pods.shown
        for uid, node in list(self._nominated.items()):
            nominated = self._engine.nominated_node(uid)
            if nominated == node:
                continue
            self._writer.withdraw(uid, "nominate")
            if nominated is None:
                del self._nominated[uid]
            else:
                self._nominated[uid] = nominated
            record = self._intake.mirror.records.get(uid)
            if record is not None and uid in shown and self._engine.is_waiting(uid):
                self._pod_status.nominate(record.pod, nominated)

    def adopt(self) -> None:
        """Take over the nominations that the cluster shows, so that stale ones are cleared."""
        shown = self._intake.pods.shown
        self._nominated = {
            uid: each.nominated for uid, each in shown.items() if each.nominated is not None
        }

    def _bound(self, decision: Bind) -> None:
        pod = decision.pod
        self._bind_backoff.bound(pod.uid)
        shown = self._intake.pods.shown.get(pod.uid)
        if shown is not None:
            self._metrics.pod_wait.observe(max(time.time() - shown.created / 1e9, 0.0))
        message = f"Successfully assigned {pod.path} to {decision.node}"
        if decision.devices:
            message += f" on {', '.join(decision.devices)}"
        self._events.record(of_pod(pod), "Normal", "Scheduled", message)

    def _bind_failed(self, pod: Pod, problem: str) -> None:
        """The API server refused a binding: the pod waits again, after a backoff.

        Not if it was deleted, or bound by another scheduler: what the watch has shown meanwhile is
        newer than the decision.
        """
        self._engine.apply(BindFailed(pod.uid))
        _log.warning("not bound", pod=pod.path, problem=problem)
        record = self._intake.mirror.records.get(pod.uid)
        if record is not None and record.alive and record.pod.node is None:
            self._back_off(pod, problem)
        self._wake()

    def _back_off(self, pod: Pod, problem: str) -> None:
        self._engine.apply(PodGone(pod.uid))
        seconds = self._bind_backoff.bind_failed(pod.uid)
        message = f"binding was refused: {problem}; tried again in {seconds:.0f} s"
        self._events.record(of_pod(pod), "Warning", "FailedScheduling", message)
        shown = self._intake.pods.shown.get(pod.uid)
        if shown is not None:
            self._pod_status.refuse(pod, (BINDING_FAILED, message), known=shown.refusal is not None)
        if shown is not None and shown.nominated is not None:
            self._pod_status.nominate(pod, None)

    def _backoff_ended(self, uid: str) -> None:
        record = self._intake.mirror.records.get(uid)
        if record is not None and record.alive and record.pod.node is None:
            self.forward(PodSet(record.pod))
            self._wake()

    def _is_wanted(self, decision: Evict) -> bool:
        """Does a claim still wait for this pod to leave?"""
        engine, uid, claimant = self._engine, decision.pod.uid, decision.claimant
        if not engine.is_leaving(uid):
            return False
        return claimant is None or engine.is_waiting(claimant.uid) or engine.is_awaited(uid)

    def _evicted(self, decision: Evict) -> None:
        pod, claimant = decision.pod, decision.claimant
        whom = f" for {claimant.path}" if claimant is not None else ""
        _log.info("evicted", pod=pod.path, reason=decision.reason.value, whom=whom.strip())
        message = f"{decision.reason.value}: evicted{whom}: {decision.message}"
        self._events.record(of_pod(pod), "Normal", "Preempted", message)
        if claimant is not None:
            message = f"{decision.reason.value}: {pod.path} makes way: {decision.message}"
            self._events.record(of_pod(claimant), "Normal", "Preempting", message)
        self._eviction_answered(pod.uid)

    def _evict_failed(self, decision: Evict, problem: str) -> None:
        uid = decision.pod.uid
        _log.warning("not evicted", pod=decision.pod.path, problem=problem)
        if self._is_wanted(decision):
            self._engine.apply(EvictFailed(uid))
        else:
            self._keep(uid)  # it may be evicted another time
        self._eviction_answered(uid)
        self._wake()

    def _node_returned(self, node: str) -> None:
        """A lost node is back: the pods that still run on it were not lost."""
        for uid in [uid for uid, where in self._lost.items() if where == node]:
            del self._lost[uid]
            self._keep(uid)

    def _keep(self, uid: str) -> None:
        """Undo an eviction in the engine, and apply the pod as the cluster shows it."""
        self._engine.apply(EvictFailed(uid))
        record = self._intake.mirror.records.get(uid)
        if record is not None and record.alive:
            self.forward(PodSet(record.pod))

    def _eviction_answered(self, uid: str) -> None:
        preemption = self._preemptions.pop(uid, None)
        if preemption is not None:
            preemption.unanswered.discard(uid)
            if not preemption.unanswered:
                self._write_nominations(preemption.decision)
