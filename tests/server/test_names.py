"""Names, labels and keys: what may be one, by Kubernetes' rules."""

from collections.abc import Callable

import pytest

from aliquot.dialects.schemas import names
from aliquot.server.kinds.kind import is_kubernetes_kind, unique_name

Rule = Callable[[str], list[str]]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (names.label_name, "a"),
        (names.label_name, "team-a1"),
        (names.label_name, "1"),
        (names.label_name, "a" * 63),
        (names.subdomain, "a.b-c.d"),
        (names.subdomain, "a" * 253),
        (names.path_segment, "system:node-reader"),
        (names.label_key, "app"),
        (names.label_key, "App_v1.2-x"),
        (names.label_key, "example.com/app"),
        (names.label_value, ""),
        (names.label_value, "A_b.c-1"),
        (names.data_key, ".hidden"),
        (names.data_key, "A_b-c.d"),
    ],
)
def test_what_is_fine(rule: Rule, text: str) -> None:
    assert rule(text) == []


@pytest.mark.parametrize(
    ("rule", "text", "words"),
    [
        (names.label_name, "", "a lowercase RFC 1123 label must consist of"),
        (names.label_name, "-a", "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"),
        (names.label_name, "a.b", "(e.g. 'my-name',  or '123-abc', regex"),
        (names.label_name, "a\n", "a lowercase RFC 1123 label"),
        (names.label_name, "a" * 64, "must be no more than 63 characters"),
        (names.subdomain, "a..b", "a lowercase RFC 1123 subdomain must consist of"),
        (names.subdomain, "ü", "a lowercase RFC 1123 subdomain must consist of"),
        (names.subdomain, "a" * 254, "must be no more than 253 characters"),
        (names.path_segment, "..", "may not be '..'"),
        (names.path_segment, "a/b", "may not contain '/'"),
        (names.label_key, "", "name part must be non-empty"),
        (names.label_key, "a/b/c", "with an optional DNS subdomain prefix and '/'"),
        (names.label_key, "/a", "prefix part must be non-empty"),
        (names.label_key, "A.com/a", "prefix part a lowercase RFC 1123 subdomain"),
        (names.label_value, "a ", "a valid label must be an empty string or consist of"),
        (names.label_value, "a" * 64, "must be no more than 63 characters"),
        (names.data_key, "", "a valid config key must consist of"),
        (names.data_key, "..", "must not be '..'"),
        (names.data_key, "..a", "must not start with '..'"),
        (names.data_key, "a/b", "a valid config key must consist of"),
    ],
)
def test_what_is_not(rule: Rule, text: str, words: str) -> None:
    assert any(words in each for each in rule(text)), rule(text)


def test_kinds_of_one_name_have_two_unique_names() -> None:
    assert unique_name("batch", "Job") == "Job"
    assert unique_name("batch.volcano.sh", "Job") == "Job.batch.volcano.sh"
    assert is_kubernetes_kind(unique_name("", "Pod"))
    assert not is_kubernetes_kind(unique_name("tensor-fusion.ai", "GPU"))
