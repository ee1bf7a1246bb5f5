"""The options of a request: of a deletion, of a write."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from aliquot.server.http.refusals import bad_request, invalid_option

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


def write_options(query: Mapping[str, str]) -> WriteOptions:
    """The options of a query."""
    strict = query.get("fieldValidation", "Warn")
    if strict not in ("Ignore", "Warn", "Strict"):
        detail = f"Unsupported value: {strict[:50]!r}: supported values: Ignore, Strict, Warn"
        raise invalid_option("CreateOptions", "fieldValidation", detail)
    return WriteOptions(_dry(query), strict == "Strict", strict == "Warn")


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
