"""The gangs of a job: which of the pods that its controller makes start together.

All pods that are made at the same time are one gang, of as many pods as the job says
(`schedulingPolicy.minAvailable`, `elasticPolicy.minReplicas`), else of all of them. Pods that are
made later, once others run, are a gang of their own: the first would wait for them for ever. A
LeaderWorkerSet has such gangs for each of its groups. A Job of Kubernetes asks for a gang by
annotation.
"""

from collections.abc import Iterator
from typing import NamedTuple

from aliquot.dialects import topology
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.labels import to_text
from aliquot.dialects.core.manifest import (
    MADE_BY_ALIQUOT,
    VOLCANO_GROUP,
    Manifest,
    once,
    owner_reference,
    read,
)
from aliquot.dialects.core.objects import WorkloadWire
from aliquot.dialects.frameworks.fields import Fields
from aliquot.dialects.frameworks.objects import JobWire, PlainJobSpec, PlainJobWire
from aliquot.dialects.frameworks.table import BY_KIND, Framework, Role
from aliquot.dialects.volcano import keys as volcano
from aliquot.json import Body

WANTS_GANG = "aliquot.dev/gang"
"""The annotation by which a Job of Kubernetes, or its pod template, asks for a gang."""


class JobGang(NamedTuple):
    """Pods of a job that start together: the name of their PodGroup, and how many of each role."""

    name: str
    min_member: int
    min_tasks: dict[str, int]


def framework(manifest: Manifest) -> Framework:
    """The row of a job in the table."""
    return BY_KIND[manifest.kind]


def is_job(manifest: Manifest) -> bool:
    """Is it of a kind of which gangs are derived?"""
    return isinstance(manifest.content, JobWire) or _is_plain_job(manifest)


@once
def roles(manifest: Manifest) -> tuple[Role, ...]:
    """The roles of a job of a framework; of a LeaderWorkerSet, those of one of its groups."""
    row = framework(manifest)
    return tuple(row.roles(_fields(manifest).record(*row.spec)))


@once
def job_roles(manifest: Manifest) -> dict[str, Role]:
    """The roles of a job by the name of their task, which is that of the role in most.

    In a LeaderWorkerSet each group has tasks of its own.
    """
    if framework(manifest).copies is None:
        return {each.name: each for each in roles(manifest)}
    numbers = range(max(copies(manifest), 1))
    return {f"{index}/{each.name}": each for index in numbers for each in roles(manifest)}


@once
def copies(manifest: Manifest) -> int:
    """How many times a job has its roles."""
    row = framework(manifest)
    if row.copies is None:
        return 1
    return _fields(manifest).record(*row.spec).number(row.copies[0], 1)


@once
def is_suspended(manifest: Manifest) -> bool:
    """Does its controller make no pods for now?"""
    row = framework(manifest)
    return _fields(manifest).record(*row.suspend).is_true("suspend")


@once
def gangs(manifest: Manifest) -> tuple[JobGang, ...]:
    """The gangs of a job, of those that more than one pod is in."""
    if _is_plain_job(manifest):
        return tuple(_of_plain_job(manifest))
    if is_suspended(manifest):
        return ()
    stages = dict.fromkeys(each.stage for each in roles(manifest))
    found = (
        _of_stage(manifest, stage, copy) for copy in range(copies(manifest)) for stage in stages
    )
    return tuple(each for each in found if each.min_member > 1)


def gang_of(manifest: Manifest, role: str, index: int) -> str | None:
    """The name of the PodGroup of a pod with this role, in this copy of the roles; or None."""
    if _is_plain_job(manifest):
        return next((each.name for each in gangs(manifest)), None)
    by_role = {each.name: each for each in roles(manifest)}
    if role not in by_role:
        return None
    wanted = _name(manifest, by_role[role].stage, index)
    return wanted if any(each.name == wanted for each in gangs(manifest)) else None


def pod_groups(manifest: Manifest) -> list[Manifest]:
    """The PodGroups of a job's gangs, owned by it."""
    return [_pod_group(manifest, each) for each in gangs(manifest)]


def check(manifest: Manifest) -> None:
    """Read all fields of a job that are ever read."""
    for each in roles(manifest):
        if not each.template:
            manifest.refuse(each.at, "is missing")
    copies(manifest)
    is_suspended(manifest)
    explicit(manifest)
    _elastic(manifest)


