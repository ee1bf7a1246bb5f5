"""What API servers ask the webhook about.

Our own kinds are refused while nobody can judge them: a quota that no rule was applied to would
be a promise that nobody checked. Pods are let through: a webhook that is down must not stop a
cluster, and the scheduler judges them again anyway. For the same reason pods of the system and
our own are never asked about. The webhook writes `caBundle` by itself: it must not be said here,
or applying these objects again would take it away.
"""

from collections.abc import Sequence

from aliquot.dialects.crds import DEFINITIONS
from aliquot.json import Body
from aliquot.kube.install.installation import CONFIGURATION, WEBHOOK, Installation, metadata

_API = "admissionregistration.k8s.io/v1"
_JUDGED = ("ElasticQuota", "CompositeElasticQuota", "Queue", "PodGroup", "GPUResourceQuota")
_NAME_OF_NAMESPACE = "kubernetes.io/metadata.name"


def configurations(installation: Installation) -> list[Body]:
    """Both: what may change an object, and what may refuse it."""
    return [
        _configuration("Mutating", "mutate", installation, ("CREATE", "UPDATE"), ("CREATE",)),
        _configuration(
            "Validating",
            "validate",
            installation,
            ("CREATE", "UPDATE", "DELETE"),
            ("CREATE", "UPDATE"),
        ),
    ]


def _configuration(
    word: str,
    path: str,
    installation: Installation,
    of_kinds: Sequence[str],
    of_pods: Sequence[str],
) -> Body:
    ours, pods = f"kinds.{path}.aliquot.dev", f"pods.{path}.aliquot.dev"
    asked = _client(installation.namespace, path)
    spared = {
        "key": _NAME_OF_NAMESPACE,
        "operator": "NotIn",
        "values": ["kube-system", installation.namespace],
    }
    return {
        "apiVersion": _API,
        "kind": f"{word}WebhookConfiguration",
        "metadata": metadata(CONFIGURATION, "webhook"),
        "webhooks": [
            _webhook(ours, asked, "Fail", _of_our_kinds(of_kinds)),
            {
                **_webhook(pods, asked, "Ignore", [_rule("", "v1", ["pods"], of_pods)]),
                "namespaceSelector": {"matchExpressions": [spared]},
            },
        ],
    }


def _webhook(name: str, asked: Body, on_failure: str, rules: list[Body]) -> Body:
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": asked,
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
    """A rule for each group and version; statuses are resources of their own, and not named."""
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
