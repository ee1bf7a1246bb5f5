"""Corners of kube-scheduler's filters: small clusters in which one pod is to be placed.

Each is played in a simulation, and has the nodes that may take the pod; none: it waits.
"""

from typing import Any

import aliquot
from aliquot.json import Body
from tests.build.manifests import container, pod, resource

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
POD = "d/p"
A = {"matchLabels": {"a": "1"}}
LABELS = {"a": "1"}
GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 100_000}


def node(name: str, zone: str = "", taints: Any = (), cordon: bool = False, **labels: str) -> Body:
    """A node named by its hostname too; a taint is `key`, `value` and `effect`."""
    labels = {HOST: name, **({ZONE: zone} if zone else {}), **labels}
    found = resource("v1", "Node", name, labels=labels)
    found["spec"] = {"taints": [_taint(*each) for each in taints], "unschedulable": cordon}
    found["status"] = {"allocatable": {"cpu": "4", "pods": "110"}}
    return found


def _taint(key: str, value: str, effect: str) -> Body:
    return {"key": key, "value": value, "effect": effect}


def runs(path: str, on: str = "n1", labels: Any = None, **more: Any) -> Body:
    """A pod that runs on this node."""
    return pod(path, {"cpu": "100m"}, labels=labels or {}, nodeName=on, **more)


def placed(labels: Any = None, **spec: Any) -> Body:
    """The pod that is to be placed."""
    return pod(POD, {"cpu": "100m"}, labels=labels or {}, **spec)


def namespace(name: str, **labels: str) -> Body:
    return resource("v1", "Namespace", name, labels=labels)


def says(key: str, operator: str, *values: str) -> Body:
    return {"key": key, "operator": operator, **({"values": [*values]} if values else {})}


def on_nodes(*terms: Body) -> Body:
    """Required node affinity."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [*terms]}}}


def exprs(*said: Body) -> Body:
    return {"matchExpressions": [*said]}


def near(*terms: Body) -> Body:
    return {"podAffinity": {REQUIRED: [*terms]}}


def apart(*terms: Body) -> Body:
    return {"podAntiAffinity": {REQUIRED: [*terms]}}


def term(selector: Body | None = A, key: str = HOST, **more: Any) -> Body:
    """An affinity term; without a selector it is about no pod."""
    about = {} if selector is None else {"labelSelector": selector}
    return {"topologyKey": key, **about, **more}


def spread(key: str = ZONE, selector: Body | None = A, **more: Any) -> list[Body]:
    """A constraint that must hold, of a skew of 1 unless told."""
    about = {} if selector is None else {"labelSelector": selector}
    fixed = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return [{**fixed, **about, **more}]


def port(number: int, address: str | None = None, protocol: str | None = None) -> list[Body]:
    found: Body = {"containerPort": number, "hostPort": number}
    found |= {} if address is None else {"hostIP": address}
    return [found | ({} if protocol is None else {"protocol": protocol})]


def shows(ports: list[Body], **more: Any) -> Body:
    """The containers of a pod of which one has these ports."""
    return {"containers": [container(ports=ports)], **more}


def sidecar(ports: list[Body], policy: str | None = "Always") -> Body:
    """The containers of a pod that has these ports in an init container."""
    kept = {} if policy is None else {"restartPolicy": policy}
    first = container("first", ports=ports, **kept)
    return {"containers": [container()], "initContainers": [first]}


def tolerates(**said: str) -> list[Body]:
    return [said]


def terminating(body: Body) -> Body:
    return {**body, "metadata": body["metadata"] | GONE}


NONE: set[str] = set()
N1, N2, N3 = node("n1"), node("n2"), node("n3")
IN_A, IN_B = node("n1", "a"), node("n2", "b")
BARE_80: Body = {"containers": [container(ports=[{"containerPort": 80}])]}
EXISTS = {"operator": "Exists"}

Case = tuple[list[Body], set[str]]
"""The objects, the pod that is to be placed among them, and the nodes that may take it."""


def check(case: Case) -> None:
    """The pod starts on one of its nodes, or waits if there is none."""
    objects, nodes = case
    outcome = aliquot.simulate(objects, policy="capacity", until="0s")
    found = {each["node"] for each in outcome["bindings"] if each["pod"] == POD}
    assert found <= nodes, outcome["bindings"]
    assert found or not nodes, outcome["pending"]
