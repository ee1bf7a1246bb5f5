"""Requests about objects: get, list, watch, create, replace, patch and delete.

Method, path and query are turned into calls of `api`, and its entries into responses.
"""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus

from aiohttp import web

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.http import bodies
from aliquot.server.http import watch as watching
from aliquot.server.http.answered_verbs import AnsweredVerbs
from aliquot.server.http.bodies import json_response
from aliquot.server.http.options import (
    WriteOptions,
    check_patch_options,
    delete_options,
    write_options,
)
from aliquot.server.http.pages import Pages
from aliquot.server.http.refusals import (
    bad_request,
    expired,
    invalid_option,
    method_not_allowed,
    success,
)
from aliquot.server.http.subresource_verbs import SubresourceVerbs
from aliquot.server.http.target import Target
from aliquot.server.kinds import conversion
from aliquot.server.kinds.kind import Kind
from aliquot.server.patch import request as patches
from aliquot.server.rendering import rendering
from aliquot.server.rules import object_rules as rules
from aliquot.server.selectors.selection import Selection, selection
from aliquot.server.storage.entry import Entry

_TRUE = ("true", "1", "True")


class Verbs:
    """Answers requests about objects."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._pages = Pages()
        self._subresources = SubresourceVerbs(api)
        self._answered = AnsweredVerbs(api)

    async def answer(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        """Answer a request about objects."""
        if target.kind.verbs:
            return await self._answered.answer(request, target)
        if target.subresource and target.subresource != "status":
            return await self._subresources.answer(request, target)
        match request.method, bool(target.name):
            case "GET" | "HEAD", True if not _watches(request.query):
                return await self._get(request, target)
            case "GET" | "HEAD", _:
                if _watches(request.query):
                    return await self._watch(request, target)
                return await self._list(request, target)
            case "POST", False:
                return await self._create(request, target)
            case "PUT", True:
                return await self._replace(request, target)
            case "PATCH", True:
                return await self._patch(request, target)
            case "DELETE", True if not target.subresource:
                return await self._delete(request, target)
            case "DELETE", False:
                return await self._delete_collection(request, target)
        raise method_not_allowed()

    async def _get(self, request: web.BaseRequest, target: Target) -> web.Response:
        representation = rendering.negotiate(request.headers.get("Accept", ""))
        found = await self.api.get(target.kind, target.namespace, target.name)
        include = request.query.get("includeObject", "Metadata")
        return json_response(rendering.one(target.kind, found, representation, include))

    async def _list(self, request: web.BaseRequest, target: Target) -> web.Response:
        representation = rendering.negotiate(request.headers.get("Accept", ""))
        query, limit = request.query, _number(request.query, "limit")
        chosen = _selection(target, query)
        list_key = (target, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        if token := query.get("continue"):
            if query.get("resourceVersion", "0") != "0":
                raise bad_request("specifying resource version is not allowed when using continue")
            entries, metadata = self._pages.next(token, limit, list_key)
        else:
            found, version = self._listed(target, query)
            await self.api.store.wait_durable()
            entries, metadata = self._pages.first(found, version, limit, list_key)
        if not chosen.everything:
            metadata.pop("remainingItemCount", None)
        include = query.get("includeObject", "Metadata")
        return json_response(
            rendering.many(target.kind, entries, representation, metadata, include)
        )

    async def _watch(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        query = request.query
        watch = watching.Watch(
            kind=target.kind,
            selection=_selection(target, query),
            version=_number(query, "resourceVersion"),
            seconds=watching.duration(query.get("timeoutSeconds", "")),
            bookmarks=query.get("allowWatchBookmarks") in _TRUE,
            initial=_initial(target.kind, query),
            representation=rendering.negotiate(request.headers.get("Accept", "")),
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            async for text in watching.stream(self.api.store, watch):
                if text:
                    await response.write(text)
        except ConnectionError:
            pass  # the client has gone, which is how most watches end
        return response

    async def _create(self, request: web.BaseRequest, target: Target) -> web.Response:
        representation = rendering.negotiate(request.headers.get("Accept", ""))
        body = conversion.to_storage(target.kind, _object(await bodies.decoded(request)))
        options = _options(request, "CreateOptions", target.kind)
        conversion.check_new(target.kind, body)
        if target.kind.namespaced and target.namespace is None:
            raise method_not_allowed()
        made = await self.api.create(
            conversion.storage_kind(target.kind, self.api.registry), target.namespace, body, options
        )
        return json_response(rendering.one(target.kind, made, representation), HTTPStatus.CREATED)

    async def _replace(self, request: web.BaseRequest, target: Target) -> web.Response:
        representation = rendering.negotiate(request.headers.get("Accept", ""))
        body = conversion.to_storage(target.kind, _object(await bodies.decoded(request)))
        kind = conversion.storage_kind(target.kind, self.api.registry)
        options = _options(request, "UpdateOptions", target.kind)
        kept = await self.api.replace(
            kind, target.namespace, target.name, body, target.subresource, options
        )
        return json_response(rendering.one(target.kind, kept, representation))

    async def _patch(self, request: web.BaseRequest, target: Target) -> web.Response:
        representation = rendering.negotiate(request.headers.get("Accept", ""))
        form, content = bodies.media_type(request), await bodies.read(request)
        options = _options(request, "PatchOptions", target.kind)
        check_patch_options(request.query, applies=form == patches.APPLY)
        if form == patches.APPLY:
            return await self._apply(target, content, options, representation)
        apply = patches.patch(target.kind, form, content)
        kind = conversion.storage_kind(target.kind, self.api.registry)

        def edit(body: Body) -> Body:
            changed = apply(conversion.from_storage(target.kind, body))
            if options.strict:
                options.patched.append(patches.shown(form, content, changed))
            rules.check_uid(target.kind, body, changed)
            return conversion.to_storage(target.kind, changed)

        kept = await self.api.change(
            kind, target.namespace, target.name, edit, target.subresource, options
        )
        return json_response(rendering.one(target.kind, kept, representation))

    async def _apply(
        self,
        target: Target,
        content: bytes,
        options: WriteOptions,
        representation: rendering.Representation,
    ) -> web.Response:
        config = patches.configuration(content)
        kind = conversion.storage_kind(target.kind, self.api.registry)
        kept, new = await self.api.apply(
            kind, target.namespace, target.name, config, target.subresource, options
        )
        return json_response(
            rendering.one(target.kind, kept, representation),
            HTTPStatus.CREATED if new else HTTPStatus.OK,
        )

    async def _delete(self, request: web.BaseRequest, target: Target) -> web.Response:
        representation = rendering.negotiate(request.headers.get("Accept", ""))
        options = delete_options(request.query, await bodies.decoded(request))
        last, gone = await self.api.delete(target.kind, target.namespace, target.name, options)
        if gone and target.kind.unique_name not in _SHOWN_WHEN_GONE:
            return json_response(success(target.kind, last.name, last.uid))
        return json_response(rendering.one(target.kind, last, representation))

    async def _delete_collection(self, request: web.BaseRequest, target: Target) -> web.Response:
        if target.kind.namespaced and target.namespace is None:
            raise method_not_allowed()
        options = delete_options(request.query, await bodies.decoded(request))
        left: list[Entry] = []
        for each in self.api.select(target.kind, _selection(target, request.query)):
            try:
                last, _ = await self.api.delete(target.kind, target.namespace, each.name, options)
            except RefusalError as refusal:
                if refusal.code != HTTPStatus.NOT_FOUND:
                    raise
            else:
                left.append(last)
        metadata = {"resourceVersion": str(self.api.store.version)}
        return json_response(rendering.many(target.kind, left, "whole", metadata))

    def _listed(self, target: Target, query: Mapping[str, str]) -> tuple[list[Entry], int]:
        """The objects of a list, and their resource version."""
        chosen, now = _selection(target, query), self.api.store.version
        wanted = _version(query)
        if wanted > now:
            raise _too_large(wanted, now)
        exact = query.get("resourceVersionMatch") == "Exact"
        if wanted and wanted != now and (exact or _wants_exact(query)):
            past = self.api.store.as_of(target.kind.storage, wanted)
            if past is None:
                raise expired(f"The resourceVersion for the provided list is too old: {wanted}")
            return [each for each in past if chosen.match(each)], wanted
        return self.api.select(target.kind, chosen), now


def _wants_exact(query: Mapping[str, str]) -> bool:
    """Does a list want exactly its version without saying so, as a list in pages does?"""
    return not query.get("resourceVersionMatch") and bool(query.get("limit"))


def _version(query: Mapping[str, str]) -> int:
    """The resourceVersion of a list; refused if the options contradict each other."""
    wanted, how = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    problem = ""
    if "sendInitialEvents" in query:
        problem = "sendInitialEvents is forbidden for list"
    elif how and not wanted:
        problem = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif how not in ("", "Exact", "NotOlderThan"):
        problem = f"Unsupported value: {how[:50]!r}: supported values: Exact, NotOlderThan"
    elif how == "Exact" and wanted == "0":
        problem = 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
    if problem:
        raise invalid_option("ListOptions", "resourceVersionMatch", problem)
    return _number(query, "resourceVersion")


def _too_large(wanted: int, now: int) -> RefusalError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {wanted}, current: {now}"
    return RefusalError(
        HTTPStatus.GATEWAY_TIMEOUT, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1}
    )


_SHOWN_WHEN_GONE = frozenset({"Pod", "ServiceAccount", "ResourceQuota"})
"""Kinds whose deletion answers with the object instead of a Status, as in kube-apiserver."""


def _options(request: web.BaseRequest, what: str, kind: Kind) -> WriteOptions:
    options = write_options(request.query, request.headers.get("User-Agent", ""), what)
    return replace(options, served=kind) if kind.shared_storage else options


def _watches(query: Mapping[str, str]) -> bool:
    return query.get("watch") in _TRUE


def _selection(target: Target, query: Mapping[str, str]) -> Selection:
    fields = query.get("fieldSelector", "")
    if target.name:
        fields = ",".join(filter(None, (fields, f"metadata.name={target.name}")))
    return selection(target.kind, target.namespace, query.get("labelSelector", ""), fields)


def _number(query: Mapping[str, str], key: str) -> int:
    text = query.get(key) or "0"
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise bad_request(f"{key}: Invalid value: {text[:50]!r}: must be a whole number")
    return int(text)


def _initial(kind: Kind, query: Mapping[str, str]) -> bool:
    if "sendInitialEvents" not in query:
        if query.get("resourceVersionMatch"):
            detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is set"
            raise invalid_option("ListOptions", "resourceVersionMatch", detail)
        return False
    if query.get("resourceVersionMatch") != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise invalid_option("ListOptions", "resourceVersionMatch", detail)
    return query["sendInitialEvents"] in _TRUE


def _object(body: object) -> Body:
    if not isinstance(body, dict):
        raise bad_request("an object is expected in the body")
    return body
