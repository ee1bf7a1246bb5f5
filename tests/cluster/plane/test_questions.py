"""Questions to a live cluster, by an account that may only read."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from aliquot.cli.main import run
from aliquot.json import Body
from aliquot.kube.install.installation import READER, Installation
from tests.build.manifests import limited_pod, quota, resource
from tests.cluster.api.polling import eventually
from tests.cluster.api.wire import Wire
from tests.cluster.plane import accounts
from tests.cluster.plane.cluster import Cluster

HOME = Installation().namespace
_RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def reader(cluster: Cluster, tmp_path: Path) -> Path:
    """The kubeconfig of an account with the reader's roles alone."""
    return account(cluster, tmp_path, READER) if cluster.server.real else cluster.server.kubeconfig


def account(cluster: Cluster, folder: Path, *roles: str) -> Path:
    """An account with these roles, in the whole cluster and in Aliquot's own namespace."""
    name = f"asks-{'-'.join(roles) or 'nothing'}"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": HOME}
    made: list[Body] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": subject_name(name, HOME)}
    ]
    for role in roles:
        for kind, where in (("ClusterRole", ""), ("Role", HOME)):
            about = {"apiGroup": _RBAC, "kind": kind, "name": role}
            body: Body = {"metadata": subject_name(f"{name}-{role}", where), "roleRef": about}
            more = {"apiVersion": f"{_RBAC}/v1", "kind": f"{kind}Binding", "subjects": [subject]}
            made.append({**body, **more})
    accounts.make(cluster.wire, made)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    where = f"/api/v1/namespaces/{HOME}/serviceaccounts/{name}/token"
    token = cluster.wire.post(where, asked).done(201)["status"]["token"]
    said = yaml.safe_load(cluster.server.kubeconfig.read_text())
    said["users"][0]["user"] = {"token": token}
    file = folder / f"{name}.kubeconfig"
    file.write_text(yaml.safe_dump(said))
    if roles:
        eventually(lambda: Wire(file).get("/api/v1/pods").code == 200)
    return file


