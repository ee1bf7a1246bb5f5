"""What monitors an installation: objects for the Prometheus operator and for Grafana's sidecar.

Not every cluster has the kinds of the Prometheus operator, so this part is printed only when it is
asked for.
"""

import json

from aliquot.json import Body
from aliquot.kube.install.installation import Installation, labels, metadata
from aliquot.kube.monitoring import accounting, alerts
from aliquot.kube.monitoring.alerts import Bounds
from aliquot.kube.monitoring.dashboard import dashboard
from aliquot.kube.monitoring.rules import Group, file

_OPERATOR = "monitoring.coreos.com/v1"
MONITOR = "aliquot"
"""The ServiceMonitor and the rules about quotas and the scheduler."""
DASHBOARD = "aliquot-dashboard"
DASHBOARD_FILE = "aliquot.json"
DASHBOARD_LABEL = "grafana_dashboard"
"""The label by which Grafana's sidecar finds dashboards, as its charts have it by default."""
INTERVAL = "30s"
PROTECTED = {
    "scheme": "https",
    "tlsConfig": {"insecureSkipVerify": True},
    "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
}
"""How Prometheus reads metrics that are protected."""


def monitoring(installation: Installation) -> list[Body]:
    """The ServiceMonitor, the rules and the dashboard."""
    namespace, bounds = installation.namespace, installation.alert_bounds
    return [
        _service_monitor(installation),
        _rule(MONITOR, "", namespace, scheduler_groups(bounds)),
        _rule(f"{MONITOR}-webhook", "webhook", namespace, alerts.webhook_groups()),
        _dashboard(namespace),
    ]


def scheduler_groups(bounds: Bounds) -> list[Group]:
    """The rules about what the scheduler tells of itself and of quotas."""
    return [*alerts.groups(bounds), *accounting.groups(bounds.resources)]


def all_rules(bounds: Bounds) -> Body:
    """All rules in one file, for a Prometheus without the operator."""
    return file([*scheduler_groups(bounds), *alerts.webhook_groups()])


def dashboard_text() -> str:
    """The dashboard as Grafana imports it."""
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


def _service_monitor(installation: Installation) -> Body:
    endpoint = {
        "port": "metrics",
        "path": "/metrics",
        "interval": INTERVAL,
        **(PROTECTED if installation.metrics_auth else {}),
    }
    return {
        "apiVersion": _OPERATOR,
        "kind": "ServiceMonitor",
        "metadata": metadata(MONITOR, "", installation.namespace),
        "spec": {"selector": {"matchLabels": labels("")}, "endpoints": [endpoint]},
    }


def _rule(name: str, component: str, namespace: str, groups: list[Group]) -> Body:
    return {
        "apiVersion": _OPERATOR,
        "kind": "PrometheusRule",
        "metadata": metadata(name, component, namespace),
        "spec": file(groups),
    }


def _dashboard(namespace: str) -> Body:
    about = metadata(DASHBOARD, "", namespace)
    about["labels"][DASHBOARD_LABEL] = "1"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": about,
        "data": {DASHBOARD_FILE: dashboard_text()},
    }
