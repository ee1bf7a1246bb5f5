"""Servers take everything as it is, and it works as it should once it is there."""

import copy
from collections.abc import Callable

import pytest

from aliquot.json import Body
from aliquot.kube.install import deployments
from aliquot.kube.install.all_objects import objects
from aliquot.kube.install.installation import Installation
from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.objects import pod, thing
from tests.cluster.api.polling import eventually
from tests.cluster.api.servers import Server
from tests.cluster.api.wire import Wire
from tests.cluster.install.conftest import QUOTA

QUOTAS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/elasticquotas"


def test_the_real_server_takes_every_object_without_a_word(installed: Kubectl) -> None:
    """And with none of its fields unknown."""
    words = ["apply", "--dry-run=server", "--validate=strict", "-f", "-"]
    ran = installed(*words, documents=objects(Installation()))
    assert len(ran.out.splitlines()) == len(objects(Installation()))
    assert "warning" not in ran.err.lower()


def test_the_embedded_server_takes_every_object(embedded: Server) -> None:
    api = Wire(embedded.kubeconfig)
    for body in objects(Installation()):
        where = _where(api, body)
        assert where is not None, body["kind"]
        if body["kind"] != "CustomResourceDefinition":  # these it has from the start
            api.post(where, body, fieldValidation="Strict").done(201)


def _where(api: Wire, body: Body) -> str | None:
    version = body["apiVersion"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    answer = api.get(base)
    for each in answer.body["resources"] if answer.code == 200 else ():
        if each["kind"] == body["kind"] and "/" not in each["name"]:
            space = body["metadata"].get("namespace")
            return (
                f"{base}/namespaces/{space}/{each['name']}" if space else f"{base}/{each['name']}"
            )
    return None


def test_get_eq_shows_used_min_and_max_of_each_resource(api: Wire, installed: Kubectl) -> None:
    used = {"status": {"used": {"cpu": "2", "nvidia.com/gpu": "1"}}}
    api.patch(f"{QUOTAS}/gpus/status", used).done()
    for word in ("eq", "eqs", "aliquot"):
        ran = installed("get", word)
        assert "could also match" not in ran.err
        header, row = ran.rows
        titles = [f"{name} {title}" for name in ("GPU", "CPU") for title in ("USED", "MIN", "MAX")]
        assert " ".join(header) == " ".join(["NAME", *titles, "AGE"])
        assert row[0].removeprefix("elasticquota.scheduling.x-k8s.io/") == "gpus"
        assert row[1:6] == ["1", "2", "8", "2", "4"]


def test_while_nobody_answers_quotas_are_refused_and_pods_are_not(api: Wire) -> None:
    quota = copy.deepcopy(QUOTA)
    quota["metadata"]["name"] = "second"
    answer = api.post(QUOTAS, quota)
    assert answer.code == 500
    assert "kinds.mutate.aliquot.dev" in answer.body["message"]
    assert api.delete(f"{QUOTAS}/gpus").code == 500
    api.made(pod("default", "free"))
    api.made(pod("kube-system", "free"))
    api.patch(f"{QUOTAS}/gpus/status", {"status": {"used": {"cpu": "2"}}}).done()


def test_applying_again_leaves_the_certificate_that_the_webhook_wrote(
    api: Wire, installed: Kubectl
) -> None:
    where = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/aliquot"
    bundle = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": _CERTIFICATE}]
    api.patch(where, bundle, form="json").done()
    installed("apply", "-f", "-", documents=objects(Installation(replicas=3)))
    found = api.get(where).done()["webhooks"]
    assert [each["clientConfig"].get("caBundle") for each in found] == [_CERTIFICATE, None]


@pytest.mark.parametrize("made", [deployments.scheduler, deployments.webhook])
def test_pods_fit_the_strictest_standard(api: Wire, made: Callable[[Installation], Body]) -> None:
    space = f"strict-{made.__name__}"
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    api.made(thing("Namespace", "", space, labels=label))
    spec = made(Installation())["spec"]["template"]["spec"]
    body = {**thing("Pod", space, "p"), "spec": spec}
    eventually(lambda: api.create(body, dryRun="All").code == 201)
    lax = {**body, "spec": {**spec, "securityContext": {}}}
    assert "restricted" in api.create(lax, dryRun="All").refused(403, "Forbidden")["message"]


_CERTIFICATE = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1BPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
