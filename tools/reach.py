"""Which test reaches which statement of the engine: recorded once, kept in a file.

Modules of the engine are imported with a probe before every statement of their functions, which
costs the tests about a third of their time. What is kept of a test holds until the product, the
test's module or one beside it, or the test's own parameters change; then that test runs again.
"""

import ast
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import pytest

_HITS = "__reached__"
Statement = tuple[str, int]
"""The path of a module and a line in it."""


@dataclass(frozen=True)
class Reach:
    """What a test reaches, and how long it takes."""

    version: str
    """Of everything that it depends on."""
    seconds: float
    """Of CPU, with the probes."""
    lines: dict[str, list[int]] = field(default_factory=dict)
    """The statements, by the path of their module."""

    def statements(self) -> Iterator[Statement]:
        """All that it reaches."""
        return ((path, line) for path, lines in self.lines.items() for line in lines)


def load(file: Path) -> dict[str, Reach]:
    """What was kept, by the id of the test."""
    if not file.exists():
        return {}
    return {name: Reach(**kept) for name, kept in json.loads(file.read_text()).items()}


def save(file: Path, tests: dict[str, Reach]) -> None:
    """Keep it for the next time; another run may read it meanwhile."""
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps({name: asdict(each) for name, each in sorted(tests.items())}))
    new.replace(file)


def version(item: pytest.Item, product: str) -> str:
    """What a test depends on: the product, its own module and those beside it, its parameters."""
    parameters = getattr(item, "callspec", None)
    said = [product, item.nodeid, repr(parameters.params) if parameters else ""]
    said += [each.read_text() for each in sorted(item.path.parent.glob("*.py"))]
    return hashlib.sha256("\0".join(said).encode()).hexdigest()


def product_version(folder: Path) -> str:
    """All sources of the product."""
    digest = hashlib.sha256()
    for each in sorted(folder.rglob("*.py")):
        digest.update(str(each.relative_to(folder)).encode() + b"\0" + each.read_bytes())
    return digest.hexdigest()


class Recorder:
    """A pytest plugin that runs every so-many-th of the tests of which nothing is known yet."""

    def __init__(
        self, probes: "Probes", known: dict[str, Reach], product: str, part: int, parts: int
    ) -> None:
        self._probes = probes
        self._known = known
        self._product = product
        self._part, self._parts = part, parts
        self.tests: dict[str, Reach] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests of this part, one after the other."""
        for item in self._due(session.items):
            self._probes.clear()
            before = time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            seconds = time.process_time() - before
            now = version(item, self._product)
            self.tests[item.nodeid] = Reach(now, seconds, self._probes.reached())
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails without any mutant says nothing about mutants."""
        if report.failed:
            self.failed.append(report.nodeid)

    def _due(self, items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
        new = [
            item
            for item in items
            if item.nodeid not in self._known
            or self._known[item.nodeid].version != version(item, self._product)
        ]
        yield from new[self._part :: self._parts]


class Probes(MetaPathFinder):
    """Imports the modules of a package with a probe before every statement of a function."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._package = ".".join(folder.relative_to(root).parts)
        self._root = root
        self._lines: dict[str, list[int]] = {}
        self._hits: dict[str, bytearray] = {}

    def install(self) -> None:
        """From now on; nothing of the package may have been imported before."""
        assert self._package not in sys.modules
        sys.meta_path.insert(0, self)

    def clear(self) -> None:
        """Nothing has been reached."""
        for hits in self._hits.values():
            hits[:] = bytes(len(hits))

    def reached(self) -> dict[str, list[int]]:
        """The lines of the statements that were reached, by module."""
        found = {
            path: [line for line, hit in zip(self._lines[path], hits, strict=True) if hit]
            for path, hits in self._hits.items()
        }
        return {path: lines for path, lines in found.items() if lines}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module as it is, but for the probes."""
        if not f"{name}.".startswith(f"{self._package}."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin, self)
        return spec

    def code(self, origin: str) -> tuple[CodeType, bytearray]:
        """A module with its probes, and where they write."""
        path = str(Path(origin).relative_to(self._root))
        tree = ast.parse(Path(origin).read_text())
        probing = _Probing()
        probing.visit(tree)
        self._lines[path] = probing.lines
        self._hits[path] = bytearray(len(probing.lines))
        return compile(ast.fix_missing_locations(tree), origin, "exec"), self._hits[path]


class _Loader(SourceFileLoader):
    def __init__(self, name: str, origin: str, probes: Probes) -> None:
        super().__init__(name, origin)
        self._probes = probes

    def exec_module(self, module: ModuleType) -> None:
        code, hits = self._probes.code(self.path)
        setattr(module, _HITS, hits)
        exec(code, module.__dict__)


class _Probing(ast.NodeTransformer):
    """Puts a probe before every statement inside of functions."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Only functions have probes."""
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Every list of statements."""
        super().generic_visit(node)
        if self._depth:
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list):
                    setattr(node, name, list(self._probed(statements)))
        return node

    def _probed(self, statements: list[ast.stmt]) -> Iterator[ast.stmt]:
        for each in statements:
            probe = ast.parse(f"{_HITS}[{len(self.lines)}] = 1").body[0]
            self.lines.append(each.lineno)
            for node in ast.walk(probe):
                ast.copy_location(node, each)
            yield from (each,) if _is_docstring(each) else (probe, each)


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
