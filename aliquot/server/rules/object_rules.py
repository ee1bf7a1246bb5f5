"""The rules an object must obey, whatever its kind: its shape, its defaults, and what else it says.

Kubernetes' own kinds and custom ones are judged alike, by schemas; only the words differ: what is
misshapen cannot even be read as a kind of Kubernetes, while a custom object is merely invalid.
"""

from aliquot.dialects.core.schema import QUANTITY_PATTERN
from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.http.options import WriteOptions
from aliquot.server.http.refusals import bad_request, invalid
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules import core_rules
from aliquot.server.rules.causes import Cause
from aliquot.server.rules.causes import invalid as invalid_value
from aliquot.server.schema import check
from aliquot.server.schema.core_schemas import schema as own_schema
from aliquot.server.schema.known_fields import path, strays, without

_QUANTITIES = "quantities must match the regular expression of a quantity, such as 2, 500m or 10Gi"
_NEEDED = "Invalid value: 0x0: must be specified for an update"


def shaped(kind: Kind, body: Body, options: WriteOptions) -> Body:
    """The object with the fields that its kind has; the others are dropped, or refused."""
    schema = own_schema(kind.word) if kind.schema is None else kind.schema
    if schema is None:
        return body
    if kind.schema is None and (causes := check.check(schema, body)):
        raise _misshapen(kind, causes[0])
    own = kind.schema is None
    ways = strays(kind, body) if own else []
    dropped = [path(way) for way in ways] if own else check.unknown(schema, body)
    said = [f'unknown field "{field}"' for field in dropped[:10]]
    if options.strict and dropped:
        raise bad_request(f"strict decoding error: {', '.join(said)}")
    if options.warnings is not None:
        options.warnings.extend(said)
    if not dropped:
        return body
    return without(body, ways) if own else check.prune(schema, body)


def _misshapen(kind: Kind, cause: Cause) -> RefusalError:
    problem = f"{cause.field}: {_QUANTITIES}" if QUANTITY_PATTERN in cause.message else str(cause)
    return bad_request(
        f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: {problem}'
    )


def filled(kind: Kind, body: Body) -> Body:
    """The object with what it leaves out."""
    if kind.schema is not None:
        return check.fill_defaults(kind.schema, body)
    return core_rules.fill_defaults(kind.word, body)


def check_new(kind: Kind, body: Body) -> None:
    """Refuse a new object that is not as it must be."""
    causes = core_rules.check_create(kind.word, body)
    _refuse(kind, body, [*causes, *_by_schema(kind, body)])


def check_change(kind: Kind, old: Body, new: Body) -> None:
    """Refuse a change that must not be."""
    causes = core_rules.check_update(kind.word, old, new)
    _refuse(kind, new, [*causes, *_by_schema(kind, new)])


def check_same(kind: Kind, old: Body, new: Body) -> None:
    """Refuse a patch that would make an object another one."""
    metadata = new.get("metadata")
    said = metadata.get("uid") if isinstance(metadata, dict) else None
    if said and said != old["metadata"]["uid"]:
        causes = [invalid_value("metadata.uid", said, "field is immutable")]
        raise invalid(kind, old["metadata"]["name"], causes)


def version_needed(kind: Kind, name: str) -> RefusalError:
    """Some kinds are only ever replaced by who has seen them."""
    return invalid(kind, name, [Cause("metadata.resourceVersion", "FieldValueInvalid", _NEEDED)])


def _by_schema(kind: Kind, body: Body) -> list[Cause]:
    return [] if kind.schema is None else check.check(kind.schema, body)


def _refuse(kind: Kind, body: Body, causes: list[Cause]) -> None:
    if causes:
        raise invalid(kind, body["metadata"].get("name", ""), causes)
