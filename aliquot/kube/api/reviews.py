"""Whose token it is, and what that user may do: TokenReview and SubjectAccessReview.

The API server answers both, as it does for kube-rbac-proxy. `client` needs the right to create them
(the ClusterRole `system:auth-delegator`).
"""

from aliquot.json import Body
from aliquot.kube.api.client import Client

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


async def user_of(client: Client, token: str) -> Body | None:
    """The user of a token, as an access review names it; None for a token without a user."""
    answer = await client.post(
        _TOKEN_REVIEWS, _review("authentication", "TokenReview", {"token": token})
    )
    status: Body = answer.get("status") or {}
    if not status.get("authenticated"):
        return None
    user: Body = status.get("user") or {}
    return {
        "user": user.get("username", ""),
        "uid": user.get("uid", ""),
        "groups": user.get("groups") or [],
        "extra": user.get("extra") or {},
    }


async def may(client: Client, user: Body, asked: Body) -> bool:
    """May the user do this: `resourceAttributes` or `nonResourceAttributes` of an access review?"""
    answer = await client.post(
        _ACCESS_REVIEWS, _review("authorization", "SubjectAccessReview", {**user, **asked})
    )
    return bool((answer.get("status") or {}).get("allowed"))


def _review(group: str, kind: str, spec: Body) -> Body:
    return {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "spec": spec}
