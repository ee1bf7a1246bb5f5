"""A real server that asks roles who may do what, with Aliquot installed as the page says."""

from collections.abc import Iterator

import pytest

from aliquot.json import Body
from aliquot.kube.install.all_objects import objects
from aliquot.kube.install.installation import Installation
from tests.cluster.api import binaries, servers
from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.polling import eventually
from tests.cluster.api.servers import Server
from tests.cluster.api.wire import Wire

QUOTA: Body = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "ElasticQuota",
    "metadata": {"name": "gpus", "namespace": "default"},
    "spec": {"min": {"cpu": "4", "nvidia.com/gpu": "2"}, "max": {"nvidia.com/gpu": "8"}},
}


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if binaries.real_server() is None:
        pytest.skip(f"NOT run against a real kube-apiserver: {binaries.NO_REAL_SERVER}")
    with (
        servers.etcd(tmp_path_factory.mktemp("etcd")) as store,
        servers.real(tmp_path_factory.mktemp("real"), store, "RBAC") as server,
    ):
        yield server


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.embedded(tmp_path_factory.mktemp("embedded")) as server:
        yield server


@pytest.fixture(scope="session")
def kubectl(real: Server, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    if binaries.kubectl() is None:
        pytest.skip(binaries.NO_KUBECTL)
    return Kubectl(real.kubeconfig, tmp_path_factory.mktemp("home"), namespace="")


@pytest.fixture(scope="session")
def installed(kubectl: Kubectl) -> Kubectl:
    """Everything is applied at once; and again, over a quota that was written in between."""
    everything = objects(Installation())
    kubectl("apply", "-f", "-", documents=everything)
    for word in ("validating", "mutating"):
        kubectl("delete", f"{word}webhookconfiguration", "aliquot")
    eventually(lambda: kubectl.run("apply", "-f", "-", documents=[QUOTA]).code == 0)
    kubectl("apply", "-f", "-", documents=everything)
    return kubectl


@pytest.fixture(scope="session")
def api(real: Server, installed: Kubectl) -> Wire:
    """The API with Aliquot installed, once the server has heard of the roles."""
    asked = ["auth", "can-i", "get", "secrets/aliquot-webhook-certificate"]
    asked += ["-n", "aliquot-system", "--as=system:serviceaccount:aliquot-system:aliquot-webhook"]
    eventually(lambda: installed.run(*asked).code == 0)
    return Wire(real.kubeconfig)
