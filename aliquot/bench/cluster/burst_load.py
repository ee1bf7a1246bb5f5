"""The objects of a burst of reclaims: eight teams with one guarantee each, of which four lend it.

Nodes of 48 cpus hold exactly the sum of all mins. Teams a to d fill fifteen sixteenths of them, far
above their own mins, with pods of one cpu; then teams e to h ask for all of theirs at once. An
eighth of what they ask for is free: for all else, pods of a to d must go. A node apart is open
to pods without a quota only.
"""

from collections.abc import Iterator

from aliquot.json import Body

CPUS = 48
"""Of each node."""
BORROWERS = {"a": 15.0, "b": 15.0, "c": 7.5, "d": 7.5}
"""Pods that each runs, for each node."""
OWNERS = ("e", "f", "g", "h")
_MIN = 6
"""The min of each of the eight teams, for each node: together all 48 cpus."""
APART = "apart"
"""The node, and the namespace, that the teams' pods have nothing to do with."""
SCHEDULER = "nos-scheduler"


def running(nodes: int) -> int:
    """How many pods the borrowing teams run before the burst."""
    return sum(int(each * nodes) for each in BORROWERS.values())


def asked(nodes: int) -> int:
    """How many pods the owners ask for at once."""
    return _MIN * nodes * len(OWNERS)


def to_evict(nodes: int) -> int:
    """How many pods must go for that: no more and no less."""
    return asked(nodes) + running(nodes) - CPUS * nodes


def namespaces() -> Iterator[Body]:
    """One of each team, and one apart."""
    for name in (*BORROWERS, *OWNERS, APART):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def quotas(nodes: int) -> Iterator[Body]:
    """One of each team, as nos has them: all with the same min."""
    for name in (*BORROWERS, *OWNERS):
        yield {
            "apiVersion": "nos.nebuly.com/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": "quota", "namespace": name},
            "spec": {"min": {"cpu": str(_MIN * nodes)}, "max": {"cpu": str(CPUS * nodes)}},
        }


def cluster_nodes(nodes: int) -> Iterator[Body]:
    """So many nodes for the teams, and the one apart."""
    for number in range(nodes):
        yield _node(f"node-{number}", CPUS, 110)
    apart = _node(APART, 4, 2000)
    yield {**apart, "spec": {"taints": [{"key": APART, "value": "", "effect": "NoSchedule"}]}}


def borrowing_pods(nodes: int) -> Iterator[Body]:
    """The pods of teams a to d."""
    for team, count in BORROWERS.items():
        for number in range(int(count * nodes)):
            yield pod(team, f"{team}-{number}")


def owed_pods(nodes: int) -> Iterator[Body]:
    """The pods of teams e to h, in turns."""
    for number in range(_MIN * nodes):
        for team in OWNERS:
            yield pod(team, f"{team}-{number}")


def successor(namespace: str, name: str) -> Body | None:
    """The pod that replaces one that went, where it had an owner: those of a to d have."""
    if namespace not in BORROWERS:
        return None
    first, _, tries = name.partition(".")
    return pod(namespace, f"{first}.{int(tries or 0) + 1}")


def pod_apart(number: int) -> Body:
    """A pod without a quota, for the node apart."""
    made = pod(APART, f"{APART}-{number}", cpu="1m")
    made["spec"] |= {
        "nodeSelector": {"kubernetes.io/hostname": APART},
        "tolerations": [{"key": APART, "operator": "Exists"}],
    }
    return made


def pod(namespace: str, name: str, cpu: str = "1") -> Body:
    """A pod of nos' scheduler that asks for so much."""
    asks = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    main = {"name": "main", "image": "registry.example/train:1", "resources": asks}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"team": namespace}},
        "spec": {"schedulerName": SCHEDULER, "containers": [main]},
    }


def _node(name: str, cpus: int, pods: int) -> Body:
    has = {"cpu": str(cpus), "memory": "256Gi", "pods": str(pods)}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": has, "allocatable": dict(has), "conditions": [ready]},
    }
