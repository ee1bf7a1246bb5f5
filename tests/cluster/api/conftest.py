"""What only the tests of the API need: its official client, and kubectl."""

from pathlib import Path

import pytest
from kubernetes.client import ApiClient

from tests.cluster.api import binaries
from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.servers import Server
from tests.cluster.api.wire import Wire


@pytest.fixture
def kube(api: Wire) -> ApiClient:
    """The official client."""
    return api.client


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kubectl keeps what it has learnt of the servers."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(server: Server, ns: str, home: Path) -> Kubectl:
    if binaries.kubectl() is None:
        pytest.skip(binaries.NO_KUBECTL)
    return Kubectl(server.kubeconfig, home, ns)
