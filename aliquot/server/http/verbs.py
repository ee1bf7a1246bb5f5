"""Verbs as HTTP has them: method, path and query to what is done, and back to an answer."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from aiohttp import web

from aliquot.dialects.core.documents import Body
from aliquot.errors import RefusalError
from aliquot.server.api import Api
from aliquot.server.http import bodies
from aliquot.server.http import watch as watching
from aliquot.server.http.bodies import json_response
from aliquot.server.http.options import WriteOptions, delete_options, write_options
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
    """Requests about objects."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._pages = Pages()
        self._subresources = SubresourceVerbs(api)

    async def answer(self, request: web.BaseRequest, at: Target) -> web.StreamResponse:
        """Do what a request asks for."""
        if at.subresource and at.subresource != "status":
            return await self._subresources.answer(request, at)
        match request.method, bool(at.name):
            case "GET" | "HEAD", True if not _watches(request.query):
                return await self._get(request, at)
            case "GET" | "HEAD", _:
                if _watches(request.query):
                    return await self._watch(request, at)
                return await self._list(request, at)
            case "POST", False:
                return await self._create(request, at)
            case "PUT", True:
                return await self._replace(request, at)
            case "PATCH", True:
                return await self._patch(request, at)
            case "DELETE", True if not at.subresource:
                return await self._delete(request, at)
            case "DELETE", False:
                return await self._delete_collection(request, at)
        raise method_not_allowed()

    async def _get(self, request: web.BaseRequest, at: Target) -> web.Response:
        how = rendering.manner(request.headers.get("Accept", ""))
        found = await self.api.get(at.kind, at.namespace, at.name)
        include = request.query.get("includeObject", "Metadata")
        return json_response(rendering.one(at.kind, found, how, include))

    async def _list(self, request: web.BaseRequest, at: Target) -> web.Response:
        how = rendering.manner(request.headers.get("Accept", ""))
        query, limit = request.query, _number(request.query, "limit")
        chosen = _selection(at, query)
        about = (at, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        if token := query.get("continue"):
            if query.get("resourceVersion", "0") != "0":
                raise bad_request("specifying resource version is not allowed when using continue")
            entries, metadata = self._pages.next(token, limit, about)
        else:
            found, version = self._found(at, query)
            await self.api.store.wait_durable()
            entries, metadata = self._pages.first(found, version, limit, about)
        if not chosen.everything:
            metadata.pop("remainingItemCount", None)
        include = query.get("includeObject", "Metadata")
        return json_response(rendering.many(at.kind, entries, how, metadata, include))

    async def _watch(self, request: web.BaseRequest, at: Target) -> web.StreamResponse:
        query = request.query
        watch = watching.Watch(
            kind=at.kind,
            selection=_selection(at, query),
            version=_number(query, "resourceVersion"),
            seconds=watching.patience(query.get("timeoutSeconds", "")),
            bookmarks=query.get("allowWatchBookmarks") in _TRUE,
            initial=_initial(at.kind, query),
            manner=rendering.manner(request.headers.get("Accept", "")),
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            async for text in watching.lines(self.api.store, watch):
                if text:
                    await response.write(text)
        except ConnectionError:
            pass  # the client has gone, which is how most watches end
        return response

    async def _create(self, request: web.BaseRequest, at: Target) -> web.Response:
        how = rendering.manner(request.headers.get("Accept", ""))
        body = conversion.to_storage(at.kind, _object(await bodies.decoded(request)))
        options = write_options(request.query)
        conversion.check_new(at.kind, body)
        if at.kind.namespaced and at.namespace is None:
            raise method_not_allowed()
        made = await self.api.create(
            conversion.storage_kind(at.kind, self.api.registry), at.namespace, body, options
        )
        return json_response(
            rendering.one(at.kind, made, how), HTTPStatus.CREATED, _warned(options)
        )

    async def _replace(self, request: web.BaseRequest, at: Target) -> web.Response:
        how = rendering.manner(request.headers.get("Accept", ""))
        body = conversion.to_storage(at.kind, _object(await bodies.decoded(request)))
        kind = conversion.storage_kind(at.kind, self.api.registry)
        options = write_options(request.query)
        kept = await self.api.replace(kind, at.namespace, at.name, body, at.subresource, options)
        return json_response(rendering.one(at.kind, kept, how), HTTPStatus.OK, _warned(options))

    async def _patch(self, request: web.BaseRequest, at: Target) -> web.Response:
        how = rendering.manner(request.headers.get("Accept", ""))
        apply = patches.patch(at.kind, bodies.media_type(request), await bodies.read(request))
        kind = conversion.storage_kind(at.kind, self.api.registry)

        def edit(body: Body) -> Body:
            changed = apply(conversion.from_storage(at.kind, body))
            rules.check_uid(at.kind, body, changed)
            return conversion.to_storage(at.kind, changed)

        options = write_options(request.query)
        kept = await self.api.change(kind, at.namespace, at.name, edit, at.subresource, options)
        return json_response(rendering.one(at.kind, kept, how), HTTPStatus.OK, _warned(options))

    async def _delete(self, request: web.BaseRequest, at: Target) -> web.Response:
        how = rendering.manner(request.headers.get("Accept", ""))
        options = delete_options(request.query, await bodies.decoded(request))
        last, gone = await self.api.delete(at.kind, at.namespace, at.name, options)
        if gone and at.kind.unique_name not in _SHOWN_WHEN_GONE:
            return json_response(success(at.kind, last.name, last.uid))
        return json_response(rendering.one(at.kind, last, how))

    async def _delete_collection(self, request: web.BaseRequest, at: Target) -> web.Response:
        if at.kind.namespaced and at.namespace is None:
            raise method_not_allowed()
        options = delete_options(request.query, await bodies.decoded(request))
        left: list[Entry] = []
        for each in self.api.select(at.kind, _selection(at, request.query)):
            try:
                last, _ = await self.api.delete(at.kind, at.namespace, each.name, options)
            except RefusalError as refusal:
                if refusal.code != HTTPStatus.NOT_FOUND:
                    raise
            else:
                left.append(last)
        metadata = {"resourceVersion": str(self.api.store.version)}
        return json_response(rendering.many(at.kind, left, "whole", metadata))

    def _found(self, at: Target, query: Mapping[str, str]) -> tuple[list[Entry], int]:
        """The objects of a list, and the version that they are of."""
        chosen, now = _selection(at, query), self.api.store.version
        wanted = _version(query)
        if wanted > now:
            raise _too_large(wanted, now)
        exact = query.get("resourceVersionMatch") == "Exact"
        if wanted and wanted != now and (exact or _older(query)):
            past = self.api.store.as_of(at.kind.storage, wanted)
            if past is None:
                raise expired(f"The resourceVersion for the provided list is too old: {wanted}")
            return [each for each in past if chosen.match(each)], wanted
        return self.api.select(at.kind, chosen), now


def _older(query: Mapping[str, str]) -> bool:
    """Does a list without more words ask for exactly its version, as one in pages does?"""
    return not query.get("resourceVersionMatch") and bool(query.get("limit"))


def _version(query: Mapping[str, str]) -> int:
    """The version that a list asks for, if its words make sense together."""
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


def _warned(options: WriteOptions) -> dict[str, str]:
    """What there is to say besides the answer, as a header."""
    lines = [f"299 - {json.dumps(text)}" for text in dict.fromkeys(options.warnings or ())]
    return {"Warning": ", ".join(lines)} if lines else {}


def _watches(query: Mapping[str, str]) -> bool:
    return query.get("watch") in _TRUE


def _selection(at: Target, query: Mapping[str, str]) -> Selection:
    fields = query.get("fieldSelector", "")
    if at.name:
        fields = ",".join(filter(None, (fields, f"metadata.name={at.name}")))
    return selection(at.kind, at.namespace, query.get("labelSelector", ""), fields)


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
