"""Requests about subresources: binding, eviction, scale, resize, finalize, those of containers.

The status subresource is handled with the object itself, in `verbs`.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from aiohttp import web

from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.http import bodies
from aliquot.server.http.bodies import json_response
from aliquot.server.http.options import write_options
from aliquot.server.http.refusals import bad_request, method_not_allowed
from aliquot.server.http.target import Target
from aliquot.server.patch import request as patches
from aliquot.server.storage.entry import Entry
from aliquot.server.subresources import scale
from aliquot.server.subresources.binding import bind, pod_name
from aliquot.server.subresources.containers import no_containers
from aliquot.server.subresources.eviction import evict
from aliquot.server.subresources.resize import apply_resize

_NO_TOKENS = (
    "service accounts have no tokens here, since roles are not enforced: "
    "use the token of the kubeconfig"
)


class SubresourceVerbs:
    """Answers requests about subresources."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def answer(self, request: web.BaseRequest, target: Target) -> web.Response:
        """Answer a request about a subresource."""
        match target.subresource, request.method:
            case "binding", "POST":
                body = await bodies.decoded(request)
                done = await bind(
                    self._api,
                    target.kind,
                    target.namespace or "",
                    target.name or pod_name(body),
                    body,
                )
                return json_response(done, HTTPStatus.CREATED)
            case "eviction", "POST":
                body, dry = await bodies.decoded(request), write_options(request.query).dry_run
                done = await evict(
                    self._api, target.kind, target.namespace or "", target.name, body, dry
                )
                return json_response(done, HTTPStatus.CREATED)
            case "scale", "GET":
                found = await self._api.get(target.kind, target.namespace, target.name)
                return json_response(scale.scale(target.kind, found))
            case "scale", "PUT" | "PATCH":
                return await self._scale(request, target)
            case "resize", "GET":
                found = await self._api.get(target.kind, target.namespace, target.name)
                return json_response(found.body)
            case "resize", "PUT" | "PATCH":
                return await self._resize(request, target)
            case "finalize", "PUT":
                return await self._finalize(request, target)
            case "attach" | "exec" | "log" | "portforward", "GET" | "POST":
                found = await self._api.get(target.kind, target.namespace, target.name)
                raise no_containers(found.read(), target.subresource)
            case "token", "POST":
                await self._api.get(target.kind, target.namespace, target.name)
                raise bad_request(_NO_TOKENS)
        raise method_not_allowed()

    async def _wanted(
        self, request: web.BaseRequest, target: Target, shown: Callable[[Entry], Body]
    ) -> Any:
        """What a PUT brings, or what a PATCH makes of what the subresource shows now."""
        if request.method == "PUT":
            return await bodies.decoded(request)
        content, form = await bodies.read(request), bodies.media_type(request)
        present = await self._api.get(target.kind, target.namespace, target.name)
        return patches.patch(target.kind, form, content)(shown(present))

    async def _scale(self, request: web.BaseRequest, target: Target) -> web.Response:
        def shown(present: Entry) -> Body:
            found = scale.scale(target.kind, present)
            del found["metadata"]["resourceVersion"]
            return found

        wanted = await self._wanted(request, target, shown)
        if not isinstance(wanted, dict) or not isinstance(wanted.get("spec") or {}, dict):
            raise bad_request("a Scale is expected")
        if not isinstance(wanted.get("metadata") or {}, dict):
            raise bad_request("a Scale is expected, with metadata")
        edit = scale.apply_scale(target.kind, target.name, wanted)
        options = write_options(request.query, request.headers.get("User-Agent", ""))
        kept = await self._api.change(
            target.kind, target.namespace, target.name, edit, "scale", options
        )
        return json_response(scale.scale(target.kind, kept))

    async def _resize(self, request: web.BaseRequest, target: Target) -> web.Response:
        wanted = await self._wanted(request, target, Entry.read)
        options = write_options(request.query, request.headers.get("User-Agent", ""))
        kept = await self._api.change(
            target.kind, target.namespace, target.name, apply_resize(wanted), "resize", options
        )
        return json_response(kept.body)

    async def _finalize(self, request: web.BaseRequest, target: Target) -> web.Response:
        wanted = await bodies.decoded(request)
        spec = wanted.get("spec") or {} if isinstance(wanted, dict) else None
        left = spec.get("finalizers") or [] if isinstance(spec, dict) else None
        if not isinstance(left, list) or not all(isinstance(each, str) for each in left):
            raise bad_request("a Namespace is expected, with spec.finalizers as a list of names")

        def edit(body: Body) -> Body:
            body["spec"] = {"finalizers": left} if left else {}
            return body

        options = write_options(request.query, request.headers.get("User-Agent", ""))
        kept = await self._api.change(target.kind, None, target.name, edit, "finalize", options)
        return json_response(kept.body)
