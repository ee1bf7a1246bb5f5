"""Which job of a framework a pod is of, by what the framework's controller writes on it.

A pod names its job by a label of the framework; the kind follows from the label or, where several
kinds share it, from the pod's owner. The owner alone is not enough: the pods of a JobSet are owned
by Jobs, those of a LeaderWorkerSet by StatefulSets, the launcher of an MPIJob by a Job.
"""

from dataclasses import dataclass

from aliquot.dialects.core.labels import JOB_NAMES, to_text
from aliquot.dialects.core.objects import Metadata
from aliquot.dialects.frameworks.table import FRAMEWORKS, JOB_ROLE, WORKER_INDEX, Framework

_OPERATOR = "training.kubeflow.org/operator-name"
_OPERATORS = {"mpi-operator": "MPIJob"}
"""The operators that write their name on pods whose owner is a Job that they have made."""
_BY_LABEL: dict[str, tuple[Framework, ...]] = {
    each.job_label: tuple(row for row in FRAMEWORKS if row.job_label == each.job_label)
    for each in FRAMEWORKS
}
MARKS = frozenset({*_BY_LABEL, *JOB_NAMES})
"""The labels by which pods name their job."""


@dataclass(frozen=True, slots=True)
class JobRef:
    """The job that a pod names, and which of its pods it is."""

    kinds: tuple[str, ...]
    """The kinds that it may be of: the first of which there is an object of this name."""
    name: str
    role: str = ""
    index: int = 0
    """In which copy of its roles it is (see `Framework.copies`)."""


def job_ref(metadata: Metadata) -> JobRef | None:
    """The job that the labels and the owner of a pod name, if they do."""
    labels = metadata.labels or {}
    for label, rows in _BY_LABEL.items():
        name = to_text(labels.get(label))
        if name:
            found = _of_rows(metadata, rows, name)
            if found is not None:
                return found
    name = next((to_text(labels[each]) for each in JOB_NAMES if labels.get(each)), "")
    return JobRef(("Job",), name) if name else None


def _of_rows(metadata: Metadata, rows: tuple[Framework, ...], name: str) -> JobRef | None:
    labels = metadata.labels or {}
    kinds = {row.kind for row in rows}
    owners = {each.kind for each in metadata.owner_references or () if each.controller}
    named = _OPERATORS.get(to_text(labels.get(_OPERATOR)), "")
    chosen = kinds & ({named} if named else owners) or kinds
    row = rows[0]
    role = to_text(labels.get(row.role_label)) or to_text(labels.get(JOB_ROLE))
    if row.role_label == WORKER_INDEX:
        role = "leader" if role == "0" else "worker"
    if not role:
        return None  # a pod beside the job's, such as the submitter of a RayJob
    index = to_text(labels.get(row.copies[1])) if row.copies is not None else ""
    number = int(index) if index.isascii() and index.isdigit() and len(index) < 10 else 0
    return JobRef(tuple(each.kind for each in rows if each.kind in chosen), name, role, number)
