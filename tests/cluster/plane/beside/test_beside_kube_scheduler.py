"""Aliquot beside kube-scheduler on random clusters: it binds no pod where kube-scheduler would not,
and leaves none waiting that kube-scheduler would start.

A wrong answer names its seed: `ALIQUOT_SEED` plays clusters from that one on.
"""

import asyncio
import os
import time
from pathlib import Path

import pytest

from tests.campaign import length, piece
from tests.cluster.plane.beside.kube_scheduler import binary, kube_scheduler
from tests.cluster.plane.beside.random_cluster import RandomCluster
from tests.cluster.plane.beside.rivals import Rivals, Tally
from tests.cluster.plane.beside.witness import Notes, witness
from tests.cluster.plane.cluster import Cluster
from tests.cluster.plane.ground import Ground, ground

_PIECES = 1_000
"""Commits play different clusters: so many samples are apart."""
_SAMPLE, _WHOLE, _ROUNDS = 2, 300, 8
"""Clusters, and rounds on each: on a busy machine a cluster takes some six seconds."""
pytestmark = pytest.mark.skipif(
    binary() is None, reason="kube-scheduler is not beside kube-apiserver"
)


def test_random_clusters_on_a_real_server(real_cluster: Cluster, tmp_path: Path) -> None:
    tally = Tally()
    clusters = length(_SAMPLE, _WHOLE)
    first = int(os.environ.get("ALIQUOT_SEED") or piece(_PIECES) * _SAMPLE)

    async def look() -> None:
        kubeconfig = real_cluster.server.kubeconfig
        async with ground(kubeconfig) as made, kube_scheduler(kubeconfig, tmp_path) as extender:
            notes = Notes(lambda: _asked(made))
            async with made.plane(make_engine=witness(notes)) as plane:
                rivals = Rivals(made, plane, extender, notes, tally)
                for seed in range(first, first + clusters):
                    began, before = time.monotonic(), len(tally.wrong)
                    await rivals.play(RandomCluster(seed), _ROUNDS)
                    print(*tally.wrong[before:], sep="\n\n")
                    print(f"{seed}: {time.monotonic() - began:.1f} s; {tally}", flush=True)

    try:
        asyncio.run(look())
    finally:
        real_cluster.wipe()
    assert not tally.wrong, "\n\n".join((str(tally), *tally.wrong))
    assert min(tally.bound, tally.judged) > 0, tally


def _asked(made: Ground) -> list[str]:
    """The pods that wait for Aliquot."""
    return [
        uid
        for uid, pod in made.books.pods.items()
        if pod["spec"]["schedulerName"] == "aliquot" and "nodeName" not in pod["spec"]
    ]
