"""The table of frameworks: of each kind, which pods its controller makes, how many, and when.

One row a kind. Kinds that write alike share a reader of roles: the replica specs of Kubeflow's
jobs, the replicated jobs of a JobSet, the head and worker groups of a Ray cluster, the leader and
workers of a LeaderWorkerSet. A *role* is so many pods alike. Its *stage* is when they are made: in
stage 0 at once; later if the controller waits until those of earlier stages run. Only pods of one
stage can wait for each other. Nothing here knows manifests: those are read by these rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aliquot.dialects.frameworks.fields import Fields, Steps, path
from aliquot.json import Body

KUBEFLOW = "kubeflow.org"
TRAINER = "trainer.kubeflow.org"
RAY = "ray.io"
JOB_SET = "jobset.x-k8s.io"
LEADER_WORKER_SET = "leaderworkerset.x-k8s.io"


@dataclass(frozen=True, slots=True)
class Role:
    """Pods of a job that are alike."""

    name: str
    """As the labels of its pods have it."""
    count: int
    least: int
    """How many of them must start together, if the job does not say for all of them."""
    template: Body
    steps: Steps
    """The path of the template."""
    stage: int = 0
    elastic: bool = False
    """Does the job's least number count for this role?"""

    @property
    def at(self) -> str:
        """The field of the template."""
        return path(self.steps)


Reader = Callable[[Fields], Iterator[Role]]


@dataclass(frozen=True, slots=True)
class Framework:
    """A row of the table: a kind, how its roles are read, and which labels its pods carry."""

    group: str
    kind: str
    plural: str
    versions: tuple[str, ...]
    roles: Reader
    job_label: str
    """The label by which pods name their job."""
    role_label: str
    """The label by which they name their role."""
    spec: tuple[str, ...] = ("spec",)
    """Where the part is that the roles are read from."""
    policy: tuple[str, ...] = ("runPolicy", "schedulingPolicy")
    """Where it says how many pods start together, in which queue, and how important they are."""
    suspend: tuple[str, ...] = ("spec",)
    """Where it says that it is suspended."""
    copies: tuple[str, str] | None = None
    """The field with the number of groups of pods, each a gang, and the label of its index."""
    owns_pods: bool = True
    """Do its pods, or the Jobs that make them, name it? Else they name another kind, of its own."""


def replica_specs(name: str, elastic: str = "") -> Reader:
    """The roles of a Kubeflow job; an elastic policy counts for the role `elastic`."""

    def read(spec: Fields) -> Iterator[Role]:
        for role, each in spec.named(name).items():
            count = each.number("replicas", 1)
            waits = role == "Launcher" and spec.text("launcherCreationPolicy") == _WAITS
            template = each.record("template")
            stage = int(waits)
            is_elastic = role == elastic
            yield Role(role.lower(), count, count, template.body, template.steps, stage, is_elastic)

    return read


_WAITS = "WaitForWorkersReady"


def replicated_jobs(spec: Fields) -> Iterator[Role]:
    """The roles of a JobSet; those that depend on others, or follow them in order, are later."""
    stages: dict[str, int] = {}
    in_order = spec.record("startupPolicy").text("startupPolicyOrder") == "InOrder"
    for index, each in enumerate(spec.records("replicatedJobs")):
        name, job = each.text("name"), each.record("template", "spec")
        on = [stages.get(other.text("name"), 0) + 1 for other in each.records("dependsOn")]
        stages[name] = index if in_order else max(on, default=0)
        at_once = job.number("parallelism", 1)
        completions = job.written("completions")
        pods = at_once if completions is None else min(at_once, completions)
        count, template = each.number("replicas", 1) * pods, job.record("template")
        yield Role(name, count, count, template.body, template.steps, stages[name])


def ray_cluster(spec: Fields) -> Iterator[Role]:
    """The head of a Ray cluster and its groups of workers, of which `minReplicas` must start.

    A group that states none, in a cluster that does not scale, starts whole.
    """
    head = spec.record("headGroupSpec", "template")
    if not spec.body:
        return  # a RayJob on a cluster that exists already
    yield Role("headgroup", 1, 1, head.body, head.steps)
    scales = spec.is_true("enableInTreeAutoscaling")
    for each in spec.records("workerGroupSpecs"):
        hosts, low = each.number("numOfHosts", 1), each.number("minReplicas", 0)
        most = each.written("maxReplicas")
        wanted = max(each.number("replicas", low), low)
        wanted = 0 if each.is_true("suspend") else wanted if most is None else min(wanted, most)
        least = min(low, wanted) if low or scales else wanted
        template = each.record("template")
        name = each.text("groupName")
        yield Role(name, wanted * hosts, least * hosts, template.body, template.steps)


