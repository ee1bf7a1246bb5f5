"""Rules with one place: what is written there is written nowhere else in the package."""

import re
from pathlib import Path

import pytest

import aliquot

PACKAGE = Path(aliquot.__file__).parent
RULES = {
    r"\b2_?000_?00[01]_?000\b": "engine/model/system_namespaces.py",
    r"\"system-(cluster|node)-critical\"": "dialects/priorities.py",
    r"\b100_000\b.*\n\"\"\"The most pods": "dialects/core/objects.py",
    r"\"batch.kubernetes.io/": "dialects/core/labels.py",
    r"\(\"Succeeded\", \"Failed\"\)|\{\"Succeeded\", \"Failed\"\}": "dialects/core/pods.py",
    r"\[\"lastTransitionTime\"\] if": "server/controllers/conditions.py",
    r"round\(\w*\.?share|\* _PERCENT >|\* 100 >": "engine/model/ratio.py",
}


@pytest.mark.parametrize(("pattern", "place"), RULES.items())
def test_it_stands_in_one_place(pattern: str, place: str) -> None:
    files = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    found = {name for name, path in files.items() if re.search(pattern, path.read_text())}
    assert found == {place}
