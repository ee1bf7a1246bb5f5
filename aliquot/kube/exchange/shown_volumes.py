"""What the cluster shows of claims and volumes, as far as they are bound before a pod is.

The intake reads it from every watched PersistentVolumeClaim and PersistentVolume, and the labels
of nodes beside them; the volume binder compares it with what it has written and waits for. It is
all that the output side knows of them. It never changes what is shown; it only says whether
changes are to be noted for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aliquot.dialects.core.storage.volumes import BIND_COMPLETED, SELECTED_NODE
from aliquot.engine import Node, NodeConstraints, Requirement, Term, node_refusal
from aliquot.json import Body
from aliquot.kube.api.resource import CLAIMS, Resource


@dataclass(frozen=True, slots=True)
class ShownClaim:
    """A claim as it was shown last."""

    uid: str
    version: str
    volume: str
    """The volume that it is bound to, or is to be bound to; empty if there is none."""
    bound: bool
    """Has the PersistentVolume controller completed its binding?"""
    selected_node: str


@dataclass(frozen=True, slots=True)
class ShownVolume:
    """A volume as it was shown last."""

    uid: str
    version: str
    claim: str
    """The claim (`namespace/name`) that it is bound to, or kept for; empty if there is none."""
    claim_uid: str
    """Empty if a person keeps the volume for a claim of that name."""
    affinity: tuple[Term, ...] | None
    """The nodes from which it can be reached; None: from all."""

    def is_free_for(self, claim: str, claim_uid: str) -> bool:
        """May it be bound to this claim, or is it already?"""
        return not self.claim or (self.claim == claim and self.claim_uid in ("", claim_uid))

    def belongs_to(self, claim: str, claim_uid: str) -> bool:
        """Is it bound to this very claim, and to no other of its name?"""
        return self.claim == claim and self.claim_uid == claim_uid

    def is_reachable_from(self, node: str, labels: Mapping[str, str]) -> bool:
        """Can a pod on this node mount it?"""
        there = Node(node, (), tuple(labels.items()))
        return node_refusal(NodeConstraints(required=self.affinity), there) is None


class ShownVolumes:
    """The claims, by `namespace/name`, the volumes, and the labels of the nodes, by name."""

    def __init__(self) -> None:
        self.claims: dict[str, ShownClaim] = {}
        self.volumes: dict[str, ShownVolume] = {}
        self.nodes: dict[str, Mapping[str, str]] = {}
        self.changed: set[str] | None = None
        """Where to note the claims that have changed, or their volumes, while it is wanted."""

    def put(self, resource: Resource, body: Body) -> None:
        """A claim or a volume was created or changed."""
        if resource == CLAIMS:
            name = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
            self.claims[name] = claim_of(body)
            self._note(name)
            return
        name, volume = body["metadata"]["name"], volume_of(body)
        self._note_claim_of(name)
        self.volumes[name] = volume
        self._note_claim_of(name)

    def gone(self, resource: Resource, namespace: str, name: str) -> None:
        """A claim or a volume was deleted."""
        if resource == CLAIMS:
            self.claims.pop(f"{namespace}/{name}", None)
            self._note(f"{namespace}/{name}")
        else:
            self._note_claim_of(name)
            self.volumes.pop(name, None)

    def _note_claim_of(self, volume: str) -> None:
        shown = self.volumes.get(volume)
        if shown is not None and shown.claim:
            self._note(shown.claim)

    def _note(self, claim: str) -> None:
        if self.changed is not None:
            self.changed.add(claim)


def claim_of(body: Body) -> ShownClaim:
    """A claim, as the API server has it."""
    metadata, spec = body["metadata"], body.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    return ShownClaim(
        uid=metadata.get("uid") or "",
        version=metadata.get("resourceVersion") or "",
        volume=spec.get("volumeName") or "",
        bound=BIND_COMPLETED in annotations,
        selected_node=annotations.get(SELECTED_NODE) or "",
    )


def volume_of(body: Body) -> ShownVolume:
    """A volume, as the API server has it."""
    metadata, spec = body["metadata"], body.get("spec") or {}
    holder = spec.get("claimRef") or {}
    claim = f"{holder.get('namespace') or ''}/{holder.get('name') or ''}" if holder else ""
    return ShownVolume(
        uid=metadata.get("uid") or "",
        version=metadata.get("resourceVersion") or "",
        claim=claim,
        claim_uid=holder.get("uid") or "",
        affinity=_affinity(spec),
    )


def _affinity(spec: Body) -> tuple[Term, ...] | None:
    required = (spec.get("nodeAffinity") or {}).get("required")
    if required is None:
        return None
    terms = required.get("nodeSelectorTerms") or ()
    return tuple(
        Term(_requirements(each.get("matchExpressions")), _requirements(each.get("matchFields")))
        for each in terms
    )


def _requirements(written: Any) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(each["key"], each["operator"], tuple(each.get("values") or ()))
        for each in written or ()
    )
