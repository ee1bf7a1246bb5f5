"""Names, label keys and label values: the rules of Kubernetes, and its messages.

Each rule returns the problems it finds. Clients show these messages, and some compare them, so
they are those of Kubernetes to the letter.
"""

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SERVICE = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_DATA_KEY = "[-._a-zA-Z0-9]+"
_CIRCUMFIX = "and must start and end with an alphanumeric character"
_MOST_IN_LABEL = 63
"""Characters of a label, by RFC 1123."""
_MOST_IN_SUBDOMAIN = 253
"""Characters of a subdomain, by RFC 1123."""


def label_name(text: str) -> list[str]:
    """An RFC 1123 label: namespaces, containers, volumes."""
    words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
    problem = _pattern(f"{words}, {_CIRCUMFIX}", _LABEL, "my-name", "123-abc")
    return _found(text, _MOST_IN_LABEL, _LABEL, problem)


def subdomain(text: str) -> list[str]:
    """An RFC 1123 subdomain: what most objects are named."""
    words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-'"
    problem = _pattern(f"{words} or '.', {_CIRCUMFIX}", _SUBDOMAIN, "example.com")
    return _found(text, _MOST_IN_SUBDOMAIN, _SUBDOMAIN, problem)


def service_name(text: str) -> list[str]:
    """An RFC 1035 label: Services, which begin with a letter."""
    words = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with"
    words = f"{words} an alphabetic character, and end with an alphanumeric character"
    problem = _pattern(words, _SERVICE, "my-name", "abc-123")
    return _found(text, _MOST_IN_LABEL, _SERVICE, problem)


def path_segment(text: str) -> list[str]:
    """A name that can be a segment of a URL: of roles, which may have colons."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{each}'" for each in "/%" if each in text]


def label_key(text: str) -> list[str]:
    """The key of a label, annotation or taint, or a resource: a name, perhaps with a domain."""
    prefix, slash, name = text.rpartition("/")
    words = "must consist of alphanumeric characters, '-', '_' or '.'"
    problem = _pattern(f"{words}, {_CIRCUMFIX}", _KEY, "MyName", "my.name", "123-abc")
    if "/" in prefix:
        domain = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {problem} {domain}"]
    found = []
    if slash:
        found += [f"prefix part {each}" for each in (subdomain(prefix) if prefix else [_EMPTY])]
    if not name:
        found.append(f"name part {_EMPTY}")
    return found + [f"name part {each}" for each in _found(name, _MOST_IN_LABEL, _KEY, problem)]


def label_value(text: str) -> list[str]:
    """The value of a label."""
    words = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_'"
    problem = _pattern(f"{words} or '.', {_CIRCUMFIX}", _VALUE, "MyValue", "my_value", "12345")
    return _found(text, _MOST_IN_LABEL, _VALUE, problem)


def data_key(text: str) -> list[str]:
    """A key of a ConfigMap or Secret, which may become a file name."""
    words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    problem = _pattern(words, _DATA_KEY, "key.name", "KEY_NAME", "key-name")
    found = _found(text, _MOST_IN_SUBDOMAIN, _DATA_KEY, problem)
    if text in (".", ".."):
        found.append(f"must not be '{text}'")
    elif text.startswith(".."):
        found.append("must not start with '..'")
    return found


_EMPTY = "must be non-empty"


def _found(text: str, most: int, pattern: str, problem: str) -> list[str]:
    too_long = [f"must be no more than {most} characters"] if len(text) > most else []
    return too_long if re.fullmatch(pattern, text) else [*too_long, problem]


def _pattern(words: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{each}', " for each in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern}')"
