"""Admission webhooks: called over HTTPS within their timeout; `failurePolicy` decides on failure.

Webhook configurations themselves are never sent to webhooks, so that a broken one can be mended.
"""

import asyncio
import base64
import json
import ssl
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import aiohttp

from aliquot.errors import AliquotError, RefusalError
from aliquot.json import Body
from aliquot.server.http.refusals import bad_request, internal
from aliquot.server.http.warnings import warn
from aliquot.server.kinds.kind import Kind
from aliquot.server.patch.merge import json_patch
from aliquot.server.selectors.selectors import Labels
from aliquot.server.storage.store import Store
from aliquot.sockets import Sockets

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
_MOST_BYTES = 3 * 2**20
"""The largest answer read: as large as the largest request (`http.bodies`)."""
_OWN_GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """The request that an AdmissionReview is about."""

    operation: str
    kind: Kind
    subresource: str
    name: str
    namespace: str
    new: Body | None
    old: Body | None
    user: str
    dry_run: bool

    def review(self) -> Body:
        """The AdmissionReview to send."""
        kind = {"group": self.kind.group, "version": self.kind.version, "kind": self.kind.name}
        resource = {**kind, "resource": self.kind.plural}
        del resource["kind"]
        content: Body = {
            "uid": str(uuid.uuid4()),
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": self.name,
            "operation": self.operation,
            "userInfo": {"username": self.user, "groups": ["system:masters"]},
            "object": self.new,
            "oldObject": self.old,
            "dryRun": self.dry_run,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        }
        if self.namespace:
            content["namespace"] = self.namespace
        if self.subresource:
            content["subResource"] = content["requestSubResource"] = self.subresource
        return {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": content,
        }


@dataclass(frozen=True, slots=True)
class LocalService:
    """A Service that a program on this machine answers for."""

    url: Callable[[], str]
    """Its URL; asked for at each call, since a program may begin to listen later."""
    host: str
    """Its name in TLS."""


class Webhooks:
    """The webhooks that are configured now."""

    def __init__(self, store: Store) -> None:
        self.local_services: dict[str, LocalService] = {}
        """By name, in whatever namespace: pods of simulated nodes answer nothing themselves."""
        self._store = store
        self._session: aiohttp.ClientSession | None = None
        self._sockets = Sockets()

    def any(self) -> bool:
        """Is any webhook configured?"""
        return bool(self._store.bucket(MUTATING).entries or self._store.bucket(VALIDATING).entries)

    async def mutate(self, request: AdmissionRequest) -> Body | None:
        """Call the mutating webhooks, one after the other; the object as they changed it."""
        changed = request.new
        for hook in self._matching(MUTATING, request):
            response = await self._review(hook, replace(request, new=changed))
            if response is None or not response.get("patch") or changed is None:
                continue
            try:
                changed = json_patch(changed, _patch(response["patch"]))
            except (AliquotError, ValueError, TypeError) as error:
                raise internal(
                    f"webhook {hook['name']!r} sent a patch that fails: {error}"
                ) from None
        return changed

    async def validate(self, request: AdmissionRequest) -> None:
        """Call the validating webhooks at once; the first denial is raised."""
        reviews = [self._review(hook, request) for hook in self._matching(VALIDATING, request)]
        for result in await asyncio.gather(*reviews, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            await self._sockets.close()

    def _matching(self, storage: str, request: AdmissionRequest) -> Iterator[Body]:
        """The webhooks whose rules and selectors match the request."""
        if request.kind.group == _OWN_GROUP:
            return
        for entry in self._store.all(storage):
            for hook in entry.read().get("webhooks") or ():
                if self._matches(hook, request):
                    yield hook

    def _matches(self, hook: Body, request: AdmissionRequest) -> bool:
        if not any(_rule_matches(rule, request) for rule in hook.get("rules") or ()):
            return False
        object_selector = Labels.of(hook.get("objectSelector") or {})
        versions = [each for each in (request.new, request.old) if each is not None]
        if object_selector is None or not any(
            object_selector.match(each["metadata"].get("labels")) for each in versions
        ):
            return False
        namespace_selector = Labels.of(hook.get("namespaceSelector") or {})
        return namespace_selector is None or namespace_selector.match(self._labels(request))

    def _labels(self, request: AdmissionRequest) -> dict[str, str]:
        """The labels that a namespaceSelector is compared with."""
        if request.kind.unique_name == "Namespace":
            body = request.new or request.old or {}
            return dict(body["metadata"].get("labels") or {})
        found = self._store.get("namespaces", "", request.namespace)
        return {} if found is None else found.labels

    async def _review(self, hook: Body, request: AdmissionRequest) -> Body | None:
        """The response of a webhook; None if it failed and its policy is Ignore."""
        if request.dry_run and hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f"admission webhook {hook['name']!r} does not support dry run")
        try:
            response = await self._call(hook, request.review())
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError) as error:
            if hook.get("failurePolicy", "Fail") == "Ignore":
                return None
            why = str(error) or type(error).__name__
            raise internal(
                f'failed calling webhook "{hook["name"]}": failed to call webhook: {why}'
            ) from None
        for text in response.get("warnings") or ():
            warn(str(text))
        if not response.get("allowed"):
            raise _denied(hook["name"], response.get("status") or {})
        return response

    async def _call(self, hook: Body, review: Body) -> Body:
        client = hook["clientConfig"]
        url, host = self._address(client)
        seconds = hook.get("timeoutSeconds") or 10
        if self._session is None:
            connector = aiohttp.TCPConnector(socket_factory=self._sockets.make)
            self._session = aiohttp.ClientSession(connector=connector)
        post = self._session.post(
            url,
            json=review,
            ssl=_context(client.get("caBundle") or ""),
            server_hostname=host,
            timeout=aiohttp.ClientTimeout(total=seconds),
            allow_redirects=False,
        )
        async with post as answer:
            if answer.status != HTTPStatus.OK:
                raise ValueError(f"the server answered {answer.status}")
            content = await answer.content.read(_MOST_BYTES)
            body = _decoded(content)
        response = body.get("response")
        if not isinstance(response, dict) or response.get("uid") != review["request"]["uid"]:
            raise ValueError("the answer is not one to this question")
        return response

    def _address(self, client: Body) -> tuple[str, str | None]:
        """The URL of a webhook, and its name in TLS if that differs from the URL's host."""
        service = client.get("service") or {}
        local = self.local_services.get(service.get("name", ""))
        if client.get("url") or local is None:
            return _url(client), None
        return f"{local.url()}/{(service.get('path') or '/').lstrip('/')}", local.host


