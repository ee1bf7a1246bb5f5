"""The webhook configurations: which writes API servers send to the webhook.

While the webhook is down, writes to our own kinds are refused: a quota that was not validated could
promise what the cluster does not have. Pods, and Volcano's Jobs, which make pods, are allowed then:
the cluster must not stop, and the scheduler validates pods again. For the same reason, those in
kube-system and in Aliquot's namespace are never sent. `caBundle` must not be set here, because the
webhook fills it in: applying these objects again would remove it.
"""

from collections.abc import Sequence

from aliquot.dialects.core.manifest import VOLCANO_JOBS
from aliquot.dialects.crds import DEFINITIONS
from aliquot.engine import KUBE_SYSTEM
from aliquot.json import Body
from aliquot.kube.install.installation import CONFIGURATION, WEBHOOK, Installation, metadata

_API = "admissionregistration.k8s.io/v1"
_JUDGED = (
    *("ElasticQuota", "CompositeElasticQuota", "ElasticQuotaProfile", "Queue", "PodGroup"),
    *("GPUResourceQuota", "HyperNode"),
)
_NAME_OF_NAMESPACE = "kubernetes.io/metadata.name"


def configurations(installation: Installation) -> list[Body]:
    """Both configurations: of `/mutate` and of `/validate`."""
    return [
        _configuration(
            "Mutating",
            "mutate",
            installation,
            ("CREATE", "UPDATE"),
            [_rule("", "v1", ["pods"], ("CREATE",))],
        ),
        _configuration(
            "Validating",
            "validate",
            installation,
            ("CREATE", "UPDATE", "DELETE"),
            [
                _rule("", "v1", ["pods"], ("CREATE", "UPDATE")),
                _rule("", "v1", ["pods/resize"], ("UPDATE",)),
                _rule(VOLCANO_JOBS, "v1alpha1", ["jobs"], ("CREATE", "UPDATE")),
            ],
        ),
    ]


def _configuration(
    webhook_type: str,
    path: str,
    installation: Installation,
    of_kinds: Sequence[str],
    of_pods: list[Body],
) -> Body:
    ours, pods = f"kinds.{path}.aliquot.dev", f"pods.{path}.aliquot.dev"
    client = _client(installation.namespace, path)
    excluded = {
        "key": _NAME_OF_NAMESPACE,
        "operator": "NotIn",
        "values": [KUBE_SYSTEM, installation.namespace],
    }
    return {
        "apiVersion": _API,
        "kind": f"{webhook_type}WebhookConfiguration",
        "metadata": metadata(CONFIGURATION, "webhook"),
        "webhooks": [
            _webhook(ours, client, "Fail", _of_our_kinds(of_kinds)),
            {
                **_webhook(pods, client, "Ignore", of_pods),
                "namespaceSelector": {"matchExpressions": [excluded]},
            },
        ],
    }


def _webhook(name: str, client: Body, on_failure: str, rules: list[Body]) -> Body:
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client,
        "failurePolicy": on_failure,
        "matchPolicy": "Equivalent",
        "rules": rules,
        "sideEffects": "None",
        "timeoutSeconds": 5,
    }


def _client(namespace: str, path: str) -> Body:
    service = {"name": WEBHOOK, "namespace": namespace, "path": f"/{path}", "port": 443}
    return {"service": service}


def _of_our_kinds(operations: Sequence[str]) -> list[Body]:
    """A rule for each group and version; without the status, a resource of its own."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in DEFINITIONS:
        if each.kind in _JUDGED:
            found.setdefault((each.group, each.version), []).append(each.plural)
    return [_rule(*where, plurals, operations) for where, plurals in found.items()]


def _rule(group: str, version: str, plurals: list[str], operations: Sequence[str]) -> Body:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": plurals,
        "scope": "*",
    }
