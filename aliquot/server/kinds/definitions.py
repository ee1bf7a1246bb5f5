"""CustomResourceDefinitions: the initial status of a new one, and the kinds that they add."""

from aliquot.json import Body
from aliquot.server.kinds.registry import Registry
from aliquot.server.rules.metadata import timestamp
from aliquot.server.storage.store import Store
from aliquot.server.storage.window import Change

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def follow(store: Store, registry: Registry) -> None:
    """Serve the kinds of all definitions in the store, and follow its changes."""

    def on_change(change: Change) -> None:
        if change.storage != DEFINITIONS:
            return
        if change.type == "DELETED":
            registry.undefine(change.entry.read())
        else:
            registry.define(change.entry.read())

    for entry in store.all(DEFINITIONS):
        registry.define(entry.read())
    store.listeners.append(on_change)


def set_initial_status(definition: Body) -> None:
    """Write finalizer and status into a new definition: its names are accepted at once."""
    about, spec = definition["metadata"], definition.get("spec") or {}
    about["finalizers"] = [*(about.get("finalizers") or ()), CLEANUP]
    now = timestamp()
    definition["status"] = {
        "conditions": [
            {
                "type": "NamesAccepted",
                "status": "True",
                "reason": "NoConflicts",
                "message": "no conflicts found",
                "lastTransitionTime": now,
            },
            {
                "type": "Established",
                "status": "True",
                "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted",
                "lastTransitionTime": now,
            },
        ],
        "acceptedNames": dict(spec.get("names") or {}),
        "storedVersions": [
            each.get("name", "") for each in spec.get("versions") or () if each.get("storage")
        ],
    }
