"""A burst of reclaims on a live scheduler: four teams ask at once for what four others borrow.

The burst must not starve anything else: neither the writes of its own decisions, nor the probes,
nor a pod that needs no victim. So beside the teams' pods, a pod that has nothing to do with them is
created again and again, /livez is asked all the time, and the scheduler's main loop is probed
(`loop_probe`).
"""

import asyncio
import http.client
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from urllib.parse import urlsplit

from aliquot.bench import envtest, interruption
from aliquot.bench.cluster import burst_load, loop_probe
from aliquot.bench.cluster.cluster import (
    Cluster,
    ServerKind,
    chosen_server,
    create_all,
    define,
    fresh_server,
)
from aliquot.bench.cluster.pod_life import PodLife, live
from aliquot.bench.cluster.scheduler_process import (
    RunningScheduler,
    SchedulerProcess,
    run_scheduler,
)
from aliquot.bench.figure import Figure
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CUSTOM, NAMESPACES, NODES, PODS

NODE_COUNT = 40
"""The nodes that the budgets are about."""
_PATIENCE = 300.0
"""Seconds for everything to settle: fifteen times the budget, so that a slow run has a figure."""
_CONNECTIONS = 32
_PROBE_SECONDS = 0.02
"""Between two requests to /livez."""
_APART_SECONDS = 0.25
"""Between two pods that have nothing to do with the burst."""
_QUOTAS = CUSTOM["elasticquotas.nos.nebuly.com"]
_NOTES = "delays"


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure."""

    nodes: tuple[int, ...] = (NODE_COUNT,)
    server: ServerKind | None = None
    """Without a choice, kube-apiserver if its binaries are found, else the embedded one."""


def measure(settings: Settings, progress: Callable[[str], None]) -> list[Figure]:
    """Measure it for each number of nodes. Whatever ends it early, also ends all it started."""
    real, server = chosen_server("bench reclaim-burst", settings.server)
    figures: list[Figure] = []
    with interruption.noted():
        for nodes in settings.nodes:
            on = f"{nodes} nodes, on {server}"

            def say(words: str, on: str = on) -> None:
                progress(f"{words}, {on}")

            with fresh_server(real) as (made, folder):
                burst = interruption.run(_run(made, folder, nodes, say))
            figures += burst.figures(on)
    return figures


@dataclass(slots=True)
class Burst:
    """What was measured; times are on the clock of `time.perf_counter`."""

    nodes: int
    began: float
    """When the first pod of the burst was sent."""
    ended: float
    """When everything had settled, or patience was at its end."""
    created: float
    """Seconds to create all pods of the burst."""
    binds: list[float]
    """Of the pods of the burst, in order."""
    others_bound: int
    """Pods of the borrowing teams that were bound after the burst had begun."""
    evictions: int
    put_off: float
    delays: list[loop_probe.Delay]
    slowest_answer: float
    """Seconds, of /livez."""
    waits_apart: list[float]
    """Of the pods that have nothing to do with the burst."""
    cpu: float
    """Seconds of the scheduler's processor time."""

    def figures(self, on: str) -> Iterator[Figure]:
        """The figures to print; budgets are about full sizes."""

        def budget(bound: str) -> str:
            return bound if self.nodes >= NODE_COUNT else ""

        asked, needed = burst_load.asked(self.nodes), burst_load.to_evict(self.nodes)
        marks = [self.began, *self.binds, *([self.ended] if len(self.binds) < asked else [])]
        gap = max(after - before for before, after in pairwise([*marks, marks[-1]]))
        first = (self.binds[0] if self.binds else self.ended) - self.began
        worst = {
            what: max(
                (each for each in self.delays if each.what == what),
                key=lambda each: each.seconds,
                default=loop_probe.Delay(what, 0.0, 0.0, 0.0),
            )
            for what in (loop_probe.LOOP, loop_probe.CYCLE)
        }
        loop, cycle = worst[loop_probe.LOOP], worst[loop_probe.CYCLE]
        yield Figure("until the first bind", first, "s", budget("<= 1"), on)
        yield Figure("until all has settled", self.ended - self.began, "s", budget("<= 20"), on)
        yield Figure("pods of the burst that wait still", asked - len(self.binds), "", "<= 0", on)
        yield Figure("longest time without a bind", gap, "s", on=on)
        yield Figure("evictions", self.evictions, "", f"<= {needed}", on)
        yield Figure("binds of the burst", len(self.binds), "", f">= {asked}", on)
        yield Figure("binds of teams that gave back", self.others_bound, "", on=on)
        yield Figure("writes put off", self.put_off, "", "<= 0", on)
        yield Figure("longest cycle", cycle.seconds * 1e3, "ms", on=on)
        yield Figure("CPU of the longest cycle", cycle.cpu * 1e3, "ms", on=on)
        yield Figure(
            "longest wait for the main loop", loop.seconds * 1e3, "ms", budget("<= 100"), on
        )
        yield Figure("CPU of the main loop meanwhile", loop.cpu * 1e3, "ms", on=on)
        yield Figure(
            "slowest answer of /livez", self.slowest_answer * 1e3, "ms", budget("<= 100"), on
        )
        apart = max(self.waits_apart, default=0.0)
        yield Figure("longest wait of a pod apart", apart, "s", budget("<= 1"), on)
        yield Figure("creating the burst", self.created, "s", on=on)
        yield Figure("CPU of the scheduler", self.cpu, "s", on=on)


