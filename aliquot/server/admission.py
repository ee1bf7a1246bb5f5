"""Admission: what is looked at after an object is well formed, and before it is kept."""

from aliquot.dialects.documents import Body
from aliquot.server.entry import Entry
from aliquot.server.kind import Kind
from aliquot.server.options import WriteOptions


class Admission:
    """Everything that may change an object on its way in, or keep it out."""

    async def create(self, kind: Kind, body: Body, options: WriteOptions) -> Body:
        """Let a new object in, perhaps changed."""
        return body

    async def update(
        self, kind: Kind, old: Body, new: Body, subresource: str, options: WriteOptions
    ) -> Body:
        """Let a change in, perhaps changed."""
        return new

    async def delete(self, kind: Kind, found: Entry, dry_run: bool) -> None:
        """Let an object go."""

    def charge(self, kind: Kind, body: Body) -> None:
        """Refuse what a quota has no room for; nothing may happen between this and keeping it."""
