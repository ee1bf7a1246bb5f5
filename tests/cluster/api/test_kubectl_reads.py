"""kubectl, asking: get in its forms, describe, explain, wait, and what there is to ask for."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.objects import binding, config_map, node, path, path_of, pod, widget
from tests.cluster.api.wire import Wire
from tests.cluster.conftest import Unique


@pytest.fixture
def pods(api: Wire, ns: str) -> None:
    """A pod that waits and one that runs."""
    api.made(pod(ns, "waiting", labels={"app": "db"}))
    api.made(pod(ns, "running", labels={"app": "web"}, resources={"requests": {"cpu": "250m"}}))
    api.post(path("Pod", ns, "running", "binding"), binding("running", "n1")).done(201)
    status = {
        "phase": "Running",
        "podIP": "10.1.2.3",
        "podIPs": [{"ip": "10.1.2.3"}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "restartCount": 0,
                "image": "i",
                "imageID": "i",
                "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
            }
        ],
    }
    api.patch(path("Pod", ns, "running", "status"), {"status": status}, "strategic").done()


pytestmark = pytest.mark.usefixtures("pods")


def test_get(kubectl: Kubectl) -> None:
    rows = kubectl("get", "pods").rows
    assert rows[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[:4] for row in rows[1:]] == [
        ["running", "1/1", "Running", "0"],
        ["waiting", "0/1", "Pending", "0"],
    ]


def test_get_wide(kubectl: Kubectl) -> None:
    rows = kubectl("get", "pods", "-o", "wide").rows
    assert rows[1][5:7] == ["10.1.2.3", "n1"]
    assert rows[2][5:7] == ["<none>", "<none>"]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_get_whole(kubectl: Kubectl, api: Wire, ns: str, form: str) -> None:
    out = kubectl("get", "pod", "running", "-o", form).out
    shown = json.loads(out) if form == "json" else yaml.safe_load(out)
    assert (shown["kind"], shown["apiVersion"]) == ("Pod", "v1")
    assert shown["metadata"]["uid"] == api.get(path("Pod", ns, "running")).body["metadata"]["uid"]
    many = kubectl("get", "pods", "-o", form).out
    shown = json.loads(many) if form == "json" else yaml.safe_load(many)
    assert shown["kind"] == "List"
    assert [item["kind"] for item in shown["items"]] == ["Pod", "Pod"]


def test_get_names_and_paths(kubectl: Kubectl) -> None:
    assert kubectl("get", "po", "-o", "name").out.split() == ["pod/running", "pod/waiting"]
    out = kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").out
    assert out == "n1"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["-l", "app=web"], ["running"]),
        (["-l", "app in (web,db)"], ["running", "waiting"]),
        (["--field-selector", "status.phase=Pending"], ["waiting"]),
        (["--field-selector", "spec.nodeName=n1"], ["running"]),
        (["--chunk-size", "1"], ["running", "waiting"]),
        (["--sort-by", ".metadata.creationTimestamp", "-l", "app"], ["running", "waiting"]),
    ],
)
def test_get_some(kubectl: Kubectl, words: list[str], names: list[str]) -> None:
    rows = kubectl("get", "pods", "--no-headers", *words).rows
    assert sorted(row[0] for row in rows) == names


def test_get_labels(kubectl: Kubectl) -> None:
    rows = kubectl("get", "pods", "--show-labels", "-L", "app").rows
    assert rows[1][-2:] == ["web", "app=web"]


def test_get_everywhere(kubectl: Kubectl, ns: str) -> None:
    rows = kubectl("get", "pods", "-A").rows
    assert rows[0][0] == "NAMESPACE"
    assert {(ns, "running"), (ns, "waiting")} <= {(row[0], row[1]) for row in rows}


def test_get_several_kinds(kubectl: Kubectl, api: Wire, ns: str) -> None:
    api.made(config_map(ns, "extra"))
    names = kubectl("get", "pods,configmaps", "-o", "name").out.split()
    assert {"pod/running", "configmap/extra"} <= set(names)


def test_get_all(kubectl: Kubectl, api: Wire, ns: str) -> None:
    api.made(widget(ns, "w"))
    names = kubectl("get", "all", "-o", "name").out.split()
    assert {"pod/running", "widget.suite.aliquot.dev/w"} <= set(names)


def test_get_nothing(kubectl: Kubectl) -> None:
    assert "No resources found" in kubectl("get", "deployments").err


def test_get_what_is_not_there(kubectl: Kubectl) -> None:
    ran = kubectl.run("get", "pod", "nobody")
    assert ran.code == 1
    assert ran.err.strip() == 'Error from server (NotFound): pods "nobody" not found'
    ran = kubectl.run("get", "nothings")
    assert 'the server doesn\'t have a resource type "nothings"' in ran.err


def test_get_custom_kinds(kubectl: Kubectl, api: Wire, ns: str) -> None:
    made = api.made(widget(ns, "w"))
    api.patch(path_of(made) + "/status", {"status": {"phase": "Up"}}).done()
    rows = kubectl("get", "widgets").rows
    assert rows[0] == ["NAME", "SIZE", "PHASE", "AGE"]
    assert rows[1][:3] == ["w", "3", "Up"]
    assert kubectl("get", "wd", "-o", "wide").rows[0] == ["NAME", "SIZE", "PHASE", "COLOUR", "AGE"]
    assert kubectl("get", "widget.suite.aliquot.dev/w", "-o", "name").out.strip() == (
        "widget.suite.aliquot.dev/w"
    )


def test_get_and_watch(kubectl: Kubectl, api: Wire, ns: str) -> None:
    command = kubectl.command("get", "pods", "-w", "--request-timeout=90s")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kubectl.env) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline().split() for _ in range(3)]
        api.patch(path("Pod", ns, "waiting", "status"), {"status": {"phase": "Failed"}}).done()
        seen.append(process.stdout.readline().split())
        api.made(pod(ns, "new"))
        seen.append(process.stdout.readline().split())
        process.terminate()
    assert [line[0] for line in seen] == ["NAME", "running", "waiting", "waiting", "new"]
    assert seen[3][2] == "Failed"


def test_a_watch_that_ends(kubectl: Kubectl) -> None:
    out = kubectl.run("get", "pods", "-w", "--request-timeout=2s").out
    assert "running" in out


def test_describe_a_pod(kubectl: Kubectl, ns: str, api: Wire) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": ns},
        "involvedObject": {
            "kind": "Pod",
            "namespace": ns,
            "name": "running",
            "uid": api.get(path("Pod", ns, "running")).body["metadata"]["uid"],
        },
        "reason": "Scheduled",
        "message": "assigned by the suite",
        "type": "Normal",
        "lastTimestamp": "2026-01-02T03:04:05Z",
    }
    api.made(event)
    out = kubectl("describe", "pod", "running").out
    for line in (
        ["Name:", "running"],
        ["Namespace:", ns],
        ["Node:", "n1/"],
        ["Status:", "Running"],
        ["IP:", "10.1.2.3"],
        ["cpu:", "250m"],
        ["QoS", "Class:", "Burstable"],
    ):
        assert line in [row.split() for row in out.splitlines()]
    assert "assigned by the suite" in out


def test_describe_a_node(kubectl: Kubectl, api: Wire, ns: str, unique: Unique) -> None:
    name = unique("node")
    taint = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
    api.made(node(name, spec={"taints": [taint]}))
    api.made(pod(ns, "here", resources={"requests": {"cpu": "2"}}, nodeName=name))
    out = kubectl("describe", "node", name).out
    rows = [row.split() for row in out.splitlines()]
    assert ["Taints:", "dedicated=gpu:NoSchedule"] in rows
    assert ["cpu", "2", "(25%)", "0", "(0%)"] in rows
    assert [ns, "here"] in [row[:2] for row in rows]


def test_describe_a_custom_kind(kubectl: Kubectl, api: Wire, ns: str) -> None:
    api.made(widget(ns, "w"))
    assert "Size:      3" in kubectl("describe", "widget", "w").out


def test_explain(kubectl: Kubectl) -> None:
    rows = kubectl("explain", "pod.spec.nodeName").rows
    assert rows[0] == ["KIND:", "Pod"]
    assert ["FIELD:", "nodeName", "<string>"] in rows


def test_explain_lists(kubectl: Kubectl) -> None:
    assert ["containers", "<[]Container>", "-required-"] in kubectl("explain", "pod.spec").rows


def test_explain_a_custom_kind(kubectl: Kubectl) -> None:
    out = kubectl("explain", "widget.spec").out
    assert "GROUP:      suite.aliquot.dev" in out
    assert ["size", "<integer>", "-required-"] in [row.split() for row in out.splitlines()]


def test_api_resources(kubectl: Kubectl) -> None:
    rows = [row for row in kubectl("api-resources").rows if row]
    assert ["pods", "po", "v1", "true", "Pod"] in rows
    assert ["nodes", "no", "v1", "false", "Node"] in rows
    assert ["widgets", "wd", "suite.aliquot.dev/v1", "true", "Widget"] in rows
    assert ["poddisruptionbudgets", "pdb", "policy/v1", "true", "PodDisruptionBudget"] in rows


def test_api_versions(kubectl: Kubectl) -> None:
    found = kubectl("api-versions").out.split()
    assert {"v1", "apps/v1", "suite.aliquot.dev/v1"} <= set(found)


def test_version(kubectl: Kubectl) -> None:
    assert kubectl.json("version")["serverVersion"]["major"] == "1"


def test_get_raw(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/readyz").out == "ok"


def test_events(kubectl: Kubectl) -> None:
    assert "No events found" in kubectl("events").err


def test_wait_for_what_is_so(kubectl: Kubectl) -> None:
    ran = kubectl("wait", "--for=condition=Ready", "pod/running", "--timeout=60s")
    assert ran.out.strip() == "pod/running condition met"
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/running", "--timeout=60s")


def test_wait_for_what_never_is(kubectl: Kubectl) -> None:
    ran = kubectl.run("wait", "--for=condition=Ready", "pod/waiting", "--timeout=1s")
    assert ran.code == 1
    assert "timed out waiting for the condition" in ran.err


def test_without_a_token(kubectl: Kubectl, tmp_path: Path) -> None:
    said = yaml.safe_load(kubectl.kubeconfig.read_text())
    said["users"][0]["user"] = {"token": "wrong"}
    other = tmp_path / "kubeconfig"
    other.write_text(yaml.safe_dump(said))
    ran = Kubectl(other, tmp_path, "default").run("get", "pods")
    assert ran.code == 1
    assert "You must be logged in to the server" in ran.err
