"""Protected metrics on a real server: its roles say who may read them."""

import asyncio
import ssl
from pathlib import Path

import aiohttp
import yaml

from aliquot.json import Body
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.install.all_objects import objects
from aliquot.kube.install.installation import METRICS_READER, SCHEDULER, Installation
from aliquot.kube.observe.background_loop import BackgroundLoop
from aliquot.kube.observe.health import Health
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.observe.metrics_auth import MetricsAuth
from aliquot.kube.observe.probes import Probes
from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.objects import thing
from tests.cluster.api.polling import eventually
from tests.cluster.api.servers import Server
from tests.cluster.api.wire import Wire

HOME = "metrics-home"
"""A namespace of its own: the accounts of the others keep their rights."""
ROLES = "rbac.authorization.k8s.io"


def test_prometheus_reads_metrics_and_others_do_not(
    real: Server, api: Wire, installed: Kubectl, tmp_path: Path
) -> None:
    installed("apply", "-f", "-", documents=[*_installation(), *_prometheus()])
    asked = ["auth", "can-i", "get", "/metrics", f"--as=system:serviceaccount:{HOME}:prometheus"]
    eventually(lambda: installed.run(*asked).code == 0)
    asked = ["auth", "can-i", "create", "tokenreviews.authentication.k8s.io"]
    asked += [f"--as=system:serviceaccount:{HOME}:{SCHEDULER}"]
    eventually(lambda: installed.run(*asked).code == 0)
    tokens = {name: _token(api, name) for name in (SCHEDULER, "prometheus", "default")}
    answers = asyncio.run(_answers(_kubeconfig(real, tokens[SCHEDULER], tmp_path), tokens))
    assert answers == {"": 401, "wrong": 401, "default": 403, "prometheus": 200}


def _installation() -> list[Body]:
    found = objects(Installation(HOME, metrics_auth=True), ("rbac",))
    return [
        each
        for each in found
        if each["kind"] in ("Namespace", "ServiceAccount") or "metrics" in each["metadata"]["name"]
    ]


def _prometheus() -> list[Body]:
    return [
        thing("ServiceAccount", HOME, "prometheus"),
        {
            "apiVersion": f"{ROLES}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "prometheus-reads-aliquot"},
            "roleRef": {"apiGroup": ROLES, "kind": "ClusterRole", "name": METRICS_READER},
            "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": HOME}],
        },
    ]


def _token(api: Wire, name: str) -> str:
    if name == "default":  # the controller that makes it does not run here
        api.create(thing("ServiceAccount", HOME, "default"))
    where = f"/api/v1/namespaces/{HOME}/serviceaccounts/{name}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return str(api.post(where, body).done(201)["status"]["token"])


def _kubeconfig(server: Server, token: str, folder: Path) -> Path:
    said = yaml.safe_load(server.kubeconfig.read_text())
    said["users"][0]["user"] = {"token": token}
    file = folder / "scheduler.kubeconfig"
    file.write_text(yaml.safe_dump(said))
    return file


async def _answers(kubeconfig: Path, tokens: dict[str, str]) -> dict[str, int]:
    """The status of /metrics for a client without a token, with a wrong one, and for accounts."""
    auth = MetricsAuth(Client(access.find(kubeconfig)))
    probes = Probes(Health(), Metrics().registry, 0, "127.0.0.1", auth=auth)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    answers = {}
    async with BackgroundLoop(probes.run), aiohttp.ClientSession() as session:
        while not probes.port:
            await asyncio.sleep(0.01)
        for name in ("", "wrong", "default", "prometheus"):
            headers = {"Authorization": f"Bearer {tokens.get(name, name)}"} if name else {}
            url = f"https://127.0.0.1:{probes.port}/metrics"
            async with session.get(url, headers=headers, ssl=context) as answer:
                answers[name] = answer.status
    return answers