def _decoded(content: bytes) -> Body:
    body = json.loads(content)
    if not isinstance(body, dict):
        raise ValueError("the answer is not an AdmissionReview")
    return body


def _rule_matches(rule: Body, request: AdmissionRequest) -> bool:
    kind, resource = request.kind, request.kind.plural
    if request.subresource:
        names = {f"{resource}/{request.subresource}", f"{resource}/*", f"*/{request.subresource}"}
        names.add("*/*")
    else:
        names = {resource, "*", "*/*"}
    scope = rule.get("scope", "*")
    return (
        bool({request.operation, "*"} & set(rule.get("operations") or ()))
        and bool({kind.group, "*"} & set(rule.get("apiGroups") or ()))
        and bool({kind.version, "*"} & set(rule.get("apiVersions") or ()))
        and bool(names & set(rule.get("resources") or ()))
        and scope in ("*", "Namespaced" if kind.namespaced else "Cluster")
    )


def _url(client: Body) -> str:
    if client.get("url"):
        url = str(client["url"])
        if not url.startswith("https://"):
            raise ValueError("a webhook must be asked over HTTPS")
        return url
    service = client["service"]
    path = service.get("path") or "/"
    port = service.get("port") or 443
    return f"https://{service['name']}.{service['namespace']}.svc:{port}/{path.lstrip('/')}"


@lru_cache(maxsize=64)
def _context(bundle: str) -> ssl.SSLContext:
    if not bundle:
        return ssl.create_default_context()
    return ssl.create_default_context(cadata=base64.b64decode(bundle).decode())


def _patch(encoded: str) -> Any:
    return json.loads(base64.b64decode(encoded))


def _denied(name: str, status: Body) -> RefusalError:
    message = f'admission webhook "{name}" denied the request'
    if status.get("message"):
        message += f": {status['message']}"
    elif status.get("reason"):
        message += f": {status['reason']}"
    else:
        message += " without explanation"
    code = status.get("code") or HTTPStatus.FORBIDDEN
    reason = status.get("reason") or ("Forbidden" if code == HTTPStatus.FORBIDDEN else "")
    return RefusalError(code, reason, message, status.get("details"))
