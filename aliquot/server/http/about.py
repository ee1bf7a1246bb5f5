"""Requests about the server itself: health, version, discovery, OpenAPI."""

from aiohttp import web

from aliquot import __version__
from aliquot.dialects.schemas import kubernetes
from aliquot.server.http import discovery
from aliquot.server.http.bodies import json_response
from aliquot.server.http.refusals import method_not_allowed, no_such_path
from aliquot.server.kinds.registry import Registry
from aliquot.server.schema import openapi

_HEALTH = ("healthz", "livez", "readyz")
_MINOR = kubernetes.version().partition(".")[2]
"""The minor version of Kubernetes whose API the embedded server follows."""
_VERSION = {
    "major": "1",
    "minor": _MINOR,
    "gitVersion": f"v1.{_MINOR}.0+aliquot.{__version__}",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}


def respond(request: web.BaseRequest, registry: Registry) -> web.Response | None:
    """The response to a request about the server; None if it is about objects."""
    parts = request.path.strip("/").split("/")
    first, count = parts[0], len(parts)
    objects = (first == "api" and count > 2) or (first == "apis" and count > 3)
    if objects or first not in ("", "api", "apis", "openapi", "version", *_HEALTH):
        return None
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed()
    if first in _HEALTH:
        return web.Response(text="ok")
    if first == "":
        return json_response(
            {"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]}
        )
    if first == "version":
        return json_response(_VERSION)
    if first == "openapi":
        return _schemas(registry, parts[1:])
    return _discovery(request, registry, parts)


def _schemas(registry: Registry, parts: list[str]) -> web.Response:
    """The OpenAPI documents, version 3 only."""
    if parts == ["v3"]:
        versions = dict.fromkeys(kind.api_version for kind in registry)
        return json_response(openapi.index(versions, str(registry.edition)))
    if parts[:1] == ["v3"] and len(parts) > 2:
        asked = "/".join(parts[2:])
        kinds = [kind for kind in registry if kind.api_version == asked]
        if kinds and openapi.path_of(asked) == "/".join(parts[1:]):
            return json_response(openapi.document(asked, kinds))
    raise no_such_path()


def _discovery(request: web.BaseRequest, registry: Registry, parts: list[str]) -> web.Response:
    if len(parts) == 1:
        if version := _aggregated_version(request.headers.get("Accept", "")):
            body = discovery.aggregated(registry, parts[0] == "api", version)
            form = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            found = json_response(body)
            found.headers["Content-Type"] = form
            return found
        if parts[0] == "api":
            return json_response(discovery.core_versions(request.host))
        return json_response(discovery.group_list(registry))
    if parts[0] == "api":
        return json_response(discovery.resources(registry, "", parts[1]))
    if len(parts) == 2:
        return json_response(discovery.one_group(registry, parts[1]))
    return json_response(discovery.resources(registry, parts[1], parts[2]))


def _aggregated_version(accept: str) -> str:
    """The version of aggregated discovery that is accepted first; empty if none is."""
    for part in accept.split(","):
        if "as=APIGroupDiscoveryList" in part:
            for version in ("v2beta1", "v2"):
                if f"v={version}" in part:
                    return version
        elif "as=" not in part:
            return ""
    return ""
