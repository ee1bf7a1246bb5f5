"""The feed: the only way into the engine, for what the mirror sends and for what came of writes.

Events of the mirror are applied as they come. What came of writes is queued, and applied by
`settle`, after the watch's news and before the next cycle: what the watch has shown meanwhile is
newer than the decision. Nothing is queued or remembered without an engine: a replica that loses
leadership drops all of it, and the next engine is made from what the mirror holds.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import structlog

from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.engine import (
    BindFailed,
    Decision,
    Engine,
    Event,
    Evict,
    EvictFailed,
    EvictionsPaused,
    EvictionsResumed,
    NodeSet,
    PodGone,
    PodSet,
    Reason,
)
from aliquot.kube.api.resource import PLAIN_JOBS
from aliquot.kube.exchange.write_results import Backoff, BindRefused, EvictionRefused, WriteResult
from aliquot.kube.intake.bind_backoff import BindBackoff
from aliquot.mirror.job_groups import keys_of
from aliquot.mirror.mirror import Mirror
from aliquot.mirror.pod_list import PodList
from aliquot.mirror.pod_record import PodRecord

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _BackoffEnded:
    uid: str


class Feed:
    """Applies events to the engine that it is connected to, if any; `wake` begins a round."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.failed = False
        """Has the engine raised? Then it gets no further event, and must be made anew."""
        self._wake = wake
        self._engine: Engine | None = None
        self._records: Mapping[str, PodRecord] = {}
        self._objects: Mapping[Key, Manifest] = {}
        self._queue: deque[WriteResult | _BackoffEnded] = deque()
        self._backoff = BindBackoff(self._end_backoff)
        self._pause: EvictionsPaused | EvictionsResumed = EvictionsResumed()
        """Whether evictions are paused, which no object of the mirror says."""
        self._lost: dict[str, str] = {}
        """The node of each pod that was lost with it: the node may come back with the pod."""

    def connect(self, engine: Engine, mirror: Mirror) -> None:
        """Apply everything to a new engine, and from now on what changes.

        At first the nominations that the cluster shows count; later the engine has its own, which
        the cluster only repeats.
        """
        self.disconnect()
        pods = PodList(engine)
        with pods.gathering():
            mirror.replay(pods.apply)
        engine.apply(self._pause)
        self._engine, self._records = engine, mirror.records
        self._objects = mirror.store.objects

    def disconnect(self) -> None:
        """Drop the engine, and all that was queued and remembered for it."""
        self._engine, self._records, self._objects, self.failed = None, {}, {}, False
        self._queue.clear()
        self._backoff.stop()
        self._backoff = BindBackoff(self._end_backoff)
        self._lost.clear()

    def send(self, event: Event) -> None:
        """Apply an event of the mirror to the engine, unless its pod is kept back."""
        if isinstance(event, EvictionsPaused | EvictionsResumed):
            self._pause = event
        if self._engine is None or self.failed:
            return
        try:
            self._send(self._engine, event)
        except Exception:
            self._fail()

    def report(self, result: WriteResult) -> None:
        """Queue what came of a write; without an engine, it is for one that was dropped."""
        if self._engine is not None:
            self._queue.append(result)
            self._wake()

    def note_lost(self, decisions: Iterable[Decision]) -> None:
        """Remember the pods that the engine has given up because their node is gone."""
        for each in decisions:
            if isinstance(each, Evict) and each.reason is Reason.NODE_LOST:
                assert self._engine is not None
                self._lost[each.pod.uid] = self._engine.booked_node(each.pod.uid) or ""

    def settle(self) -> list[Backoff]:
        """Apply what is queued; returns the pods that back off now, whose condition must say so."""
        started: list[Backoff] = []
        while self._queue and self._engine is not None and not self.failed:
            try:
                started += self._settle(self._engine, self._queue.popleft())
            except Exception:
                self._fail()
        return started

    def _awaited_group(self, record: PodRecord) -> str | None:
        """What a pod waits for that is in no gang yet: its PodGroup, or the job that it is of.

        Most Jobs of Kubernetes make no gangs, and those that do are known before their pods are.
        """
        ref = record.group_ref
        if ref.gang is not None or ref.job is None or ref.job.kinds == (PLAIN_JOBS.kind,):
            return ref.gang
        jobs = keys_of(ref.job, record.pod.namespace)
        return None if any(each in self._objects for each in jobs) else ref.job.name

    def _send(self, engine: Engine, event: Event) -> None:
        if isinstance(event, PodSet):
            record = self._records.get(event.pod.uid)
            gang = self._awaited_group(record) if record is not None else None
            if self._backoff.keeps_back(event.pod, gang):
                return
            if event.pod.nominated is not None:
                event = PodSet(replace(event.pod, nominated=None))
        if isinstance(event, PodGone):
            self._backoff.gone(event.uid)
            self._lost.pop(event.uid, None)
        engine.apply(event)
        if isinstance(event, NodeSet) and self._lost:
            self._restore_pods(engine, event.node.name)

    def _settle(self, engine: Engine, news: WriteResult | _BackoffEnded) -> Iterator[Backoff]:
        match news:
            case BindRefused(pod, problem):
                engine.apply(BindFailed(pod.uid))
                if self._is_pending(pod.uid):
                    engine.apply(PodGone(pod.uid))
                    yield Backoff(pod, problem, self._backoff.bind_failed(pod.uid))
            case EvictionRefused(eviction) if engine.is_wanted(eviction):
                engine.apply(EvictFailed(eviction.pod.uid))
            case EvictionRefused(eviction):
                self._keep(engine, eviction.pod.uid)  # it may be evicted another time
            case _BackoffEnded(uid):
                if self._is_pending(uid):
                    self._send(engine, PodSet(self._records[uid].pod))

    def _is_pending(self, uid: str) -> bool:
        """Does the watch show this pod, and on no node? It may be deleted, or bound elsewhere."""
        record = self._records.get(uid)
        return record is not None and record.alive and record.pod.node is None

    def _restore_pods(self, engine: Engine, node: str) -> None:
        """A lost node is back: the pods that still run on it were not lost."""
        for uid in [uid for uid, where in self._lost.items() if where == node]:
            del self._lost[uid]
            self._keep(engine, uid)

    def _keep(self, engine: Engine, uid: str) -> None:
        """Undo an eviction in the engine, and apply the pod as the cluster shows it."""
        engine.apply(EvictFailed(uid))
        record = self._records.get(uid)
        if record is not None and record.alive:
            self._send(engine, PodSet(record.pod))

    def _end_backoff(self, uid: str) -> None:
        self._queue.append(_BackoffEnded(uid))
        self._wake()

    def _fail(self) -> None:
        _log.exception("the engine failed, and is made anew")
        self.failed = True
