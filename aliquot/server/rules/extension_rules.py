"""The validation of CustomResourceDefinitions and webhook configurations."""

from collections.abc import Iterator

from aliquot.dialects.schemas import names as naming
from aliquot.json import Body
from aliquot.server.rules.causes import Cause, duplicate, invalid, not_supported, required
from aliquot.server.rules.metadata_rules import changed

_SCOPES = ("Cluster", "Namespaced")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_FAILURE = ("Fail", "Ignore")
_MATCH = ("Exact", "Equivalent")


def check_definition(body: Body) -> Iterator[Cause]:
    """A CustomResourceDefinition: its names agree, and one version is the storage version."""
    spec = body.get("spec") or {}
    names, group = spec.get("names") or {}, spec.get("group") or ""
    title, wanted = (body.get("metadata") or {}).get("name"), f"{names.get('plural')}.{group}"
    if title != wanted:
        detail = 'must be spec.names.plural+"."+spec.group'
        yield invalid("metadata.name", title, detail)
    yield from _named(group, "spec.group", naming.subdomain(group))
    if spec.get("scope") not in _SCOPES:
        yield not_supported("spec.scope", spec.get("scope") or "", _SCOPES)
    for word in ("plural", "singular", "kind", "listKind"):
        name = names.get(word) or ""
        yield from _named(name, f"spec.names.{word}", naming.label_name(name.lower()))
    yield from _check_versions(spec.get("versions") or [])


def _check_versions(versions: list[Body]) -> Iterator[Cause]:
    seen = set()
    for index, each in enumerate(versions):
        field, name = f"spec.versions[{index}]", each.get("name") or ""
        yield from _named(name, f"{field}.name", naming.label_name(name))
        if name in seen:
            yield duplicate(f"{field}.name", name)
        seen.add(name)
        shape = (each.get("schema") or {}).get("openAPIV3Schema")
        if not isinstance(shape, dict):
            yield required(f"{field}.schema.openAPIV3Schema", "schemas are required")
        elif shape.get("type") != "object":
            place = f"{field}.schema.openAPIV3Schema.type"
            if shape.get("type"):
                yield invalid(place, shape["type"], "must be object at the root")
            else:
                yield required(place, "must not be empty at the root")
    if sum(bool(each.get("storage")) for each in versions) != 1:
        listed = [each.get("name") for each in versions]
        detail = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", listed, detail)


def check_definition_update(old: Body, new: Body) -> Iterator[Cause]:
    """Group, scope and names of a definition are immutable: objects of the kind may exist."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for word in ("group", "scope"):
        yield from changed(f"spec.{word}", before.get(word), after.get(word))
    ours, theirs = before.get("names") or {}, after.get("names") or {}
    for word in ("kind", "plural"):
        yield from changed(f"spec.names.{word}", ours.get(word), theirs.get(word))


def check_webhooks(body: Body) -> Iterator[Cause]:
    """A webhook configuration: full and unique names, one address each, no side effects."""
    seen = set()
    for index, hook in enumerate(body.get("webhooks") or ()):
        field, name = f"webhooks[{index}]", hook.get("name") or ""
        yield from _named(name, f"{field}.name", naming.subdomain(name))
        if name and name.count(".") < 2:
            detail = "should be a domain with at least three segments separated by dots"
            yield invalid(f"{field}.name", name, detail)
        if name in seen:
            yield duplicate(f"{field}.name", name)
        seen.add(name)
        yield from _check_hook(hook, field)


def _check_hook(hook: Body, field: str) -> Iterator[Cause]:
    effects = hook.get("sideEffects")
    if not effects:
        yield required(f"{field}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    elif effects not in _SIDE_EFFECTS:
        yield not_supported(f"{field}.sideEffects", effects, _SIDE_EFFECTS)
    versions = hook.get("admissionReviewVersions") or []
    if not {"v1", "v1beta1"} & set(versions):
        detail = "must specify one of v1, v1beta1"
        yield required(f"{field}.admissionReviewVersions", detail)
    for word, known in (("failurePolicy", _FAILURE), ("matchPolicy", _MATCH)):
        if hook.get(word) and hook[word] not in known:
            yield not_supported(f"{field}.{word}", hook[word], known)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        yield invalid(f"{field}.timeoutSeconds", seconds, detail)
    where = hook.get("clientConfig") or {}
    if bool(where.get("url")) == bool(where.get("service")):
        detail = "exactly one of url or service is required"
        yield required(f"{field}.clientConfig", detail)


def _named(name: str, field: str, problems: list[str]) -> Iterator[Cause]:
    if not name:
        yield required(field)
    else:
        yield from (invalid(field, name, each) for each in problems)
