"""The real kube-scheduler, asked on which nodes it would put a pod, and told which one to take.

It sends the nodes that all of its filters accept to an extender before it chooses one: here, to the
test. So the answer is for every node, and the pod is as it was: a node affinity added to pin it
would change between which nodes its topology spread counts.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from aiohttp import web

from aliquot.bench.envtest import answers, assets, free_ports
from aliquot.bench.process import child
from aliquot.json import Body

NAME = "default-scheduler"
_QPS, _BURST = 5_000, 10_000


@dataclass(slots=True)
class Extender:
    """What kube-scheduler has said, and what it may do, by the path of a pod."""

    feasible: dict[str, frozenset[str]] = field(default_factory=dict)
    """The nodes that its filters accept, once it has looked and there is any."""
    pins: dict[str, str] = field(default_factory=dict)
    """The node that a pod may be bound to; a pod without one is bound nowhere."""

    async def filter(self, request: web.Request) -> web.Response:
        """Note the nodes, and leave the one that the pod is pinned to."""
        told = await request.json()
        about = told["Pod"]["metadata"]
        path = f"{about['namespace']}/{about['name']}"
        names = told["NodeNames"] or []
        self.feasible[path] = frozenset(names)
        left = [name for name in names if name == self.pins.get(path)]
        others = {name: "not the node that is asked about" for name in names if name not in left}
        return web.json_response({"NodeNames": left, "FailedNodes": others})


def binary() -> Path | None:
    """Where kube-scheduler is, beside kube-apiserver; None if it is not."""
    folder = assets()
    found = folder / "kube-scheduler" if folder else None
    return found if found is not None and found.exists() else None


@asynccontextmanager
async def kube_scheduler(kubeconfig: Path, folder: Path) -> AsyncIterator[Extender]:
    """kube-scheduler with its default plugins, for as long as the block lasts."""
    extender, app = Extender(), web.Application(client_max_size=2**24)
    app.router.add_post("/filter", extender.filter)
    own, probes = free_ports(2)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", own).start()
    file = folder / "kube-scheduler.yaml"
    file.write_text(yaml.safe_dump(_configuration(kubeconfig, f"http://127.0.0.1:{own}")))
    command = [str(binary()), "--config", str(file), "--bind-address", "127.0.0.1"]
    command += ["--secure-port", str(probes)]
    try:
        with child(command, folder / "kube-scheduler") as made:
            made.wait(lambda: answers(f"https://127.0.0.1:{probes}/readyz"))
            yield extender
    finally:
        await runner.cleanup()


def _configuration(kubeconfig: Path, extender: str) -> Body:
    client = {"kubeconfig": str(kubeconfig), "qps": _QPS, "burst": _BURST}
    asked = {"urlPrefix": extender, "filterVerb": "filter", "nodeCacheCapable": True}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": client,
        "leaderElection": {"leaderElect": False},
        "extenders": [{**asked, "httpTimeout": "60s"}],
    }
