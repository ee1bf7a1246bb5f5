"""What only the Go types of Kubernetes say: `go_types.json`, by type as in `kubernetes.json`.

Of a type, its `package` and whether it is `atomic`; of its fields, which are `required`, which are
`pointers`, of which only null counts as empty, which are `always` written even if they are empty,
and the `defaults` of merge keys. `tools/kubernetes_go_types.py` writes the table.
"""

import json
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class GoType:
    """One type."""

    package: str = "api"
    atomic: bool = False
    always: frozenset[str] = frozenset()
    pointers: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=dict)


@cache
def go_type(name: str) -> GoType:
    """What is known of a type; of types in no release package, nothing."""
    facts = _table().get(name, {})
    always, pointers, required = (
        facts.get(word, "").split() for word in ("always", "pointers", "required")
    )
    return GoType(
        facts.get("package", "api"),
        "atomic" in facts,
        frozenset(always),
        frozenset(pointers),
        tuple(required),
        facts.get("defaults", {}),
    )


@cache
def _table() -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = json.loads((files(__package__) / "go_types.json").read_text())
    return read
