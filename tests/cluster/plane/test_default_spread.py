"""Pods that state no topology spread are spread as the configuration says, by their Services."""

from aliquot.json import Body
from aliquot.kube.install.all_objects import objects
from aliquot.kube.install.installation import SPREAD, Installation
from tests.build.manifests import limited_pod, ready_node
from tests.cluster.plane import accounts
from tests.cluster.plane.cluster import Cluster

ZONE: Body = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
PLACEMENT: Body = {"defaultConstraints": [ZONE]}


def grant(cluster: Cluster) -> None:
    """The right to read Services and owners, which only such a configuration has."""
    configured = {**Installation().configuration, "placement": PLACEMENT}
    found = objects(Installation(configuration=configured), ("rbac",))
    accounts.make(cluster.wire, [each for each in found if each["metadata"]["name"] == SPREAD])


def node(name: str, zone: str, cpu: int) -> Body:
    body = ready_node(name, cpu=cpu)
    body["metadata"]["labels"] = {"zone": zone}
    return body


def web(name: str) -> Body:
    body = limited_pod(f"team/{name}", {"cpu": 1})
    body["metadata"]["labels"] = {"app": "web"}
    return body


def service(selector: dict[str, str]) -> Body:
    spec = {"selector": selector, "ports": [{"port": 80}]}
    about = {"name": "web", "namespace": "team"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}


def test_pods_of_a_service_are_spread_and_follow_its_selector(cluster: Cluster) -> None:
    grant(cluster)
    cluster.apply(node("large", "a", cpu=8), node("small", "b", cpu=1))
    cluster.apply(service({"app": "web"}))
    with cluster.scheduler(placement=PLACEMENT):
        cluster.apply(web("one"), web("two"))
        cluster.running("team/one", "team/two")
        found = [cluster.get("Pod", each)["spec"]["nodeName"] for each in ("team/one", "team/two")]
        assert sorted(found) == ["large", "small"]
        cluster.apply(web("three"))
        cluster.running("team/three", on="large")
        cluster.apply(web("four"))
        cluster.pending("team/four", "Unschedulable", "topology spread")
        cluster.patch("Service", "team/web", {"spec": {"selector": {"app": "other"}}})
        cluster.running("team/four", on="large")
