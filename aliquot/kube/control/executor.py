"""Carries out what the engine decides, and tells it what came of that.

Binding and evicting are asked for at once. Room is only said to be held for a pod when all who make
way for it have been asked to go: should we end in between, whoever takes over finds either a pod
that waits as before, or one whose room is on its way.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

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
_NO_EVENT = {Reason.SCHEDULING_GATED, Reason.WAITING_FOR_VICTIMS}
"""Reasons that are no failure: somebody wants it so, or it is about to start."""
_log = structlog.get_logger()


@dataclass(slots=True)
class _Errand:
    """Whoever has yet to be asked to go, before room is said to be held for these."""

    claimant: str = ""
    """The first of them."""
    awaited: set[str] = field(default_factory=set)
    nominations: list[Nominate] = field(default_factory=list)


class Executor:
    """What is under way for one engine."""

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
        self._binder = Binder(client, writer, self._bound, self._not_bound)
        self._evictor = Evictor(
            *(client, writer, self._is_wanted),
            *(self._evicted, self._not_evicted, delete_after),
        )
        self._errands: dict[str, _Errand] = {}
        """What is being prepared, by the uids of those who are asked to go."""
        self._resting = BindBackoff(self._rested)
        self._nominated: dict[str, str] = {}
        """The pods of which the cluster says, or is about to, that room is held for them; where."""
        self._lost: dict[str, str] = {}
        """The pods whose node is gone, and which they were on: it may come back with them."""

    def hear(self, event: Event) -> None:
        """Tell the engine what has happened, unless it is not to know of it yet.

        Where room is held is the engine's own knowledge; the cluster only repeats it.
        """
        if isinstance(event, PodSet):
            record = self._intake.mirror.records.get(event.pod.uid)
            if self._resting.keeps(
                event.pod, record.group_ref.gang if record is not None else None
            ):
                return
            if event.pod.nominated is not None:
                event = PodSet(replace(event.pod, nominated=None))
        if isinstance(event, PodGone):
            self._resting.gone(event.uid)
            self._lost.pop(event.uid, None)
        self._engine.apply(event)
        if isinstance(event, NodeSet) and self._lost:
            self._found_again(event.node.name)

    def carry_out(self, decisions: Iterable[Decision]) -> None:
        """Have all of these written."""
        decisions = list(decisions)
        self._metrics.decided(decisions)
        errand = _Errand()
        for decision in decisions:
            match decision:
                case Bind(pod):
                    self._writer.withdraw(pod.uid, "condition")
                    self._binder.bind(decision)
                case Evict(claimant=claimant):
                    if claimant is None or claimant.uid != errand.claimant:
                        errand = _Errand(claimant.uid if claimant is not None else "")
                    self._evict(decision, errand)
                case Nominate(pod, node):
                    if self._claimant(pod) != errand.claimant:
                        errand = _Errand()  # nobody has to be asked for this one
                    self._nominated[pod.uid] = node
                    errand.nominations.append(decision)
                    self._say_where(errand)
                case Wait():
                    self._refuse(decision)
        self._tidy()

    def stop(self) -> None:
        """Leave everything as it is."""
        self._resting.stop()

    def _evict(self, decision: Evict, errand: _Errand) -> None:
        if decision.reason is Reason.NODE_LOST:
            _log.info("lost with its node", pod=decision.pod.path, why=decision.message)
            self._lost[decision.pod.uid] = self._booked_on(decision.pod.uid) or ""
            return
        errand.awaited.add(decision.pod.uid)
        self._errands[decision.pod.uid] = errand
        self._evictor.evict(decision)

    def _say_where(self, errand: _Errand) -> None:
        """Room is held, and everybody who makes way for it knows."""
        if not errand.awaited:
            said, errand.nominations = errand.nominations, []
            for each in said:
                if self._held_on(each.pod.uid) == each.node:
                    self._pod_status.nominate(each.pod, each.node)

    def _refuse(self, decision: Wait) -> None:
        pod, refusal = decision.pod, refusal_of(decision.refusal)
        said = self._intake.pods.said.get(pod.uid)
        if said is None or said.refusal == refusal:
            return
        self._pod_status.refuse(pod, refusal, known=said.refusal is not None)
        if decision.refusal.reason not in _NO_EVENT:
            self._events.tell(of_pod(pod), "Warning", "FailedScheduling", refusal[1])
        said.refusal = refusal

    def _tidy(self) -> None:
        """Say so where room is no longer held, or held elsewhere."""
        said = self._intake.pods.said
        for uid, node in list(self._nominated.items()):
            held = self._held_on(uid)
            if held == node:
                continue
            self._writer.withdraw(uid, "nominate")
            if held is None:
                del self._nominated[uid]
            else:
                self._nominated[uid] = held
            record = self._intake.mirror.records.get(uid)
            if record is not None and uid in said and uid in self._engine.state.waiting:
                self._pod_status.nominate(record.pod, held)

    def _claimant(self, pod: Pod) -> str:
        """The first pod of those that this one waits with."""
        waiting = self._engine.state.waiting
        return waiting.claim(pod.uid).pods[0].uid if pod.uid in waiting else pod.uid

    def _held_on(self, uid: str) -> str | None:
        return self._booked_on(uid) if uid in self._engine.state.ledger.holding else None

    def _booked_on(self, uid: str) -> str | None:
        entry = self._engine.state.ledger.entries.get(uid)
        return entry.booking.node if entry is not None else None

    def adopt(self) -> None:
        """Take over what the cluster says of rooms that are held."""
        said = self._intake.pods.said
        self._nominated = {
            uid: each.nominated for uid, each in said.items() if each.nominated is not None
        }

    def _bound(self, decision: Bind) -> None:
        pod = decision.pod
        self._resting.bound(pod.uid)
        said = self._intake.pods.said.get(pod.uid)
        if said is not None:
            self._metrics.pod_wait.observe(max(time.time() - said.created / 1e9, 0.0))
        what = f"Successfully assigned {pod.path} to {decision.node}"
        if decision.devices:
            what += f" on {', '.join(decision.devices)}"
        self._events.tell(of_pod(pod), "Normal", "Scheduled", what)

    def _not_bound(self, pod: Pod, problem: str) -> None:
        """A clear no: the pod waits again, but not at once.

        Unless it is gone, or has been bound by somebody else: whatever the engine has heard of it
        meanwhile is newer than our wish.
        """
        self._engine.apply(BindFailed(pod.uid))
        _log.warning("not bound", pod=pod.path, problem=problem)
        record = self._intake.mirror.records.get(pod.uid)
        if record is not None and record.alive and record.pod.node is None:
            self._let_rest(pod, problem)
        self._wake()

    def _let_rest(self, pod: Pod, problem: str) -> None:
        self._engine.apply(PodGone(pod.uid))
        seconds = self._resting.refuse(pod.uid)
        message = f"binding was refused: {problem}; tried again in {seconds:.0f} s"
        self._events.tell(of_pod(pod), "Warning", "FailedScheduling", message)
        said = self._intake.pods.said.get(pod.uid)
        if said is not None:
            self._pod_status.refuse(pod, (BINDING_FAILED, message), known=said.refusal is not None)
        if said is not None and said.nominated is not None:
            self._pod_status.nominate(pod, None)

    def _rested(self, uid: str) -> None:
        record = self._intake.mirror.records.get(uid)
        if record is not None and record.alive and record.pod.node is None:
            self.hear(PodSet(record.pod))
            self._wake()

    def _is_wanted(self, decision: Evict) -> bool:
        """Does anybody still wait for this pod to go?"""
        state, claimant = self._engine.state, decision.claimant
        if decision.pod.uid not in state.leaving:
            return False
        if claimant is None or claimant.uid in state.waiting:
            return True
        return self._engine.is_awaited(decision.pod.uid)

    def _evicted(self, decision: Evict) -> None:
        pod, claimant = decision.pod, decision.claimant
        whom = f" for {claimant.path}" if claimant is not None else ""
        _log.info("evicted", pod=pod.path, reason=decision.reason.value, whom=whom.strip())
        message = f"evicted{whom}: {decision.message}"
        self._events.tell(of_pod(pod), "Normal", "Preempted", f"{decision.reason.value}: {message}")
        if claimant is not None:
            says = f"{decision.reason.value}: {pod.path} makes way: {decision.message}"
            self._events.tell(of_pod(claimant), "Normal", "Preempting", says)
        self._asked(pod.uid)

    def _not_evicted(self, decision: Evict, problem: str) -> None:
        uid = decision.pod.uid
        _log.warning("not evicted", pod=decision.pod.path, problem=problem)
        if self._is_wanted(decision):
            self._engine.apply(EvictFailed(uid))
        else:
            self._stays(uid)  # and may be asked another time
        self._asked(uid)
        self._wake()

    def _found_again(self, node: str) -> None:
        """A node that was gone is back; whoever still is on it was not lost."""
        for uid in [uid for uid, where in self._lost.items() if where == node]:
            del self._lost[uid]
            self._stays(uid)

    def _stays(self, uid: str) -> None:
        """A pod that was to go does not."""
        self._engine.apply(EvictFailed(uid))
        record = self._intake.mirror.records.get(uid)
        if record is not None and record.alive:
            self.hear(PodSet(record.pod))

    def _asked(self, uid: str) -> None:
        errand = self._errands.pop(uid, None)
        if errand is not None:
            errand.awaited.discard(uid)
            self._say_where(errand)
