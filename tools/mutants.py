"""What can be mutated in a module: one small change of its source at a time.

A mutant is a piece of source and what stands in its place. Comparisons lose or gain their equality,
signs turn, whole numbers grow by one, `and` and `or` change places, `not` falls away, `min` and
`max` change places, and a condition always or never holds. Masks of numpy are conditions too, so
`&`, `|` and `~` count with `and`, `or` and `not`.

Left alone: annotations and assertions, which say what holds and decide nothing; constants of
modules and classes, and defaults of arguments, which are evaluated once, on import; pieces of
f-strings whose place Python does not report rightly.
"""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

_OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
_SIGNS = {ast.USub: "-", ast.Not: "not", ast.Invert: "~"}
_CALLS = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
_LISTS = (ast.List, ast.Tuple, ast.JoinedStr, ast.ListComp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

Site = tuple[int, int]
"""Where a piece of source begins and ends, counted in bytes."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: str
    """Of the module, below the root of the project."""
    line: int
    function: str
    """The qualified name of the function that it stands in."""
    text: str
    """The line as it is, without its indentation."""
    change: str
    statement: int
    """The line of the innermost statement: who reaches that, reaches the mutant."""
    outermost: tuple[str, int]
    """Qualified name and first line of the outermost function around it."""
    site: Site
    new: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays the same when the module moves."""
        return self.function, self.text, self.change

    def apply(self, source: str) -> str:
        """The source of the module with the change in it."""
        return _put(source.encode(), self.site, self.new).decode()


def find(path: Path, root: Path) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    module = _Module(path.read_text(), str(path.relative_to(root)))
    found = sorted(module.mutants(), key=lambda each: (each.site, each.new))
    seen: Counter[tuple[str, str, str]] = Counter()
    numbered = []
    for each in found:
        seen[each.key] += 1
        many = seen[each.key]
        numbered.append(replace(each, change=f"{each.change} #{many}") if many > 1 else each)
    return numbered


def sample(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Some of them, of every module in proportion; the same ones for the same seed."""
    by_path: dict[str, list[Mutant]] = {}
    for each in mutants:
        by_path.setdefault(each.path, []).append(each)
    count = min(count, len(mutants))
    parts = {path: divmod(len(those) * count, len(mutants)) for path, those in by_path.items()}
    left = count - sum(whole for whole, _ in parts.values())
    larger = sorted(parts, key=lambda path: (-parts[path][1], path))[:left]
    chosen = []
    for path, those in by_path.items():
        drawn = sorted(those, key=lambda each: _lot(seed, each))
        chosen += drawn[: parts[path][0] + (path in larger)]
    return sorted(chosen, key=lambda each: (each.path, each.site, each.new))


def _lot(seed: int, mutant: Mutant) -> bytes:
    return hashlib.sha256(repr((seed, *mutant.key)).encode()).digest()


def _put(source: bytes, site: Site, new: str) -> bytes:
    return source[: site[0]] + new.encode() + source[site[1] :]


@dataclass(frozen=True)
class _Place:
    """What a node of the syntax tree stands in."""

    names: tuple[str, ...] = ()
    statement: int = 0
    outermost: tuple[str, int] | None = None


class _Module:
    """A module's source, and what can be changed in it."""

    def __init__(self, source: str, path: str) -> None:
        self.path = path
        self.source = source.encode()
        self._lines = source.splitlines()
        self.tree = ast.parse(source)

    @cached_property
    def _starts(self) -> list[int]:
        """Where each line begins."""
        return [0, *(match.end() for match in re.finditer(rb"\n", self.source))]

    def mutants(self) -> Iterator[Mutant]:
        """Every change of what happens in a function."""
        for node, place in self._walk(self.tree, _Place()):
            if place.outermost is None:
                continue
            for site, new, change in self._changes(node):
                line = self.source.count(b"\n", 0, site[0]) + 1
                yield Mutant(
                    path=self.path,
                    line=line,
                    function=".".join(place.names),
                    text=self._lines[line - 1].strip(),
                    change=change,
                    statement=place.statement,
                    outermost=place.outermost,
                    site=site,
                    new=new,
                )

    def _walk(self, node: ast.AST, place: _Place) -> Iterator[tuple[ast.AST, _Place]]:
        if isinstance(node, ast.Assert):
            return
        if isinstance(node, ast.stmt):
            place = replace(place, statement=node.lineno)
        yield node, place
        inner = place
        if isinstance(node, (*_DEFINITIONS, ast.ClassDef)):
            inner = replace(place, names=(*place.names, node.name))
            if isinstance(node, _DEFINITIONS) and place.outermost is None:
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                inner = replace(inner, outermost=(".".join(inner.names), first))
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns"):
                continue
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    yield from self._walk(each, inner if field == "body" else place)

    def _changes(self, node: ast.AST) -> Iterator[tuple[Site, str, str]]:
        """Where, what instead, and the change in words."""
        match node:
            case ast.Compare(left=left, ops=ops, comparators=rights):
                for before, op, after in zip([left, *rights[:-1]], ops, rights, strict=True):
                    yield from self._operator(before, op, after)
            case ast.BinOp(left=left, op=op, right=right):
                if not isinstance(left, _LISTS) and not isinstance(right, _LISTS):
                    yield from self._operator(left, op, right)
            case ast.BoolOp(op=op, values=values):
                for before, after in pairwise(values):
                    yield from self._operator(before, op, after)
            case ast.AugAssign(target=target, op=ast.Add() | ast.Sub() as op, value=value):
                if not isinstance(value, _LISTS):
                    yield from self._operator(target, op, value)
            case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert() as op):
                sign = _SIGNS[type(op)]
                if (whole := self._site(node)) is not None:
                    end = whole[0] + len(sign) + (sign == "not")
                    yield (whole[0], end), "", f"{sign} dropped"
            case ast.Constant(value=bool()):
                return
            case ast.Constant(value=int() as number):
                if (whole := self._site(node)) is not None:
                    yield whole, str(number + 1), f"{number} to {number + 1}"
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name) as func):
                if name in _CALLS and (whole := self._site(func)) is not None:
                    yield (
                        (whole[1] - len(name), whole[1]),
                        _CALLS[name],
                        f"{name} to {_CALLS[name]}",
                    )
            case ast.If(test=test) | ast.IfExp(test=test):
                yield from self._switches(test, ("True", "False"))
            case ast.While(test=test):
                yield from self._switches(test, ("False",))
            case ast.comprehension(ifs=ifs):
                for test in ifs:
                    yield from self._switches(test, ("True", "False"))

    def _operator(
        self, before: ast.expr, op: ast.AST, after: ast.expr
    ) -> Iterator[tuple[Site, str, str]]:
        if type(op) not in _OPERATORS:
            return
        left, right = self._site(before), self._site(after)
        if left is None or right is None:
            return
        old, new = _OPERATORS[type(op)]
        between = self.source[left[1] : right[0]]
        word = rb"\s+".join(map(re.escape, old.encode().split()))
        if (match := re.search(rb"\b%s\b" % word if old[0].isalpha() else word, between)) is None:
            return
        yield (left[1] + match.start(), left[1] + match.end()), new, f"{old} to {new}"

    def _switches(self, test: ast.expr, to: tuple[str, ...]) -> Iterator[tuple[Site, str, str]]:
        if isinstance(test, ast.Name) and test.id == "TYPE_CHECKING":
            return
        if (site := self._site(test)) is not None:
            for each in to:
                yield site, each, f"condition to {each}"

    def _site(self, node: ast.expr) -> Site | None:
        """Where a node stands, if Python says it rightly."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        try:
            there = ast.parse(b"(" + self.source[begin:end] + b")", mode="eval").body
        except (SyntaxError, ValueError):
            return None
        return (begin, end) if _same(there, node) else None


def _same(one: ast.expr, other: ast.expr) -> bool:
    """Are they the same expression? Where names are written to, they are not read."""
    said = [re.sub(r"ctx=\w+\(\)", "", ast.dump(each)) for each in (one, other)]
    return said[0] == said[1]
