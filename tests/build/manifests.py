"""Kubernetes manifests: each builder writes what its object needs, and takes the rest as given.

Objects are named by a path, `namespace/name` or `name`. Among amounts, `gpu` stands for
`nvidia.com/gpu`. What a builder does not name goes to metadata if it is one of the words of
`METADATA`, to the object if it is its `status`, and to its spec otherwise.
"""

from typing import Any

from aliquot.dialects.core.extended_resources import is_extended
from aliquot.json import Body

GPU = "nvidia.com/gpu"
METADATA = ("labels", "annotations", "finalizers", "ownerReferences")

KEP9 = "scheduling.x-k8s.io"
NOS = "nos.nebuly.com"
KOORDINATOR_GROUP = "scheduling.sigs.k8s.io"
KOORDINATOR = "quota.scheduling.koordinator.sh/"
VOLCANO = "scheduling.volcano.sh/v1beta1"
TENSOR_FUSION = "tensor-fusion.ai/"
GROUP_NAME = "scheduling.k8s.io/group-name"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
A100 = "NVIDIA-A100-SXM4-40GB"


def resource(version: str, kind: str, path: str, **fields: Any) -> Body:
    """An object of any kind; words of `METADATA` among its fields go there."""
    namespace, _, name = path.rpartition("/")
    metadata: Body = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= {word: fields.pop(word) for word in METADATA if word in fields}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def _with_spec(version: str, kind: str, path: str, **more: Any) -> Body:
    """An object with a spec, to which goes what is neither metadata nor its status."""
    apart = {word: more.pop(word) for word in (*METADATA, "status") if word in more}
    return resource(version, kind, path, spec=more, **apart)


def amounts(given: Body) -> Body:
    """Amounts by resource name, with the long name of GPUs."""
    return {GPU if key == "gpu" else key: value for key, value in given.items()}


# Kubernetes' own objects.


def node(name: str = "n", **has: Any) -> Body:
    """A node with these amounts to allocate; 8 CPUs and 8 GPUs if none are given."""
    return resource(
        "v1", "Node", name, status={"allocatable": amounts(has or {"cpu": 8, "gpu": 8})}
    )


def ready_node(name: str, **has: Any) -> Body:
    """A node as a kubelet registers it: with its hostname, ready; amounts of 0 are left out."""
    has = {"cpu": 96, "memory": "1Ti", "pods": 110} | has
    texts = {key: str(amount) for key, amount in amounts(has).items() if amount}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    status = {"capacity": texts, "allocatable": texts, "conditions": [ready]}
    return resource("v1", "Node", name, labels={"kubernetes.io/hostname": name}, status=status)


def container(name: str = "main", **more: Any) -> Body:
    """A container of an image that no registry has."""
    return {"name": name, "image": "image.invalid/main:1", **more}


def pod(path: str, asks: Body | None = None, times: Body | None = None, **more: Any) -> Body:
    """A pod of one container with these requests; `times` says when it comes in a simulation."""
    if times:
        more["annotations"] = {f"sim.aliquot.dev/{key}": value for key, value in times.items()}
    one = container(resources=_resources(amounts(asks or {})))
    return _with_spec("v1", "Pod", path, **{"containers": [one], **more})


def _resources(requests: Body) -> Body:
    """Requests, with the limits that an API server wants of GPUs and the like."""
    limits = {key: amount for key, amount in requests.items() if is_extended(key)}
    return {"requests": requests, "limits": limits} if limits else {"requests": requests}


def limited_pod(path: str, asks: Body | int = 0, **more: Any) -> Body:
    """A pod for the scheduler `aliquot` whose requests (a number: of GPUs) are its limits too."""
    given = {"gpu": asks} if isinstance(asks, int) else asks
    texts = {key: str(amount) for key, amount in amounts(given).items() if amount}
    one = container(resources={"requests": texts, "limits": texts})
    return pod(path, **{"schedulerName": "aliquot", "containers": [one], **more})


def workload(kind: str, path: str, asks: Body, **spec: Any) -> Body:
    """A controller of pods, of `batch/v1` or `apps/v1`, with a template labelled `app: x`."""
    version = "batch/v1" if kind == "Job" else "apps/v1"
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod(path, asks)["spec"]}
    return _with_spec(version, kind, path, template=template, **spec)


