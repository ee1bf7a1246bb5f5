"""A selection: the namespace, labels and fields that a list or watch selects by."""

from dataclasses import dataclass

from aliquot.errors import SelectorError
from aliquot.server.http.refusals import bad_request
from aliquot.server.kinds.kind import Kind
from aliquot.server.selectors.selectors import Fields, Labels
from aliquot.server.storage.entry import Entry

_ANY_LABELS, _ANY_FIELDS = Labels(), Fields()


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects of a namespace whose labels and fields match."""

    namespace: str | None = None
    labels: Labels = _ANY_LABELS
    fields: Fields = _ANY_FIELDS
    name: str | None = None
    """The only name that the field selector allows, if it does: the list is a look-up then."""

    @property
    def everything(self) -> bool:
        """Is every object of the namespace selected?"""
        return not self.labels.requirements and not self.fields.terms

    def match(self, entry: Entry) -> bool:
        """Is this object selected?"""
        if self.namespace is not None and entry.namespace != self.namespace:
            return False
        if self.everything:
            return True
        return self.labels.match(entry.labels) and self.fields.match(entry.selectable)


def selection(kind: Kind, namespace: str | None, labels: str, fields: str) -> Selection:
    """The selection of a request; refused if a selector is invalid."""
    try:
        read = Labels.parse(labels)
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None
    try:
        wanted = Fields.parse(fields, kind.unique_name)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    return Selection(namespace, read, wanted, wanted.only("metadata.name"))
