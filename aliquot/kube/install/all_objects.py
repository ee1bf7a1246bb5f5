"""All objects of an installation, in an order in which they can be applied at once.

CustomResourceDefinitions come before the roles on them, roles before their bindings, and webhook
configurations last: until the webhook runs, API servers would refuse writes to our kinds.
"""

from collections.abc import Callable, Collection

from aliquot.dialects.crds import definitions
from aliquot.json import Body
from aliquot.kube.install.installation import Installation, belongs, metadata
from aliquot.kube.install.monitoring import monitoring
from aliquot.kube.install.rbac import accounts, roles
from aliquot.kube.install.webhooks import configurations
from aliquot.kube.install.workloads import workloads

_PARTS: dict[str, Callable[[Installation], list[Body]]] = {
    "crds": lambda _: definitions(),
    "rbac": lambda installation: [*accounts(installation), *roles(installation)],
    "workloads": workloads,
    "webhooks": configurations,
    "monitoring": monitoring,
}
OPTIONAL_PARTS = ("monitoring",)
"""The parts that must be asked for: their kinds are not known everywhere."""
PARTS = tuple(each for each in _PARTS if each not in OPTIONAL_PARTS)
"""The parts of every installation; each can be applied on its own."""


def objects(installation: Installation, parts: Collection[str] = PARTS) -> list[Body]:
    """The objects of these parts, with the namespace if any of them is in it."""
    found = [
        body
        for part, make in _PARTS.items()
        if part in parts
        for body in make(installation)
        if installation.webhook or not belongs(body, "webhook")
    ]
    if any("namespace" in body["metadata"] for body in found):
        return [_namespace(installation), *found]
    return found


def _namespace(installation: Installation) -> Body:
    meta = metadata(installation.namespace, "")
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
