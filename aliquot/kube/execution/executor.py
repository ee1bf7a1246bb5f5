"""The executor: has the engine's decisions written, and reports what was refused.

Bindings and evictions are written at once. A nomination is written only after all evictions for it:
if the replica ends in between, the next leader finds either a pending pod without a nomination, or
one whose own victims are on their way out. A nomination that waits for victims of an earlier claim
is written at once. The executor asks the engine, and never changes it: what came of a write goes to
`report`.
"""

import time
from collections.abc import Callable, Iterable
from functools import partial

import structlog

from aliquot.engine import Bind, Decision, Engine, Evict, Nominate, Pod, Reason, Refusal, Wait
from aliquot.kube.api.client import Client
from aliquot.kube.exchange.shown_volumes import ShownVolumes
from aliquot.kube.exchange.write_results import Backoff, BindRefused, EvictionRefused, WriteResult
from aliquot.kube.execution.binder import Binder
from aliquot.kube.execution.events import Events, of_pod
from aliquot.kube.execution.evictor import Evictor, Limits
from aliquot.kube.execution.pod_status import (
    BINDING_FAILED,
    PodStatus,
    event_message,
    refusal_of,
)
from aliquot.kube.execution.preemption import Preemption
from aliquot.kube.execution.volume_binder import VolumeBinder
from aliquot.kube.execution.writer import Writer
from aliquot.kube.observe.metrics import Metrics

_NO_EVENT = {Reason.SCHEDULING_GATED, Reason.WAITING_FOR_VICTIMS}
"""Reasons without a FailedScheduling event: a user's gate, or a pod about to start."""
VOLUME_BIND_TIMEOUT = 600.0
"""Seconds: the default of kube-scheduler."""
BUDGET_OVERRIDDEN = "DisruptionBudgetOverridden"
"""The event on a pod that was deleted although disruption budgets refuse its eviction."""
_log = structlog.get_logger()


