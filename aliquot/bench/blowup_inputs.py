"""Inputs that once blew up: few bytes, much work. Each is built at any size, to measure its growth.

A row is a function from a size to objects, and an entry in `BLOWUPS` that says at which size it is
measured. At that size the input has at most 1 MB, as a user could send it by mistake or by malice.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aliquot.json import Body

_NODES = 1_000
"""Nodes of the inputs that ask where a pod may run."""


@dataclass(frozen=True, slots=True)
class Blowup:
    """An input that once blew up."""

    name: str
    size: int
    """What it is measured at, besides half of it."""
    build: Callable[[int], Iterator[Body]]
    command: tuple[str, ...] = ("simulate", "-o", "json")
    refused: bool = False
    """Is it refused, because a limit is exceeded?"""


def overlapping_budgets(size: int) -> Iterator[Body]:
    """Budgets that all select the same pods, and a tenth as many claims that reclaim from them."""
    claims = max(size // 10, 1)
    yield from _borrowed_cluster(claims, {"app": "x"})
    for i in range(size):
        yield _budget(f"b{i}", {"matchLabels": {"app": "x"}})


def distinct_budgets(size: int) -> Iterator[Body]:
    """Budgets of which each selects all pods but a few, never the same ones."""
    pods = max(size // 10, 1)
    yield from _borrowed_cluster(pods, {})
    for i in range(size):
        others = [str((i * 7 + j * j) % pods) for j in range(1, 7)]
        spared = {"key": "number", "operator": "NotIn", "values": others}
        yield _budget(f"b{i}", {"matchExpressions": [spared]})


def teams_at_once(size: int) -> Iterator[Body]:
    """Teams with a Deployment of 40 each, of distinct sizes, of which some are above their min."""
    for i in range(-(-size // 2)):
        yield _node(f"n{i}", more={"cpu": "48", "pods": "500"})
    for i in range(size):
        yield _object(
            "ElasticQuota", "q", f"team-{i}", {"min": {"cpu": "24"}}, "nos.nebuly.com/v1alpha1"
        )
        container = {"name": "c", "resources": {"requests": {"cpu": f"{300 + 800 * i // size}m"}}}
        template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container]}}
        selector = {"matchLabels": {"app": "x"}}
        spec = {"replicas": 40, "selector": selector, "template": template}
        yield _object("Deployment", "d", f"team-{i}", spec, "apps/v1")


def distinct_claims(size: int) -> Iterator[Body]:
    """Claims of a size of their own each, that reclaim from pods which borrow all there is."""
    nodes = max(size // 37, 1)
    for i in range(nodes):
        yield _node(f"n{i}", more={"cpu": "48", "pods": "500"})
    yield _quota("lender", {"cpu": str(48 * nodes)})
    yield _quota("borrower", {"cpu": "0"})
    for i in range(48 * nodes):
        yield _pod(f"b{i}", "borrower", nodeName=f"n{i % nodes}")
    for i in range(size):
        yield _pod(f"c{i}", "lender", {"cpu": f"{500 + i}m"})


def distinct_affinity_terms(size: int) -> Iterator[Body]:
    """Pods with a node affinity of their own each, on 1,000 nodes."""
    for i in range(_NODES):
        yield _node(f"n{i}", labels={"k": str(i)})
    for i in range(size):
        yield _affine_pod(f"p{i}", {"key": "k", "operator": "NotIn", "values": [str(i)]})


def values_of_a_requirement(size: int) -> Iterator[Body]:
    """Ten pods that name very many values in a node affinity."""
    for i in range(_NODES):
        yield _node(f"n{i}", labels={"k": str(i)})
    for i in range(10):
        values = [f"v{i}-{j}" for j in range(size // 10)]
        yield _affine_pod(f"p{i}", {"key": "k", "operator": "NotIn", "values": values})


def taints_and_tolerations(size: int) -> Iterator[Body]:
    """A node with very many taints, and two pods with as many tolerations."""
    taints = [{"key": f"k{i}", "value": "v", "effect": "NoSchedule"} for i in range(size)]
    yield {**_node("n"), "spec": {"taints": taints}}
    tolerations = [{**each, "operator": "Equal"} for each in taints]
    yield _pod("p", "team", tolerations=tolerations)
    yield _pod("q", "team", tolerations=tolerations[:-1])


def distinct_resources(size: int) -> Iterator[Body]:
    """Extended resources, each of one node, one quota and one pod."""
    names = [f"example.com/r{i}" for i in range(size)]
    for i in range(10):
        amounts = dict.fromkeys(names[i::10], "1")
        yield _node(f"n{i}", more=amounts)
        yield _quota(f"t{i}", amounts)
    for i, name in enumerate(names):
        yield _pod(f"p{i}", f"t{i % 10}", {name: "1"})


def resources_of_quotas(size: int) -> Iterator[Body]:
    """As many quotas and nodes as resources."""
    for i in range(size):
        amounts = {f"example.com/r{i}": "1"}
        yield _node(f"n{i}", more=amounts)
        yield _quota(f"t{i}", amounts)
        yield _pod(f"p{i}", f"t{i}", amounts)


def chain_of_queues(size: int) -> Iterator[Body]:
    """Queues, each below the one before."""
    yield _node("n")
    for i in range(size):
        parent = {"parent": f"q{i - 1}"} if i else {}
        yield _object("Queue", f"q{i}", spec=parent, version="scheduling.volcano.sh/v1beta1")


def steps_of_a_timeline(size: int) -> Iterator[Body]:
    """A Timeline that creates a pod in each step."""
    yield _node("n")
    steps = [{"at": f"{i}s", "apply": [_pod(f"p{i}", "team", {"cpu": "1m"})]} for i in range(size)]
    yield {**_object("Timeline", "t", version="aliquot.dev/v1alpha1"), "steps": steps}


BLOWUPS = (
    Blowup("teams at once", 100, teams_at_once),
    Blowup("distinct claims that reclaim", 1_500, distinct_claims),
    Blowup("overlapping budgets", 3_000, overlapping_budgets),
    Blowup("distinct budgets", 2_000, distinct_budgets),
    Blowup("distinct affinity terms", 3_000, distinct_affinity_terms),
    Blowup("values of a requirement", 50_000, values_of_a_requirement),
    Blowup("taints and tolerations", 4_000, taints_and_tolerations),
    Blowup("distinct resources", 3_000, distinct_resources),
    Blowup("resources of quotas and nodes", 1_500, resources_of_quotas),
    Blowup("chain of queues", 5_000, chain_of_queues, refused=True),
    Blowup("steps of a Timeline", 5_000, steps_of_a_timeline),
)
"""What is measured, in this order."""


def _borrowed_cluster(pods: int, labels: dict[str, str]) -> Iterator[Body]:
    """Borrowed pods that fill a cluster, and as many pods within the min of another quota."""
    for i in range(-(-pods // 8)):
        yield _node(f"n{i}")
    yield _quota("owner", {"cpu": pods})
    yield _quota("borrower", {"cpu": 0})
    for i in range(pods):
        running = _pod(f"r{i}", "borrower", labels={**labels, "number": str(i)})
        running["spec"]["nodeName"] = f"n{i // 8}"
        yield {**running, "status": {"phase": "Running"}}
        yield _pod(f"w{i}", "owner")


def _node(name: str, labels: Body | None = None, more: Body | None = None) -> Body:
    allocatable = {"cpu": "8", "memory": "64Gi", "pods": "110", **(more or {})}
    body = _object("Node", name, status={"allocatable": allocatable})
    return {**body, "metadata": {**body["metadata"], "labels": labels or {}}}


def _quota(namespace: str, low: Body) -> Body:
    return _object("ElasticQuota", "q", namespace, {"min": low}, "scheduling.x-k8s.io/v1alpha1")


def _budget(name: str, selector: Body) -> Body:
    spec = {"selector": selector, "maxUnavailable": 1}
    return _object("PodDisruptionBudget", name, "borrower", spec, "policy/v1")


def _pod(
    name: str, namespace: str, asks: Body | None = None, labels: Body | None = None, **spec: object
) -> Body:
    resources = {"limits": asks or {"cpu": "1"}}
    containers = [{"name": "c", "resources": resources}]
    body = _object("Pod", name, namespace, {"containers": containers, **spec})
    return {**body, "metadata": {**body["metadata"], "labels": labels or {}}}


def _affine_pod(name: str, requirement: Body) -> Body:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return _pod(name, "team", affinity=affinity)


def _object(
    kind: str,
    name: str,
    namespace: str = "",
    spec: Body | None = None,
    version: str = "v1",
    status: Body | None = None,
) -> Body:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    parts = {"spec": spec, "status": status}
    given = {word: value for word, value in parts.items() if value is not None}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **given}
