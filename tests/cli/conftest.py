"""Runs the command as a user does: arguments and files in; exit code, stdout and stderr out."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.forks import fork

_PATIENCE = 300.0


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def aliquot(tmp_path: Path) -> Run:
    """`aliquot("simulate", documents, "-o", "json")`: lists become files of documents."""

    def run(*arguments: Any, stdin: str = "", **environment: str) -> Ran:
        words = []
        for number, argument in enumerate(arguments):
            if isinstance(argument, list):
                file = tmp_path / f"input-{number}.yaml"
                file.write_text(yaml.safe_dump_all(argument))
                argument = str(file)
            words.append(argument)
        told = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **environment}
        if any(word.startswith("PYTHON") for word in environment):
            return _started(words, stdin, tmp_path, told)
        return _forked(words, stdin, tmp_path, told)

    return run


def _forked(words: list[str], stdin: str, folder: Path, environment: dict[str, str]) -> Ran:
    with tempfile.TemporaryDirectory() as made:
        given, out, err = (Path(made) / name for name in ("in", "out", "err"))
        given.write_text(stdin)
        process = fork(words, out, err, given, folder, environment)
        try:
            process.join(_PATIENCE)
            assert process.exitcode is not None, f"no answer in {_PATIENCE:.0f} s"
            return Ran(process.exitcode, out.read_text(), err.read_text())
        finally:
            process.kill()
            process.join()
            process.close()


def _started(words: list[str], stdin: str, folder: Path, environment: dict[str, str]) -> Ran:
    """With a Python of its own, for what Python asks its environment when it starts."""
    done = subprocess.run(
        [sys.executable, "-m", "aliquot", *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        cwd=folder,
        env=environment,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
