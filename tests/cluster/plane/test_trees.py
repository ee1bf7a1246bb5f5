"""Trees of node pools, told with real objects: profiles, their root quotas, pods that stay."""

import json
from functools import partial
from pathlib import Path

from aliquot.json import Body
from tests.build.manifests import (
    KOORDINATOR,
    limited_pod,
    namespace,
    profile,
    ready_node,
    tree_quota,
)
from tests.cluster.api.polling import eventually
from tests.cluster.kube.webhooks import running, unregister
from tests.cluster.plane.cluster import Cluster

OLDER = "ElasticQuota.scheduling.sigs.k8s.io"
ROOT = "pools/fast-root"


def pool_node(name: str, zone: str, cpu: int) -> Body:
    body = ready_node(name, cpu=cpu)
    body["metadata"]["labels"] = {"zone": zone}
    return body


def asking(path: str, cpu: int) -> Body:
    body = limited_pod(path)
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": str(cpu)}}
    return body


def root_has(cluster: Cluster, total: str, unschedulable: str | None = None) -> None:
    """Wait until the root quota has this many cpus."""

    def problem() -> object:
        roots = [each for each in cluster.all(OLDER) if each["metadata"]["namespace"] == "pools"]
        if not roots:
            return f"there is no {ROOT}"
        (root,) = roots
        said = root["metadata"].get("annotations") or {}
        sums = [
            json.loads(said.get(f"{KOORDINATOR}{word}-resource", "{}")).get("cpu")
            for word in ("total", "unschedulable")
        ]
        found = root["spec"]["min"].get("cpu"), *sums
        return None if found == (total, total, unschedulable) else root

    cluster.until(problem)


def test_a_profile_has_its_root_quota_and_keeps_its_pods(cluster: Cluster) -> None:
    cluster.apply(
        namespace("pools"),
        pool_node("fast-1", "fast", 4),
        pool_node("slow-1", "slow", 8),
        profile("pools/fast", "fast-root", "fast"),
        tree_quota("team/team", {"cpu": 1}, {"cpu": 99}, parent="fast-root"),
        tree_quota("rest/rest", {"cpu": 1}, {"cpu": 99}),
        *(asking(f"team/t{n}", 2) for n in range(4)),
        *(asking(f"rest/r{n}", 4) for n in range(3)),
    )
    with cluster.scheduler(hierarchy={"surplus": False}):
        has_pods(cluster, "fast-1", "t", "t")
        has_pods(cluster, "slow-1", "r", "r")
        root_has(cluster, "4")
        profile_labels = partial(labels_of, cluster, "ElasticQuotaProfile", "pools/fast")
        eventually(lambda: f"{KOORDINATOR}tree-id" in profile_labels())
        tree = profile_labels()
        root = cluster.get(OLDER, ROOT)["metadata"]["labels"]
        assert tree[f"{KOORDINATOR}tree-id"] == root[f"{KOORDINATOR}tree-id"]
        assert root[f"{KOORDINATOR}profile"] == "fast"
        assert root[f"{KOORDINATOR}is-root"] == root[f"{KOORDINATOR}is-parent"] == "true"
        cluster.apply(pool_node("fast-2", "fast", 2))  # a node comes
        has_pods(cluster, "fast-2", "t")
        root_has(cluster, "6")
        cluster.patch("Node", "fast-1", {"spec": {"unschedulable": True}})
        root_has(cluster, "6", "4")
        cluster.patch("Node", "slow-1", {"metadata": {"labels": {"zone": "fast"}}})
        root_has(cluster, "14", "4")  # and one changes its pool; its pods keep running
        has_pods(cluster, "slow-1", "r", "r")
        cluster.patch(OLDER, ROOT, {"spec": {"min": {"cpu": "99"}}})  # another writer
        root_has(cluster, "14", "4")
        assert cluster.evictions() == []


def labels_of(cluster: Cluster, kind: str, name: str) -> dict[str, str]:
    """The labels of an object: of a profile, the control plane writes one after its root quota."""
    labels: dict[str, str] = cluster.get(kind, name)["metadata"].get("labels", {})
    return labels


def has_pods(cluster: Cluster, node: str, *teams: str) -> None:
    """Wait until a node has pods of these teams, each the first letter of a pod's name."""

    def problem() -> object:
        bound = [each for each in cluster.all("Pod") if each["spec"].get("nodeName") == node]
        found = sorted(each["metadata"]["name"][0] for each in bound)
        return None if found == sorted(teams) else f"{node}: {found}"

    cluster.until(problem)


def test_the_webhook_says_where_a_pod_stays(cluster: Cluster, tmp_path: Path) -> None:
    limited = tree_quota("shut/shut", {}, {"cpu": 9}, parent="fast-root")
    limited["metadata"]["annotations"] = {f"{KOORDINATOR}admission": '{"cpu": 2}'}
    cluster.apply(
        namespace("pools"),
        profile("pools/fast", "fast-root", "fast", tree="own"),
        tree_quota("team/team", {}, {"cpu": 9}, parent="fast-root"),
        limited,
    )
    with running(cluster.server.kubeconfig, tmp_path):

        def problem() -> object:
            cluster.wire.delete("/api/v1/namespaces/team/pods/p", {"gracePeriodSeconds": 0})
            cluster.apply(asking("team/p", 1))
            spec = cluster.get("Pod", "team/p")["spec"]
            wanted = {"key": "zone", "operator": "In", "values": ["fast"]}
            affinity = spec.get("affinity", {}).get("nodeAffinity", {})
            terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
            found = terms.get("nodeSelectorTerms")
            return None if found == [{"matchExpressions": [wanted]}] else spec

        cluster.until(problem)
        cluster.apply(asking("shut/p", 2))
        answer = cluster.wire.post("/api/v1/namespaces/shut/pods", asking("shut/q", 1))
        assert answer.code == 403, answer.body
        assert "quota shut/shut admits pods that ask for 2 cpu together" in str(answer.body)
    unregister(cluster.wire)
