"""Pods that will come, as far as those that came so far tell.

A pod that waits is passed by some that come after it: smaller ones, and those whose quota has more
right to what comes free. An estimate that knows nothing of them is too early. So pods come at
random, as often as the latest of those that are known have come, and each is like one of these.
How often they come, and of which kind, is known from so many arrivals only: each play draws a rate
and a mix that fit what is known, so that its range says that as well.
Pods of gangs and of workloads that keep a number of replicas come when a user wants it, and are no
part of a stream.
"""

from collections.abc import Iterator
from itertools import accumulate
from random import Random

from aliquot.dialects.core import simulation_annotations as simulated
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import read
from aliquot.dialects.core.times import seconds, timestamp
from aliquot.json import Body, fresh
from aliquot.mirror.pod_record import PodRecord
from aliquot.mirror.store import Change
from aliquot.questions.durations import Durations
from aliquot.simulation.simulation import Simulation

_FEW = 20
"""Arrivals from which a rate is taken: from fewer it is off by more than a quarter."""
_LATEST = 400
"""The arrivals that are asked, the latest ones: load changes from day to day."""
_MOST = 200
"""Pods that come in one play, which bounds its time. They are made one by one, as it goes on."""
_KEPT = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
_PLACE = "a pod that may come"
_LEFT_OUT = ("uid", "resourceVersion", "ownerReferences", "generateName", "creationTimestamp")


class Arrivals:
    """The stream of pods that has come so far."""

    def __init__(self, simulation: Simulation) -> None:
        self._now = simulation.now
        records = list(simulation.world.mirror.records.values())
        played = any(each.arrived for each in records)
        came = sorted(_came(records, played), key=lambda pair: pair[0])[-_LATEST:]
        self._models = [record for _, record in came]
        end = simulation.now if played else simulation.moment or 0
        span = came[-1][0] - came[0][0] if len(came) > _FEW else 0
        self._span = span and max(end - came[0][0], span)

    def coming(self, durations: Durations, rng: Random) -> Iterator[Change]:
        """Pods that come from now on, in order of time."""
        if not self._span:
            return
        at, rate = self._now, rng.gammavariate(len(self._models) - 1, 1) / self._span
        mix = [*accumulate(rng.expovariate(1) for _ in self._models)]
        for number in range(_MOST):
            at += max(int(rng.expovariate(rate)), 1)
            model = rng.choices(self._models, cum_weights=mix)[0]
            manifest = read(Document(_PLACE, _like(model, number, durations.whole(model, rng))))
            if manifest is not None:
                yield Change(at, (manifest,))


def _came(records: list[PodRecord], played: bool) -> Iterator[tuple[int, PodRecord]]:
    """When each pod of a stream came: in a simulation as played, else as its object says."""
    for record in records:
        kept = record.owner is not None and record.owner[0] in _KEPT
        if kept or record.pod.gang is not None:
            continue
        created = (record.body.get("metadata") or {}).get("creationTimestamp")
        moment = record.arrived if played else timestamp(created, "", "")
        if moment is not None:
            yield moment, record


def _like(model: PodRecord, number: int, duration: int | None) -> Body:
    """A new pod like another, which runs for so long."""
    body: Body = {"apiVersion": "v1", "kind": "Pod", "spec": fresh(model.body.get("spec") or {})}
    metadata = fresh(model.body.get("metadata") or {})
    for field in (*_LEFT_OUT, "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(field, None)
    metadata["name"] = f"comes-{number}"
    metadata["namespace"] = model.pod.namespace
    annotations = metadata.setdefault("annotations", None) or {}
    for written in (simulated.ARRIVAL, simulated.DURATION):
        annotations.pop(written, None)
    if duration is not None:
        annotations[simulated.DURATION] = f"{seconds(duration)}s"
    metadata["annotations"] = annotations
    body["spec"].pop("nodeName", None)
    body["metadata"] = metadata
    return body