def deployment(path: str, **more: Any) -> Body:
    """A Deployment of pods labelled `app: NAME`."""
    labels = {"app": path.rpartition("/")[2]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return _with_spec("apps/v1", "Deployment", path, **{**spec, **more})


def job(path: str, **more: Any) -> Body:
    """A Job of one container that is never restarted."""
    template = {"spec": {"restartPolicy": "Never", "containers": [container()]}}
    return _with_spec("batch/v1", "Job", path, **{"template": template, **more})


def budget(path: str, **more: Any) -> Body:
    """A disruption budget over the pods labelled `app: NAME`."""
    selector = {"matchLabels": {"app": path.rpartition("/")[2]}}
    return _with_spec("policy/v1", "PodDisruptionBudget", path, **{"selector": selector, **more})


def priority_class(name: str, value: int, **fields: Any) -> Body:
    """A PriorityClass of this value."""
    return resource("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **fields)


def namespace(name: str, **annotations: Any) -> Body:
    """A namespace with annotations, as `annotated` writes them."""
    return annotated(resource("v1", "Namespace", name), **annotations)


def resource_quota(path: str, **hard: Any) -> Body:
    """A ResourceQuota with these hard limits."""
    return resource("v1", "ResourceQuota", path, spec={"hard": hard})


# Elastic quotas of KEP-9, nos and Koordinator.


def quota(
    path: str, low: Body | None = None, high: Body | None = None, group: str = KEP9, **more: Any
) -> Body:
    """An ElasticQuota; that of a path without a name, a namespace, is called `quota`."""
    path = path if "/" in path else f"{path}/quota"
    bounds = (("min", low), ("max", high))
    spec = {word: amounts(given) for word, given in bounds if given is not None}
    return _with_spec(f"{group}/v1alpha1", "ElasticQuota", path, **{**spec, **more})


def composite(
    path: str, namespaces: Any, low: Body, high: Body | None = None, group: str = NOS, **more: Any
) -> Body:
    """A CompositeElasticQuota of several namespaces."""
    body = quota(path, low, high, group, namespaces=namespaces, **more)
    return {**body, "kind": "CompositeElasticQuota"}


def tree_quota(
    path: str,
    low: Body | None = None,
    high: Body | None = None,
    group: str = KOORDINATOR_GROUP,
    **said: Any,
) -> Body:
    """A quota of a tree: `parent`, `is_parent`, `lend`, `weight`, `namespaces`, `tree_id`."""
    body = quota(path, low or {}, high, group)
    if "lend" in said:
        said["allow-lent-resource"] = said.pop("lend")
    if "weight" in said:
        said["shared-weight"] = said.pop("weight")
    for key, value in said.items():
        key = key.replace("_", "-")
        word = "annotations" if key in ("shared-weight", "namespaces") else "labels"
        body["metadata"].setdefault(word, {})[KOORDINATOR + key] = value
    return body


def profile(
    path: str,
    quota_name: str,
    zone: str = "a",
    tree: str = "",
    ratio: str | None = None,
    quota_labels: Body | None = None,
) -> Body:
    """An ElasticQuotaProfile of the nodes in a zone; its root quota is a parent."""
    namespace, _, name = path.rpartition("/")
    metadata: Body = {"name": name, "namespace": namespace}
    if tree:
        metadata["labels"] = {f"{KOORDINATOR}tree-id": tree}
    labels = {f"{KOORDINATOR}is-parent": "true"} if quota_labels is None else quota_labels
    spec: Body = {
        "quotaName": quota_name,
        "quotaLabels": labels,
        "nodeSelector": {"matchLabels": {"zone": zone}},
    }
    if ratio is not None:
        spec["resourceRatio"] = ratio
    return {
        "apiVersion": "quota.koordinator.sh/v1alpha1",
        "kind": "ElasticQuotaProfile",
        "metadata": metadata,
        "spec": spec,
    }


def labelled(body: Body, **said: Any) -> Body:
    """The same object with Koordinator's labels: `name`, `preemptible`."""
    return _with_metadata(body, "labels", {KOORDINATOR + key: said[key] for key in said})


# Volcano's queues, groups and Jobs.


def queue(
    name: str,
    guarantee: Body | None = None,
    capability: Body | None = None,
    state: str | None = None,
    **spec: Any,
) -> Body:
    """A queue; with a status if its state is given."""
    if guarantee is not None:
        spec["guarantee"] = {"resource": amounts(guarantee)}
    if capability is not None:
        spec["capability"] = amounts(capability)
    body = _with_spec(VOLCANO, "Queue", name, **spec)
    return body if state is None else {**body, "status": {"state": state}}


def pod_group(path: str, version: str = VOLCANO, **more: Any) -> Body:
    """A PodGroup: Volcano's, or that of the scheduler plugins by its version."""
    return _with_spec(version, "PodGroup", path, **more)


def task(name: str | None, replicas: int | None, asks: Body | None = None, **said: Any) -> Body:
    """A task of a Volcano Job: what is None is not written."""
    body = {"template": {"spec": pod("x/x", asks)["spec"]}, **said}
    if name is not None:
        body["name"] = name
    return body if replicas is None else {**body, "replicas": replicas}


def gang_job(path: str, *tasks: Body, **more: Any) -> Body:
    """A Volcano Job of these tasks."""
    return _with_spec("batch.volcano.sh/v1alpha1", "Job", path, tasks=list(tasks), **more)


def annotated(body: Body, **said: Any) -> Body:
    """The same object with annotations: `group`, `queue`, or any other by its whole name."""
    long = {"group": GROUP_NAME, "queue": QUEUE_NAME}
    return _with_metadata(body, "annotations", {long.get(key, key): said[key] for key in said})


# TensorFusion's GPUs, the quotas on them, and the pods that ask for them.


def gpu_quota(path: str, total: Body | None = None, single: Body | None = None) -> Body:
    """A GPUResourceQuota with bounds on all pods together, and on each."""
    bounds = (("total", total), ("single", single))
    spec = {word: given for word, given in bounds if given is not None}
    return _with_spec(f"{TENSOR_FUSION}v1", "GPUResourceQuota", path, **spec)


def figures(tflops: Any = None, vram: Any = None) -> Body:
    """Compute and memory of a GPU: what is None is not written."""
    written = {"tflops": tflops, "vram": vram}
    return {word: value for word, value in written.items() if value is not None}


def gpu(
    name: str,
    node: str = "n",
    capacity: tuple[Any, Any] = (100, "10Gi"),
    available: tuple[Any, Any] | None = None,
    pool: str = "",
    **status: Any,
) -> Body:
    """A GPU of a node: all of its capacity is available unless given otherwise."""
    said = {
        "capacity": figures(*capacity),
        "available": figures(*(available or capacity)),
        "phase": "Running",
        "nodeSelector": {"kubernetes.io/hostname": node},
        **status,
    }
    labels = {"labels": {f"{TENSOR_FUSION}gpupool": pool}} if pool else {}
    return resource(f"{TENSOR_FUSION}v1", "GPU", name, **labels, status=said)


def asking(body: Body, **said: Any) -> Body:
    """The same pod or template with annotations: `tflops_request`, `gpu_count`, `gpu_ids` ..."""
    written = {TENSOR_FUSION + key.replace("_", "-"): said[key] for key in said}
    return _with_metadata(body, "annotations", written)


def model(body: Body, product: str = A100, memory: Any = "40960") -> Body:
    """The same node with the labels that NVIDIA's feature discovery sets."""
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": memory}
    said = {key: value for key, value in labels.items() if value is not None}
    return {**body, "metadata": {**body["metadata"], "labels": said}}


# What is applied to a simulated cluster.


def timeline(*steps: Body) -> Body:
    """A Timeline of these steps."""
    return resource("aliquot.dev/v1alpha1", "Timeline", "changes", steps=list(steps))


def _with_metadata(body: Body, word: str, written: Body) -> Body:
    metadata = body.get("metadata", {})
    return {**body, "metadata": {**metadata, word: {**metadata.get(word, {}), **written}}}
