"""Schemas that many of Kubernetes' own kinds share, and the keywords of strategic merges."""

from aliquot.dialects.core.schema import (
    Schema,
    anything,
    flag,
    listed,
    long,
    mapped,
    moment,
    open_ended,
    record,
    text,
)


def merged(shape: Schema, key: str = "", strategy: str = "merge") -> Schema:
    """The schema with the strategy of a strategic merge patch, and the merge key of its items."""
    by = {"x-kubernetes-patch-merge-key": key} if key else {}
    return {**shape, **by, "x-kubernetes-patch-strategy": strategy}


_OWNER = record(
    {
        "apiVersion": text(),
        "kind": text(),
        "name": text(),
        "uid": text(),
        "controller": flag("Whether it is the one that made it."),
        "blockOwnerDeletion": flag(),
    }
)

METADATA = open_ended(
    record(
        {
            "name": text("Its name."),
            "generateName": text("How its name begins, if it is to be made up."),
            "namespace": text("Its namespace."),
            "uid": text("What no other object ever has."),
            "resourceVersion": text("Which state of it this is."),
            "generation": long("How often what is wanted has changed."),
            "creationTimestamp": moment("Since when it is there."),
            "deletionTimestamp": moment("When it is to go."),
            "deletionGracePeriodSeconds": long(),
            "labels": mapped(text(), "What it can be selected by."),
            "annotations": mapped(text(), "What else there is to say of it."),
            "ownerReferences": merged(listed(_OWNER, "With whom it goes."), "uid"),
            "finalizers": merged(listed(text(), "Who has to agree before it goes.")),
            "managedFields": listed(anything()),
        },
        description="What every object has.",
    )
)

SELECTOR = open_ended(
    record(
        {
            "matchLabels": mapped(text()),
            "matchExpressions": listed(
                record({"key": text(), "operator": text(), "values": listed(text())})
            ),
        },
        description="Which pods are meant.",
    )
)
