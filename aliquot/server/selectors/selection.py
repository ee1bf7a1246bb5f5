"""A selection: which objects of a kind a list or a watch is about."""

from dataclasses import dataclass

from aliquot.errors import SelectorError
from aliquot.server.http.refusals import bad_request
from aliquot.server.kinds.kind import Kind
from aliquot.server.selectors.selectors import Fields, Labels
from aliquot.server.storage.entry import Entry

_ANY_LABELS, _ANY_FIELDS = Labels(), Fields()


@dataclass(frozen=True, slots=True)
class Selection:
    """A namespace, labels and fields that objects must have."""

    namespace: str | None = None
    labels: Labels = _ANY_LABELS
    fields: Fields = _ANY_FIELDS
    name: str | None = None
    """The one name that the fields allow, if they do."""

    @property
    def everything(self) -> bool:
        """Is every object of the namespace in it?"""
        return not self.labels.lines and not self.fields.lines

    def match(self, entry: Entry) -> bool:
        """Is this object in it?"""
        if self.namespace is not None and entry.namespace != self.namespace:
            return False
        if self.everything:
            return True
        return self.labels.match(entry.labels) and self.fields.match(entry.selectable)


def selection(kind: Kind, namespace: str | None, labels: str, fields: str) -> Selection:
    """Read the selectors of a request."""
    try:
        read = Labels.parse(labels)
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None
    try:
        wanted = Fields.parse(fields, kind.unique_name)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    return Selection(namespace, read, wanted, wanted.only("metadata.name"))
