"""Terms that select nodes, of pods and of volumes, as the engine's."""

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import SelectorRequirement, SelectorTerm
from aliquot.engine import Requirement, Term

_OPERATORS = ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn")


def node_term(term: SelectorTerm, manifest: Manifest, field: str) -> Term:
    """A term: labels and fields of a node that must all hold."""
    return Term(
        tuple(_requirement(each, manifest, field) for each in term.match_expressions or []),
        tuple(_requirement(each, manifest, field) for each in term.match_fields or []),
    )


def _requirement(written: SelectorRequirement, manifest: Manifest, field: str) -> Requirement:
    if written.operator not in _OPERATORS:
        known = ", ".join(_OPERATORS)
        manifest.refuse(field, f"operator {written.operator!r} is none of {known}")
    return Requirement(written.key, written.operator, tuple(written.values or ()))