def subject_name(name: str, namespace: str) -> dict[str, str]:
    return {"name": name, **({"namespace": namespace} if namespace else {})}


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """The answer to a question, as JSON."""
    capsys.readouterr()
    assert run([*words, "-o", "json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def story(cluster: Cluster) -> None:
    """One team has borrowed, and the owner waits for what only it could give back."""
    cluster.nodes(1, gpu=3)
    cluster.apply(
        quota("owner/owner", {"gpu": 3}),
        quota("lent/lent", {"gpu": 0}),
        *(limited_pod(f"lent/p-{number}", 1, nodeName="node-1") for number in (1, 2)),
    )


def _of_story(rows: list[Any]) -> list[str]:
    """The pods of these rows; those that other tests left on the server have no part in it."""
    return [each["pod"] for each in rows if each["pod"].startswith(("owner/", "lent/"))]


def test_live_questions_and_the_same_of_a_snapshot(
    cluster: Cluster, reader: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reach = ("--kubeconfig", str(reader))
    story(cluster)
    cluster.running("lent/p-1", "lent/p-2")
    cluster.apply(limited_pod("owner/o-1", 2))
    tree = asked(capsys, "tree", *reach)
    quotas = {each["name"]: each for each in tree["quotas"]}
    assert quotas["lent/lent"]["borrowed"]["nvidia.com/gpu"] == "2"
    assert quotas["owner/owner"]["pods"] == {"running": 0, "waiting": 1}
    assert _of_story(asked(capsys, "queue", *reach)["pods"]) == ["owner/o-1"]
    assert {*_of_story(asked(capsys, "top", "pods", *reach)["pods"])} == {"lent/p-1", "lent/p-2"}
    file = tmp_path / "cluster.json.gz"
    assert run(["snapshot", "-o", str(file), *reach]) == 0
    assert asked(capsys, "tree", "--from", str(file)) == tree
    nodes = asked(capsys, "top", "nodes", "--from", str(file))["nodes"]
    assert [each["free"]["nvidia.com/gpu"] for each in nodes] == ["1"]


def test_a_snapshot_says_what_the_control_plane_then_does(
    cluster: Cluster, reader: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story(cluster)
    cluster.running("lent/p-1", "lent/p-2")
    cluster.apply(limited_pod("owner/o-1", 2))
    file = str(tmp_path / "cluster.json")
    assert run(["snapshot", "-o", file, "--kubeconfig", str(reader)]) == 0
    told = asked(capsys, "simulate", file)
    with cluster.scheduler():
        cluster.running("owner/o-1")
        evicted = cluster.evictions(1)
    assert [each["pod"] for each in told["evictions"]] == evicted
    assert _of_story(told["bindings"]) == ["owner/o-1"]


def test_without_rights_a_question_ends_in_one_line(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not cluster.server.real:
        pytest.skip("the embedded server asks no roles")
    reach = ["--kubeconfig", str(account(cluster, tmp_path))]
    for question in (["tree"], ["queue"], ["snapshot", "-o", str(tmp_path / "x")]):
        assert run([*question, *reach]) == 2
        said = capsys.readouterr()
        assert said.err.count("\n") == 1
        assert "forbidden" in said.err
        assert said.out == ""
    assert not (tmp_path / "x").exists()


def test_history_by_events_where_the_log_cannot_be_reached(
    cluster: Cluster, reader: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story(cluster)
    cluster.running("lent/p-1", "lent/p-2")
    with cluster.scheduler():
        cluster.apply(limited_pod("owner/o-1", 2))
        cluster.running("owner/o-1")
        evicted = cluster.evictions(1)
        reach = ("--kubeconfig", str(reader))

        def complete() -> bool:
            what = [each["what"] for each in asked(capsys, "history", *reach)["decisions"]]
            return "evicted" in what and "started" in what

        eventually(complete)
        assert run(["history", *reach]) == 0
        assert "the decision log cannot be read" in capsys.readouterr().err
        found = asked(capsys, "history", evicted[0], *reach)["decisions"]
        assert "evicted" in [each["what"] for each in found]
        assert {each["pod"] for each in found} == {evicted[0]}


def test_history_from_the_decision_log_through_the_service(
    cluster: Cluster, reader: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also from its folder, and what was recorded is replayed."""
    address = own_address()
    if not cluster.server.real or address is None:
        pytest.skip("only a real API server leads to Services, and not to this machine's loopback")
    port, folder, record = free_port(address), tmp_path / "log", tmp_path / "run.jsonl.gz"
    serve(cluster, address, port)
    story(cluster)
    cluster.running("lent/p-1", "lent/p-2")
    words = ("--host", address, "--health-port", str(port), "--decision-log", str(folder))
    with cluster.scheduler(*words, "--record", str(record)):
        cluster.apply(limited_pod("owner/o-1", 2))
        cluster.running("owner/o-1")
        found = asked(capsys, "history", "--kubeconfig", str(reader))
        assert found["note"] is None
    (evicted,) = [each for each in found["decisions"] if each["what"] == "evicted"]
    assert (evicted["for"], evicted["reason"]) == ("owner/o-1", "ReclaimedForMin")
    assert evicted["quotas"]["owner/owner"]["min"] == {"nvidia.com/gpu": "3"}
    assert evicted["quotas"]["lent/lent"]["used"]["nvidia.com/gpu"] == "2"
    kept = asked(capsys, "history", "--from", *map(str, folder.iterdir()))
    assert kept["decisions"][: len(found["decisions"])] == found["decisions"]
    replayed = asked(capsys, "replay", str(record))
    assert replayed["difference"] is None
    assert replayed["decisions"] >= len(kept["decisions"]) > 0


def own_address() -> str | None:
    """An address of this machine other than the loopback, by which a route leads out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        found: str = probe.getsockname()[0]
        return None if found.startswith("127.") else found


def free_port(address: str) -> int:
    with socket.create_server((address, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def serve(cluster: Cluster, address: str, port: int) -> None:
    """The Service of an installation, with a pod of this address behind it."""
    name = f"{HOME}/aliquot-scheduler"
    ports = [{"name": "metrics", "port": 8080, "targetPort": port}]
    target = {"kind": "Pod", "namespace": HOME, "name": "aliquot-scheduler"}
    behind = [{"ip": address, "targetRef": target}]
    ends = [{"addresses": behind, "ports": [{"name": "metrics", "port": port}]}]
    cluster.apply(
        resource("v1", "Service", name, spec={"ports": ports}),
        limited_pod(name, 0, schedulerName="of-nobody"),
    )
    shown = {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}}
    where = f"/api/v1/namespaces/{HOME}"
    status = f"{where}/pods/aliquot-scheduler/status"
    assert cluster.wire.patch(status, shown).code == 200
    body = resource("v1", "Endpoints", name, subsets=ends)
    assert cluster.wire.post(f"{where}/endpoints", body).code in (201, 409)
