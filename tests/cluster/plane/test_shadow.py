"""`aliquot scheduler --shadow`: writes nothing, and compares with what really happens."""

import json
from pathlib import Path

import pytest

from aliquot.bench.cluster.scheduler_process import kube_schedulers
from aliquot.bench.envtest import free_ports
from aliquot.bench.process import child
from aliquot.json import Body
from tests.build.manifests import limited_pod, quota
from tests.cluster.api import binaries
from tests.cluster.plane.cluster import Cluster
from tests.cluster.plane.schedulers import Running

SHADOW = ("--shadow", "-o", "json", "--every", "1s")
PRESENT = "present-scheduler"


def last(running: Running) -> Body:
    """The last report that was printed."""
    reports = [each for each in running.lines if "differences" in each]
    return reports[-1] if reports else {}


def reports(cluster: Cluster, running: Running, part: str, **wanted: int) -> None:
    """Wait for a report with these figures."""

    def problem() -> object:
        found = last(running).get(part, {})
        return None if wanted.items() <= found.items() else found or "no report"

    cluster.until(problem)


def beside(cluster: Cluster, *options: str) -> Running:
    running = cluster.start(*SHADOW, *options)
    running.wait_for("watching")
    return running


def test_a_shadow_writes_nothing_and_says_what_it_would_have_done(cluster: Cluster) -> None:
    cluster.nodes(2, gpu=3)
    cluster.apply(
        quota("owner/owner", {"gpu": 6}),
        quota("lent/lent", {"gpu": 0}),
        quota("other/other", {"gpu": 0}, {"gpu": 0}),
        limited_pod("lent/runs", 2, nodeName="node-1", schedulerName=PRESENT),
        limited_pod("other/more", 1, schedulerName=PRESENT),
        limited_pod("owner/big", 3, schedulerName=PRESENT),
        limited_pod("owner/small", 2, schedulerName=PRESENT),
    )
    cluster.running("lent/runs")
    before = cluster.versions()
    shadow = beside(cluster)
    reports(cluster, shadow, "pending", wouldStart=1, wouldEvict=1, wouldWait=1)
    assert cluster.versions() == before
    cluster.bind("owner/big", "node-2")
    reports(cluster, shadow, "pods", agrees=1)
    cluster.bind("other/more", "node-1")
    reports(cluster, shadow, "pods", agrees=1, wouldWait=1)
    cluster.delete("Pod", "owner/small")
    reports(cluster, shadow, "pods", neverStarted=1)
    cluster.untouched("lent/runs", "other/more")
    shadow.stop()
    found = last(shadow)
    assert [each["pod"] for each in found["wouldEvict"]] == ["lent/runs"]
    assert found["wouldEvict"][0]["for"] == "owner/small"
    assert found["wouldWaitFor"] == {"QuotaMaxExceeded": 1}
    assert found["evictions"]["cluster"] == 0
    assert {each["pod"] for each in found["differences"]} >= {"other/more", "owner/small"}
    assert not cluster.all("Lease") or all(
        each["metadata"]["namespace"] != "aliquot-system" for each in cluster.all("Lease")
    )


def test_a_shadow_beside_aliquot_agrees_with_it(cluster: Cluster) -> None:
    cluster.nodes(1, gpu=4)
    cluster.apply(quota("owner/owner", {"gpu": 4}), quota("lent/lent", {"gpu": 0}))
    shadow = beside(cluster)
    with cluster.scheduler():
        cluster.apply(limited_pod("lent/runs", 3), limited_pod("owner/first", 1))
        cluster.running("lent/runs", "owner/first")
        reports(cluster, shadow, "pods", agrees=2)
        cluster.apply(limited_pod("owner/second", 2))
        cluster.running("owner/second")
        cluster.gone("lent/runs")
        reports(cluster, shadow, "pods", agrees=3, wouldWait=0, wouldEvict=0, otherNode=0)
    shadow.stop()


@pytest.mark.skipif(binaries.real_server() is None, reason=binaries.NO_REAL_SERVER)
def test_a_shadow_beside_kube_scheduler(real_cluster: Cluster, tmp_path: Path) -> None:
    """kube-scheduler knows no quotas: it starts what Aliquot would have let wait."""
    cluster, assets = real_cluster, binaries.real_server()
    binary = Path(str(assets)) / "kube-scheduler"
    if not binary.exists():
        pytest.skip("kube-scheduler is not beside kube-apiserver")
    (port,) = free_ports(1)
    command = kube_schedulers(binary)[0].command(cluster.server.kubeconfig, tmp_path, port)
    try:
        cluster.nodes(1, gpu=4)
        cluster.apply(quota("team/team", {"gpu": 2}, {"gpu": 2}))
        shadow = beside(cluster, "--scheduler-name", "default-scheduler")
        with child(command, tmp_path):
            names = [f"team/p-{number}" for number in range(4)]
            cluster.apply(*(limited_pod(name, 1, schedulerName=None) for name in names))
            cluster.running(*names)
            reports(cluster, shadow, "pods", agrees=2, wouldWait=2)
        shadow.stop()
        assert last(shadow)["wouldWaitFor"] == {"QuotaMaxExceeded": 2}
        assert json.dumps(last(shadow)).count("QuotaMaxExceeded") > 1
    finally:
        cluster.wipe()
