"""The page's source for files: a dump, a snapshot or manifests, as they are at one moment.

Manifests that no server has accepted have decided nothing yet: what can be decided at once is, as
for `aliquot tree`, and told as the story. To decide about very many pods takes minutes, which a
page does not: they are shown as they are written.
"""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from aliquot.dashboard import story
from aliquot.dashboard.board import Board
from aliquot.dashboard.watched import Watched
from aliquot.dialects.core.times import seconds, timestamp
from aliquot.engine import Event, Pod, PodSet
from aliquot.json import seek
from aliquot.mirror.decision_entries import entries
from aliquot.questions.moment import Moment
from aliquot.questions.sources.source import Source
from aliquot.simulation.simulation import Simulation

_UNDECIDED = "Nothing is decided yet: these are many pods, shown as their manifests say."


class Still:
    """A cluster that does not change."""

    def __init__(self, source: Source) -> None:
        moment = Moment(source, settled=False)
        simulation = moment.simulation
        self.notice = ""
        if not source.accepted and moment.is_large:
            self.notice = _UNDECIDED
        elif not source.accepted:
            simulation.settle()
        virtual = source.taken is None
        self._now = simulation.now if virtual else source.taken or 0
        board = Board(source.name, moment.policy, virtual, still=True)
        watched = Watched(moment.engine, board, source.settings.topology)

        def told(event: Event) -> None:
            if isinstance(event, PodSet) and not virtual:
                event = PodSet(_dated(event.pod, simulation))
            watched.apply(event, self._now)

        simulation.world.mirror.replay(told)
        for entry in _story(simulation):
            watched.note(entry)
        self.watched: Watched | None = watched

    def clock(self) -> int:
        """The moment that the files are of."""
        return self._now


def _dated(pod: Pod, simulation: Simulation) -> Pod:
    """A pod with the times that its object has: in a simulation it has those of virtual time."""
    record = simulation.world.record_of(pod.path)
    body = record.body if record is not None else {}
    times = []
    for fields in (("metadata", "creationTimestamp"), ("status", "startTime")):
        written = seek(body, *fields)
        known = isinstance(written, str)
        times.append((timestamp(written, pod.path, ".".join(fields)) if known else None) or 0)
    return replace(pod, created=times[0], started=times[1])


def _story(simulation: Simulation) -> Iterator[story.Entry]:
    for done in simulation.history:
        for entry in entries(simulation.engine, [done.decision]):
            told = story.decided(msgspec.to_builtins(entry), seconds(done.at))
            if told is not None:
                yield told
