"""kubectl, run as a user runs it."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.api import binaries


@dataclass(frozen=True)
class Ran:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """The words of every line."""
        return [line.split() for line in self.out.splitlines()]


class Kubectl:
    """kubectl against one server, in one namespace unless that is empty or it is told otherwise."""

    def __init__(self, kubeconfig: Path, home: Path, namespace: str = "default") -> None:
        self.kubeconfig, self.home, self.namespace = kubeconfig, home, namespace

    @property
    def env(self) -> dict[str, str]:
        """Nothing of the user's."""
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "NO_COLOR": "1"}

    def command(self, *words: str) -> list[str]:
        """A command, in full."""
        return [
            binaries.kubectl() or "kubectl",
            f"--kubeconfig={self.kubeconfig}",
            *([f"--namespace={self.namespace}"] if self.namespace else []),
            f"--cache-dir={self.home}/cache",
            *words,
        ]

    def run(self, *words: str, documents: Sequence[Any] = ()) -> Ran:
        """One command; documents are given to it on standard input."""
        done = subprocess.run(
            self.command(*words),
            input=yaml.safe_dump_all(documents),
            capture_output=True,
            text=True,
            timeout=90,
            env=self.env,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def __call__(self, *words: str, documents: Sequence[Any] = ()) -> Ran:
        """One command that must go well."""
        ran = self.run(*words, documents=documents)
        assert ran.code == 0, (words, ran)
        return ran

    def json(self, *words: str) -> Any:
        """What a command shows with `-o json`."""
        return json.loads(self(*words, "-o", "json").out)