def ray_job(spec: Fields) -> Iterator[Role]:
    """A Ray cluster, and the pod that submits the job once the cluster runs."""
    yield from ray_cluster(spec.record("rayClusterSpec"))
    if spec.text("submissionMode") in ("", "K8sJobMode"):
        template = spec.record("submitterPodTemplate")
        yield Role("submitter", 1, 1, template.body or _SUBMITTER, template.steps, stage=1)


_SUBMITTER: Body = {
    "spec": {
        "containers": [
            {
                "name": "ray-job-submitter",
                "resources": {
                    "requests": {"cpu": "500m", "memory": "200Mi"},
                    "limits": {"cpu": "1", "memory": "1Gi"},
                },
            }
        ]
    }
}
"""What KubeRay makes the submitter of, if the job has no template for it."""


def leader_and_workers(spec: Fields) -> Iterator[Role]:
    """The roles of one group of a LeaderWorkerSet."""
    whole = spec.record("leaderWorkerTemplate")
    size, worker = whole.number("size", 1, least=1), whole.record("workerTemplate")
    leader = whole.record("leaderTemplate")
    leader = leader if leader.body else worker
    stage = int(spec.text("startupPolicy") == "LeaderReady")
    yield Role("leader", 1, 1, leader.body, leader.steps)
    yield Role("worker", size - 1, size - 1, worker.body, worker.steps, stage)


def train_nodes(spec: Fields) -> Iterator[Role]:
    """The nodes of a TrainJob, as far as it says itself what they are; the rest its runtime has."""
    trainer = spec.record("trainer")
    count = trainer.number("numNodes", 1)
    container = {
        "name": "node",
        "image": trainer.text("image") or "node",
        "resources": trainer.record("resourcesPerNode").body,
    }
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    yield Role("node", count, count, template, trainer.steps)


_JOB_NAME, _ROLE = "training.kubeflow.org/job-name", "training.kubeflow.org/replica-type"
_RAY, _RAY_ROLE = "ray.io/cluster", "ray.io/group"
_SET, _SET_ROLE = "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/replicatedjob-name"
_LEADER = "leaderworkerset.sigs.k8s.io/"
WORKER_INDEX = f"{_LEADER}worker-index"
JOB_ROLE = "training.kubeflow.org/job-role"
"""The label for the role of a pod of MPIJob v2beta1."""


def _kubeflow(kind: str, plural: str, specs: str, elastic: str = "", *more: str) -> Framework:
    versions, roles = ("v1", *more), replica_specs(specs, elastic)
    return Framework(KUBEFLOW, kind, plural, versions, roles, _JOB_NAME, _ROLE, suspend=_RUN_POLICY)


_RUN_POLICY = ("spec", "runPolicy")

FRAMEWORKS: tuple[Framework, ...] = (
    _kubeflow("PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs", "Worker"),
    _kubeflow("TFJob", "tfjobs", "tfReplicaSpecs"),
    _kubeflow("MPIJob", "mpijobs", "mpiReplicaSpecs", "", "v2beta1"),
    _kubeflow("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs"),
    _kubeflow("PaddleJob", "paddlejobs", "paddleReplicaSpecs", "Worker"),
    _kubeflow("JAXJob", "jaxjobs", "jaxReplicaSpecs"),
    Framework(RAY, "RayCluster", "rayclusters", ("v1",), ray_cluster, _RAY, _RAY_ROLE),
    Framework(
        *(RAY, "RayJob", "rayjobs", ("v1",), ray_job, _RAY, _RAY_ROLE),
        owns_pods=False,
    ),
    Framework(
        *(RAY, "RayService", "rayservices", ("v1",), ray_cluster, _RAY, _RAY_ROLE),
        spec=("spec", "rayClusterConfig"),
        owns_pods=False,
    ),
    Framework(JOB_SET, "JobSet", "jobsets", ("v1alpha2",), replicated_jobs, _SET, _SET_ROLE),
    Framework(
        *(TRAINER, "TrainJob", "trainjobs", ("v1alpha1",), train_nodes, _SET, _SET_ROLE),
        owns_pods=False,
    ),
    Framework(
        *(LEADER_WORKER_SET, "LeaderWorkerSet", "leaderworkersets", ("v1",)),
        leader_and_workers,
        f"{_LEADER}name",
        WORKER_INDEX,
        copies=("replicas", f"{_LEADER}group-index"),
    ),
)
BY_KIND: dict[str, Framework] = {each.kind: each for each in FRAMEWORKS}
