"""HTTP status codes are members of `http.HTTPStatus`, never plain numbers."""

import ast
from http import HTTPStatus
from pathlib import Path

import pytest

import aliquot

PACKAGE = Path(aliquot.__file__).parent
CODES = {each.value for each in HTTPStatus}
WORDS = ("status", "code")


def plain_codes(source: str) -> list[int]:
    """The lines that compare, pass or write a status code as a number."""
    found = filter(_is_plain, ast.walk(ast.parse(source)))
    return sorted({each.lineno for each in found if isinstance(each, ast.expr | ast.stmt)})


def _is_plain(node: ast.AST) -> bool:
    match node:
        case ast.Compare(left=left, comparators=others):
            sides = (left, *others)
            return any(map(_speaks_of_codes, sides)) and any(map(_holds_code, sides))
        case ast.Call(func=function, args=args, keywords=keywords):
            named = any(each.arg in WORDS and _holds_code(each.value) for each in keywords)
            refused = _name(function).endswith(("RefusalError", "Verdict"))
            return named or (refused and any(map(_holds_code, args)))
        case ast.Dict(keys=keys, values=values):
            return any(
                isinstance(key, ast.Constant) and key.value in WORDS and _holds_code(value)
                for key, value in zip(keys, values, strict=True)
            )
        case ast.Assign(targets=[target], value=value):
            return _speaks_of_codes(target) and _holds_code(value)
    return False


def _holds_code(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Constant) and type(each.value) is int and each.value in CODES
        for each in ast.walk(node)
    )


def _speaks_of_codes(node: ast.AST) -> bool:
    return any(_name(each).rpartition("_")[2] in WORDS for each in ast.walk(node))


def _name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


@pytest.mark.parametrize(
    "line",
    [
        "if answer.status == 404: pass",
        "if error.code in (409, 410): pass",
        "raise RefusalError(422, 'Invalid', 'x')",
        "web.Response(status=503)",
        "body = {'code': 403}",
        "status = 200",
    ],
)
def test_a_plain_number_is_seen(line: str) -> None:
    assert plain_codes(line) == [1]


def test_other_numbers_are_left_alone() -> None:
    lines = ("raise RefusalError(HTTPStatus.GONE, 'x', 'y')", "_MOST = 200", "f(x[:200])")
    assert not any(map(plain_codes, lines))


def test_no_code_is_a_plain_number() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): lines
        for path in sorted(PACKAGE.rglob("*.py"))
        if (lines := plain_codes(path.read_text()))
    }
    assert found == {}
