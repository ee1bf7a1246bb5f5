"""What starts quickly imports little: `--version` and `--help` need click and nothing heavy."""

import subprocess
import sys

import pytest

import aliquot
from aliquot.cli.main import COMMANDS

_HEAVY = {
    *("aiohttp", "asyncio", "cryptography", "json", "msgspec", "numpy", "prometheus_client"),
    *("rich", "sqlite3", "ssl", "structlog", "yaml"),
}
_LIGHT = ("aliquot.cli", "aliquot.collector", "aliquot.errors", "aliquot.version")
"""All of the package that may be imported: the commands, and what sets the garbage collector."""


def imported(code: str) -> set[str]:
    """The modules of a fresh process after this."""
    report = "import sys; print(*sys.modules, sep='\\n', file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def run(*words: str) -> set[str]:
    return imported(f"from aliquot.cli.main import run; assert run({words!r}) == 0")


@pytest.mark.parametrize("words", [("--version",), ("--help",), *((c, "--help") for c in COMMANDS)])
def test_help_and_version_import_nothing_heavy(words: tuple[str, ...]) -> None:
    modules = run(*words)
    assert not {each.partition(".")[0] for each in modules} & _HEAVY
    assert not [
        each
        for each in modules
        if each.startswith("aliquot.") and not each.startswith(_LIGHT) and each not in _LIGHT
    ]
    assert not [
        each for each in modules if each.startswith(("aliquot.cli.show", "aliquot.cli.drawing"))
    ]


def test_the_version_imports_no_command() -> None:
    assert not [each for each in run("--version") if each.startswith("aliquot.cli.commands")]


def test_a_command_imports_no_other_command() -> None:
    modules = {each.rpartition(".")[2] for each in run("manifests", "--help")}
    assert modules & set(COMMANDS) == {"manifests"}


@pytest.mark.parametrize(
    "words", [("simulate", "-o", "json", "examples/kep-9/story-1"), ("manifests",)]
)
def test_commands_without_a_cluster_need_no_http(words: tuple[str, ...]) -> None:
    assert not run(*words) & {"aiohttp", "cryptography", "prometheus_client"}


def test_importing_the_package_imports_nothing_heavy() -> None:
    modules = imported("import aliquot; aliquot.__version__")
    assert not {each.partition(".")[0] for each in modules} & _HEAVY


def test_every_public_name_is_there_and_no_other() -> None:
    assert all(getattr(aliquot, name) is not None for name in aliquot.__all__)
    assert set(aliquot.__all__) <= set(dir(aliquot))
    star = "from aliquot import *; import aliquot; assert set(aliquot.__all__) <= set(globals())"
    assert "aliquot.engine" in imported(star)
    with pytest.raises(AttributeError, match="module 'aliquot' has no attribute 'Nothing'"):
        _ = aliquot.Nothing  # type: ignore[attr-defined]
