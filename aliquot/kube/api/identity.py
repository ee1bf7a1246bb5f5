"""Who this client is to the API server, for what people write by hand."""

import getpass

from aliquot.errors import AliquotError
from aliquot.kube.api.client import Client

_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def user_name(client: Client) -> str:
    """The name of the client's user; that of the local account where the server does not say."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await client.post(_REVIEWS, review)
        return str(answer["status"]["userInfo"]["username"])
    except (AliquotError, KeyError, TypeError):
        return _account()


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
