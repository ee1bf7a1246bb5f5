"""`aliquot bench cluster` on a cluster so small that it only shows that everything is measured."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.campaign import SOAK, length
from tests.cli.conftest import Run
from tests.cluster.api import binaries
from tests.cluster.api.polling import eventually
from tests.signals import sigint

_TINY = ("--nodes", "10", "--pods", "50", "--pods-listed", "20")


def test_every_figure_of_a_cluster_is_measured(aliquot: Run, tmp_path: Path) -> None:
    parts = ("--part", "binding", "--part", "start")
    ran = aliquot("bench", "cluster", *_TINY, *parts, "-o", "json", KUBEBUILDER_ASSETS="/nowhere")
    assert ran.code == 0, ran.err
    figures = json.loads(ran.out)["cluster"]
    assert [(each["on"], each["what"], each["unit"]) for each in figures] == [
        *(
            ("10 nodes, aliquot, on the embedded server", what, unit)
            for what, unit in (
                ("created meanwhile", "pods/s"),
                ("bound as they come", "pods/s"),
                ("from created to bound, median", "ms"),
                ("from created to bound, p99", "ms"),
                ("CPU of the scheduler, a pod", "ms"),
                ("CPU of API server and store, a pod", "ms"),
                ("most memory of the scheduler", "MiB"),
                ("bound, created before", "pods/s"),
                ("cores busy with the scheduler", ""),
                ("cores busy with API server and store", ""),
                ("cores busy with anything else", ""),
            )
        ),
        *(
            ("10 nodes, 20 pods that run, aliquot, on the embedded server", what, unit)
            for what, unit in (
                ("from its start to ready", "s"),
                ("CPU until ready", "s"),
                ("memory when ready", "MiB"),
                ("from its start to the first pod bound", "s"),
                ("CPU until the first pod is bound", "s"),
                ("most memory until then", "MiB"),
            )
        ),
    ]
    measured = {each["what"]: each["value"] for each in figures}
    assert min(measured["bound, created before"], measured["bound as they come"]) > 0
    assert measured["from its start to ready"] > 0
    assert measured["memory when ready"] > 20
    assert all(each["budget"] == "" for each in figures), "budgets are about full sizes"


@pytest.mark.skipif(not SOAK, reason="a scheduler and a server of its own: in `make soak`")
@pytest.mark.parametrize("server", ["embedded", *(["real"] if binaries.real_server() else [])])
def test_a_burst_of_reclaims_is_followed_to_its_end(aliquot: Run, server: str) -> None:
    ran = aliquot("bench", "reclaim-burst", "--nodes", "2", "--server", server, "-o", "json")
    assert ran.code == 0, ran.err
    figures = {each["what"]: each for each in json.loads(ran.out)["reclaim-burst"]}
    assert figures["binds of the burst"]["value"] == 48
    assert figures["evictions"]["value"] == 42
    assert figures["pods of the burst that wait still"]["value"] == 0
    assert figures["binds of teams that gave back"]["value"] == 0
    assert figures["until the first bind"]["value"] > 0
    assert figures["until the first bind"]["value"] <= figures["until all has settled"]["value"]
    assert figures["slowest answer of /livez"]["value"] > 0
    assert figures["until all has settled"]["budget"] == "", "budgets are about full sizes"


@pytest.mark.parametrize(
    ("number", "ignored"),
    [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, True)],
    ids=["SIGINT", "SIGINT, ignored before", "SIGTERM"],
)
def test_nothing_is_left_behind_when_it_is_stopped(
    tmp_path: Path, number: int, ignored: bool
) -> None:
    with _bench(tmp_path, ignored) as bench:
        eventually(lambda: bench.poll() is not None or len(_children(bench.pid)) >= 2, seconds=120)
        assert bench.poll() is None
        bench.send_signal(number)
        assert bench.wait(timeout=120) == 130
        assert not _left(tmp_path)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("cluster", "--nodes", "ten"), "'ten' is not like 500,5000"),
        (("cluster", "--nodes", "2", "--pods", "41"), "41 do not fit 2 nodes: at most 40"),
        (("cluster", "--nodes", "9", "--part", "start"), "--pods-listed: 50000 do not fit 9 nodes"),
        (("cluster", "--kube-scheduler", "/nowhere/it"), "/nowhere/it: no such file"),
        (("packing", "--trace", "openb:a"), "neither openb:NODES.csv,PODS.csv nor csv:PODS.csv"),
        (("packing", "--trace", "csv:/nowhere.csv"), "/nowhere.csv"),
        (("gpu", "--seeds", "2"), "--seeds: only for `bench packing`"),
        (("decisions", "--pods", "5"), "--pods: only for `bench cluster`"),
        (
            ("cluster", "--server", "real"),
            "--server: only for `bench reclaim-burst` and `bench kueue`",
        ),
        (("share", "--nodes", "5"), "--nodes: only for `bench cluster` and `bench reclaim-burst`"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(
    aliquot: Run, words: tuple[str, ...], problem: str
) -> None:
    ran = aliquot("bench", *words)
    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err


@pytest.mark.parametrize("tenths", range(10, length(31, 110), length(20, 1)))
def test_nothing_is_left_behind_whenever_it_is_stopped(tmp_path: Path, tenths: int) -> None:
    with _bench(tmp_path, ignored=False) as bench:
        with suppress(subprocess.TimeoutExpired):
            bench.wait(timeout=tenths / 10)
        bench.send_signal(signal.SIGTERM)
        assert bench.wait(timeout=120) in (130, -signal.SIGTERM)  # the latter while it is read
        assert not _left(tmp_path)
        assert not list(tmp_path.iterdir())


@contextmanager
def _bench(folder: Path, ignored: bool) -> Iterator["subprocess.Popen[bytes]"]:
    """It runs, with SIGINT ignored as in a background job, or not; no process of it stays."""
    environment = {**os.environ, "KUBEBUILDER_ASSETS": "/nowhere", "TMPDIR": str(folder)}
    command = [sys.executable, "-m", "aliquot", "bench", "cluster", *_TINY]
    quiet = subprocess.DEVNULL
    with sigint(ignored):
        bench = subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet)
    with bench:
        try:
            yield bench
        finally:
            bench.kill()
            for pid in _left(folder):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _left(folder: Path) -> list[int]:
    """The processes that a bench with this TMPDIR has started, and itself, as long as it runs."""
    word = f"TMPDIR={folder}".encode()
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended, or is another user's
            if word in file.read_bytes().split(b"\0"):
                found.append(int(file.parent.name))
    return found


def _children(pid: int) -> list[int]:
    """The processes that a process has started and that are there."""
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(word) for word in words]
