"""What a request asks for besides its object: how to delete, whether to only try."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from aliquot.server.refusals import bad_request

POLICIES = ("Background", "Foreground", "Orphan")


class Preconditions(msgspec.Struct, rename="camel", frozen=True):
    """What an object must be for it to be deleted."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, rename="camel", frozen=True):
    """How to delete."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    dry_run: list[str] | None = None
    kind: str | None = None

    @property
    def policy(self) -> str | None:
        """What becomes of the objects that this one owns; None leaves it to the kind."""
        if self.propagation_policy is None and self.orphan_dependents is not None:
            return "Orphan" if self.orphan_dependents else "Background"
        return self.propagation_policy


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How to write."""

    dry_run: bool = False
    strict: bool = False
    """Are fields that nobody knows an error?"""
    user: str = "kubernetes-admin"


def write_options(query: Mapping[str, str]) -> WriteOptions:
    """Read them from a query."""
    strict = query.get("fieldValidation", "Warn")
    if strict not in ("Ignore", "Warn", "Strict"):
        raise bad_request(f"fieldValidation: Unsupported value: {strict[:50]!r}")
    return WriteOptions(_dry(query), strict == "Strict")


def delete_options(query: Mapping[str, str], body: Any) -> DeleteOptions:
    """Read them from a body or, without one, from a query."""
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
            raise bad_request("orphanDependents and propagationPolicy cannot both be set")
        if options.propagation_policy not in POLICIES:
            raise bad_request(
                f"propagationPolicy: Unsupported value: {options.propagation_policy[:50]!r}: "
                f"supported values: {', '.join(POLICIES)}"
            )
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
    said = query.get("dryRun", "")
    if said not in ("", "All"):
        raise bad_request(f"dryRun: Unsupported value: {said[:50]!r}: supported values: All")
    return said == "All"
