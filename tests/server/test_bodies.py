"""Bodies in YAML: as deep as JSON may be, and no deeper; a loader that recurses would crash."""

import pytest

from aliquot.errors import RefusalError
from aliquot.json import DEEPEST
from aliquot.server.http.bodies import from_yaml

DEEP = 100_000


@pytest.mark.parametrize(
    "content",
    [
        b"[" * DEEP + b"]" * DEEP,
        b"[" * DEEP,
        b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        b"{a: " * DEEP,
        b"- " * DEEP + b"x",
        b"x: " + b"[a: " * DEEP,
        b"? " * DEEP,
        b"".join(b" " * level + b"a:\n" for level in range(1_000)),
        b"".join(b" " * level + b"- b:\n" + b" " * (level + 2) + b"- \n" for level in range(500)),
    ],
    ids=["lists", "open", "json", "maps", "blocks", "pairs", "keys", "lines", "mixed"],
)
def test_what_is_nested_too_deep_is_refused_before_it_is_loaded(content: bytes) -> None:
    with pytest.raises(RefusalError) as caught:
        from_yaml(content)
    assert caught.value.code == 400


def test_what_is_as_deep_as_it_may_be_is_read() -> None:
    text = b"[" * DEEPEST + b"]" * DEEPEST
    value = from_yaml(text)
    for _ in range(DEEPEST - 1):
        (value,) = value
    assert value == []
    many = b"".join(b"- {a: [b, {c: d}]}\n" for _ in range(1000))
    assert from_yaml(many)[-1] == {"a": ["b", {"c": "d"}]}
