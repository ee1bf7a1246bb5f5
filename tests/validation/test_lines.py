"""The line of a field, in YAML and in JSON, however deep it is and whatever is around it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aliquot.dialects.core.findings import Finding
from aliquot.validation.lines import with_lines

keys = st.sampled_from(["a", "b", "spec", "x/y.z", "7", "true"])
leaves = st.one_of(st.integers(0, 9), st.sampled_from(["text", "", "a\nb", "{", "#"]), st.none())
values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=12,
)
documents = st.lists(st.dictionaries(keys, values, max_size=3), min_size=1, max_size=3)


def paths(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The paths of all keys of a document, each with its key."""
    if isinstance(value, dict):
        for key, each in value.items():
            inner = f"{path}[{key}]" if "." in key or key.isdigit() else f"{path}.{key}"
            yield inner.removeprefix("."), key
            yield from paths(each, inner)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from paths(each, f"{path}[{index}]")


def line(text: str, number: int, field: str) -> int:
    finding = Finding("error", "place", "", field, "", file="f")
    (found,) = with_lines([finding], {"place": (number,)}, lambda _: text)
    return found.line


@given(given=documents, as_json=st.booleans(), indent=st.sampled_from([None, 1, 4]))
def test_a_key_stands_in_its_line(given: list[Any], as_json: bool, indent: int | None) -> None:
    text = (
        "\n".join(json.dumps(each, indent=indent) for each in given)
        if as_json
        else yaml.safe_dump_all(given, default_flow_style=False)
    )
    lines = text.splitlines()
    for number, body in enumerate(given):
        for field, key in paths(body):
            assert key in lines[line(text, number, field) - 1]


@pytest.mark.parametrize("text", ["a:\n  b: 1\nc: 2\n", '{"a":\n {"b": 1},\n "c": 2}'])
def test_what_is_not_written_has_the_line_of_what_should_hold_it(text: str) -> None:
    assert line(text, 0, "a.missing.deeper[3]") == 1
    assert line(text, 0, "c") == 3
    assert line(text, 0, "") == 1


def test_a_file_that_has_changed_since_has_no_lines() -> None:
    assert line("a: [", 0, "a") <= 1
    assert line('{"a": ', 0, "a") <= 1
