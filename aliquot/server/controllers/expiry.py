"""Expiry: what is done goes after a while, with all that it owns, if it says so."""

from datetime import UTC, datetime

from aliquot.dialects.core.documents import Body
from aliquot.server.api import Api
from aliquot.server.kind import Kind
from aliquot.server.options import DeleteOptions, Preconditions


async def expire(api: Api, kind: Kind, body: Body, since: str) -> float | None:
    """Delete an object that was done at this time; or the seconds until then, if it ever goes."""
    about, after = body["metadata"], body["spec"].get("ttlSecondsAfterFinished")
    if after is None or "deletionTimestamp" in about:
        return None
    left: float = after - (datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds()
    if left > 0:
        return left
    options = DeleteOptions(
        propagation_policy="Foreground", preconditions=Preconditions(uid=about["uid"])
    )
    await api.delete(kind, about["namespace"], about["name"], options)
    return None
