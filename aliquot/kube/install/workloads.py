"""The workloads and what they need: ConfigMap, Services, PodDisruptionBudgets, Deployments."""

from typing import Any

import yaml

from aliquot.json import Body
from aliquot.kube.install import deployments
from aliquot.kube.install.deployments import CONFIGURATION_FILE, HEALTH_PORT
from aliquot.kube.install.installation import (
    CONFIGURATION,
    SCHEDULER,
    WEBHOOK,
    Installation,
    labels,
    metadata,
)

_METRICS: Body = {
    "name": "metrics",
    "port": HEALTH_PORT,
    "targetPort": "health",
    "protocol": "TCP",
}
_HTTPS: Body = {"name": "https", "port": 443, "targetPort": "webhook", "protocol": "TCP"}


def workloads(installation: Installation) -> list[Body]:
    """The objects, each after what it needs."""
    namespace = installation.namespace
    return [
        published_configuration(installation.configuration, namespace),
        _service(SCHEDULER, "scheduler", namespace, _METRICS),
        _service(WEBHOOK, "webhook", namespace, _HTTPS, _METRICS),
        _budget(SCHEDULER, "scheduler", namespace),
        _budget(WEBHOOK, "webhook", namespace),
        deployments.scheduler(installation),
        deployments.webhook(installation),
    ]


def published_configuration(configuration: Body, namespace: str) -> Body:
    """The ConfigMap with the Configuration: for the Deployments, and for questions."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(CONFIGURATION, "", namespace),
        "data": {CONFIGURATION_FILE: _text(configuration)},
    }


def _text(body: Any) -> str:
    return yaml.safe_dump(body, allow_unicode=True)


def _service(name: str, component: str, namespace: str, *ports: Body) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, component, namespace),
        "spec": {"selector": labels(component), "ports": [dict(each) for each in ports]},
    }


def _budget(name: str, component: str, namespace: str) -> Body:
    """One healthy pod at a time may be evicted; unhealthy ones always."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name, component, namespace),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": labels(component)},
        },
    }
