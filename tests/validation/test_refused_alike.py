"""What `aliquot validate` calls an error, a server with our CRDs and webhook refuses; no more, no
less. Both are given the same objects, each with one thing wrong in it.
"""

import asyncio
from collections.abc import Sequence

import pytest

from aliquot.dialects.configuration import Configuration, Profile
from aliquot.dialects.core.documents import Document
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CUSTOM, NAMESPACES
from aliquot.kube.webhook.app import Settings, webhook
from aliquot.server.app import running
from aliquot.validation import inputs
from tests.validation import spoiled as objects
from tests.validation.spoiled import made, spoiled

_NAMESPACES = ("a", "b", "c", "d", "ops", "top")
_STRICT = "?fieldValidation=Strict&dryRun=All"
_SUBJECT = "the object"

CASES = {
    "kep-9": ("capacity", [], objects.KEP9),
    "nos": ("fair", [], objects.NOS),
    "koordinator": ("hierarchy", [objects.ALL], objects.KOORDINATORS),
    "volcano": ("queues", [objects.OTHER_QUEUE], objects.VOLCANO),
    "tensor-fusion": ("capacity", [], objects.TENSOR_FUSION),
}


def errors(configuration: Configuration, others: Sequence[Body], body: Body) -> list[str]:
    """The errors of `aliquot validate` about an object among others."""
    given = [Document(f"other {number}", each) for number, each in enumerate(others)]
    found = inputs.examine([*given, Document(_SUBJECT, body)], configuration)
    every = [*found.findings, *found.refusals, *found.misshapen, *found.about_skipped]
    return [str(each) for each in every if each.severity == "error" and each.place == _SUBJECT]


async def refusal(client: Client, body: Body) -> str:
    """The refusal of an API server that would otherwise create an object; empty if it would."""
    group, _, version = body["apiVersion"].partition("/")
    known = (each for each in CUSTOM.values() if (each.group, each.kind) == (group, body["kind"]))
    resource = next(known)
    namespace = body["metadata"].get("namespace")
    path = resource.path(namespace).replace(f"/{resource.version}/", f"/{version}/")
    try:
        await client.post(path + _STRICT, body)
    except ApiError as error:
        return f"{error.code}: {error.message}"
    return ""


async def differences(policy: str, others: Sequence[Body], subjects: Sequence[Body]) -> list[str]:
    """What one of the two refuses and the other does not, and the number of cases."""
    settings = Configuration(profiles=[Profile(scheduler_name="aliquot", policy=policy)])  # type: ignore[arg-type]
    found, number = [], 0
    async with running() as server, Client(access.find(server.kubeconfig)) as client:
        for name in _NAMESPACES:
            await client.post(NAMESPACES.path(), made("v1", "Namespace", name))
        async with webhook(client, Settings(settings, policy, url="")) as hook:
            await asyncio.wait_for(hook.ready.wait(), 60)
            for other in others:
                assert await _create(client, other) == ""
            for subject in subjects:
                for what, body in spoiled(subject):
                    number += 1
                    said, refused = errors(settings, others, body), await refusal(client, body)
                    if bool(said) != bool(refused):
                        found.append(f"{subject['kind']} {what}: {said or 'fine'} / {refused}")
    assert number > 40
    return found


async def _create(client: Client, body: Body) -> str:
    group = body["apiVersion"].partition("/")[0]
    known = (each for each in CUSTOM.values() if (each.group, each.kind) == (group, body["kind"]))
    try:
        await client.post(next(known).path(body["metadata"].get("namespace")), body)
    except ApiError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("design", CASES)
def test_an_error_of_validate_is_a_refusal_of_a_server(design: str) -> None:
    policy, others, subjects = CASES[design]
    found = asyncio.run(differences(policy, others, subjects))
    assert not found, "\n".join(found)
