"""Names, labels and keys: what may be one, by Kubernetes' rules."""

from collections.abc import Callable

import pytest

from aliquot.server import naming
from aliquot.server.kinds import own, word

Rule = Callable[[str], list[str]]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (naming.label_name, "a"),
        (naming.label_name, "team-a1"),
        (naming.label_name, "1"),
        (naming.label_name, "a" * 63),
        (naming.subdomain, "a.b-c.d"),
        (naming.subdomain, "a" * 253),
        (naming.path_segment, "system:node-reader"),
        (naming.label_key, "app"),
        (naming.label_key, "App_v1.2-x"),
        (naming.label_key, "example.com/app"),
        (naming.label_value, ""),
        (naming.label_value, "A_b.c-1"),
        (naming.data_key, ".hidden"),
        (naming.data_key, "A_b-c.d"),
    ],
)
def test_what_is_fine(rule: Rule, text: str) -> None:
    assert rule(text) == []


@pytest.mark.parametrize(
    ("rule", "text", "words"),
    [
        (naming.label_name, "", "a lowercase RFC 1123 label must consist of"),
        (naming.label_name, "-a", "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"),
        (naming.label_name, "a.b", "(e.g. 'my-name', or '123-abc', regex"),
        (naming.label_name, "a\n", "a lowercase RFC 1123 label"),
        (naming.label_name, "a" * 64, "must be no more than 63 characters"),
        (naming.subdomain, "a..b", "a lowercase RFC 1123 subdomain must consist of"),
        (naming.subdomain, "ü", "a lowercase RFC 1123 subdomain must consist of"),
        (naming.subdomain, "a" * 254, "must be no more than 253 characters"),
        (naming.path_segment, "..", "may not be '..'"),
        (naming.path_segment, "a/b", "may not contain '/'"),
        (naming.label_key, "", "name part must be non-empty"),
        (naming.label_key, "a/b/c", "with an optional DNS subdomain prefix and '/'"),
        (naming.label_key, "/a", "prefix part must be non-empty"),
        (naming.label_key, "A.com/a", "prefix part a lowercase RFC 1123 subdomain"),
        (naming.label_value, "a ", "a valid label must be an empty string or consist of"),
        (naming.label_value, "a" * 64, "must be no more than 63 characters"),
        (naming.data_key, "", "a valid config key must consist of"),
        (naming.data_key, "..", "must not be '..'"),
        (naming.data_key, "..a", "must not start with '..'"),
        (naming.data_key, "a/b", "a valid config key must consist of"),
    ],
)
def test_what_is_not(rule: Rule, text: str, words: str) -> None:
    assert any(words in each for each in rule(text)), rule(text)


def test_kinds_of_one_name_have_two_words() -> None:
    assert word("batch", "Job") == "Job"
    assert word("batch.volcano.sh", "Job") == "Job.batch.volcano.sh"
    assert own(word("", "Pod"))
    assert not own(word("tensor-fusion.ai", "GPU"))
