"""Requests about kinds that are answered, not stored: reviews of access, and metrics."""

from http import HTTPStatus

from aiohttp import web

from aliquot.server.answers import metrics, reviews
from aliquot.server.api import Api
from aliquot.server.http import bodies
from aliquot.server.http.bodies import json_response
from aliquot.server.http.refusals import method_not_allowed
from aliquot.server.http.target import Target
from aliquot.server.kinds.answered_kinds import METRICS
from aliquot.server.selectors.selection import selection


class AnsweredVerbs:
    """Answers requests about these kinds."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def answer(self, request: web.BaseRequest, target: Target) -> web.Response:
        """Answer a request about one of these kinds."""
        if target.kind.group == METRICS:
            if request.method != "GET" or "watch" in request.query:
                raise method_not_allowed()
            return json_response(self._metrics(request, target))
        if request.method != "POST" or target.name:
            raise method_not_allowed()
        body = await bodies.decoded(request)
        groups = request.headers.getall("Impersonate-Group", [])
        who = reviews.client(request.headers, groups)
        done = reviews.answer(self._api.store, target.kind.name, body, who, target.namespace)
        return json_response(done, HTTPStatus.CREATED)

    def _metrics(self, request: web.BaseRequest, target: Target) -> dict[str, object]:
        store, kind = self._api.store, target.kind
        if target.name:
            return metrics.one(store, kind, target.namespace, target.name)
        query = request.query
        labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
        return metrics.many(store, kind, selection(kind, target.namespace, labels, fields))
