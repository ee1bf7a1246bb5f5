"""The pods of workloads, created and deleted through the API with its admission and quotas."""

import asyncio
import copy
from collections.abc import Iterable
from http import HTTPStatus

from aliquot.dialects.workloads import in_group
from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.pods import deletion_order
from aliquot.server.http.options import DeleteOptions
from aliquot.server.workloads.pod_groups import PodGroups

CREATED_AT_ONCE = 100
"""The most pods created in one reconciliation, so that other owners get their turn."""
RETRY_SECONDS = 2.0
"""After how many seconds pods that were refused, such as by a ResourceQuota, are tried again."""


class PodMaker:
    """Creates and deletes the pods of an owner."""

    def __init__(self, api: Api, groups: PodGroups) -> None:
        self._api, self._groups = api, groups
        self._pod = api.kind("Pod")

    async def create(self, owner: Body, pods: Iterable[Body]) -> RefusalError | None:
        """Create pods of an owner, all at once; the first refusal, if there is one.

        If the owner asks for a PodGroup, it is created before the pods, and they are its members.
        """
        pods = list(pods)
        if not pods:
            return None
        try:
            group = await self._groups.ensure(owner)
        except RefusalError as refusal:
            return refusal
        if group:
            pods = [in_group(pod, group) for pod in pods]
        namespace = owner["metadata"]["namespace"]
        creations = [self._api.create(self._pod, namespace, copy.deepcopy(pod)) for pod in pods]
        for each in await asyncio.gather(*creations, return_exceptions=True):
            if isinstance(each, RefusalError):
                return each
            if isinstance(each, BaseException):
                raise each
        return None

    async def delete(self, pods: list[Body], count: int) -> None:
        """Delete so many of these pods, in the order in which a ReplicaSet would."""
        for pod in sorted(pods, key=deletion_order)[: max(count, 0)]:
            metadata = pod["metadata"]
            try:
                await self._api.delete(
                    self._pod, metadata["namespace"], metadata["name"], DeleteOptions()
                )
            except RefusalError as refusal:
                if refusal.code != HTTPStatus.NOT_FOUND:
                    raise
