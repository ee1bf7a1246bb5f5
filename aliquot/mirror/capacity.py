"""Whether a running pod is within its quota's guarantee: the label that nos puts on pods."""

from aliquot.dialects.core.manifest import NOS_GROUPS
from aliquot.dialects.kep9 import quotas
from aliquot.engine.report.summary import over_quota_pods
from aliquot.engine.state import State
from aliquot.mirror.mirror import Mirror

CAPACITY_LABELS = {group: f"{group}/capacity" for group in NOS_GROUPS}
_ANY_OTHER = CAPACITY_LABELS["nos.nebuly.ai"]


def capacities(state: State, mirror: Mirror) -> dict[str, str]:
    """In-quota or over-quota, by uid: of every pod that runs and has a quota."""
    over = over_quota_pods(state)
    return {
        uid: "over-quota" if uid in over else "in-quota"
        for uid, record in mirror.records.items()
        if record.phase == "Running" and state.tree.home(record.pod) is not None
    }


def capacity_labels(state: State, mirror: Mirror) -> dict[str, dict[str, str]]:
    """The label of each pod that has one, by uid: that of the group of its quota."""
    found = mirror.store.objects.values()
    groups = {quotas.quota_name(each): each.group for each in found if each.kind in quotas.KINDS}
    labels = {}
    for uid, capacity in capacities(state, mirror).items():
        group = groups.get(state.tree.home(mirror.records[uid].pod) or "", "")
        labels[uid] = {CAPACITY_LABELS.get(group, _ANY_OTHER): capacity}
    return labels
