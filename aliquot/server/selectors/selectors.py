"""Label selectors and field selectors, parsed from a URL or an object.

A selector is parsed once and matched often: parsing is careful, matching fast. Errors are worded
as in Kubernetes, because clients show them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from aliquot.dialects.schemas import names
from aliquot.engine import Requirement, requirement_matches
from aliquot.errors import SelectorError
from aliquot.json import Body
from aliquot.server.selectors.fields import not_supported, readers

_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+|$)")
_SYMBOLS = {"==", "!=", "=", "!", "<", ">", "(", ")", ",", ""}
_OPERATORS = {
    "=": "In",
    "==": "In",
    "in": "In",
    "!=": "NotIn",
    "notin": "NotIn",
    ">": "Gt",
    "<": "Lt",
}
_EXPRESSIONS = ("In", "NotIn", "Exists", "DoesNotExist")


@dataclass(frozen=True, slots=True)
class Labels:
    """A label selector: all requirements must hold; without any, everything matches."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `a=b,c==d,e!=f,g in (x,y),h notin (z),i,!j`."""
        return cls(tuple(_requirements(_Tokens(text))))

    @classmethod
    def of(cls, selector: Mapping[str, Any] | None) -> Self | None:
        """Parse `matchLabels` and `matchExpressions`; None selects nothing."""
        if selector is None:
            return None
        exact = (selector.get("matchLabels") or {}).items()
        found = [_checked(key, "In", (value,)) for key, value in exact]
        found += [_expression(each) for each in selector.get("matchExpressions") or ()]
        return cls(tuple(found))

    def match(self, labels: Mapping[str, str] | None) -> bool:
        """Do these labels meet all requirements?"""
        given = labels or {}
        return all(requirement_matches(each, given) for each in self.requirements)


@dataclass(frozen=True, slots=True)
class Fields:
    """A field selector: fields that must, or must not, have a value."""

    terms: tuple[tuple[str, bool, str], ...] = ()
    """Field, whether it must be equal, value."""
    kind: str = ""

    @classmethod
    def parse(cls, text: str, kind: str) -> Self:
        """Parse `metadata.name=x,status.phase!=Running` for a kind by its unique name."""
        terms = tuple(_terms(text))
        allowed = readers(kind)
        for field, _, _ in terms:
            if field not in allowed:
                raise SelectorError(not_supported(kind, field))
        return cls(terms, kind)

    def match(self, obj: Body) -> bool:
        """Do the fields of this object match all terms?"""
        read = readers(self.kind)
        return all((read[field](obj) == value) == equal for field, equal, value in self.terms)

    def only(self, field: str) -> str | None:
        """The value that a field must equal, if there is one."""
        found = (value for name, equal, value in self.terms if equal and name == field)
        return next(found, None)


class _Tokens:
    """The tokens of a label selector."""

    def __init__(self, text: str) -> None:
        self.words = [match[1] for match in _TOKEN.finditer(text)]
        self.at = 0

    def peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def take(self) -> str:
        word = self.peek()
        self.at += 1
        return word


def _requirements(tokens: _Tokens) -> Iterator[Requirement]:
    while tokens.peek() != "":
        try:
            yield _requirement(tokens)
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None
        word = tokens.take()
        if word == "":
            return
        if word != ",":
            raise SelectorError(f"found '{word}', expected: ',' or 'end of string'")
        if tokens.peek() in _SYMBOLS - {"!"}:
            raise SelectorError(f"found '{tokens.peek()}', expected: identifier after ','")


def _requirement(tokens: _Tokens) -> Requirement:
    absent = tokens.peek() == "!"
    if absent:
        tokens.take()
    key = _identifier(tokens)
    _check(names.label_key(key), f'Invalid value: "{key}"')
    if tokens.peek() in ("", ","):
        return Requirement(key, "DoesNotExist" if absent else "Exists")
    sign = tokens.take()
    if absent or sign not in _OPERATORS:
        wanted = "',' or 'end of string'" if absent else "in, notin, =, ==, !=, gt, lt"
        raise SelectorError(f"found '{sign}', expected: {wanted}")
    values = _set(tokens) if sign in ("in", "notin") else (_value(tokens),)
    return _checked(key, _OPERATORS[sign], values)


def _identifier(tokens: _Tokens) -> str:
    word = tokens.take()
    if word in _SYMBOLS:
        raise SelectorError(f"found '{word}', expected: identifier")
    return word


def _value(tokens: _Tokens) -> str:
    return "" if tokens.peek() in ("", ",") else _identifier(tokens)


def _set(tokens: _Tokens) -> tuple[str, ...]:
    """`(x,y)`; an empty item is the empty value."""
    if tokens.peek() != "(":
        raise SelectorError(f"found '{tokens.peek()}' expected: '('")
    values = []
    while tokens.take() in ("(", ","):
        values.append("" if tokens.peek() in (",", ")") else _identifier(tokens))
        if tokens.peek() not in (",", ")"):
            raise SelectorError(f"found '{tokens.peek()}', expected: ',' or ')'")
    return tuple(dict.fromkeys(values))


def _expression(written: Mapping[str, Any]) -> Requirement:
    operator, values = str(written.get("operator", "")), tuple(written.get("values") or ())
    if operator not in _EXPRESSIONS:
        raise SelectorError(f'"{operator}" is not a valid label selector operator')
    if bool(values) != (operator in ("In", "NotIn")):
        wanted = "can't be empty" if not values else "must be empty"
        raise SelectorError(f"values: for '{operator}' operator, values set {wanted}")
    return _checked(str(written.get("key", "")), operator, values)


def _checked(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """The requirement; refused if key or values are no valid labels."""
    _check(names.label_key(key), f'key: Invalid value: "{key}"')
    for index, value in enumerate(values):
        where = f'values[{index}][{key}]: Invalid value: "{value}"'
        _check(names.label_value(value), where)
        if operator in ("Gt", "Lt") and not re.fullmatch(r"[+-]?[0-9]+", value):
            whole = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise SelectorError(f'values[{index}]: Invalid value: "{value}": {whole}')
    return Requirement(key, operator, values)


def _check(problems: list[str], where: str) -> None:
    if problems:
        raise SelectorError(f"{where}: {'; '.join(problems)}")


def _terms(text: str) -> Iterator[tuple[str, bool, str]]:
    """The terms between commas; a backslash escapes a comma or an equals sign in a value."""
    for term in re.findall(r"(?:\\.|[^,\\]|\\$)+", text):
        match = re.match(r"(.*?)(!=|==|=)(.*)", term, re.DOTALL)
        if match is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        yield match[1], match[2] != "!=", _unescaped(match[3])


def _unescaped(value: str) -> str:
    if bad := re.search(r"^(?:\\[\\,=]|[^\\=])*+(\\.?|=)", value, re.DOTALL):
        kind = "unescaped character in value" if bad[1] == "=" else "invalid escape sequence"
        raise SelectorError(f"invalid field selector: {kind}: {bad[1]}")
    return re.sub(r"\\(.)", r"\1", value)
