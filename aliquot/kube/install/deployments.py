"""The two Deployments: of the scheduler and of the webhook.

Their pods meet the pod security standard `restricted`: no root, no capabilities, no writable file
system but a little memory under `/tmp`. Replicas are spread over nodes and zones if possible.
"""

import hashlib
import json
from collections.abc import Sequence

from aliquot.dialects.priorities import CLUSTER_CRITICAL
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
"""The user of the image, which distroless images call `nonroot`."""


def scheduler(installation: Installation) -> Body:
    """The Deployment of the scheduler: one replica leads, the others stand by."""
    resources = _resources(cpu="500m", memory="512Mi", most_memory="2Gi")
    arguments = [f"--lease-name={SCHEDULER}", "--host=0.0.0.0"]
    return _deployment(SCHEDULER, "scheduler", installation, arguments, (), resources)


def webhook(installation: Installation) -> Body:
    """The Deployment of the webhook: all replicas serve."""
    resources = _resources(cpu="100m", memory="256Mi", most_memory="1Gi")
    arguments = [
        f"--port={WEBHOOK_PORT}",
        f"--service={WEBHOOK}",
        f"--secret={CERTIFICATE}",
        f"--configuration={CONFIGURATION}",
    ]
    ports = ({"name": "webhook", "containerPort": WEBHOOK_PORT, "protocol": "TCP"},)
    return _deployment(WEBHOOK, "webhook", installation, arguments, ports, resources)


def digest(configuration: Body) -> str:
    """A hash of the configuration: as an annotation, it replaces pods when that changes."""
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
                            "args": [
                                *(component, *_shared(installation), *arguments),
                                *(["--metrics-auth"] if installation.metrics_auth else []),
                            ],
                            "ports": [
                                {
                                    "name": "health",
                                    "containerPort": HEALTH_PORT,
                                    "protocol": "TCP",
                                },
                                *ports,
                            ],
                            "resources": resources,
                            **_probes_and_security(
                                "HTTPS" if installation.metrics_auth else "HTTP"
                            ),
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
    """The spec of a pod without its container."""
    return {
        "serviceAccountName": account,
        "automountServiceAccountToken": True,
        "priorityClassName": CLUSTER_CRITICAL,
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


def _probes_and_security(scheme: str) -> Body:
    """Probes, security context and mounts of a container."""
    return {
        "livenessProbe": _probe("/livez", scheme, periodSeconds=10, failureThreshold=6),
        "readinessProbe": _probe("/readyz", scheme, periodSeconds=5, failureThreshold=2),
        "startupProbe": _probe("/livez", scheme, periodSeconds=2, failureThreshold=60),
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


def _probe(path: str, scheme: str, **how: int) -> Body:
    asked = {"path": path, "port": "health", "scheme": scheme}
    return {"httpGet": asked, "timeoutSeconds": 5, **how}


def _resources(cpu: str, memory: str, most_memory: str) -> Body:
    """Requests and a memory limit; no CPU limit, which would throttle a scheduler under load."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": most_memory}}
