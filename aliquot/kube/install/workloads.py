"""All that runs, and what it needs to run: configuration, Deployments, Services, budgets."""

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
    """What runs, after what it needs."""
    space = installation.namespace
    return [
        _configuration(installation),
        _service(SCHEDULER, "scheduler", space, _METRICS),
        _service(WEBHOOK, "webhook", space, _HTTPS, _METRICS),
        _budget(SCHEDULER, "scheduler", space),
        _budget(WEBHOOK, "webhook", space),
        deployments.scheduler(installation),
        deployments.webhook(installation),
    ]


def _configuration(installation: Installation) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(CONFIGURATION, "", installation.namespace),
        "data": {CONFIGURATION_FILE: _text(installation.configuration)},
    }


def _text(body: Any) -> str:
    return yaml.safe_dump(body, allow_unicode=True)


def _service(name: str, component: str, space: str, *ports: Body) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, component, space),
        "spec": {"selector": labels(component), "ports": [dict(each) for each in ports]},
    }


def _budget(name: str, component: str, space: str) -> Body:
    """One at a time may go, and whoever does not work may go anyway."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name, component, space),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": labels(component)},
        },
    }
