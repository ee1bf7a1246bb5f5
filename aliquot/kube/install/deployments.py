"""The two Deployments: how the scheduler and the webhook run.

Their pods fit the strictest of Kubernetes' pod security standards: no root, no writable file
system but a little memory under `/tmp`, no capabilities. Replicas keep apart where they can, and
start anyway where they cannot.
"""

import hashlib
import json
from collections.abc import Sequence

from aliquot.json import Body
from aliquot.kube.install.installation import (
    CERTIFICATE,
    CONFIGURATION,
    SCHEDULER,
    WEBHOOK,
    Installation,
    labels,
    metadata,
)

CONFIGURATION_FILE = "configuration.yaml"
HEALTH_PORT = 8080
WEBHOOK_PORT = 9443
_FOLDER = "/etc/aliquot"
_USER = 65532


def scheduler(installation: Installation) -> Body:
    """The one that decides, and its stand-by."""
    resources = _resources(cpu="500m", memory="512Mi", most_memory="2Gi")
    said = [f"--lease-name={SCHEDULER}"]
    return _deployment(SCHEDULER, "scheduler", installation, said, (), resources)


def webhook(installation: Installation) -> Body:
    """The ones that API servers ask."""
    resources = _resources(cpu="100m", memory="256Mi", most_memory="1Gi")
    said = [
        f"--port={WEBHOOK_PORT}",
        f"--service={WEBHOOK}",
        f"--secret={CERTIFICATE}",
        f"--configuration={CONFIGURATION}",
    ]
    ports = ({"name": "webhook", "containerPort": WEBHOOK_PORT, "protocol": "TCP"},)
    return _deployment(WEBHOOK, "webhook", installation, said, ports, resources)


def digest(configuration: Body) -> str:
    """What changes with the configuration, so that pods are replaced when it does."""
    text = json.dumps(configuration, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _deployment(
    name: str,
    component: str,
    installation: Installation,
    arguments: Sequence[str],
    ports: Sequence[Body],
    resources: Body,
) -> Body:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(name, component, installation.namespace),
        "spec": {
            "replicas": installation.replicas,
            "selector": {"matchLabels": labels(component)},
            "template": {
                "metadata": {
                    "labels": labels(component),
                    "annotations": {
                        "aliquot.dev/configuration": digest(installation.configuration)
                    },
                },
                "spec": {
                    **_pod(name, component),
                    "containers": [
                        {
                            "name": component,
                            "image": installation.image,
                            "imagePullPolicy": "IfNotPresent",
                            "args": [component, *_shared(installation), *arguments],
                            "ports": [
                                {
                                    "name": "health",
                                    "containerPort": HEALTH_PORT,
                                    "protocol": "TCP",
                                },
                                *ports,
                            ],
                            "resources": resources,
                            **_watched(),
                        }
                    ],
                },
            },
        },
    }


def _shared(installation: Installation) -> list[str]:
    return [
        f"--config={_FOLDER}/{CONFIGURATION_FILE}",
        f"--namespace={installation.namespace}",
        f"--health-port={HEALTH_PORT}",
        "--log-format=json",
    ]


def _pod(account: str, component: str) -> Body:
    """All of a pod but its container."""
    return {
        "serviceAccountName": account,
        "automountServiceAccountToken": True,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels(component)},
            }
            for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
        ],
        "volumes": [
            {"name": "configuration", "configMap": {"name": CONFIGURATION}},
            {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
        ],
    }


def _watched() -> Body:
    """How a container is confined, and how it is asked whether it is well."""
    return {
        "livenessProbe": _probe("/livez", periodSeconds=10, failureThreshold=6),
        "readinessProbe": _probe("/readyz", periodSeconds=5, failureThreshold=2),
        "startupProbe": _probe("/livez", periodSeconds=2, failureThreshold=60),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "configuration", "mountPath": _FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }


def _probe(path: str, **how: int) -> Body:
    return {"httpGet": {"path": path, "port": "health"}, "timeoutSeconds": 5, **how}


def _resources(cpu: str, memory: str, most_memory: str) -> Body:
    """No bound on cpu: a scheduler that is slowed down in a rush is a rush that lasts."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": most_memory}}
