"""Results as documents for other programs: JSON, and YAML without anchors."""

import json
from collections.abc import Sequence
from typing import Any

import yaml


def as_json(value: Any) -> str:
    """Indented JSON, with characters of any script as they are."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def as_yaml(value: Any) -> str:
    """One YAML document, written by libyaml: the result of a simulation can be very large."""
    return yaml.dump(value, Dumper=_FastDumper, sort_keys=False, allow_unicode=True)


def manifests_as_yaml(bodies: Sequence[Any]) -> str:
    """Manifests for people to read: keys in their order, texts of several lines as blocks."""
    return yaml.dump_all(
        bodies,
        Dumper=_ManifestDumper,
        sort_keys=False,
        allow_unicode=True,
        explicit_start=True,
        width=100,
    )


class _FastDumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


class _ManifestDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_text(self, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_ManifestDumper.add_representer(str, _ManifestDumper.represent_text)