async def _run(
    server: envtest.Server, folder: Path, nodes: int, say: Callable[[str], None]
) -> Burst:
    find = access.find(server.kubeconfig)
    async with (
        Client(find, connections=_CONNECTIONS) as client,
        Client(find, connections=_CONNECTIONS) as kubelets,
    ):
        await define(client)
        await create_all(client, NAMESPACES, burst_load.namespaces())
        await create_all(client, NODES, burst_load.cluster_nodes(nodes))
        await create_all(client, _QUOTAS, burst_load.quotas(nodes))
        cluster = Cluster(server, folder, client, nodes + 1)
        async with (
            live(kubelets, burst_load.successor) as life,
            run_scheduler(_probed(), cluster) as scheduler,
        ):
            await scheduler.until_ready()
            say(f"{burst_load.running(nodes):,} pods that borrow")
            await create_all(client, PODS, burst_load.borrowing_pods(nodes))
            await scheduler.until(lambda: len(life.bound) >= burst_load.running(nodes), _PATIENCE)
            await scheduler.until(lambda: life.idle, _PATIENCE)
            say(f"{burst_load.asked(nodes):,} pods that are owed what is lent")
            return await _burst(client, life, scheduler, nodes, _PATIENCE)


async def _burst(
    client: Client, life: PodLife, scheduler: RunningScheduler, nodes: int, patience: float
) -> Burst:
    """Create the pods of the burst, and follow them until all has settled."""
    root = scheduler.ready.removesuffix("/readyz")
    before, cpu = await _put_off(root), scheduler.child.usage().cpu
    owed = {each["metadata"]["name"] for each in burst_load.owed_pods(nodes)}
    apart, prober = _PodsApart(client, life), _Prober(f"{root}/livez")
    creating = asyncio.create_task(apart.run())
    with prober:
        began = time.perf_counter()
        await create_all(client, PODS, burst_load.owed_pods(nodes))
        created = time.perf_counter() - began

        def settled() -> bool:
            return owed <= life.bound.keys() and life.idle

        try:
            await scheduler.until(settled, patience)
            ended = max(life.bound[name] for name in owed)
        except TimeoutError:
            ended = time.perf_counter()
    creating.cancel()
    bound = life.bound
    binds = sorted(at for name, at in bound.items() if name in owed)
    return Burst(
        *(nodes, began, ended, created, binds),
        others_bound=sum(
            at >= began and name[0] in burst_load.BORROWERS
            for name, at in bound.items()
            if not name.startswith(burst_load.APART)
        ),
        evictions=sum(each.ending is not None for each in life.pods.values()),
        put_off=await _put_off(root) - before,
        delays=loop_probe.read(scheduler.child.folder / _NOTES, began),
        slowest_answer=prober.slowest,
        waits_apart=apart.waits(),
        cpu=scheduler.child.usage().cpu - cpu,
    )


def _probed() -> SchedulerProcess:
    """Aliquot without leader election, with a probe inside."""

    def command(file: Path, folder: Path, port: int) -> list[str]:
        probe = [sys.executable, "-m", loop_probe.__name__, str(folder / _NOTES)]
        options = ["--host", "127.0.0.1", "--health-port", str(port), "--no-leader-election"]
        return [*probe, "scheduler", "--kubeconfig", str(file), *options]

    return SchedulerProcess("aliquot", burst_load.SCHEDULER, command, "http")


@dataclass(slots=True)
class _PodsApart:
    """Creates pods that have nothing to do with the burst, and knows how long each waited."""

    client: Client
    life: PodLife
    created: dict[str, float] = field(default_factory=dict)

    async def run(self) -> None:
        """Create one after the other, until cancelled."""
        for number in count():
            pod = burst_load.pod_apart(number)
            await self.client.post(PODS.path(burst_load.APART), pod)
            self.created[pod["metadata"]["name"]] = time.perf_counter()
            await asyncio.sleep(_APART_SECONDS)

    def waits(self) -> list[float]:
        """Seconds from created to bound, or until now."""
        bound, now = self.life.bound, time.perf_counter()
        return [max(bound.get(name, now) - at, 0.0) for name, at in self.created.items()]


class _Prober:
    """Asks a probe all the time, in a thread of its own; keeps how long the slowest answer took."""

    def __init__(self, url: str) -> None:
        self.slowest = 0.0
        self._url = urlsplit(url)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prober", daemon=True)

    def __enter__(self) -> "_Prober":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(10)

    def _run(self) -> None:
        connection = http.client.HTTPConnection(str(self._url.netloc), timeout=60)
        while not self._over.wait(_PROBE_SECONDS):
            began = time.perf_counter()
            try:
                connection.request("GET", self._url.path)
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                connection.close()  # kept alive for too long, or the scheduler has ended
            self.slowest = max(self.slowest, time.perf_counter() - began)


async def _put_off(root: str) -> float:
    """How many writes the scheduler has put off so far, as its metrics say."""

    def read() -> str:
        with urllib.request.urlopen(f"{root}/metrics", timeout=60) as answer:
            text: bytes = answer.read()
            return text.decode()

    lines = (await asyncio.to_thread(read)).splitlines()
    found = [line for line in lines if line.startswith("aliquot_writes_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in found if 'result="put off"' in line)
