"""The patch of a request: which type its media type names, and the update that it makes."""

from collections.abc import Callable
from http import HTTPStatus

import msgspec

from aliquot.errors import PatchError, PatchMisfitError, RefusalError, UnsupportedPatchError
from aliquot.json import Body, go_text
from aliquot.server.http import bodies
from aliquot.server.http.refusals import bad_request, unsupported
from aliquot.server.kinds.kind import Kind
from aliquot.server.patch.merge import json_patch, merge_patch
from aliquot.server.patch.strategic import strategic_merge_patch

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def configuration(content: bytes) -> Body:
    """The configuration of an apply: YAML or, as YAML contains it, JSON; none is an empty one."""
    try:
        read = bodies.from_yaml(content) if content.strip() else {}
    except RefusalError as error:
        raise bad_request(f"error decoding YAML: {error.message}") from None
    if not isinstance(read, dict | None):
        raise bad_request("error decoding YAML: an object is expected")
    return read or {}


def patch(kind: Kind, form: str, content: bytes) -> Callable[[Body], Body]:
    """The update that a patch makes."""
    known = (JSON, MERGE) if kind.definition is not None else (JSON, MERGE, STRATEGIC)
    if form not in known:
        raise unsupported(
            f"the body of the request was in an unknown format ({form[:100]}) - "
            f"accepted media types include: {', '.join((*known, APPLY))}"
        )
    read = bodies.from_json(content)

    def change(body: Body) -> Body:
        try:
            if form == JSON:
                return json_patch(body, read)
            if form == MERGE:
                return merge_patch(body, read)
            return strategic_merge_patch(body, read, kind.unique_name)
        except PatchMisfitError as error:
            message = f"the server rejected our request due to an error in our request: {error}"
            raise RefusalError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, {}) from None
        except PatchError as error:
            raise bad_request(str(error)) from None
        except UnsupportedPatchError as error:
            raise unsupported(str(error)) from None

    return change


def shown(form: str, content: bytes, patched: Body) -> str:
    """A patch as kube-apiserver quotes it: a strategic one itself, of any other what it makes."""
    if form == STRATEGIC:
        return go_text(bodies.from_json(content))
    return msgspec.json.encode(patched).decode()
