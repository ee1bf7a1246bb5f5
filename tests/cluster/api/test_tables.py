"""Tables: objects as columns and rows, for whoever shows them to people."""

import pytest

from tests.cluster.api.objects import (
    Make,
    binding,
    config_map,
    deployment,
    node,
    path,
    path_of,
    pod,
    resource_quota,
    widget,
)
from tests.cluster.api.wire import Body, Wire
from tests.cluster.conftest import Unique

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_META = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_METAS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def _columns(table: Body) -> list[str]:
    return [column["name"] for column in table["columnDefinitions"]]


def _narrow(table: Body) -> list[str]:
    """The columns that are shown without being asked for."""
    return [column["name"] for column in table["columnDefinitions"] if column["priority"] == 0]


def _cells(table: Body, row: int = 0) -> Body:
    return dict(zip(_columns(table), table["rows"][row]["cells"], strict=True))


def test_a_list_of_pods(api: Wire, ns: str) -> None:
    api.made(pod(ns, "a"))
    api.made(pod(ns, "b"))
    api.post(path("Pod", ns, "b", "binding"), binding("b", "n1")).done(201)
    change = {"status": {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}}
    api.patch(path("Pod", ns, "b", "status"), change).done()
    table = api.get(path("Pod", ns), accept=_TABLE).done()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["resourceVersion"]
    assert _narrow(table) == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert _columns(table)[5:] == ["IP", "Node", "Nominated Node", "Readiness Gates"]
    first, second = _cells(table), _cells(table, 1)
    assert (first["Name"], first["Ready"], first["Status"]) == ("a", "0/1", "Pending")
    assert (first["IP"], first["Node"]) == ("<none>", "<none>")
    assert (second["Status"], second["IP"], second["Node"]) == ("Running", "10.1.2.3", "n1")
    shown = table["rows"][0]["object"]
    assert (shown["kind"], shown["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert shown["metadata"]["name"] == "a"
    assert "spec" not in shown


def test_a_pod_that_is_going(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "a", nodeName="n1"))
    api.delete(path_of(made)).done()
    table = api.get(path_of(made), accept=_TABLE).done()
    assert _cells(table)["Status"] == "Terminating"


def test_a_pod_behind_a_gate(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "a", schedulingGates=[{"name": "suite/wait"}]))
    assert _cells(api.get(path_of(made), accept=_TABLE).done())["Status"] == "SchedulingGated"


def test_a_pod_that_has_run(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "a"))
    state = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    container = {"name": "main", "ready": False, "restartCount": 2, "state": state}
    status = {
        "phase": "Succeeded",
        "containerStatuses": [container | {"image": "i", "imageID": "i"}],
    }
    api.patch(path_of(made) + "/status", {"status": status}).done()
    cells = _cells(api.get(path_of(made), accept=_TABLE).done())
    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == ("0/1", "Completed", "2")


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
def test_how_much_of_an_object_comes_along(api: Wire, ns: str, include: str) -> None:
    api.made(config_map(ns, "a"))
    table = api.get(path("ConfigMap", ns), accept=_TABLE, includeObject=include).done()
    shown = table["rows"][0].get("object")
    assert {
        "None": not shown,
        "Metadata": bool(shown) and shown["kind"] == "PartialObjectMetadata",
        "Object": bool(shown) and shown["kind"] == "ConfigMap" and "data" in shown,
    }[include]


def test_one_object_without_itself(api: Wire, ns: str) -> None:
    made = api.made(config_map(ns, "a"))
    (row,) = api.get(path_of(made), accept=_TABLE, includeObject="None").done()["rows"]
    assert not row.get("object")


def test_nodes(api: Wire, unique: Unique) -> None:
    made = api.made(
        node(
            unique("node"),
            spec={"unschedulable": True},
            labels={"node-role.kubernetes.io/worker": ""},
        )
    )
    table = api.get(path_of(made), accept=_TABLE).done()
    assert _narrow(table) == ["Name", "Status", "Roles", "Age", "Version"]
    cells = _cells(table)
    assert (cells["Status"], cells["Roles"]) == ("Ready,SchedulingDisabled", "worker")


@pytest.mark.parametrize(
    ("make", "columns"),
    [
        (deployment, ["Name", "Ready", "Up-to-date", "Available", "Age"]),
        (
            lambda ns, name: deployment(ns, name, "ReplicaSet"),
            ["Name", "Desired", "Current", "Ready", "Age"],
        ),
        (config_map, ["Name", "Data", "Age"]),
        (lambda ns, name: resource_quota(ns, name, pods="1"), ["Name", "Request", "Limit", "Age"]),
    ],
    ids=["Deployment", "ReplicaSet", "ConfigMap", "ResourceQuota"],
)
def test_columns_of_other_kinds(api: Wire, ns: str, make: Make, columns: list[str]) -> None:
    made = api.made(make(ns, "a"))
    assert _narrow(api.get(path_of(made), accept=_TABLE).done()) == columns


def test_columns_of_custom_kinds(api: Wire, ns: str) -> None:
    api.made(widget(ns, "a"))
    table = api.get(path("Widget", ns), accept=_TABLE).done()
    assert _columns(table) == ["Name", "Size", "Phase", "Colour", "Age"]
    assert _narrow(table) == ["Name", "Size", "Phase", "Age"]
    cells = _cells(table)
    assert (cells["Name"], cells["Size"], cells["Colour"]) == ("a", 3, "red")
    assert not cells["Phase"]


def test_custom_kinds_without_columns(api: Wire, unique: Unique) -> None:
    name = unique("gadget")
    api.made({"apiVersion": "suite.aliquot.dev/v1", "kind": "Gadget", "metadata": {"name": name}})
    table = api.get(path("Gadget", "", name), accept=_TABLE).done()
    assert _columns(table) == ["Name", "Age"]


def test_chunks_of_tables(api: Wire, ns: str) -> None:
    for name in "abc":
        api.made(config_map(ns, name))
    first = api.get(path("ConfigMap", ns), accept=_TABLE, limit=2).done()
    assert [row["cells"][0] for row in first["rows"]] == ["a", "b"]
    token = {"continue": first["metadata"]["continue"]}
    rest = api.get(path("ConfigMap", ns), accept=_TABLE, **token).done()
    assert [row["cells"][0] for row in rest["rows"]] == ["c"]


def test_a_watch_of_tables(api: Wire, ns: str) -> None:
    where = path("ConfigMap", ns)
    version = api.get(where).done()["metadata"]["resourceVersion"]
    with api.watch(where, resourceVersion=version, accept=_TABLE) as stream:
        api.made(config_map(ns, "a"))
        api.made(config_map(ns, "b"))
        first, second = stream.take(2)
    assert (first["type"], first["object"]["kind"]) == ("ADDED", "Table")
    assert _cells(first["object"])["Name"] == "a"
    assert second["object"]["rows"][0]["cells"][0] == "b"


def test_metadata_alone(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "a", labels={"x": "y"}))
    one = api.get(path_of(made), accept=_META).done()
    assert (one["kind"], one["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert one["metadata"] == made["metadata"]
    assert set(one) == {"kind", "apiVersion", "metadata"}
    many = api.get(path("Pod", ns), accept=_METAS).done()
    assert many["kind"] == "PartialObjectMetadataList"
    assert many["items"][0]["metadata"] == made["metadata"]


def test_an_error_is_a_status_and_no_table(api: Wire, ns: str) -> None:
    api.get(path("Pod", ns, "nobody"), accept=_TABLE).refused(404, "NotFound")
