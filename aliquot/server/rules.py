"""The rules an object must obey, whatever its kind: its shape, its defaults, and what else it says.

Kubernetes' own kinds and custom ones are judged alike, by schemas; only the words differ: what is
misshapen cannot even be read as a kind of Kubernetes, while a custom object is merely invalid.
"""

from aliquot.dialects.documents import Body
from aliquot.errors import RefusalError
from aliquot.server import core_rules, schemas
from aliquot.server.causes import Cause
from aliquot.server.core_schemas import schema as own_schema
from aliquot.server.kind import Kind
from aliquot.server.refusals import bad_request, invalid

_NEEDED = "Invalid value: 0x0: must be specified for an update"


def shaped(kind: Kind, body: Body, strict: bool = False) -> Body:
    """The object with the fields that its kind has; the others are dropped, or refused."""
    schema = own_schema(kind.word) if kind.schema is None else kind.schema
    if schema is None:
        return body
    if kind.schema is None and (causes := schemas.check(schema, body)):
        raise bad_request(
            f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: '
            f"{causes[0]}"
        )
    dropped = schemas.unknown(schema, body)
    if strict and dropped:
        said = ", ".join(f'unknown field "{field}"' for field in dropped[:10])
        raise bad_request(f"strict decoding error: {said}")
    return schemas.prune(schema, body) if dropped else body


def filled(kind: Kind, body: Body) -> Body:
    """The object with what it leaves out."""
    if kind.schema is not None:
        return schemas.fill_defaults(kind.schema, body)
    return core_rules.fill_defaults(kind.word, body)


def check_new(kind: Kind, body: Body) -> None:
    """Refuse a new object that is not as it must be."""
    causes = core_rules.check_create(kind.word, body)
    _refuse(kind, body, [*causes, *_by_schema(kind, body)])


def check_change(kind: Kind, old: Body, new: Body) -> None:
    """Refuse a change that must not be."""
    causes = core_rules.check_update(kind.word, old, new)
    _refuse(kind, new, [*causes, *_by_schema(kind, new)])


def version_needed(kind: Kind, name: str) -> RefusalError:
    """Some kinds are only ever replaced by who has seen them."""
    return invalid(kind, name, [Cause("metadata.resourceVersion", "FieldValueInvalid", _NEEDED)])


def _by_schema(kind: Kind, body: Body) -> list[Cause]:
    return [] if kind.schema is None else schemas.check(kind.schema, body)


def _refuse(kind: Kind, body: Body, causes: list[Cause]) -> None:
    if causes:
        raise invalid(kind, body["metadata"].get("name", ""), causes)
