"""The schemas of Kubernetes' own kinds, by their unique names.

They serve three purposes: requests are checked against them before any rule runs, so that rules
can rely on types; strategic merge patches read from them how lists are merged; and clients get
them as OpenAPI. `aliquot validate` reads the same ones (`dialects.schemas.kubernetes`).
"""

from functools import cache

from aliquot.dialects.core.schema import Schema
from aliquot.dialects.schemas import kubernetes
from aliquot.server.kinds.kind import KUBERNETES_KINDS

METADATA = kubernetes.record("ObjectMeta")
"""The schema of the metadata of every object."""
_EVENT = ("v1", "events.k8s.io/v1")
"""The two api versions of an Event: either form of it may be stored."""


@cache
def schema(kind: str) -> Schema | None:
    """The schema of a kind by its unique name; None if there is none."""
    if kind == "Event":
        core, other = (_schema(version, kind) for version in _EVENT)
        return {**core, "properties": {**other["properties"], **core["properties"]}}
    versions = kubernetes.kinds()
    for group, names in KUBERNETES_KINDS.items():
        if kind in names:
            found = [each for each, name in versions if name == kind and _group(each) == group]
            return kubernetes.schema(max(found, key=_is_stable), kind) if found else None
    return None


def _schema(api_version: str, kind: str) -> Schema:
    found = kubernetes.schema(api_version, kind)
    assert found is not None
    return found


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _is_stable(api_version: str) -> tuple[bool, str]:
    version = api_version.rpartition("/")[2]
    return "alpha" not in version and "beta" not in version, version
