"""The writer of an object: the manager, and the kind in whose form it reads and writes.

Events have two forms and one storage: a manager owns the fields of the form that it used. So it is
with the versions of a custom kind, which differ in nothing but their name.
"""

from dataclasses import dataclass

from aliquot.json import Body
from aliquot.server.kinds import conversion
from aliquot.server.kinds.kind import Kind
from aliquot.server.ownership.field_set import FieldSet, within
from aliquot.server.ownership.managers import Manager
from aliquot.server.schema.structure import Structure, of_kind


@dataclass(frozen=True, slots=True)
class Writer:
    """A write: by whom, how, and when."""

    manager: str
    kind: Kind
    """The kind that the request names."""
    subresource: str
    time: str

    def entry(self, operation: str, fields: FieldSet) -> Manager:
        """Its manager, with these fields."""
        name = self.manager or "unknown"
        version = self.kind.api_version
        return Manager(name, operation, version, self.subresource, fields, self.time)

    def about(self, operation: str) -> Body:
        """The entry of its manager, without fields."""
        return self.entry(operation, {}).about()

    def view(self, body: Body) -> Body:
        """A stored object in the form that the writer knows."""
        return conversion.from_storage(self.kind, body) if self.kind.shared_storage else body

    def known(self, held: list[Body]) -> list[Body]:
        """The entries that still mean something.

        Those of another version of a built-in kind are forgotten, as kube-apiserver does. The
        schema of a custom kind may have changed: a part that is atomic now is owned as a whole.
        """
        if self.kind.definition is None:
            version = self.kind.api_version
            return [each for each in held if each.get("apiVersion") == version]
        structure = self.structure
        return [
            {**each, "fieldsV1": within(each.get("fieldsV1") or {}, structure)} for each in held
        ]

    @property
    def structure(self) -> Structure:
        """The structure of the objects that it writes."""
        return of_kind(self.kind.api_version, self.kind.name, self.kind.schema)

    @property
    def reset(self) -> FieldSet:
        """The fields that this write cannot change, and so does not own."""
        if self.subresource == "status":
            return {"f:spec": {}}
        return {"f:status": {}} if self.kind.has_status else {}
