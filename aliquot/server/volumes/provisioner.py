"""The volume that is made for a claim, as the provisioner of its class would make it. Pure.

Volumes are as simulated as nodes: every provisioner has all the storage that is asked for. Where a
node was selected for the claim, its volume can be reached from nodes like it: of its zone, or from
that node alone.
"""

from collections.abc import Mapping, Sequence

from aliquot.dialects.core.storage.volumes import NO_PROVISIONER
from aliquot.json import Body
from aliquot.server.volumes.keys import HOST, PROVISIONED_BY, ZONE, class_of

Topology = Mapping[str, Sequence[str]]
"""The values that each label of a node may have."""


def provisions(storage_class: Body) -> bool:
    """Does the class make volumes?"""
    return bool(storage_class.get("provisioner") != NO_PROVISIONER)


def waits_for_consumer(storage_class: Body) -> bool:
    """Are the claims of the class bound only once a pod has a node?"""
    return bool(storage_class.get("volumeBindingMode") == "WaitForFirstConsumer")


def topology(
    storage_class: Body, labels: Mapping[str, str], keys: Sequence[str]
) -> Topology | None:
    """From where a volume near a node with these labels can be reached; None: not near it.

    By the labels that the class restricts, or the node's driver names (`keys`), or else by zone, or
    by host.
    """
    terms = _allowed(storage_class)
    for term in terms:
        if all(labels.get(key) in values for key, values in term.items()):
            return {key: (labels[key],) for key in term}
    if terms:
        return None
    for chosen in (keys, (ZONE,), (HOST,)):
        found = {key: (labels[key],) for key in chosen if key in labels}
        if found:
            return found
    return {}


def topology_without_node(storage_class: Body) -> Topology:
    """From where a volume can be reached for which no node was selected."""
    terms = _allowed(storage_class)
    return terms[0] if terms else {}


def volume(claim: Body, storage_class: Body, reachable: Topology) -> Body:
    """The volume of a claim."""
    name, about, spec = f"pvc-{claim['metadata']['uid']}", claim["metadata"], claim["spec"]
    made: Body = {
        "accessModes": spec["accessModes"],
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            **{word: about[word] for word in ("name", "namespace", "uid", "resourceVersion")},
        },
        "csi": {"driver": storage_class["provisioner"], "volumeHandle": name},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": class_of(claim),
        "volumeMode": spec.get("volumeMode") or "Filesystem",
    }
    if reachable:
        expressions = [
            {"key": key, "operator": "In", "values": list(values)}
            for key, values in reachable.items()
        ]
        terms = [{"matchExpressions": expressions}]
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    noted = {PROVISIONED_BY: storage_class["provisioner"]}
    return {"metadata": {"name": name, "annotations": noted}, "spec": made}


def _allowed(storage_class: Body) -> list[dict[str, tuple[str, ...]]]:
    return [
        {
            each["key"]: tuple(each.get("values") or ())
            for each in term.get("matchLabelExpressions") or ()
        }
        for term in storage_class.get("allowedTopologies") or ()
    ]
