"""The brakes on evictions on a cluster: paused, resumed, and at most so many a minute."""

import pytest

from aliquot.cli.main import run
from tests.build.manifests import limited_pod, quota
from tests.cluster.plane.cluster import Cluster

LEASE = "aliquot-system/aliquot-scheduler"
BORROWED = ["lent/p-1", "lent/p-2"]


def test_no_pod_is_evicted_while_that_is_paused_and_then_one_a_minute(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """A restart changes nothing: the pause is in the cluster."""
    reach = ["--kubeconfig", str(cluster.server.kubeconfig)]
    cluster.nodes(1, gpu=3)
    cluster.apply(
        quota("owner/owner", {"gpu": 3}),
        quota("lent/lent", {"gpu": 0}),
        *(limited_pod(name, 1, nodeName="node-1") for name in BORROWED),
    )
    brake = {"eviction": {"maxPerMinute": 1}}
    try:
        assert run(["pause", "evictions", "--reason", "an incident", "--for", "1h", *reach]) == 0
        assert "Evictions are paused by " in capsys.readouterr().out
        with cluster.scheduler(**brake):
            cluster.apply(*(limited_pod(f"owner/o-{number}", 1) for number in (1, 2, 3)))
            cluster.running("owner/o-1")  # what needs no eviction starts
            cluster.pending("owner/o-2", "EvictionsPaused", "an incident", "they resume in")
            cluster.told("Pod", "owner/o-2", "FailedScheduling", "EvictionsPaused: ")
            cluster.told("Lease", LEASE, "EvictionsPaused", "an incident")
        with cluster.scheduler(**brake) as leader:
            leader.wait_for("evictions are paused")
            cluster.pending("owner/o-3", "EvictionsPaused")
            cluster.untouched(*BORROWED)
            assert run(["resume", "evictions", *reach]) == 0
            cluster.running("owner/o-2")
            assert len(cluster.evictions(1)) == 1
            cluster.told("Lease", LEASE, "EvictionsResumed")
            cluster.pending("owner/o-3", "EvictionBrake", "1 of 1", "eviction.maxPerMinute is 1")
            cluster.told("Pod", "owner/o-3", "FailedScheduling", "EvictionBrake: ")
            cluster.told("Lease", LEASE, "EvictionsBraked", "eviction.maxPerMinute is 1")
            assert len(cluster.evictions(1)) == 1
    finally:
        run(["resume", "evictions", *reach])


def test_what_cannot_be_paused_is_said_in_one_line(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    reach = ["--kubeconfig", str(cluster.server.kubeconfig)]
    assert run(["pause", "evictions", "--namespace", "nowhere", *reach]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "namespace nowhere: is not there; --namespace names" in said.err
    assert said.out == ""
