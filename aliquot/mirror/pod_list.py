"""Pods in a row, given to the engine at once.

When a list of objects is read, or everything is told to a new engine, thousands of events come one
after another that are each about a pod. They are gathered up to the next event of another kind, and
booked together, which takes a fraction of the time. Their order among all events stays as it is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aliquot.engine import Engine, Event, Pod, PodSet


class PodList:
    """Applies events to an engine, pods in a row together while it gathers."""

    def __init__(self, engine: Engine, told: Callable[[Event], None] = lambda event: None) -> None:
        """`told` is called with each event once the engine has it."""
        self._engine = engine
        self._told = told
        self._pods: list[Pod] = []
        self._gathers = False

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Gather pods up to the end of the block: in it, the engine is asked nothing."""
        self._gathers = True
        try:
            yield
        finally:
            self._gathers = False
        self._flush()

    def apply(self, event: Event) -> None:
        """Apply an event, or gather it."""
        if self._gathers and type(event) is PodSet:
            self._pods.append(event.pod)
            return
        self._flush()
        self._engine.apply(event)
        self._told(event)

    def _flush(self) -> None:
        pods, self._pods = self._pods, []
        if pods:
            self._engine.load(pods)
        for pod in pods:
            self._told(PodSet(pod))
