"""Priorities: a new pod gets the value and preemption policy of its PriorityClass."""

from aliquot.json import Body
from aliquot.server.http.refusals import forbidden
from aliquot.server.kinds.kind import Kind
from aliquot.server.storage.store import Store

CLASSES = "priorityclasses.scheduling.k8s.io"
SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The PriorityClasses that every cluster has, and their values."""


def resolve(store: Store, kind: Kind, pod: Body) -> None:
    """Write priority and preemption policy into a new pod."""
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    if name:
        found = store.get(CLASSES, "", name)
        if found is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden(kind, pod["metadata"].get("name", ""), why)
        chosen: Body | None = found.read()
    else:
        chosen = _default(store)
        if chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
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
    for each in store.all(CLASSES):
        if each.read().get("globalDefault"):
            why = f"PriorityClass {each.name} is already marked as default. Only one can exist"
            raise forbidden(kind, body["metadata"].get("name", ""), why)


def _default(store: Store) -> Body | None:
    """The PriorityClass of pods that name none; of several, the lowest, as in Kubernetes."""
    marked = [body for each in store.all(CLASSES) if (body := each.read()).get("globalDefault")]
    return min(marked, key=lambda body: body.get("value", 0), default=None)
