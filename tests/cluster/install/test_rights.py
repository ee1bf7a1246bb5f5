"""Each component may do what it does, and nothing else: as the real server sees it."""

from itertools import product
from typing import Any

import pytest

from tests.cluster.api.objects import binding, node, pod
from tests.cluster.api.wire import Answer, Wire
from tests.cluster.install import permissions
from tests.cluster.install.permissions import Right

HOME = "aliquot-system"
COMPONENTS = [
    ("scheduler", "\n".join((permissions.SCHEDULER, *permissions.OPTIONAL.values()))),
    ("webhook", permissions.WEBHOOK),
]


def act(api: Wire, who: str, method: str, path: str, body: Any = None, **more: Any) -> Answer:
    """A request of a component's own."""
    own = {
        "Impersonate-User": f"system:serviceaccount:{HOME}:{who}",
        "Impersonate-Group": "system:authenticated",
    }
    return api.call(method, path, body, headers={**api.authorization, **own}, **more)


def rules(api: Wire, who: str, namespace: str) -> set[Right]:
    """Everything that somebody may do in a namespace."""
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    where = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    answer = act(api, who, "POST", where, body).done(201)
    return {
        (verb, group, resource, name)
        for rule in answer["status"]["resourceRules"]
        for verb, group, resource, name in product(
            rule["verbs"], rule["apiGroups"], rule["resources"], rule.get("resourceNames") or [""]
        )
    }


@pytest.mark.parametrize("namespace", [HOME, "default"])
@pytest.mark.parametrize(("component", "text"), COMPONENTS)
def test_a_component_has_the_rights_it_uses_and_no_others(
    api: Wire, component: str, text: str, namespace: str
) -> None:
    anybody = rules(api, "nobody", namespace)
    own = rules(api, f"aliquot-{component}", namespace) - anybody
    assert own == permissions.rights(text, at_home=namespace == HOME)


def review(api: Wire, who: str, verb: str, what: str, namespace: str, name: str = "") -> bool:
    resource, _, group = what.partition(".")
    plural, _, part = resource.partition("/")
    asked = {"verb": verb, "group": group, "resource": plural, "subresource": part}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**asked, "namespace": namespace, "name": name}},
    }
    where = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(act(api, who, "POST", where, body).done(201)["status"]["allowed"])


ALLOWED = [
    ("scheduler", "watch", "pods", "team-a", ""),
    ("scheduler", "create", "pods/binding", "team-a", "p"),
    ("scheduler", "create", "pods/eviction", "team-a", "p"),
    ("scheduler", "patch", "queues/status.scheduling.volcano.sh", "", "q"),
    ("scheduler", "create", "events", "team-a", ""),
    ("scheduler", "update", "leases.coordination.k8s.io", HOME, "aliquot-scheduler"),
    ("webhook", "list", "elasticquotas.nos.nebuly.ai", "team-a", ""),
    ("webhook", "update", "secrets", HOME, "aliquot-webhook-certificate"),
    (
        "webhook",
        "patch",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "",
        "aliquot",
    ),
]
REFUSED = [
    ("scheduler", "get", "secrets", HOME, "aliquot-webhook-certificate"),
    ("scheduler", "create", "pods", "team-a", ""),
    ("scheduler", "update", "pods", "team-a", "p"),
    ("scheduler", "create", "pods/exec", "team-a", "p"),
    ("scheduler", "delete", "nodes", "", "n"),
    ("scheduler", "patch", "nodes", "", "n"),
    ("scheduler", "delete", "namespaces", "", "team-a"),
    ("scheduler", "create", "namespaces", "", ""),
    ("scheduler", "patch", "queues.scheduling.volcano.sh", "", "q"),
    ("scheduler", "patch", "elasticquotas.nos.nebuly.com", "team-a", "q"),
    ("scheduler", "delete", "elasticquotas.scheduling.x-k8s.io", "team-a", "q"),
    ("scheduler", "update", "leases.coordination.k8s.io", HOME, "somebody-else"),
    ("scheduler", "update", "leases.coordination.k8s.io", "kube-system", "kube-scheduler"),
    ("scheduler", "create", "serviceaccounts/token", HOME, "aliquot-webhook"),
    ("webhook", "list", "secrets", HOME, ""),
    ("webhook", "get", "secrets", HOME, "another"),
    ("webhook", "get", "secrets", "kube-system", "aliquot-webhook-certificate"),
    ("webhook", "create", "secrets", "default", ""),
    ("webhook", "delete", "pods", "team-a", "p"),
    ("webhook", "patch", "pods", "team-a", "p"),
    ("webhook", "patch", "elasticquotas.scheduling.x-k8s.io", "team-a", "q"),
    (
        "webhook",
        "patch",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "",
        "another",
    ),
    (
        "webhook",
        "create",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "",
        "aliquot",
    ),
]


