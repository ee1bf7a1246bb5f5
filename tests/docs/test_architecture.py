"""The page on the architecture names every package, and nothing that is not there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
TABLE = PAGE[PAGE.index("| package |") : PAGE.index("## A pod's way")]


def named() -> set[str]:
    """The packages and modules in the first column; short names are siblings of the one before."""
    found = set()
    for row in TABLE.splitlines():
        before = ""
        for name in re.findall(r"`([a-z0-9_/]+)`", row.split("|")[1] if row[:1] == "|" else ""):
            before = name if "/" in name or not before else f"{before.rpartition('/')[0]}/{name}"
            found.add(before)
    return found


def test_every_package_is_described() -> None:
    folders = {each.parent for each in (ROOT / "aliquot").rglob("__init__.py")}
    packages = {str(each.relative_to(ROOT / "aliquot")) for each in folders} - {"."}
    # One row may speak for all that is below: a policy's folder, what a cluster is measured with.
    parents = ("engine/policies/", "bench/cluster", "cli/")
    drawn = {"cli", "bench", "local", "kube", "server", "dialects"}
    missing = {each for each in packages - named() - drawn if not each.startswith(parents)}
    assert not missing


def test_what_is_described_is_there() -> None:
    places = (ROOT / "aliquot" / each for each in named())
    gone = [each for each in places if not each.exists() and not each.with_suffix(".py").exists()]
    assert not gone
