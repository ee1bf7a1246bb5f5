"""Priorities: a new pod gets the value and preemption policy of its PriorityClass."""

import msgspec

from aliquot.dialects.core.objects import PriorityClassWire
from aliquot.dialects.priorities import PriorityClasses
from aliquot.json import Body
from aliquot.server.http.refusals import forbidden
from aliquot.server.kinds.kind import Kind
from aliquot.server.storage.store import Store

CLASSES = "priorityclasses.scheduling.k8s.io"


def resolve(store: Store, kind: Kind, pod: Body) -> None:
    """Write priority and preemption policy into a new pod."""
    spec = pod["spec"]
    name = spec.get("priorityClassName") or classes(store).default_name()
    chosen: Body | None = None
    if name:
        found = store.get(CLASSES, "", name)
        if found is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden(kind, pod["metadata"].get("name", ""), why)
        spec["priorityClassName"] = name
        chosen = found.read()
    value = 0 if chosen is None else chosen.get("value", 0)
    policy = "PreemptLowerPriority" if chosen is None else chosen.get("preemptionPolicy")
    if spec.get("priority") not in (None, value):
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise forbidden(kind, pod["metadata"].get("name", ""), why)
    spec["priority"] = value
    spec.setdefault("preemptionPolicy", policy or "PreemptLowerPriority")


def only_default(store: Store, kind: Kind, body: Body) -> None:
    """Refuse a second PriorityClass with globalDefault."""
    if not body.get("globalDefault"):
        return
    known = classes(store).default_name()
    if known is not None:
        why = f"PriorityClass {known} is already marked as default. Only one can exist"
        raise forbidden(kind, body["metadata"].get("name", ""), why)


def classes(store: Store) -> PriorityClasses:
    """All PriorityClasses."""
    found = PriorityClasses()
    for entry in store.all(CLASSES):
        found.put(entry.name, msgspec.convert(entry.read(), PriorityClassWire))
    return found
