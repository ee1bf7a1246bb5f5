"""The servers that tests of the API and of its client run against: ours, and the real one if here.

A test that needs what controllers do on a cluster carries `needs_controller` with the reason: the
real API server alone has none, ours is a whole cluster. One of what ours leaves out on purpose
carries `not_ours`, and fails as soon as ours can do it.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path

import pytest

from tests.cluster.api import binaries, servers
from tests.cluster.api.objects import GADGETS, WIDGETS, thing
from tests.cluster.api.polling import eventually
from tests.cluster.api.servers import Server
from tests.cluster.api.wire import Body, Wire

SERVERS = ["embedded", "real"] if binaries.real_server() else ["embedded"]
_NUMBERS = count(1)

Unique = Callable[[str], str]
Start = Callable[[], AbstractContextManager[Server]]


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.embedded(tmp_path_factory.mktemp("embedded")) as server:
        _define(Wire(server.kubeconfig))
        yield server


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with (
        servers.etcd(tmp_path_factory.mktemp("etcd")) as store,
        servers.real(tmp_path_factory.mktemp("real"), store) as server,
    ):
        _define(Wire(server.kubeconfig))
        yield server


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Server:
    """One of the two."""
    marker = request.node.get_closest_marker("needs_controller")
    if request.param == "real" and marker:
        pytest.skip(f"the real API server alone cannot: {marker.args[0]}")
    ours = request.node.get_closest_marker("not_ours")
    if request.param == "embedded" and ours:
        request.node.add_marker(pytest.mark.xfail(reason=ours.args[0], strict=True))
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=SERVERS)
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """Starts a server of the test's own, over the same state each time.

    The real one's store forgets older versions in between.
    """
    if request.param == "embedded":
        yield lambda: servers.embedded(tmp_path / "embedded")
        return
    with servers.etcd(tmp_path / "etcd") as store:

        def again() -> AbstractContextManager[Server]:
            servers.compact(store)
            return servers.real(tmp_path / "real", store)

        yield again


@pytest.fixture
def api(server: Server) -> Wire:
    """The API on the wire."""
    return _wire(server.kubeconfig)


@pytest.fixture
def unique() -> Unique:
    """Names of cluster-wide objects, that no other test has."""
    return lambda word: f"{word}-{next(_NUMBERS)}"


@pytest.fixture
def ns(api: Wire, unique: Unique) -> str:
    """A namespace of the test's own."""
    name = unique("ns")
    api.made(thing("Namespace", "", name))
    return name


_WIRES: dict[Path, Wire] = {}


def _wire(kubeconfig: Path) -> Wire:
    if kubeconfig not in _WIRES:
        _WIRES[kubeconfig] = Wire(kubeconfig)
    return _WIRES[kubeconfig]


def _define(api: Wire) -> None:
    """The suite's own custom kinds, ready for use."""
    for body in (WIDGETS, GADGETS):
        api.made(body)
    eventually(lambda: all(established(api, body) for body in (WIDGETS, GADGETS)))


def established(api: Wire, definition: Body) -> bool:
    """Is what this definition defines served?"""
    conditions = api.again(definition).get("status", {}).get("conditions") or []
    spec = definition["spec"]
    where = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    return ("Established", "True") in {(c["type"], c["status"]) for c in conditions} and (
        api.get(where).code == 200
    )
