"""An API server that keeps Leases in memory, and whose answers a test can hold up or spoil."""

import asyncio
import copy
from typing import Any

from aliquot.errors import ApiError, UnreachableError

Body = dict[str, Any]


class Leases:
    """What an election asks a client for, with versions as API servers have them."""

    def __init__(self) -> None:
        self.kept: dict[str, Body] = {}
        self.failure: ApiError | UnreachableError | None = None
        """What every request meets with, as long as it is there."""
        self.silent = False
        """Does nothing get an answer?"""
        self.lose_answers = 0
        """So many writes are carried out, but nobody is told."""
        self.asked: list[str] = []
        self._version = 0

    async def get(self, path: str) -> Any:
        await self._reach("get")
        return copy.deepcopy(self._found(path))

    async def post(self, path: str, body: Any) -> Any:
        await self._reach("post")
        name = f"{path}/{body['metadata']['name']}"
        if name in self.kept:
            raise ApiError(409, "AlreadyExists", f"{name} already exists")
        metadata = {**body["metadata"], "uid": f"uid-{self._version}"}
        return await self._keep(name, {**body, "metadata": metadata})

    async def put(self, path: str, body: Any) -> Any:
        await self._reach("put")
        if self._found(path)["metadata"] != body["metadata"]:
            raise ApiError(409, "Conflict", f"{path} has been modified")
        return await self._keep(path, body)

    def edit(self, name: str, **spec: Any) -> None:
        """Change a Lease by hand."""
        path = next(path for path in self.kept if path.endswith(name))
        body = copy.deepcopy(self.kept[path])
        body["spec"].update(spec)
        self._store(path, body)

    def spec(self, name: str) -> Body:
        """What a Lease says."""
        spec: Body = next(body for path, body in self.kept.items() if path.endswith(name))["spec"]
        return spec

    def _found(self, path: str) -> Body:
        if path not in self.kept:
            raise ApiError(404, "NotFound", f"{path} not found")
        return self.kept[path]

    async def _reach(self, verb: str) -> None:
        self.asked.append(verb)
        while self.silent:
            await asyncio.sleep(0.01)
        if self.failure is not None:
            raise self.failure

    async def _keep(self, path: str, body: Body) -> Body:
        kept = self._store(path, body)
        if self.lose_answers:
            self.lose_answers -= 1
            raise UnreachableError("the connection broke", sent=True)
        return kept

    def _store(self, path: str, body: Body) -> Body:
        self._version += 1
        body = copy.deepcopy(body)
        body["metadata"]["resourceVersion"] = str(self._version)
        self.kept[path] = body
        return copy.deepcopy(body)
