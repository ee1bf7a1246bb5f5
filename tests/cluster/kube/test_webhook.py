"""The webhook as users of a cluster meet it: through the API server, ours and the real one."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from aliquot.dialects.crds import definitions
from aliquot.json import Body
from tests.build.manifests import (
    KOORDINATOR,
    gang_job,
    gpu_quota,
    limited_pod,
    node,
    pod,
    pod_group,
    queue,
    quota,
    task,
)
from tests.cluster.api import binaries
from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.objects import binding
from tests.cluster.api.objects import thing as core
from tests.cluster.api.polling import eventually
from tests.cluster.api.servers import Server
from tests.cluster.api.wire import Answer, Wire
from tests.cluster.conftest import SERVERS, Unique, established
from tests.cluster.kube.webhooks import BOTH, Webhook, running, unregister, where
from tests.kube.webhook.writes import changed, member


@dataclass(frozen=True)
class Judged:
    """A server that asks a webhook."""

    server: Server
    api: Wire
    webhook: Webhook

    def create(self, body: Body, **query: str) -> Answer:
        return self.api.post(where(body, named=False), body, **query)

    def delete(self, body: Body) -> Answer:
        return self.api.delete(where(body))


@pytest.fixture(scope="module", params=SERVERS)
def judged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Judged]:
    server: Server = request.getfixturevalue(request.param)
    api = Wire(server.kubeconfig)
    for body in definitions():
        if api.gone(body):
            api.made(body)
    eventually(lambda: all(established(api, body) for body in definitions()))
    folder = tmp_path_factory.mktemp("webhook")
    try:
        with running(server.kubeconfig, folder, "--policy", "capacity") as webhook:
            yield Judged(server, api, webhook)
    finally:
        unregister(api)


@pytest.fixture
def ns(judged: Judged, unique: Unique) -> str:
    name = unique("judged")
    judged.api.made(core("Namespace", "", name))
    return name


def test_what_breaks_a_rule_is_refused(judged: Judged, ns: str) -> None:
    bad = quota(f"{ns}/q", {"cpu": 4}, {"cpu": 2})
    said = judged.create(bad).refused(403, "Forbidden")
    assert said["message"] == (
        'admission webhook "kinds.validate.aliquot.dev" denied the request: '
        "spec.min[cpu]: min 4 is above max 2"
    )
    assert judged.api.get(where(bad)).code == 404
    good = quota(f"{ns}/q", {"cpu": 1}, {"cpu": 2})
    judged.create(good).done(201)
    judged.create(quota(f"{ns}/r")).refused(403, "Forbidden")
    more = judged.api.patch(where(good), {"spec": {"min": {"cpu": 3}}})
    assert "min 3 is above max 2" in more.refused(403, "Forbidden")["message"]
    judged.api.patch(where(good), {"spec": {"max": {"cpu": 3}}}).done()
    judged.delete(good).done()


def test_what_makes_no_sense_is_invalid(judged: Judged, unique: Unique, ns: str) -> None:
    body = member(unique("q"), namespace=ns, annotations={f"{KOORDINATOR}namespaces": "x"})
    assert "is not a JSON list" in judged.create(body).refused(422, "Invalid")["message"]


def test_a_dry_run_is_judged_and_not_kept(judged: Judged, ns: str) -> None:
    judged.create(quota(f"{ns}/q", {"cpu": 4}, {"cpu": 2}), dryRun="All").refused(403, "Forbidden")
    judged.create(quota(f"{ns}/q"), dryRun="All").done(201)
    assert judged.api.get(where(quota(f"{ns}/q"))).code == 404


def test_a_status_is_not_judged(judged: Judged, ns: str) -> None:
    body = quota(f"{ns}/q", {"cpu": 1}, {"cpu": 2})
    judged.create(body).done(201)
    path = f"{where(body)}/status"
    judged.api.patch(path, {"status": {"used": {"cpu": "1"}}}).done()


def test_a_tree_grows_as_fast_as_it_is_written(judged: Judged, ns: str, unique: Unique) -> None:
    names = [unique("t") for _ in range(8)]
    tree = [member(names[0], is_parent=True, low=10, namespace=ns)]
    for above, name in pairwise(names):
        tree.append(member(name, above, is_parent=True, low=10, namespace=ns))
    for body in tree:
        judged.create(body).done(201)
    said = judged.delete(tree[0]).refused(403, "Forbidden")["message"]
    assert f"cannot be deleted: it is the parent of {ns}/{names[1]}" in said
    for body in reversed(tree):
        judged.delete(body).done()


def test_defaults_are_filled_in(judged: Judged, ns: str, unique: Unique) -> None:
    made = judged.create(queue(unique("queue"))).done(201)
    assert (made["spec"]["weight"], made["spec"]["reclaimable"]) == (1, True)
    judged.delete(made).done()
    gang = judged.create(pod_group(f"{ns}/g")).done(201)
    assert (gang["spec"]["minMember"], gang["spec"]["queue"]) == (1, "default")
    bounds = {"defaultRequests": {"tflops": "10", "vram": "1Gi"}}
    judged.create(gpu_quota(f"{ns}/g", single=bounds)).done(201)
    asks = limited_pod(f"{ns}/p", annotations={"tensor-fusion.ai/gpu-count": "2"})
    path = f"/api/v1/namespaces/{ns}/pods"

    def filled() -> bool:
        made = judged.api.post(path, asks, dryRun="All").done(201)
        annotations: Body = made["metadata"]["annotations"]
        return (
            annotations.get("tensor-fusion.ai/vram-request") == "1Gi"
            and annotations.get("tensor-fusion.ai/tflops-request") == "10"
        )

    eventually(filled)
    tree = member(unique("q"), namespace=ns)
    labels = judged.create(tree).done(201)["metadata"]["labels"]
    assert labels[f"{KOORDINATOR}parent"] == "koordinator-root-quota"
    judged.delete(tree).done()


def test_kubectl_says_what_is_wrong(judged: Judged, ns: str, tmp_path: Path) -> None:
    if binaries.kubectl() is None:
        pytest.skip(binaries.NO_KUBECTL)
    kubectl = Kubectl(judged.server.kubeconfig, tmp_path, ns)
    ran = kubectl.run("apply", "-f", "-", documents=[quota(f"{ns}/q", {"cpu": 4}, {"cpu": 2})])
    assert ran.code == 1
    assert "spec.min[cpu]: min 4 is above max 2" in ran.err
    good = quota(f"{ns}/q", {"nos.nebuly.com/gpu-memory": "40Gi"})
    ran = kubectl("apply", "-f", "-", documents=[good])
    assert "Warning: spec.min[nos.nebuly.com/gpu-memory]: 40Gi is" in ran.err
    kubectl("apply", "-f", "-", documents=[changed(good, max={"cpu": 9})])


def test_warnings_come_as_headers(judged: Judged, ns: str) -> None:
    good = quota(f"{ns}/q", {"nos.nebuly.com/gpu-memory": "40Gi"})
    answer = judged.create(good, fieldValidation="Strict")
    answer.done(201)
    warnings = answer.headers.getlist("Warning")
    assert len(warnings) == len(set(warnings)) >= 1
    assert all(each.startswith('299 - "') and each.endswith('"') for each in warnings)
    bad = quota(f"{ns}/r", {"cpu": 4, "nos.nebuly.com/gpu-memory": "40Gi"}, {"cpu": 2})
    refused = judged.create(bad)
    refused.refused(403, "Forbidden")
    assert refused.headers.getlist("Warning"), "what is refused is warned of, too"
    judged.delete(good).done()


@pytest.mark.parametrize(
    ("tasks", "more", "problem"),
    [
        ([task("x", 1), task("x", 1)], {}, "spec.tasks[1].name"),
        ([task("x", 2)], {"minAvailable": 3}, "spec.minAvailable"),
        ([task("x", 2, minAvailable=3)], {}, "spec.tasks[0].minAvailable"),
    ],
)
def test_jobs_of_volcano_are_judged(
    judged: Judged, ns: str, tasks: list[Body], more: Body, problem: str
) -> None:
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{ns}/jobs"
    refused = judged.api.post(path, gang_job(f"{ns}/j", *tasks, **more))
    assert refused.code in (403, 422)
    assert problem in refused.body["message"]
    judged.api.post(path, gang_job(f"{ns}/j", task("x", 2), minAvailable=2)).done(201)
    worse = judged.api.patch(f"{path}/j", {"spec": {"minAvailable": 9}})
    assert "spec.minAvailable" in worse.body["message"]


def test_other_jobs_are_not_judged(judged: Judged, ns: str) -> None:
    judged.api.made(core("Job", ns, "j", spec={"template": _ENDING}))


_ENDING = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}


def test_what_goes_past_the_scheduler_is_refused(judged: Judged, ns: str, unique: Unique) -> None:
    host = unique("n")  # a resize asks for the pod's node
    judged.api.post("/api/v1/nodes", node(host)).done(201)
    judged.create(quota(f"{ns}/q", {"cpu": 1}, {"cpu": 2})).done(201)
    running, pods = pod(f"{ns}/p", {"cpu": 1}), f"/api/v1/namespaces/{ns}/pods"
    bound = {**running, "spec": {**running["spec"], "nodeName": host}}
    eventually(lambda: judged.api.post(pods, bound, dryRun="All").code == 403)
    assert f"spec.nodeName: is {host}, so quota" in judged.api.post(pods, bound).body["message"]
    judged.api.post(pods, running).done(201)
    judged.api.post(f"{pods}/p/binding", binding("p", host)).done(201)

    def resize(cpu: str) -> Answer:
        containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
        change = {"spec": {"containers": containers}}
        return judged.api.patch(f"{pods}/p/resize", change, "strategic", dryRun="All")

    eventually(lambda: resize("3").code == 403)
    assert "max 2 cpu, used 1; the pod has 1 and asks 3" in resize("3").body["message"]
    resize("2").done()


def test_who_is_trusted_is_put_back(judged: Judged) -> None:
    def trusted() -> bool:
        hooks = [hook for path in BOTH for hook in judged.api.get(path).done()["webhooks"]]
        return all(hook["clientConfig"].get("caBundle") for hook in hooks)

    assert trusted()
    remove = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
    judged.api.patch(BOTH[0], remove, form="json").done()
    eventually(trusted, 30)


def test_replicas_share_a_certificate(judged: Judged, tmp_path: Path) -> None:
    other = ("--policy", "capacity", "--configuration", "other")
    try:
        with running(judged.server.kubeconfig, tmp_path, *other) as second:
            assert second.certificate == judged.webhook.certificate
            assert second.stop() == 0
    finally:
        for path in BOTH:
            judged.api.delete(path.replace("/aliquot", "/other"))


def test_when_it_is_down(judged: Judged, ns: str) -> None:
    """The last one: from here on, nobody judges."""
    assert judged.webhook.stop() == 0
    began = time.monotonic()
    said = judged.create(quota(f"{ns}/q")).refused(500, "InternalError")
    assert 'failed calling webhook "kinds.mutate.aliquot.dev"' in said["message"]
    judged.api.post(f"/api/v1/namespaces/{ns}/pods", limited_pod(f"{ns}/p")).done(201)
    assert time.monotonic() - began < 20
