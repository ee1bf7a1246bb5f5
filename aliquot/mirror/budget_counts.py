"""What disruption budgets without a status allow: counted from the pods that they select.

In a cluster the disruption controller counts, and writes the status. Before it has, and in a
simulation, the counts are kept here, pod by pod as they change: a change costs the budgets that
select the pod, and `changed` names those whose counts differ since they were last read.
"""

from aliquot.dialects.core import budgets
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.engine import MOST_LABEL_SETS, Budget, LabelIndex
from aliquot.mirror.pod_record import PodRecord

_Labels = tuple[tuple[str, str], ...]


class _Counted:
    """A budget without a status, and how many of its pods run and wait."""

    def __init__(self, manifest: Manifest, alike: "_Counted | None" = None) -> None:
        self.manifest = manifest
        self.key = manifest.key
        self.running: int = 0 if alike is None else alike.running
        self.waiting: int = 0 if alike is None else alike.waiting

    def count(self, runs: bool, number: int) -> None:
        """Count pods that run, or wait."""
        if runs:
            self.running += number
        else:
            self.waiting += number


class _Namespace:
    """The pods of a namespace by their labels, and the budgets that are counted."""

    def __init__(self) -> None:
        self.pods: dict[tuple[_Labels, bool], int] = {}
        """How many pods with these labels run (True), and how many wait."""
        self.index: LabelIndex[_Counted] = LabelIndex()


class BudgetCounts:
    """The budgets of all namespaces that have no status."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}
        self._budgets: dict[Key, _Counted] = {}
        self._pods: dict[str, tuple[str, _Labels, bool]] = {}
        """What each pod is counted as: namespace, labels, and whether it runs."""
        self._changed: dict[Key, None] = {}

    def set(self, manifest: Manifest) -> None:
        """A budget is there: count its pods, unless it has a status."""
        self.remove(manifest.key)
        if budgets.has_status(manifest):
            return
        selector, namespace = budgets.selector(manifest), self._namespace(manifest.namespace)
        alike = namespace.index.alike(selector)
        counted = self._budgets[manifest.key] = _Counted(manifest, alike)
        namespace.index.add(counted, selector)
        for (labels, runs), number in namespace.pods.items() if alike is None else ():
            if counted in namespace.index.matching(labels):
                counted.count(runs, number)

    def remove(self, key: Key) -> None:
        """A budget is gone, or has another content."""
        counted = self._budgets.pop(key, None)
        self._changed.pop(key, None)
        if counted is not None:
            self._namespace(counted.manifest.namespace).index.remove(counted)

    def budget(self, manifest: Manifest) -> Budget:
        """What a budget allows: by its status, or by its pods."""
        counted = self._budgets.get(manifest.key)
        if counted is None:
            return budgets.budget(manifest)
        return budgets.budget(manifest, counted.running, counted.waiting)

    def changed(self) -> list[Manifest]:
        """The budgets whose counts have changed since the last call."""
        changed, self._changed = self._changed, {}
        return [self._budgets[key].manifest for key in changed]

    def note(self, record: PodRecord) -> None:
        """A pod is new, or has changed, or has ended."""
        pod = record.pod
        counts = record.alive and not pod.terminating and bool(pod.labels)
        now = (pod.namespace, pod.labels, record.phase == "Running") if counts else None
        before = self._pods.get(pod.uid)
        if now == before:
            return
        self.forget(pod.uid)
        if now is not None:
            self._pods[pod.uid] = now
            self._count(*now, +1)

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        before = self._pods.pop(uid, None)
        if before is not None:
            self._count(*before, -1)

    def _count(self, namespace: str, labels: _Labels, runs: bool, number: int) -> None:
        found = self._namespace(namespace)
        total = found.pods.get((labels, runs), 0) + number
        if total:
            found.pods[labels, runs] = total
        else:
            del found.pods[labels, runs]
        for counted in found.index.matching(labels):
            counted.count(runs, number)
            self._changed[counted.key] = None
        if found.index.remembered > max(MOST_LABEL_SETS, 2 * len(found.pods)):
            found.index.forget_labels()

    def _namespace(self, name: str) -> _Namespace:
        found = self._namespaces.get(name)
        if found is None:
            found = self._namespaces[name] = _Namespace()
        return found
