"""No function calls itself over what users send: a deep enough input would end the process.

A function that is here calls itself all the same, because something else limits how deep.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import aliquot

PACKAGE = Path(aliquot.__file__).parent
DOCUMENTS = "documents and bodies are at most 100 levels deep where they come in"
SCHEMAS = "the package's own schemas and types"
VICTIMS = "a decision and its victims: two levels"
ALLOWED = {
    "dialects/core/documents.py": {"unpack": DOCUMENTS},
    "dialects/schemas/known_kinds.py": {"_lenient": SCHEMAS},
    "dialects/schemas/kubernetes.py": {"_of": SCHEMAS},
    "dialects/core/shown_times.py": {"_within": DOCUMENTS},
    "dialects/schemas/misfits.py": {"_walk": DOCUMENTS},
    "engine/model/checks.py": {"_problem": SCHEMAS, "_conforms": SCHEMAS, "_words": SCHEMAS},
    "engine/queue/claim.py": {
        "Claim.charge": "calls that of its asks, which is another",
        "Claim.is_critical": "calls that of the system namespaces, which is another",
    },
    "engine/queue/claim_queue.py": {
        "_GroupQueue.push": "levels of a quota tree, at most 64",
        "_GroupQueue.use": "levels of a quota tree, at most 64",
        "_GroupQueue.reorder": "levels of a quota tree, at most 64",
    },
    "engine/reclaim/victim_set.py": {"_Search._branch": "at most 200 units are searched"},
    "json.py": dict.fromkeys(("fresh", "without_nulls", "same", "go_text"), DOCUMENTS),
    "kube/execution/dry_run.py": {"log_decisions": VICTIMS},
    "kube/observe/metrics.py": {"Metrics.decided": VICTIMS},
    "kube/control/operator.py": {"merge_patch": "two statuses that Aliquot writes"},
    "kube/observe/logs.py": {"_redacted": "what a line of the log holds"},
    "mirror/recording.py": {"_plain": "the values of an event", "_value": DOCUMENTS},
    "questions/cures/search.py": {"_fields": "patches that Aliquot proposes"},
    "questions/cures/proposal.py": {"_merged": "patches that Aliquot proposes"},
    "questions/cures/templates.py": {"nested": "lists above a pod template: two"},
    "server/ownership/comparison.py": {"all_fields": DOCUMENTS, "_claimed": DOCUMENTS},
    "server/ownership/creation.py": {"_from_empty": DOCUMENTS},
    "server/ownership/field_set.py": dict.fromkeys(
        (
            *("difference", "without_parts", "intersection", "covers", "meet"),
            *("with_named_fields", "within", "paths"),
        ),
        DOCUMENTS,
    ),
    "server/ownership/merge.py": {"remove": DOCUMENTS, "compacted": DOCUMENTS},
    "server/ownership/typed.py": {"_problems": DOCUMENTS},
    "server/patch/merge.py": {"_merged": DOCUMENTS},
    "server/patch/strategic.py": {"_plain": DOCUMENTS},
    "server/rules/core_defaults.py": {"_canonical": DOCUMENTS},
    "server/schema/check.py": {"_pruned": DOCUMENTS, "_filled": DOCUMENTS},
    "server/schema/definitions.py": {"in_version_2": SCHEMAS, "_typed": SCHEMAS},
    "server/schema/openapi2.py": {"_schema": SCHEMAS},
    "server/schema/protobuf.py": {"_value": SCHEMAS},
    "server/schema/structure.py": {"_part": "schemas of CRDs, which are bodies: 100 levels"},
    "simulation/comparison.py": {"_differences": DOCUMENTS, "_text": DOCUMENTS},
    "simulation/world.py": {"World._delete": "a CronJob and its Jobs: two levels"},
    "validation/shapes.py": {"_below": DOCUMENTS},
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def recursive(tree: ast.AST) -> Iterator[str]:
    """The functions that call themselves: by their name, or methods by `self` or another object.

    A call of a method of the same name on another object counts if its class is said to hold its
    own kind: in an attribute or argument annotated with the class.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            nested = _holds_itself(node)
            for each in node.body:
                if isinstance(each, _FUNCTIONS) and any(
                    _calls_method(call, each.name, nested) for call in _calls(each)
                ):
                    yield f"{node.name}.{each.name}"
        elif isinstance(node, ast.Module):
            for each in node.body:
                if isinstance(each, _FUNCTIONS) and any(
                    _calls_name(call, each.name) for call in _calls(each)
                ):
                    yield each.name


def _calls(function: ast.AST) -> Iterator[ast.expr]:
    """What a function calls, or hands on to be called."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            yield node.func
            yield from node.args


def _calls_name(called: ast.expr, name: str) -> bool:
    return isinstance(called, ast.Name) and called.id == name


def _calls_method(called: ast.expr, name: str, nested: bool) -> bool:
    if not isinstance(called, ast.Attribute) or called.attr != name:
        return False
    return nested or (isinstance(called.value, ast.Name) and called.value.id in ("self", "cls"))


def _holds_itself(node: ast.ClassDef) -> bool:
    notes = (each.annotation for each in ast.walk(node) if isinstance(each, ast.AnnAssign))
    return any(node.name in ast.unparse(each) for each in notes)


def found() -> dict[str, set[str]]:
    all_found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        names = set(recursive(ast.parse(path.read_text())))
        if names:
            all_found[str(path.relative_to(PACKAGE))] = names
    return all_found


def test_only_functions_of_limited_depth_call_themselves() -> None:
    allowed = {path: set(names) for path, names in ALLOWED.items() if names}
    assert found() == allowed


def test_recursion_is_noticed() -> None:
    source = """
def plain(x): return [plain(y) for y in x]
def mapped(x): return list(map(mapped, x))
def fine(x): return plain(x)
class A:
    inner: list["A"]
    def own(self): self.own()
    def below(self): return [each.below() for each in self.inner]
    def other(self): return self.own()
"""
    assert set(recursive(ast.parse(source))) == {"plain", "mapped", "A.own", "A.below"}
