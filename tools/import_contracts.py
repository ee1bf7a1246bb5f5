"""An allowlist for import-linter: which libraries a package may import, the standard one included.

A denylist proves little: what it does not name passes, such as `secrets` or `urllib` in a pure
engine. Here a package names what it may import from outside of Aliquot, and nothing else passes.
What it imports from within Aliquot is a matter of layers, which import-linter checks by itself.
"""

from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

_OWN = "aliquot"


class AllowedImports(Contract):
    """The modules below `source_modules` import only what `allowed` names, by its first word."""

    type_name = "allowed"

    source_modules = fields.SetField(subfield=fields.ModuleField())
    allowed = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Compare every direct import of the packages with the allowlist."""
        allowed = set(self.allowed)  # type: ignore[call-overload]
        found: list[str] = []
        for source in self.source_modules:  # type: ignore[attr-defined]
            for module in sorted({source.name, *graph.find_descendants(source.name)}):
                for imported in sorted(graph.find_modules_directly_imported_by(module)):
                    library = imported.partition(".")[0]
                    if library != _OWN and library not in allowed:
                        found.append(f"{module} imports {imported}")
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print each import that is not on the list."""
        metadata: dict[str, Any] = check.metadata
        for line in metadata["found"]:
            output.print_error(f"{line}, which is not on its list", bold=False)