def explicit(manifest: Manifest) -> int | None:
    """How many pods start together, where the job says it for all of them."""
    return _policy(manifest).written("minAvailable", 1)


def _elastic(manifest: Manifest) -> int | None:
    return _spec(manifest).record("elasticPolicy").written("minReplicas", 1)


def _of_stage(manifest: Manifest, stage: int, copy: int) -> JobGang:
    """The gang of the pods that are made at this stage."""
    own = [each for each in roles(manifest) if each.stage == stage]
    most = sum(each.count for each in own)
    least, elastic = explicit(manifest), _elastic(manifest)
    tasks = {each.name: each.least for each in own if each.least}
    if stage:
        least = elastic = None
    if least is None and elastic is not None and any(each.elastic for each in own):
        least = elastic
        tasks = {each.name: each.least for each in own if each.least and not each.elastic}
    elif least is not None:
        tasks = {}
    wanted = sum(tasks.values()) if least is None else min(least, most)
    return JobGang(_name(manifest, stage, copy), wanted, tasks)


def _name(manifest: Manifest, stage: int, copy: int) -> str:
    words = [manifest.kind.lower(), manifest.name]
    if framework(manifest).copies is not None:
        words.append(str(copy))
    if stage:
        words.append(f"stage{stage}")
    return "-".join(words)


def _is_plain_job(manifest: Manifest) -> bool:
    return isinstance(manifest.content, WorkloadWire | PlainJobWire) and manifest.kind == "Job"


def wants_gang(job: WorkloadWire | PlainJobWire) -> bool:
    """Does a Job of Kubernetes, or its pod template, ask for a gang?"""
    template = (job.spec or PlainJobSpec()).template
    of_pods = template.metadata if template is not None else None
    written = job.metadata.annotations, of_pods.annotations if of_pods is not None else None
    return any(to_text((each or {}).get(WANTS_GANG)) == "true" for each in written)


def _of_plain_job(manifest: Manifest) -> Iterator[JobGang]:
    """The gang of a Job that asks for one: all pods that it has at once."""
    job = manifest.content
    assert isinstance(job, WorkloadWire | PlainJobWire)
    spec = job.spec or PlainJobSpec()
    at_once = 1 if spec.parallelism is None else spec.parallelism
    count = at_once if spec.completions is None else min(at_once, spec.completions)
    if count > 1 and not spec.suspend and wants_gang(job):
        yield JobGang(f"job-{manifest.name}", count, {})


def _pod_group(manifest: Manifest, gang: JobGang) -> Manifest:
    metadata: Body = {
        "name": gang.name,
        "namespace": manifest.namespace,
        "labels": MADE_BY_ALIQUOT,
        "ownerReferences": [owner_reference(manifest.body)],
    }
    if manifest.metadata.creation_timestamp is not None:
        metadata["creationTimestamp"] = manifest.metadata.creation_timestamp
    annotations = topology.copied(manifest)
    if not volcano.is_preemptable(manifest.metadata):
        annotations |= volcano.NOT_PREEMPTABLE
    if annotations:
        metadata["annotations"] = annotations
    queue = _queue(manifest)
    spec = {"minMember": gang.min_member, "minTaskMember": gang.min_tasks, "queue": queue}
    if isinstance(manifest.content, JobWire):
        spec["priorityClassName"] = _policy(manifest).text("priorityClass")
    body = {
        "apiVersion": f"{VOLCANO_GROUP}/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {word: value for word, value in spec.items() if value},
    }
    made = read(Document(manifest.place, body))
    assert made is not None
    return made


def _queue(manifest: Manifest) -> str | None:
    named = volcano.queue_named(manifest.metadata, manifest)[0]
    if named is None and isinstance(manifest.content, JobWire):
        return _policy(manifest).text("queue") or None
    return named


def _policy(manifest: Manifest) -> Fields:
    return _spec(manifest).record(*framework(manifest).policy)


def _spec(manifest: Manifest) -> Fields:
    return _fields(manifest).record("spec")


def _fields(manifest: Manifest) -> Fields:
    return Fields(manifest.refuse, manifest.body, ())
