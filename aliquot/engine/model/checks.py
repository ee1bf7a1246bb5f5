"""Are values what their types say? For programs that build them by hand.

Dialects build values from objects that were checked, so nothing here is on the way of a decision,
but for `check_pod`, which looks at no more than what the books would stumble over. A value that is
refused has changed nothing.
"""

from dataclasses import fields, is_dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from aliquot.errors import ArgumentError

_UNIONS = (Union, type(int | None))
"""How `X | Y` stands in type hints: as it is written, and as `typing` writes it."""
_PLAIN = {str, int, bool}
_SHOWN = 60
"""How many characters of a value a message quotes."""


def sorted_amounts(given: Any, what: str, zeros: bool = True) -> tuple[tuple[str, int], ...]:
    """Pairs of resource and amount, sorted by resource; without `zeros`, only those above 0."""
    if type(given) is not tuple:
        raise ArgumentError(_not_amounts(given, what))
    for pair in given:
        if type(pair) is not tuple or len(pair) != 2 or type(pair[0]) is not str:
            raise ArgumentError(_not_amounts(given, what))
        resource, amount = pair
        if not isinstance(amount, int) or isinstance(amount, bool) or amount < 0:
            raise ArgumentError(
                f"{what}: {shown(amount)} {resource} is not an amount: a whole number, 0 or more"
            )
    found = tuple(sorted(given)) if zeros else tuple(sorted(p for p in given if p[1]))
    for (resource, _), (other, _) in pairwise(found):
        if resource == other:
            raise ArgumentError(f"{what}: {resource} is there twice")
    return given if found == given else found


def _not_amounts(given: object, what: str) -> str:
    example = '(("cpu", 2000), ("nvidia.com/gpu", 1))'
    return f"{what}: {shown(given)} is not a tuple of pairs, resource and amount, such as {example}"


def check(value: object, kind: type, what: str) -> None:
    """Refuse a value that is not of this class, or has a field that is not of its type."""
    problem = _problem(value, kind, what)
    if problem is not None:
        raise ArgumentError(problem)


def _problem(value: Any, hint: Any, what: str) -> str | None:
    """What is wrong with a value of this type; None if nothing is."""
    if isinstance(hint, type) and is_dataclass(hint):
        if not isinstance(value, hint):
            return f"{what}: {shown(value)} is not a {hint.__name__}"
        for name, inner in _given(hint):
            inside = getattr(value, name)
            if not _conforms(inside, inner):
                return _problem(inside, inner, f"{what}.{name}")
        return None
    return None if _conforms(value, hint) else f"{what}: {shown(value)} is not {_words(hint)}"


def _conforms(value: Any, hint: Any) -> bool:
    if type(value) is hint and hint in _PLAIN:
        return True
    origin, inside = _parts(hint)
    if origin in _UNIONS:
        return any(_conforms(value, each) for each in inside)
    if origin is Literal:
        return value in inside
    if origin is frozenset:
        return isinstance(value, frozenset) and all(_conforms(each, inside[0]) for each in value)
    if origin is tuple:
        return isinstance(value, tuple) and _all_conform(value, inside)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(hint, type) and is_dataclass(hint):
        return _problem(value, hint, "") is None
    if isinstance(hint, type) and issubclass(hint, tuple):
        return isinstance(value, hint) and _all_conform(value, tuple(_hints(hint).values()))
    return isinstance(value, hint)


def _all_conform(values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return all(_conforms(each, hints[0]) for each in values)
    return len(values) == len(hints) and all(map(_conforms, values, hints))


@cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """What a type hint is made of."""
    return get_origin(hint), get_args(hint)


@cache
def _given(kind: type) -> tuple[tuple[str, Any], ...]:
    """The fields of a dataclass that are given, each with its type."""
    hints = _hints(kind)
    return tuple((each.name, hints[each.name]) for each in fields(kind) if each.init)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _words(hint: Any) -> str:
    """A type, as a message puts it."""
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(str, get_args(hint)))
    if hint is type(None):
        return "None"
    if get_origin(hint) in _UNIONS:
        return " or ".join(_words(each) for each in get_args(hint))
    plain = {str: "text", int: "a whole number", bool: "True or False"}
    return plain.get(hint) or f"a {getattr(get_origin(hint) or hint, '__name__', hint)}"


def shown(value: object) -> str:
    """A value as a message quotes it."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
