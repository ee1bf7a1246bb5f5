"""The rules an object must obey, whatever its kind: defaults filled in, every wrong field named."""

from dataclasses import dataclass

from aliquot.dialects.documents import Body
from aliquot.server.kind import Kind
from aliquot.server.refusals import Refusal, invalid

_NEEDED = "Invalid value: 0x0: must be specified for an update"


@dataclass(frozen=True, slots=True)
class _Cause:
    field: str
    reason: str
    message: str


def fill(kind: Kind, body: Body) -> None:
    """Fill in what an object leaves out."""


def check_new(kind: Kind, body: Body) -> None:
    """Refuse a new object that is not as it must be."""


def check_change(kind: Kind, old: Body, new: Body, subresource: str) -> None:
    """Refuse a change that must not be."""


def version_needed(kind: Kind, name: str) -> Refusal:
    """Some kinds are only ever replaced by who has seen them."""
    problem = _Cause("metadata.resourceVersion", "FieldValueInvalid", _NEEDED)
    return invalid(kind, name, [problem])
