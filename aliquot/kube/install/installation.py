"""An installation: the settings that differ between clusters, and the names that do not.

The names connect the parts: a role allows a component to write one Lease, one Secret and two
webhook configurations by name, and the component gets the same names as arguments. So they are
defined only here.
"""

from dataclasses import dataclass, field

from aliquot.dialects import configuration
from aliquot.dialects.core.times import duration
from aliquot.json import Body
from aliquot.kube.monitoring.alerts import Bounds
from aliquot.version import __version__

SCHEDULER = "aliquot-scheduler"
"""The scheduler's Deployment, service account, roles and Lease."""

WEBHOOK = "aliquot-webhook"
"""The webhook's Deployment, service account, roles and Service."""

CERTIFICATE = "aliquot-webhook-certificate"
"""The Secret in which the webhook keeps its certificate."""

DELETION = f"{SCHEDULER}-deletion"
KOORDINATOR = f"{SCHEDULER}-koordinator"
QUEUES = f"{SCHEDULER}-queues"
SPREAD = f"{SCHEDULER}-spread"
"""The scheduler's roles that only some configurations need: to delete pods whose eviction is
refused for too long, to write Koordinator's default quotas and figures, to create the default
queue, to read by which Services and owners pods are spread that state no topology spread."""

METRICS_READER = "aliquot-metrics-reader"
"""The role to read metrics that are protected; to be bound to Prometheus' account."""

READER = "aliquot-reader"
"""The roles of those who may ask questions to the cluster; to be bound to people."""

CONFIGURATION = "aliquot"
"""The ConfigMap with the Configuration, and both webhook configurations."""

NAMESPACE = "aliquot-system"
IMAGE = f"aliquot:{__version__}"
REPLICAS = 2
"""One scheduler leads, one stands by; one webhook serves while the other restarts."""

COMPONENT = "app.kubernetes.io/component"
"""The label with the component, scheduler or webhook, that an object belongs to."""

_NAME = {"app.kubernetes.io/name": "aliquot"}
_DELETE_AFTER = "1m"
"""The default of `eviction.deleteAfter` in a Configuration; 0 turns it off."""


def _plain_configuration() -> Body:
    return {"apiVersion": configuration.API_VERSION, "kind": "Configuration"}


@dataclass(frozen=True, slots=True)
class Installation:
    """Namespace, image, replicas and configuration of one installation."""

    namespace: str = NAMESPACE
    image: str = IMAGE
    replicas: int = REPLICAS
    configuration: Body = field(default_factory=_plain_configuration)
    webhook: bool = True
    metrics_auth: bool = False
    """Are metrics served only to clients that may read them, and over TLS?"""
    alert_bounds: Bounds = field(default_factory=Bounds)
    """Where alerts begin, if the part `monitoring` is asked for."""

    @property
    def deletes_pods(self) -> bool:
        """Does `eviction.deleteAfter` allow to delete a pod that cannot be evicted?"""
        section = self.configuration.get("eviction") or {}
        written = section.get("deleteAfter", _DELETE_AFTER)
        return duration(str(written), "Configuration", "eviction.deleteAfter") > 0

    @property
    def spreads_by_default(self) -> bool:
        """Are there `placement.defaultConstraints`, for pods that state no topology spread?"""
        return bool((self.configuration.get("placement") or {}).get("defaultConstraints"))

    def may_have_policy(self, policy: str) -> bool:
        """Can a profile come to have this policy: by its name, or as the one that objects imply?"""
        profiles = self.configuration.get("profiles") or [{}]
        return any(each.get("policy", "auto") in ("auto", policy) for each in profiles)


def labels(component: str) -> dict[str, str]:
    """The labels of a component's objects; without the component if they belong to both."""
    return {**_NAME, COMPONENT: component} if component else dict(_NAME)


def metadata(name: str, component: str, namespace: str = "") -> Body:
    """The metadata of an object of the installation."""
    in_namespace = {"namespace": namespace} if namespace else {}
    return {"name": name, **in_namespace, "labels": labels(component)}


def belongs(body: Body, component: str) -> bool:
    """Is this an object of that component alone?"""
    return bool((body["metadata"].get("labels") or {}).get(COMPONENT) == component)