@pytest.mark.parametrize(
    ("case", "allowed"), [*((each, True) for each in ALLOWED), *((each, False) for each in REFUSED)]
)
def test_who_may_do_what(api: Wire, case: tuple[str, str, str, str, str], allowed: bool) -> None:
    component, verb, what, namespace, name = case
    assert review(api, f"aliquot-{component}", verb, what, namespace, name) is allowed


def test_the_scheduler_binds_and_the_webhook_does_not(api: Wire) -> None:
    api.made(node("node-0"))
    api.made(pod("default", "p"))
    where, bound = "/api/v1/namespaces/default/pods/p/binding", binding("p", "node-0")
    act(api, "aliquot-webhook", "POST", where, bound).refused(403, "Forbidden")
    act(api, "aliquot-scheduler", "POST", where, bound).done(201)


PEOPLE = [
    ("view", "list", "elasticquotas.scheduling.x-k8s.io", True),
    ("view", "get", "queues.scheduling.volcano.sh", True),
    ("view", "create", "podgroups.scheduling.x-k8s.io", False),
    ("edit", "create", "podgroups.scheduling.x-k8s.io", True),
    ("edit", "delete", "jobs.batch.volcano.sh", True),
    ("edit", "list", "gpuresourcequotas.tensor-fusion.ai", True),
    ("edit", "update", "elasticquotas.scheduling.x-k8s.io", False),
    ("admin", "patch", "podgroups.scheduling.volcano.sh", True),
    ("admin", "update", "elasticquotas.nos.nebuly.com", False),
    ("admin", "create", "queues.scheduling.volcano.sh", False),
    ("aliquot-admin", "update", "elasticquotas.nos.nebuly.com", True),
    ("aliquot-admin", "delete", "queues.scheduling.volcano.sh", True),
    ("aliquot-admin", "create", "pods", False),
    ("aliquot-admin", "patch", "namespaces", True),
    ("admin", "patch", "namespaces", False),
]


def aggregated(api: Wire, role: str) -> set[tuple[str, str, str]]:
    """What a role comes to: the controller that adds up rules by label does not run here."""
    where = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    body = api.get(f"{where}/{role}").done()
    found = {
        (verb, group, resource)
        for rule in body.get("rules") or ()
        for verb, group, resource in product(
            rule["verbs"], rule.get("apiGroups") or (), rule.get("resources") or ()
        )
    }
    for selector in body.get("aggregationRule", {}).get("clusterRoleSelectors", ()):
        labels = ",".join(f"{key}={value}" for key, value in selector["matchLabels"].items())
        for each in api.get(where, labelSelector=labels).done()["items"]:
            found |= aggregated(api, each["metadata"]["name"])
    return found


@pytest.mark.parametrize(("role", "verb", "what", "allowed"), PEOPLE)
def test_people_may_see_quotas_and_write_work(
    api: Wire, role: str, verb: str, what: str, allowed: bool
) -> None:
    resource, _, group = what.partition(".")
    assert ((verb, group, resource) in aggregated(api, role)) is allowed
