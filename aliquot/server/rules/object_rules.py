"""The validation and defaults of an object of any kind: built-in or custom.

Both are checked by schemas. They differ in the refusal: a built-in object of the wrong shape is a
bad request, as it cannot be decoded; a custom one is invalid.
"""

from http import HTTPStatus

from aliquot.dialects.core.schema import QUANTITY_PATTERN
from aliquot.dialects.schemas import kubernetes
from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.http.options import WriteOptions
from aliquot.server.http.refusals import bad_request, invalid
from aliquot.server.http.warnings import warn
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules import core_rules
from aliquot.server.rules.causes import Cause
from aliquot.server.rules.causes import invalid as invalid_value
from aliquot.server.schema import check

_QUANTITIES = "quantities must match the regular expression of a quantity, such as 2, 500m or 10Gi"
_NEEDED = "Invalid value: 0x0: must be specified for an update"


def drop_unknown(kind: Kind, body: Body, options: WriteOptions) -> Body:
    """The object without unknown fields; refused or warned of, as fieldValidation says."""
    schema = kind.schema or kubernetes.schema(kind.api_version, kind.name)
    if schema is None:
        return body
    if kind.schema is None and (causes := check.check(schema, body)):
        raise _undecodable(kind, causes[0])
    dropped = check.unknown(schema, body)
    messages = [f'unknown field "{field}"' for field in dropped[:10]]
    if options.strict and dropped:
        raise _strict(kind, f"strict decoding error: {', '.join(messages)}", options)
    for message in messages if options.warn_unknown else ():
        warn(message)
    return check.prune(schema, body) if dropped else body


def _strict(kind: Kind, problem: str, options: WriteOptions) -> RefusalError:
    """The refusal of unknown fields: of an object as undecodable, of a patch as invalid."""
    if not options.patched:
        return _cannot_be_handled(kind, problem)
    cause = invalid_value("patch", options.patched[-1], problem)
    message = f' "" is invalid: {cause}'
    details = {"causes": [cause.wire()]}
    return RefusalError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def _undecodable(kind: Kind, cause: Cause) -> RefusalError:
    problem = f"{cause.field}: {_QUANTITIES}" if QUANTITY_PATTERN in cause.message else str(cause)
    return _cannot_be_handled(kind, problem)


def _cannot_be_handled(kind: Kind, problem: str) -> RefusalError:
    return bad_request(
        f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: {problem}'
    )


def fill_defaults(kind: Kind, body: Body) -> Body:
    """The object with its defaults."""
    if kind.schema is not None:
        return check.fill_defaults(kind.schema, body)
    return core_rules.fill_defaults(kind.unique_name, body)


def check_new(kind: Kind, body: Body) -> None:
    """Refuse a new object that is invalid."""
    causes = core_rules.check_create(kind.unique_name, body)
    _refuse(kind, body, [*causes, *_by_schema(kind, body)])


def check_change(kind: Kind, old: Body, new: Body) -> None:
    """Refuse an update that is invalid, or changes immutable fields."""
    causes = core_rules.check_update(kind.unique_name, old, new)
    _refuse(kind, new, [*causes, *_by_schema(kind, new)])


def check_uid(kind: Kind, old: Body, new: Body) -> None:
    """Refuse a patch that changes the uid."""
    metadata = new.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    if uid and uid != old["metadata"]["uid"]:
        causes = [invalid_value("metadata.uid", uid, "field is immutable")]
        raise invalid(kind, old["metadata"]["name"], causes)


def version_required(kind: Kind, name: str) -> RefusalError:
    """An update without resourceVersion, of a kind that requires one."""
    return invalid(kind, name, [Cause("metadata.resourceVersion", "FieldValueInvalid", _NEEDED)])


def _by_schema(kind: Kind, body: Body) -> list[Cause]:
    return [] if kind.schema is None else check.check(kind.schema, body)


def _refuse(kind: Kind, body: Body, causes: list[Cause]) -> None:
    if causes:
        raise invalid(kind, body["metadata"].get("name", ""), causes)
