"""`aliquot up` as a new user meets it: with kubectl, and whatever manifests they have."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml

from aliquot.json import Body
from tests.build.manifests import gang_job, pod, quota, task
from tests.cluster.api import binaries
from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.polling import eventually
from tests.server.process import started

pytestmark = pytest.mark.skipif(binaries.kubectl() is None, reason=binaries.NO_KUBECTL)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("up")
    with started(folder, "--nodes", "2x8"):
        found = Kubectl(folder / "kubeconfig", folder / "home", "")
        eventually(lambda: found.run("get", "eq").code == 0, seconds=60)
        eventually(lambda: found.run("get", "mutatingwebhookconfiguration", "aliquot").code == 0)
        yield found


def _manifests(*options: str) -> list[Body]:
    command = [sys.executable, "-m", "aliquot", "manifests", *options]
    done = subprocess.run(command, capture_output=True, check=True)
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def test_pods_of_the_default_scheduler_run(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
    kubectl("run", "one", "--image=one:1")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("wait", "--for=condition=Ready", "pod/one", "--timeout=60s")
    shown = kubectl.json("get", "pod", "one")
    assert shown["spec"]["schedulerName"] == "default-scheduler"
    assert shown["spec"]["nodeName"].startswith("node-")


def test_a_scheduler_that_is_not_there_is_named_with_those_that_are(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", documents=[pod("default/lost", schedulerName="nobody")])
    words = [
        "get",
        "events",
        "--field-selector",
        "involvedObject.name=lost,reason=FailedScheduling",
    ]

    def told() -> list[str]:
        return [each["message"] for each in kubectl.json(*words)["items"]]

    eventually(lambda: bool(told()))
    (message,) = told()
    assert message.startswith("NotSupported: no profile answers schedulerName nobody")
    assert "aliquot, capacityscheduler, nos-scheduler" in message
    assert "default-scheduler" in message


def test_every_kind_of_workload_rolls_out_and_goes(kubectl: Kubectl) -> None:
    labels = {"app": "each"}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "each:1"}],
        },
    }
    spec = {"selector": {"matchLabels": labels}, "template": template}
    bodies: list[Body] = [
        {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "each"}, "spec": spec}
        for kind in ("StatefulSet", "DaemonSet")
    ]
    kubectl("apply", "-f", "-", documents=bodies)
    for kind in ("statefulset", "daemonset"):
        kubectl("rollout", "status", f"{kind}/each", "--timeout=60s")
    kubectl("scale", "statefulset/each", "--replicas=2")
    kubectl("rollout", "status", "statefulset/each", "--timeout=60s")
    kubectl("set", "image", "daemonset/each", "main=each:2")
    kubectl("rollout", "status", "daemonset/each", "--timeout=60s")
    assert len(kubectl("rollout", "history", "daemonset/each").out.splitlines()) >= 4
    kubectl("rollout", "undo", "daemonset/each")
    kubectl("rollout", "status", "daemonset/each", "--timeout=60s")
    images = kubectl("get", "ds", "each", "-o", "jsonpath={..image}").out
    assert images == "each:1"
    kubectl("delete", "statefulset/each", "daemonset/each")
    eventually(lambda: kubectl("get", "pods", "-l", "app=each", "-o", "name").out == "")


def test_kubectl_is_answered(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods").out.strip() == "yes"
    assert kubectl.run("auth", "can-i", "get", "pods", "--as=bob").out.strip() == "no"
    assert "kubernetes-admin" in kubectl("auth", "whoami").out
    assert "control plane" in kubectl("cluster-info").out
    top = kubectl("top", "nodes")
    assert [row[0] for row in top.rows] == ["NAME", "node-0", "node-1"]
    assert "simulated" in top.err
    kubectl("run", "shown", "--image=one:1")
    kubectl("wait", "--for=condition=Ready", "pod/shown", "--timeout=60s")
    assert "shown" in kubectl("top", "pods").out
    for words in (["logs", "shown"], ["exec", "shown", "--", "ls"]):
        refused = kubectl.run(*words)
        assert refused.code != 0
        assert "is simulated, and no container runs on it" in refused.err


def test_manifests_apply_and_quotas_are_judged_as_before(kubectl: Kubectl) -> None:
    for options in ([], ["--namespace", "elsewhere"], []):
        ran = kubectl("apply", "-f", "-", documents=_manifests(*options))
        assert "error" not in ran.err.lower()
    bad = quota("default/bad", {"cpu": 4}, {"cpu": 2})
    refused = kubectl.run("apply", "-f", "-", documents=[bad])
    assert "min 4 is above max 2" in refused.err
    good = quota("default/good", {"nos.nebuly.com/gpu-memory": "40Gi"})
    assert (
        "Warning: spec.min[nos.nebuly.com/gpu-memory]"
        in kubectl("apply", "-f", "-", documents=[good]).err
    )
    kubectl("delete", "eq", "good")


def test_a_job_of_volcano_that_makes_no_sense_is_refused(kubectl: Kubectl) -> None:
    twice = gang_job("default/twice", task("x", 1), task("x", 1))
    refused = kubectl.run("apply", "-f", "-", documents=[twice])
    assert refused.code == 1
    assert "spec.tasks[1].name" in refused.err
