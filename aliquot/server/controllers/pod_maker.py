"""The pods of an owner, made and deleted through the API, as far as it lets them."""

import asyncio
from collections.abc import Iterable
from http import HTTPStatus

from aliquot.dialects.core.documents import Body
from aliquot.dialects.volcano.job_pods import in_group
from aliquot.errors import RefusalError
from aliquot.server.api import Api
from aliquot.server.controllers.pod_groups import PodGroups
from aliquot.server.controllers.pods import worth
from aliquot.server.http.options import DeleteOptions

AT_ONCE = 100
"""How many pods are made in one go."""
AFTER_REFUSAL = 2.0
"""After how many seconds somebody whose pods were refused tries again."""


class PodMaker:
    """Makes and deletes pods."""

    def __init__(self, api: Api, groups: PodGroups) -> None:
        self._api, self._groups = api, groups
        self._pod = api.kind("Pod")

    async def make(self, owner: Body, pods: Iterable[Body]) -> RefusalError | None:
        """Make pods of an owner, all at once; what the first refusal says, if there is any.

        If the owner asks for a group, they are in it, and it is there before them.
        """
        pods = list(pods)
        if not pods:
            return None
        try:
            group = await self._groups.of(owner)
        except RefusalError as refusal:
            return refusal
        if group:
            pods = [in_group(pod, group) for pod in pods]
        namespace = owner["metadata"]["namespace"]
        made = [self._api.create(self._pod, namespace, pod) for pod in pods]
        for each in await asyncio.gather(*made, return_exceptions=True):
            if isinstance(each, RefusalError):
                return each
            if isinstance(each, BaseException):
                raise each
        return None

    async def drop(self, there: list[Body], count: int) -> None:
        """Delete so many of these, those that are worth least."""
        for pod in sorted(there, key=worth)[: max(count, 0)]:
            about = pod["metadata"]
            try:
                await self._api.delete(
                    self._pod, about["namespace"], about["name"], DeleteOptions()
                )
            except RefusalError as refusal:
                if refusal.code != HTTPStatus.NOT_FOUND:
                    raise
