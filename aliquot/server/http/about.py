"""Requests about the server itself: health, version, discovery, OpenAPI."""

from weakref import WeakKeyDictionary

import msgspec
from aiohttp import web

from aliquot.dialects.schemas import kubernetes
from aliquot.server.http import discovery
from aliquot.server.http.bodies import json_response
from aliquot.server.http.refusals import method_not_allowed, no_such_path
from aliquot.server.kinds.registry import Registry
from aliquot.server.schema import openapi, openapi2
from aliquot.version import __version__

_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1+protobuf"
"""The media type of OpenAPI v2 as protobuf."""
_ASKED_FOR = (_PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
"""How clients ask for it; the older form is no valid media type, and so is not answered with."""
_DOCUMENTS: WeakKeyDictionary[Registry, tuple[int, dict[str, bytes]]] = WeakKeyDictionary()
"""OpenAPI v2 by media type, with the edition of the registry that it was made of."""
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
            {
                "paths": [
                    "/api",
                    "/apis",
                    "/healthz",
                    "/livez",
                    "/openapi/v2",
                    "/openapi/v3",
                    "/readyz",
                    "/version",
                ]
            }
        )
    if first == "version":
        return json_response(_VERSION)
    if first == "openapi":
        return _schemas(request, registry, parts[1:])
    return _discovery(request, registry, parts)


def _schemas(request: web.BaseRequest, registry: Registry, parts: list[str]) -> web.Response:
    """The OpenAPI documents."""
    if parts == ["v2"]:
        return _version_2(request.headers.get("Accept", ""), registry)
    if parts == ["v3"]:
        versions = dict.fromkeys(kind.api_version for kind in registry)
        return json_response(openapi.index(versions, str(registry.edition)))
    if parts[:1] == ["v3"] and len(parts) > 2:
        asked = "/".join(parts[2:])
        kinds = [kind for kind in registry if kind.api_version == asked]
        if kinds and openapi.path_of(asked) == "/".join(parts[1:]):
            return json_response(openapi.document(asked, kinds))
    raise no_such_path()


def _version_2(accept: str, registry: Registry) -> web.Response:
    """OpenAPI v2 as JSON or, as kubectl wants it, as protobuf; kept until a kind changes."""
    form = _PROTOBUF if any(each in accept for each in _ASKED_FOR) else ""
    held = _DOCUMENTS.get(registry)
    if held is None or held[0] != registry.edition:
        held = _DOCUMENTS[registry] = (registry.edition, {})
    content = held[1].get(form)
    if content is None:
        whole = openapi2.document(registry)
        content = openapi2.protobuf(whole) if form else msgspec.json.encode(whole)
        held[1][form] = content
    found = web.Response(body=content)
    found.headers["Content-Type"] = form or "application/json"
    return found


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
