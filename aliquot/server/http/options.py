"""The options of a request: of a deletion, of a write."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from aliquot.server.http.refusals import bad_request, invalid_option, invalid_options
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules import causes

_LONGEST_MANAGER = 128
"""Bytes of the name of a manager; the limit of kube-apiserver."""
POLICIES = ("Background", "Foreground", "Orphan")


class Preconditions(msgspec.Struct, rename="camel", frozen=True):
    """The uid and version that an object must have to be deleted."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, rename="camel", frozen=True):
    """The options of a deletion."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    dry_run: list[str] | None = None
    kind: str | None = None

    @property
    def policy(self) -> str | None:
        """The propagation policy; None: the default of the kind."""
        if self.propagation_policy is None and self.orphan_dependents is not None:
            return "Orphan" if self.orphan_dependents else "Background"
        return self.propagation_policy


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a create or update."""

    dry_run: bool = False
    strict: bool = False
    """Are unknown fields an error?"""
    warn_unknown: bool = False
    """Are they a warning?"""
    user: str = "kubernetes-admin"
    manager: str = "kube-controller-manager"
    """Who owns the fields that are written; by default, one of the server's own controllers."""
    force: bool = False
    """Does an apply take fields from other managers?"""
    served: Kind | None = None
    """The kind that the request names, if its objects are stored in the form of another."""
    patched: list[str] = field(default_factory=list)
    """The last patch, as a refusal of its unknown fields quotes it; none if the write is none."""


def write_options(
    query: Mapping[str, str], agent: str = "", options: str = "CreateOptions"
) -> WriteOptions:
    """The options of a query; `agent`: the User-Agent of the client, its manager by default."""
    manager = query.get("fieldManager", "")
    _check_manager(manager, options)
    strict = query.get("fieldValidation", "Warn")
    if strict not in ("Ignore", "Warn", "Strict"):
        detail = f"Unsupported value: {strict[:50]!r}: supported values: Ignore, Strict, Warn"
        raise invalid_option("CreateOptions", "fieldValidation", detail)
    return WriteOptions(
        dry_run=_dry(query),
        strict=strict == "Strict",
        warn_unknown=strict == "Warn",
        manager=manager or _agent_name(agent),
        force=query.get("force", "false").lower() not in ("false", "0", ""),
    )


def check_patch_options(query: Mapping[str, str], applies: bool) -> None:
    """Refuse an apply without a manager, and any other patch with `force`."""
    if applies and not query.get("fieldManager"):
        cause = causes.required("fieldManager", "is required for apply patch")
        raise invalid_options("PatchOptions", cause)
    if not applies and "force" in query:
        cause = causes.forbidden("force", "may not be specified for non-apply patch")
        raise invalid_options("PatchOptions", cause)


def _agent_name(agent: str) -> str:
    """The manager of a client that names none: its User-Agent up to the first slash."""
    return "".join(filter(str.isprintable, agent.partition("/")[0]))[:_LONGEST_MANAGER]


def _check_manager(manager: str, options: str) -> None:
    if len(manager.encode()) > _LONGEST_MANAGER:
        raise invalid_options(options, causes.too_long("fieldManager", _LONGEST_MANAGER))
    for place, each in enumerate(manager):
        if not each.isprintable():
            detail = f"invalid character U+{ord(each):04X} (at position {place})"
            raise invalid_options(options, causes.invalid("fieldManager", manager, detail))


def delete_options(query: Mapping[str, str], body: Any) -> DeleteOptions:
    """The options of a body or, without one, of a query."""
    given = dict(body) if isinstance(body, dict) else {}
    if not given:
        given = _from_query(query)
    if _dry(query):
        given["dryRun"] = ["All"]
    if given.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request(f"DeleteOptions are expected, not {str(given['kind'])[:50]!r}")
    try:
        options = msgspec.convert(given, DeleteOptions)
    except msgspec.ValidationError as error:
        raise bad_request(f"DeleteOptions: {error}") from None
    return _checked(options)


def _checked(options: DeleteOptions) -> DeleteOptions:
    if options.propagation_policy is not None:
        if options.orphan_dependents is not None:
            detail = "orphanDependents and propagationPolicy cannot both be set"
            raise invalid_option("DeleteOptions", "propagationPolicy", detail)
        if options.propagation_policy not in POLICIES:
            known = ", ".join(POLICIES)
            detail = (
                f"Unsupported value: {options.propagation_policy[:50]!r}: supported values: {known}"
            )
            raise invalid_option("DeleteOptions", "propagationPolicy", detail)
    if options.grace_period_seconds is not None and options.grace_period_seconds > 2**31:
        raise bad_request("gracePeriodSeconds is beyond any patience")
    return options


def _from_query(query: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "gracePeriodSeconds" in query:
        try:
            found["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
        except ValueError:
            raise bad_request("gracePeriodSeconds is not a whole number") from None
    if "propagationPolicy" in query:
        found["propagationPolicy"] = query["propagationPolicy"]
    if "orphanDependents" in query:
        found["orphanDependents"] = query["orphanDependents"] in ("true", "1")
    return found


def _dry(query: Mapping[str, str]) -> bool:
    given = query.get("dryRun", "")
    if given not in ("", "All"):
        detail = f"Unsupported value: {given[:50]!r}: supported values: All"
        raise invalid_option("CreateOptions", "dryRun", detail)
    return given == "All"
