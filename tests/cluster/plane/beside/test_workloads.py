"""Workloads of many kinds, with the controllers that make their pods: all end up where
kube-scheduler would allow them, and what waits would wait for it, too.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aliquot.json import Body
from aliquot.kube.api.resource import PODS
from tests.build.manifests import container, ready_node
from tests.cluster.plane.beside.kube_scheduler import binary, kube_scheduler
from tests.cluster.plane.beside.twins import Twins
from tests.cluster.plane.cluster import Cluster
from tests.cluster.plane.controller_manager import (
    NO_CONTROLLER_MANAGER,
    controller_manager,
    controllers,
)
from tests.cluster.plane.ground import ground

SPACE = "mixed"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CONTROLLERS = (
    *("deployment-controller", "replicaset-controller", "statefulset-controller"),
    *("job-controller", "daemonset-controller", "garbage-collector-controller"),
)
FOR_DATABASES = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
MAKING_ROOM = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 2}}
"""By default two pods more come first, and old ones go as it happens. There are six nodes with the
host port, two in a zone: where the new pods need the one zone that keeps both of its old pods, the
update waits for ever. Three old pods leave a free node in a zone that the new ones need."""
pytestmark = [
    pytest.mark.skipif(binary() is None, reason="kube-scheduler is not beside kube-apiserver"),
    pytest.mark.skipif(controller_manager() is None, reason=NO_CONTROLLER_MANAGER),
]


def nodes() -> list[Body]:
    """Two nodes in each of three zones, one for databases only, and one that is cordoned."""
    found = [ready_node(f"m-{number}", cpu=4) for number in range(8)]
    for number, each in enumerate(found):
        each["metadata"]["labels"][ZONE] = f"z-{number % 3}"
    found[6]["spec"] = {"taints": [FOR_DATABASES]}
    found[7]["spec"] = {"unschedulable": True}
    return found


def template(app: str, cpu: str, port: int = 0, **spec: Any) -> Body:
    ports = [{"containerPort": port, "hostPort": port}] if port else []
    one = container(resources={"requests": {"cpu": cpu}}, ports=ports)
    about = {"schedulerName": "aliquot", "containers": [one], **spec}
    return {"metadata": {"labels": {"app": app}}, "spec": about}


def near(app: str, key: str) -> list[Body]:
    return [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]


def apart(app: str) -> Body:
    return {"podAntiAffinity": {REQUIRED: near(app, HOSTNAME)}}


def spread(app: str, key: str, **more: Any) -> list[Body]:
    (one,) = near(app, key)
    return [{**one, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **more}]


def workload(plural: str, name: str, made: Body, spec: Body | None = None) -> tuple[str, Body]:
    """Its path, and the object."""
    group, kind = {
        "deployments": ("apps", "Deployment"),
        "statefulsets": ("apps", "StatefulSet"),
        "daemonsets": ("apps", "DaemonSet"),
        "jobs": ("batch", "Job"),
    }[plural]
    about = {"namespace": SPACE, "name": name}
    selector = {} if plural == "jobs" else {"selector": {"matchLabels": {"app": name}}}
    body = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": about}
    where = f"/apis/{group}/v1/namespaces/{SPACE}/{plural}"
    return where, {**body, "spec": {**selector, "template": made, **(spec or {})}}


def workloads() -> list[tuple[str, Body]]:
    """Each with rules of its own; of `alone` one pod finds no node."""
    by_version = spread("web", ZONE, matchLabelKeys=["pod-template-hash"])
    with_taints = spread("db", ZONE, nodeTaintsPolicy="Honor")
    tolerations = [{"key": "dedicated", "operator": "Exists"}]
    web = template("web", "200m", 8080, topologySpreadConstraints=by_version)
    db = template("db", "1", affinity=apart("db"), tolerations=tolerations)
    db["spec"]["topologySpreadConstraints"] = with_taints
    beside_db = {"podAffinity": {REQUIRED: near("db", ZONE)}}
    train = template("train", "500m", affinity=beside_db, restartPolicy="Never")
    alone = template("alone", "100m", affinity=apart("alone"), tolerations=tolerations)
    return [
        workload("deployments", "web", web, {"replicas": 5, "strategy": MAKING_ROOM}),
        workload("statefulsets", "db", db, {"replicas": 4, "serviceName": "db"}),
        workload("jobs", "train", train, {"parallelism": 4, "completions": 4}),
        workload("deployments", "alone", alone, {"replicas": 8}),
        workload("daemonsets", "agent", template("agent", "50m", 9100)),
    ]


RUNNING = {"web": 5, "db": 4, "train": 4, "alone": 7, "agent": 7}
"""A DaemonSet has a pod on the cordoned node, too, and none on the tainted one."""


def test_workloads_on_a_real_server(real_cluster: Cluster, tmp_path: Path) -> None:
    cluster = real_cluster
    cluster.wire.post("/api/v1/namespaces", {"metadata": {"name": SPACE}})
    made = workloads()
    try:
        with controllers(cluster, tmp_path / "controllers", *CONTROLLERS), cluster.scheduler():
            cluster.apply(*nodes())
            for where, body in made:
                cluster.wire.post(where, body).done(201)
            cluster.until(lambda: _difference(cluster, RUNNING))
            (waits,) = [each for each in cluster.all("Pod") if "nodeName" not in each["spec"]]
            cluster.pending(
                f"{SPACE}/{waits['metadata']['name']}",
                "Unschedulable",
                "7 near pods",
                "anti-affinity",
            )
            where, _ = made[0]
            image = {"containers": [{"name": "main", "image": "image.invalid/main:2"}]}
            change = {"spec": {"template": {"spec": image}}}
            cluster.wire.patch(f"{where}/web", change, "strategic").done()
            cluster.until(lambda: _difference(cluster, RUNNING, ":2"))
        templates = {body["metadata"]["name"]: body["spec"]["template"] for _, body in made}
        assert asyncio.run(_refused(cluster, templates, tmp_path)) == []
    finally:
        for where, body in made:
            orphan = {"propagationPolicy": "Orphan"}
            cluster.wire.delete(f"{where}/{body['metadata']['name']}", orphan)
        for pod in cluster.all("Pod"):
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            cluster.patch("Pod", name, {"metadata": {"finalizers": None}})  # of its Job
        cluster.wipe()


def _difference(cluster: Cluster, wanted: dict[str, int], image: str = "") -> object:
    """How many pods of each workload run, unless it is as wanted; `web` of this image."""
    found = dict.fromkeys(wanted, 0)
    for pod in cluster.all("Pod"):
        app = pod["metadata"]["labels"]["app"]
        newest = app != "web" or pod["spec"]["containers"][0]["image"].endswith(image)
        if "nodeName" in pod["spec"] and "deletionTimestamp" not in pod["metadata"] and newest:
            found[app] += 1
    return None if found == wanted else found


async def _refused(cluster: Cluster, templates: dict[str, Body], folder: Path) -> list[str]:
    """The pods that kube-scheduler would not have where they are, with what it says.

    One after the other is replaced by a twin that may run on the same node only.
    """
    kubeconfig, found = cluster.server.kubeconfig, []
    async with ground(kubeconfig) as made, kube_scheduler(kubeconfig, folder) as extender:
        twins = Twins(made, extender)
        there = (await made.client.get(PODS.path(SPACE)))["items"]
        for pod in there:
            made.books.put(pod)
        for pod in there:
            about, node = pod["metadata"], pod["spec"].get("nodeName")
            like = {"namespace": SPACE, "name": about["name"], "labels": about["labels"]}
            spec = templates[about["labels"]["app"]]["spec"]
            if node is None:
                answer = await twins.ask({"metadata": like, "spec": spec})
            else:
                own = {"affinity": pod["spec"].get("affinity")} if "agent" in about["name"] else {}
                tolerations = {"tolerations": pod["spec"]["tolerations"]}
                await twins.forget([pod])
                answer = await twins.ask(
                    {"metadata": like, "spec": {**spec, **own, **tolerations}}, node
                )
            if answer.node != node or (node is None and answer.feasible):
                found.append(f"{about['name']} on {node}: {answer}")
    return found
