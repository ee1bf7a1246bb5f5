"""Discovery: what there is, in every form that clients ask for it."""

import json
from urllib.parse import parse_qsl

import pytest

from tests.cluster.api.polling import eventually
from tests.cluster.api.wire import Body, Wire

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def _resources(api: Wire, where: str) -> dict[str, Body]:
    body = api.get(where).done()
    assert (body["kind"], body["groupVersion"]) == (
        "APIResourceList",
        where.removeprefix("/apis/").removeprefix("/api/"),
    )
    return {one["name"]: one for one in body["resources"]}


def test_the_core(api: Wire) -> None:
    body = api.get("/api").done()
    assert (body["kind"], body["versions"]) == ("APIVersions", ["v1"])


@pytest.mark.parametrize(
    ("group", "version"),
    [
        ("apiextensions.k8s.io", "v1"),
        ("apps", "v1"),
        ("batch", "v1"),
        ("coordination.k8s.io", "v1"),
        ("events.k8s.io", "v1"),
        ("policy", "v1"),
        ("scheduling.k8s.io", "v1"),
        ("suite.aliquot.dev", "v1"),
    ],
)
def test_groups(api: Wire, group: str, version: str) -> None:
    body = api.get("/apis").done()
    assert (body["kind"], body["apiVersion"]) == ("APIGroupList", "v1")
    (found,) = [one for one in body["groups"] if one["name"] == group]
    wanted = {"groupVersion": f"{group}/{version}", "version": version}
    assert wanted in found["versions"]
    assert found["preferredVersion"] == wanted
    alone = api.get(f"/apis/{group}").done()
    assert (alone["kind"], alone["name"]) == ("APIGroup", group)
    assert _resources(api, f"/apis/{group}/{version}")


def test_resources_of_the_core(api: Wire) -> None:
    found = _resources(api, "/api/v1")
    pods = found["pods"]
    assert (pods["kind"], pods["namespaced"], pods["singularName"]) == ("Pod", True, "pod")
    assert pods["shortNames"] == ["po"]
    assert "all" in pods["categories"]
    assert set(pods["verbs"]) == {
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    }
    assert found["nodes"]["namespaced"] is False
    assert set(found["pods/status"]["verbs"]) == {"get", "patch", "update"}
    assert found["pods/binding"]["verbs"] == ["create"]
    eviction = found["pods/eviction"]
    assert (eviction["kind"], eviction["group"], eviction["version"]) == (
        "Eviction",
        "policy",
        "v1",
    )


def test_resources_of_groups(api: Wire) -> None:
    apps = _resources(api, "/apis/apps/v1")
    assert apps["deployments"]["shortNames"] == ["deploy"]
    scale = apps["deployments/scale"]
    assert (scale["kind"], scale["group"], scale["version"]) == ("Scale", "autoscaling", "v1")
    assert "poddisruptionbudgets" in _resources(api, "/apis/policy/v1")
    assert "leases" in _resources(api, "/apis/coordination.k8s.io/v1")


def test_custom_kinds_are_resources(api: Wire) -> None:
    found = _resources(api, "/apis/suite.aliquot.dev/v1")
    assert found["widgets"]["kind"] == "Widget"
    assert found["widgets"]["shortNames"] == ["wd"]
    assert found["widgets"]["categories"] == ["all"]
    assert found["gadgets"]["namespaced"] is False
    assert {"widgets/status", "widgets/scale"} <= set(found)
    assert "gadgets/status" not in found


@pytest.mark.parametrize("where", ["/api", "/apis"])
def test_all_at_once(api: Wire, where: str) -> None:
    answer = api.get(where, accept=f"{_AGGREGATED},application/json")
    body = answer.done()
    assert (body["kind"], body["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    assert "as=APIGroupDiscoveryList" in answer.headers["Content-Type"]
    groups = {one["metadata"].get("name", ""): one["versions"] for one in body["items"]}
    group, plural = {"/api": ("", "pods"), "/apis": ("suite.aliquot.dev", "widgets")}[where]
    (version,) = groups[group]
    assert version["version"] == "v1"
    (found,) = [one for one in version["resources"] if one["resource"] == plural]
    assert found["scope"] == "Namespaced"
    assert found["responseKind"]["kind"] == {"pods": "Pod", "widgets": "Widget"}[plural]
    assert {"get", "list", "watch", "create"} <= set(found["verbs"])
    subresources = {one["subresource"] for one in found["subresources"]}
    assert "status" in subresources


def test_the_old_form_for_who_asks_for_no_other(api: Wire) -> None:
    assert api.get("/apis", accept="application/json").done()["kind"] == "APIGroupList"


def test_the_version(api: Wire) -> None:
    body = api.get("/version").done()
    assert body["major"] == "1"
    assert int(body["minor"].rstrip("+")) >= 30
    assert body["gitVersion"].startswith(f"v1.{body['minor'].rstrip('+')}.")


@pytest.mark.parametrize("where", ["/livez", "/readyz", "/healthz"])
def test_health(api: Wire, where: str) -> None:
    answer = api.get(where)
    assert (answer.code, answer.body) == (200, "ok")
    assert answer.headers["Content-Type"].startswith("text/plain")


def _document(api: Wire, where: str, **query: str) -> Body:
    """A document, whose type a server need not say."""
    body = api.get(where, **query).done()
    return json.loads(body) if isinstance(body, str) else body


def test_openapi(api: Wire) -> None:
    paths = _document(api, "/openapi/v3")["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/policy/v1"} <= set(paths)
    where, _, query = paths["api/v1"]["serverRelativeURL"].partition("?")
    assert where == "/openapi/v3/api/v1"
    document = _document(api, where, **dict(parse_qsl(query)))
    assert document["openapi"].startswith("3.")
    kinds = {
        one["kind"]: schema
        for schema in document["components"]["schemas"].values()
        for one in schema.get("x-kubernetes-group-version-kind", [])
    }
    assert kinds["Pod"]["properties"]["spec"]
    assert "/api/v1/namespaces/{namespace}/pods/{name}" in document["paths"]


def test_openapi_of_custom_kinds(api: Wire) -> None:
    where = "/openapi/v3/apis/suite.aliquot.dev/v1"
    eventually(lambda: api.get(where).code == 200)
    document = _document(api, where)
    schemas = document["components"]["schemas"]
    (widget,) = [
        schema
        for schema in schemas.values()
        if {"group": "suite.aliquot.dev", "kind": "Widget", "version": "v1"}
        in schema.get("x-kubernetes-group-version-kind", [])
    ]
    assert widget["description"] == "A widget of the suite."
    assert widget["properties"]["spec"]["properties"]["size"]["maximum"] == 100
