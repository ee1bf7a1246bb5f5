"""Runs the command as a user does: arguments and files in; exit code, stdout and stderr out."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml


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
        done = subprocess.run(
            [sys.executable, "-m", "aliquot", *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **environment},
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run
