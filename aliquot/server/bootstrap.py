"""What is there from the start: namespaces, priority classes, definitions, simulated nodes."""

from collections.abc import Sequence

from aliquot.dialects.crds import definitions
from aliquot.json import Body
from aliquot.server.admission.priorities import SYSTEM
from aliquot.server.api import Api
from aliquot.server.controllers import simulated_nodes
from aliquot.server.rules.metadata import timestamp

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


async def bootstrap(api: Api, nodes: Sequence[Body]) -> None:
    """Make what is missing; what is there stays as it is."""
    for name in _NAMESPACES:
        await _make(api, "Namespace", {"metadata": {"name": name}})
    for name, value in SYSTEM.items():
        await _make(api, "PriorityClass", {"metadata": {"name": name}, "value": value})
    for definition in definitions():
        await _make(api, "CustomResourceDefinition", definition)
    for node in nodes:
        await _make(api, "Node", simulated_nodes.alive(node, timestamp()))


async def _make(api: Api, word: str, body: Body) -> None:
    kind = api.kind(word)
    if api.store.get(kind.kept_as, "", body["metadata"]["name"]) is None:
        await api.create(kind, None, body)
