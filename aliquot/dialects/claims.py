"""The claims that are made for pods: of StatefulSets, and for generic ephemeral volumes."""

from collections.abc import Iterator

from aliquot.dialects.core.manifest import owner_reference
from aliquot.json import Body, fresh


def claim_name(template: Body, pod: str) -> str:
    """The name of the PersistentVolumeClaim of a StatefulSet's pod."""
    return f"{template['metadata']['name']}-{pod}"


def stateful_claims(owner: Body, pod: str) -> Iterator[Body]:
    """The claims of a pod of a StatefulSet, by its name; they stay when it goes."""
    selected = (owner["spec"].get("selector") or {}).get("matchLabels") or {}
    for template in owner["spec"].get("volumeClaimTemplates") or ():
        yield _claim(claim_name(template, pod), template, selected)


def ephemeral_claims(pod: Body) -> Iterator[Body]:
    """The claims that a pod brings along, named by the pod and the volume, and owned by the pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", **pod}
    for volume in pod["spec"].get("volumes") or ():
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is not None:
            claim = _claim(f"{pod['metadata']['name']}-{volume['name']}", template, {})
            claim["metadata"]["ownerReferences"] = [owner_reference(owner)]
            yield claim


def _claim(name: str, template: Body, labels: Body) -> Body:
    written = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "labels": {**(written.get("labels") or {}), **labels},
            "annotations": dict(written.get("annotations") or {}),
        },
        "spec": fresh(template.get("spec") or {}),
    }
