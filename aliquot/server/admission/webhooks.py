"""Admission webhooks: asked over HTTPS, within their time; silence counts as their policy says."""

import asyncio
import base64
import json
import ssl
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import aiohttp

from aliquot.dialects.core.documents import Body
from aliquot.errors import AliquotError, RefusalError
from aliquot.server.http.refusals import bad_request, internal
from aliquot.server.kinds.kind import Kind
from aliquot.server.patch.merge import json_patch
from aliquot.server.selectors.selectors import Labels
from aliquot.server.storage.store import Store

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
_MOST_BYTES = 3 * 2**20
_OWN_GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Question:
    """What a webhook is asked about."""

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
        """The question as an AdmissionReview."""
        kind = {"group": self.kind.group, "version": self.kind.version, "kind": self.kind.name}
        resource = {**kind, "resource": self.kind.plural}
        del resource["kind"]
        request: Body = {
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
            request["namespace"] = self.namespace
        if self.subresource:
            request["subResource"] = request["requestSubResource"] = self.subresource
        return {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": request,
        }


class Webhooks:
    """The webhooks that are configured now."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: aiohttp.ClientSession | None = None

    def any(self) -> bool:
        """Are there any at all?"""
        return bool(self._store.shelf(MUTATING).entries or self._store.shelf(VALIDATING).entries)

    async def mutate(self, question: Question) -> Body | None:
        """Let webhooks change an object, one after the other."""
        changed = question.new
        for hook in self._asked(MUTATING, question):
            asked = replace(question, new=changed)
            response = await self._ask(hook, asked)
            if response is None or not response.get("patch") or changed is None:
                continue
            try:
                changed = json_patch(changed, _patch(response["patch"]))
            except (AliquotError, ValueError, TypeError) as error:
                raise internal(
                    f"webhook {hook['name']!r} sent a patch that fails: {error}"
                ) from None
        return changed

    async def validate(self, question: Question) -> None:
        """Let webhooks object, all at once; the first objection counts."""
        asked = [self._ask(hook, question) for hook in self._asked(VALIDATING, question)]
        for result in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def close(self) -> None:
        """Ask no more."""
        if self._session is not None:
            await self._session.close()

    def _asked(self, storage: str, question: Question) -> Iterator[Body]:
        """The webhooks that this is to be put to."""
        if question.kind.group == _OWN_GROUP:
            return
        for entry in self._store.all(storage):
            for hook in entry.read().get("webhooks") or ():
                if self._concerns(hook, question):
                    yield hook

    def _concerns(self, hook: Body, question: Question) -> bool:
        if not any(_covers(rule, question) for rule in hook.get("rules") or ()):
            return False
        of_objects = Labels.of(hook.get("objectSelector") or {})
        versions = [each for each in (question.new, question.old) if each is not None]
        if of_objects is None or not any(
            of_objects.match(each["metadata"].get("labels")) for each in versions
        ):
            return False
        of_spaces = Labels.of(hook.get("namespaceSelector") or {})
        return of_spaces is None or of_spaces.match(self._labels(question))

    def _labels(self, question: Question) -> dict[str, str]:
        """The labels that a selector of namespaces looks at."""
        if question.kind.word == "Namespace":
            shown = question.new or question.old or {}
            return dict(shown["metadata"].get("labels") or {})
        found = self._store.get("namespaces", "", question.namespace)
        return {} if found is None else found.labels

    async def _ask(self, hook: Body, question: Question) -> Body | None:
        """What a webhook answers; None if it does not, and need not."""
        if question.dry_run and hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f"admission webhook {hook['name']!r} does not support dry run")
        try:
            response = await self._call(hook, question.review())
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError) as error:
            if hook.get("failurePolicy", "Fail") == "Ignore":
                return None
            why = str(error) or type(error).__name__
            raise internal(
                f'failed calling webhook "{hook["name"]}": failed to call webhook: {why}'
            ) from None
        if not response.get("allowed"):
            raise _denied(hook["name"], response.get("status") or {})
        return response

    async def _call(self, hook: Body, review: Body) -> Body:
        client = hook["clientConfig"]
        url, seconds = _url(client), hook.get("timeoutSeconds") or 10
        if self._session is None:
            self._session = aiohttp.ClientSession()
        post = self._session.post(
            url,
            json=review,
            ssl=_context(client.get("caBundle") or ""),
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


def _decoded(content: bytes) -> Body:
    body = json.loads(content)
    if not isinstance(body, dict):
        raise ValueError("the answer is not an AdmissionReview")
    return body


def _covers(rule: Body, question: Question) -> bool:
    kind, resource = question.kind, question.kind.plural
    if question.subresource:
        names = {f"{resource}/{question.subresource}", f"{resource}/*", f"*/{question.subresource}"}
        names.add("*/*")
    else:
        names = {resource, "*", "*/*"}
    scope = rule.get("scope", "*")
    return (
        bool({question.operation, "*"} & set(rule.get("operations") or ()))
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
