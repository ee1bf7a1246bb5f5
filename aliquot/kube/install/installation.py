"""One installation: what may differ from one cluster to the next, and the names that may not.

Names tie the parts together: a role allows a component to touch one Lease, one Secret and two
webhook configurations by name, and the component is told the same names as arguments. They are
here, once, and nowhere else.
"""

from dataclasses import dataclass, field

from aliquot import __version__
from aliquot.dialects import configuration
from aliquot.json import Body

SCHEDULER = "aliquot-scheduler"
"""The scheduler's Deployment, service account, roles and Lease."""

WEBHOOK = "aliquot-webhook"
"""The webhook's Deployment, service account, roles and Service."""

CERTIFICATE = "aliquot-webhook-certificate"
"""The Secret in which the webhook keeps its certificate."""

CONFIGURATION = "aliquot"
"""The ConfigMap with the Configuration, and both webhook configurations."""

NAMESPACE = "aliquot-system"
IMAGE = f"aliquot:{__version__}"
REPLICAS = 2

COMPONENT = "app.kubernetes.io/component"
"""The label that says which of the two an object belongs to."""

_NAME = {"app.kubernetes.io/name": "aliquot"}


def _plain_configuration() -> Body:
    return {"apiVersion": configuration.API_VERSION, "kind": "Configuration"}


@dataclass(frozen=True, slots=True)
class Installation:
    """Where Aliquot is to run, from which image, how often, and how it is configured."""

    namespace: str = NAMESPACE
    image: str = IMAGE
    replicas: int = REPLICAS
    configuration: Body = field(default_factory=_plain_configuration)
    webhook: bool = True


def labels(component: str) -> dict[str, str]:
    """What tells the objects of a component; of both, if it is empty."""
    return {**_NAME, COMPONENT: component} if component else dict(_NAME)


def metadata(name: str, component: str, namespace: str = "") -> Body:
    """The metadata of one of our objects."""
    where = {"namespace": namespace} if namespace else {}
    return {"name": name, **where, "labels": labels(component)}


def belongs(body: Body, component: str) -> bool:
    """Is this an object of that component alone?"""
    return bool((body["metadata"].get("labels") or {}).get(COMPONENT) == component)
