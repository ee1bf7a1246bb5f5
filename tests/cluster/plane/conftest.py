"""The clusters that stories are told on: one of each server a worker, wiped after every story."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aliquot.dialects import crds
from tests.cluster.api import servers
from tests.cluster.api.polling import eventually
from tests.cluster.api.servers import Server
from tests.cluster.api.wire import Wire
from tests.cluster.conftest import SERVERS, established
from tests.cluster.plane import accounts
from tests.cluster.plane.cluster import Cluster
from tests.cluster.plane.kubelet import Kubelet

_MOST_SHOWN = 10_000


@pytest.fixture(scope="session")
def embedded_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("embedded-cluster")
    with servers.embedded(folder) as server, on(server, folder) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("real-cluster")
    with (
        servers.etcd(folder / "etcd") as store,
        servers.real(folder / "server", store, "RBAC") as server,
        on(server, folder) as cluster,
    ):
        yield cluster


@pytest.fixture(params=SERVERS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """An empty cluster that knows all our kinds."""
    found: Cluster = request.getfixturevalue(f"{request.param}_cluster")
    try:
        yield found
    finally:
        found.wipe()


@contextmanager
def on(server: Server, folder: Path) -> Iterator[Cluster]:
    """The cluster of a server."""
    wire = Wire(server.kubeconfig)
    for body in crds.definitions():
        where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert wire.post(where, body).code in (201, 409)
    eventually(lambda: all(established(wire, body) for body in crds.definitions()))
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "aliquot-system"}}
    assert wire.post("/api/v1/namespaces", home).code in (201, 409)
    account = accounts.install(server, wire, folder) if server.real else server.kubeconfig
    with Kubelet(server.kubeconfig).at_work() as kubelet:
        yield Cluster(server, kubelet, folder, account)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show what the schedulers of a story logged if it fails, and what the server said last."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.when == "call" and report.failed and isinstance(cluster, Cluster):
        logs = {"server": cluster.server.kubeconfig.parent / "log"}
        logs |= {f"scheduler {n}": each.log for n, each in enumerate(cluster.started, 1)}
        for name, log in logs.items():
            said = log.read_text(errors="replace")[-_MOST_SHOWN:]
            report.sections.append((name, said))
