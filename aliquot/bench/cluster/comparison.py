"""All measurements of a whole cluster, one after the other, each on a fresh API server.

The real server is used where it is found, else the embedded one; every figure says which. Figures
of schedulers are only ever compared with each other within one run, on one machine.
"""

import signal
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from aliquot.bench import envtest, interruption
from aliquot.bench.cluster import load
from aliquot.bench.cluster.bare_binder import bare_binder
from aliquot.bench.cluster.binding import Backlog, Stream, backlog, stream
from aliquot.bench.cluster.cluster import Cluster, cluster, fresh_server
from aliquot.bench.cluster.scheduler_process import (
    SchedulerProcess,
    kube_schedulers,
    without_election,
)
from aliquot.bench.cluster.start import start
from aliquot.bench.cluster.steady import RATES, SECONDS, steady
from aliquot.bench.cluster.steady import figures as steady_figures
from aliquot.bench.cluster.takeover import take_over
from aliquot.bench.figure import Figure
from aliquot.errors import InputError

Part = Literal["binding", "limit", "steady", "start", "takeover"]
PARTS: tuple[Part, ...] = get_args(Part)
Progress = Callable[[str], None]
_ROUNDS = 3
"""Measurements beside each other alternate, and the best of each counts: noise only slows down."""
_FULL = 5_000
"""The nodes that budgets are about."""
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure."""

    nodes: tuple[int, ...] = (500, 5_000)
    pods: int = 10_000
    listed: int = 50_000
    """Pods that run already when a scheduler starts."""
    kube_scheduler: Path | None = None
    """Its binary; without it, the one beside kube-apiserver, if there is one."""
    parts: tuple[Part, ...] = PARTS
    rates: tuple[int, ...] = RATES
    """Of steady arrivals, in pods a second."""
    seconds: int = SECONDS
    """How long each rate is held."""


def measure(settings: Settings, progress: Progress) -> list[Figure]:
    """Measure it all. Whatever ends it early, also ends all that it started."""
    _check(settings)
    server = envtest.version() or "the embedded server"

    def say(words: str) -> None:
        progress(f"{words}, on {server}")

    with interruption.noted():
        figures = [*_parts(settings, say)]
    return [replace(each, on=f"{each.on}, on {server}") for each in figures]


def _parts(settings: Settings, say: Progress) -> Iterator[Figure]:
    if "binding" in settings.parts:
        for nodes in settings.nodes:
            yield from _bind(settings, nodes, say)
    if "limit" in settings.parts:
        yield from _limit(settings, say)
    if "steady" in settings.parts:
        yield from _steady(settings, say)
    if "start" in settings.parts:
        nodes = max(settings.nodes)
        say(f"a start with {nodes:,} nodes, {settings.listed:,} pods that run")
        yield from _run(nodes, lambda made: start(made, settings.listed))
    if "takeover" in settings.parts:
        nodes = min(settings.nodes)
        for how in (signal.SIGKILL, signal.SIGTERM):
            say(f"two schedulers, {how.name} to the one that leads")
            yield _run(nodes, partial(take_over, how=how))


def _bind(settings: Settings, nodes: int, say: Progress) -> Iterator[Figure]:
    """All schedulers on so many nodes, and Aliquot beside the others."""
    ours, *others = [
        _measure_binding(each, settings.pods, nodes, say) for each in _schedulers(settings)
    ]
    yield from ours.figures()
    for each in others:
        yield from each.figures()
        yield from each.beside(ours)


def _limit(settings: Settings, say: Progress) -> Iterator[Figure]:
    """How fast Aliquot binds what was created before, beside a bare binder: the best of each."""
    ours, nodes = without_election(), max(settings.nodes)
    bare, best = bare_binder(ours.scheduler_name), dict[str, Backlog]()
    for turn in range(_ROUNDS):
        for process in (ours, bare):
            say(f"{nodes:,} nodes, {process.title}: round {turn + 1} of {_ROUNDS}")
            found = _run(nodes, partial(backlog, process=process, count=settings.pods))
            last = best.get(process.title, found)
            best[process.title] = max(found, last, key=lambda each: each.bound)
    for title, each in best.items():
        yield from each.figures(f"{nodes:,} nodes, {title}, best of {_ROUNDS}")
    budget = ">= 0.9" if nodes >= _FULL else ""
    ratio = best[ours.title].bound / best[bare.title].bound
    on = f"aliquot beside a bare binder, {nodes:,} nodes"
    yield Figure("bound, created before", ratio, "x", budget, on)


def _steady(settings: Settings, say: Progress) -> Iterator[Figure]:
    """Waits at an even pace, alone and beside pods that run."""
    ours, *others = _schedulers(settings)
    processes, nodes = [ours, *(each for each in others if not each.slow)], max(settings.nodes)
    for running in (0, settings.listed):
        on = f"{nodes:,} nodes, {running:,} pods that run"

        def tell(words: str, on: str = on) -> None:
            say(f"steady arrivals, {on}, {words}")

        tell("which are created first")
        work = partial(
            steady,
            processes=processes,
            running=running,
            say=tell,
            rates=settings.rates,
            seconds=settings.seconds,
        )
        found = _run(nodes, work)
        yield from steady_figures(found, on)


@dataclass(frozen=True, slots=True)
class _BindingResult:
    """The figures of one scheduler."""

    on: str
    title: str
    backlog: Backlog
    stream: Stream | None

    def figures(self) -> Iterator[Figure]:
        if self.stream is not None:
            yield from self.stream.figures(self.on)
        yield from self.backlog.figures(self.on)

    def beside(self, ours: "_BindingResult") -> Iterator[Figure]:
        """The figures of Aliquot as a multiple of those of this scheduler."""
        on = f"aliquot beside it, {self.on}"
        ratio = ours.backlog.bound / self.backlog.bound
        yield Figure("bound, created before", ratio, "x", ">= 1", on)
        if self.stream is not None and ours.stream is not None:
            theirs, own = self.stream, ours.stream
            yield Figure("bound as they come", own.bound / theirs.bound, "x", ">= 1", on)
            spent = (own.cpu + own.server_cpu) / (theirs.cpu + theirs.server_cpu)
            yield Figure("CPU for a pod, API server included", spent, "x", on=on)


def _measure_binding(
    process: SchedulerProcess, pods: int, nodes: int, say: Progress
) -> _BindingResult:
    on = f"{nodes:,} nodes, {process.title}"
    as_they_come = None
    if not process.slow:
        say(f"{on}: {pods:,} pods as they come")
        as_they_come = _run(nodes, lambda made: stream(made, process, pods))
    say(f"{on}: {pods:,} pods that are there before")
    created_before = _run(nodes, lambda made: backlog(made, process, pods))
    return _BindingResult(on, process.title, created_before, as_they_come)


def _schedulers(settings: Settings) -> list[SchedulerProcess]:
    """Aliquot comes first. kube-scheduler needs kinds that the embedded server does not serve."""
    folder = envtest.assets()
    if folder is None:
        return [without_election()]
    binary = settings.kube_scheduler or folder / "kube-scheduler"
    return [without_election(), *(kube_schedulers(binary) if binary.exists() else [])]


def _check(settings: Settings) -> None:
    """Refuse what cannot be measured, before anything is started."""
    if "binding" in settings.parts:
        _fit(min(settings.nodes), "--pods", settings.pods)
    if "start" in settings.parts:
        _fit(max(settings.nodes), "--pods-listed", settings.listed)
    file = settings.kube_scheduler
    if file is None:
        return
    if not file.is_file():
        raise InputError("bench cluster", "--kube-scheduler", f"{file}: no such file")
    if envtest.assets() is None:
        problem = f"needs the real API server: {envtest.MISSING}"
        raise InputError("bench cluster", "--kube-scheduler", problem)


def _fit(nodes: int, option: str, pods: int) -> None:
    most = load.MOST_FOR_A_NODE * nodes
    if pods > most:
        problem = f"{pods} do not fit {nodes} nodes: at most {most}"
        raise InputError("bench cluster", option, problem)


def _run(nodes: int, work: Callable[[Cluster], Coroutine[Any, Any, Found]]) -> Found:
    """Do this on a cluster of its own."""

    async def run() -> Found:
        async with cluster(server, folder, nodes) as made:
            return await work(made)

    with fresh_server() as (server, folder):
        return interruption.run(run())
