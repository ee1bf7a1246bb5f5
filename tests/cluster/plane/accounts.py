"""The scheduler's own account: on a server that asks roles, every story is told with its rights.

What they are comes from the package, as `aliquot manifests` prints it; a story that needs more does
not come to its end.
"""

from collections.abc import Iterable
from pathlib import Path

import yaml

from aliquot.json import Body
from aliquot.kube.install.all_objects import objects
from aliquot.kube.install.installation import SCHEDULER, Installation
from tests.cluster.api.polling import eventually
from tests.cluster.api.servers import Server
from tests.cluster.api.wire import Wire


def install(server: Server, wire: Wire, folder: Path) -> Path:
    """Make accounts and roles; returns the kubeconfig of the scheduler's."""
    installation = Installation()
    make(wire, objects(installation, ("rbac",)))
    account = f"/api/v1/namespaces/{installation.namespace}/serviceaccounts/{SCHEDULER}"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = wire.post(f"{account}/token", asked).done(201)["status"]["token"]
    said = yaml.safe_load(server.kubeconfig.read_text())
    said["users"][0]["user"] = {"token": token}
    file = folder / "scheduler.kubeconfig"
    file.write_text(yaml.safe_dump(said))
    eventually(lambda: Wire(file).get("/api/v1/pods").code == 200)
    return file


def make(wire: Wire, bodies: Iterable[Body]) -> None:
    """Make accounts, roles and bindings that are not there."""
    for body in bodies:
        answer = wire.post(_where(body), body)
        assert answer.code in (201, 409), answer.body


def _where(body: Body) -> str:
    """Where an object is sent to; all of these kinds form their plural in the same way."""
    version, namespace = body["apiVersion"], body["metadata"].get("namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{within}/{body['kind'].lower()}s"
