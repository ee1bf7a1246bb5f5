"""A look at one pod, for whoever was refused because others had written to it.

What watches tell may be older than the refusal, so the server itself is asked. That is rare: nobody
should come here on an ordinary day.
"""

from aliquot.dialects.core.documents import Body
from aliquot.engine.model.objects import Pod
from aliquot.errors import ApiError
from aliquot.kube.client import Client
from aliquot.kube.resource import PODS
from aliquot.kube.writer import SECONDS

_MANY = 429


async def look_up(client: Client, pod: Pod) -> Body | None:
    """The pod as it is now; None if it is gone, or another has its name, or we may not know."""
    try:
        found: Body = await client.get(PODS.path(pod.namespace, pod.name), timeout=SECONDS)
    except ApiError as error:
        if error.code == _MANY or error.code >= 500:
            raise
        return None
    return found if found["metadata"].get("uid") == pod.uid else None