class Executor:
    """Carries out the decisions of one engine."""

    def __init__(
        self,
        engine: Engine,
        client: Client,
        writer: Writer,
        pod_status: PodStatus,
        events: Events,
        metrics: Metrics,
        report: Callable[[WriteResult], None],
        catch_up: Callable[[], None],
        limits: Limits | None = None,
        shown_volumes: ShownVolumes | None = None,
        volume_bind_timeout: float = VOLUME_BIND_TIMEOUT,
    ) -> None:
        self._engine = engine
        self._pod_status = pod_status
        self._events = events
        self._metrics = metrics
        self._report = report
        self._catch_up = catch_up
        self._binder = Binder(client, writer, self._bound, self._bind_failed)
        self._volume_binder = VolumeBinder(
            *(client, writer, shown_volumes or ShownVolumes(), pod_status.shows),
            *(self._bind, self._bind_failed, self._wait_for_volumes, volume_bind_timeout),
        )
        self._evictor = Evictor(
            *(client, writer, self._is_wanted, self._evicted),
            *(self._evict_failed, self._refused_by_budget, engine.is_owed, self._deleted),
            *(limits or Limits(), lambda: engine.brake().paused),
        )
        self._preemptions: dict[str, Preemption] = {}
        """The preemptions under way, by the uids of their victims."""

    def execute(self, decisions: Iterable[Decision]) -> None:
        """Have the writer write all of these."""
        decisions = list(decisions)
        self._metrics.decided(decisions)
        for decision in decisions:
            match decision:
                case Bind(volumes=()):
                    self._bind(decision)
                case Bind():
                    self._volume_binder.bind(decision)
                case Evict():
                    self._evict(decision)
                case Nominate():
                    self._preempt(decision)
                case Wait(pod, refusal):
                    self._refuse(pod, refusal)
        self._evictor.send_put_off()
        self._pod_status.update_nominations(self._engine)

    def explain(self, backoffs: Iterable[Backoff]) -> None:
        """Write why these pods wait: their binding was refused, and they back off."""
        for each in backoffs:
            message = f"binding was refused: {each.problem}; tried again in {each.seconds:.0f} s"
            self._fail(each.pod, BINDING_FAILED, message)
            self._pod_status.refuse(each.pod, (BINDING_FAILED, message), at_once=True)
            self._pod_status.clear_nomination(each.pod)

    def check_volumes(self) -> None:
        """Bind the pods whose volumes are bound by now; give up those whose never will be."""
        self._volume_binder.check()

    def stop(self) -> None:
        """Forget what is under way: nothing more is written for this engine."""
        self._volume_binder.stop()

    def _bind(self, decision: Bind) -> None:
        self._pod_status.withdraw_refusal(decision.pod.uid)
        self._binder.bind(decision)

    def _wait_for_volumes(self, pod: Pod, message: str) -> None:
        self._pod_status.refuse(pod, (Reason.WAITING_FOR_VOLUME.value, message))

    def _refuse(self, pod: Pod, refusal: Refusal) -> None:
        fail = partial(self._fail, pod, refusal.reason, refusal.message)
        then = [] if refusal.reason in _NO_EVENT else [fail]
        self._pod_status.refuse(pod, refusal_of(refusal), *then)

    def _fail(self, pod: Pod, reason: str, message: str) -> None:
        words = event_message(reason, message)
        self._events.record(of_pod(pod), "Warning", "FailedScheduling", words)

    def _evict(self, decision: Evict) -> None:
        if decision.reason is Reason.NODE_LOST:
            _log.info("lost with its node", pod=decision.pod.path, why=decision.message)
        else:
            self._evictor.evict(decision)

    def _is_wanted(self, decision: Evict) -> bool:
        """Is an eviction that is about to be sent still needed, by all that the watches showed?"""
        self._catch_up()
        return self._engine.is_wanted(decision)

    def _preempt(self, decision: Nominate) -> None:
        """Evict the victims of a claim; its nominations are written once all are answered."""
        for pod, node in zip(decision.pods, decision.nodes, strict=True):
            self._pod_status.note_nomination(pod, node)
        preemption = Preemption(decision, self._engine.is_refused_by_budgets)
        self._preemptions.update((victim.pod.uid, preemption) for victim in decision.victims)
        for victim in preemption.first():
            self._evictor.evict(victim)
        if not decision.victims:
            self._write_nominations(decision)

    def _write_nominations(self, decision: Nominate) -> None:
        """Write the nominations of a claim, as far as the engine still has them."""
        for pod, node in zip(decision.pods, decision.nodes, strict=True):
            if self._engine.nominated_node(pod.uid) == node:
                self._pod_status.nominate(pod, node)

    def _bound(self, decision: Bind) -> None:
        pod = decision.pod
        self._metrics.pod_wait.observe(max(time.time() - pod.created / 1e9, 0.0))
        message = f"Successfully assigned {pod.path} to {decision.node}"
        if decision.devices:
            message += f" on {', '.join(decision.devices)}"
        self._events.record(of_pod(pod), "Normal", "Scheduled", message)

    def _bind_failed(self, pod: Pod, problem: str) -> None:
        _log.warning("not bound", pod=pod.path, problem=problem)
        self._report(BindRefused(pod, problem))

    def _evicted(self, decision: Evict) -> None:
        pod, claimant = decision.pod, decision.claimant
        whom = f" for {claimant.path}" if claimant is not None else ""
        _log.info("evicted", pod=pod.path, reason=decision.reason.value, whom=whom.strip())
        message = f"{decision.reason.value}: evicted{whom}: {decision.message}"
        self._events.record(of_pod(pod), "Normal", "Preempted", message)
        if claimant is not None:
            message = f"{decision.reason.value}: {pod.path} makes way: {decision.message}"
            self._events.record(of_pod(claimant), "Normal", "Preempting", message)
        self._count_lost_work(pod)
        self._answered(pod.uid)

    def _count_lost_work(self, pod: Pod) -> None:
        """Count what an evicted pod has run; it may be gone from the books by now."""
        quota = self._engine.quota_of(pod)
        if quota is not None and pod.started:
            booked = self._engine.booked_node(pod.uid) is not None
            charge = self._engine.charged(pod.uid) if booked else dict(pod.shape.requests)
            self._metrics.evicted(quota, charge, max(time.time() - pod.started / 1e9, 0.0))

    def _evict_failed(self, decision: Evict, problem: str) -> None:
        """An eviction was refused, or is not needed any longer.

        If a claim still waits for it, the engine drops the claim's nomination and decides anew: so
        that nomination is never written.
        """
        _log.warning("not evicted", pod=decision.pod.path, problem=problem)
        preemption = self._preemptions.pop(decision.pod.uid, None)
        called_off = preemption.call_off(decision.pod.uid) if preemption is not None else []
        for each in called_off:
            self._preemptions.pop(each.pod.uid, None)
        if preemption is not None and not self._engine.is_wanted(decision):
            self._write_answered(preemption)
        for each in (decision, *called_off):
            self._report(EvictionRefused(each))

    def _refused_by_budget(self, decision: Evict, problem: str) -> None:
        """A disruption budget refuses an eviction: the pod that waits for it is told."""
        _log.info("not evicted yet", pod=decision.pod.path, problem=problem)
        if decision.claimant is not None:
            message = f"{decision.pod.path} is not evicted yet: {problem}"
            self._fail(decision.claimant, Reason.WAITING_FOR_VICTIMS, message)

    def _deleted(self, decision: Evict, problem: str) -> None:
        """A pod was deleted although budgets refuse its eviction: the pod is told, and counted."""
        self._metrics.budget_overrides.inc()
        whom = decision.claimant.path if decision.claimant is not None else "a claim"
        message = f"deleted after eviction.deleteAfter: {whom} is owed what it asks for; {problem}"
        self._events.record(of_pod(decision.pod), "Warning", BUDGET_OVERRIDDEN, message)

    def _answered(self, uid: str) -> None:
        """Nothing more is to be written for the eviction of this pod."""
        preemption = self._preemptions.pop(uid, None)
        if preemption is not None:
            for each in preemption.answer(uid):
                self._evictor.evict(each)
            self._write_answered(preemption)

    def _write_answered(self, preemption: Preemption) -> None:
        """Write the nominations of a preemption, if all of its evictions are answered."""
        if not preemption.unanswered:
            self._write_nominations(preemption.decision)
