"""Everything that an installation consists of, in an order in which it can be applied at once.

A kind comes before what is allowed to be done with it, a role before who has it, and what API
servers ask comes last: so there is somebody to ask, or soon will be.
"""

from collections.abc import Callable, Collection

from aliquot.dialects.crds import definitions
from aliquot.json import Body
from aliquot.kube.install.installation import Installation, belongs, metadata
from aliquot.kube.install.rbac import accounts, roles
from aliquot.kube.install.webhooks import configurations
from aliquot.kube.install.workloads import workloads

_PARTS: dict[str, Callable[[Installation], list[Body]]] = {
    "crds": lambda _: definitions(),
    "rbac": lambda installation: [*accounts(installation), *roles(installation)],
    "workloads": workloads,
    "webhooks": configurations,
}
PARTS = tuple(_PARTS)
"""What can be had by itself."""


def objects(installation: Installation, parts: Collection[str] = PARTS) -> list[Body]:
    """The objects of these parts; the namespace comes with whatever is in it."""
    found = [
        body
        for part, made in _PARTS.items()
        if part in parts
        for body in made(installation)
        if installation.webhook or not belongs(body, "webhook")
    ]
    if any("namespace" in body["metadata"] for body in found):
        return [_namespace(installation), *found]
    return found


def _namespace(installation: Installation) -> Body:
    about = metadata(installation.namespace, "")
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": about}
