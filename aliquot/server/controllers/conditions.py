"""Conditions in the status of objects: since when each holds. For all controllers."""

from aliquot.json import Body
from aliquot.server.rules.metadata import timestamp


def find(status: Body, condition_type: str) -> Body | None:
    """The condition of this type in a status, if there is one."""
    for each in status.get("conditions") or ():
        if each.get("type") == condition_type:
            found: Body = each
            return found
    return None


def with_transition(condition: Body, before: Body) -> Body:
    """A condition with its lastTransitionTime: now, if its status is another than `before`."""
    old = find(before, condition["type"])
    holds = old is not None and old.get("status") == condition["status"]
    since = old["lastTransitionTime"] if old is not None and holds else timestamp()
    return {**condition, "lastTransitionTime": since}
