"""The pages of the documentation as a user goes through them: files saved, commands run, in order.

A reader has cloned the repository, has run `make demo`, and has a cluster. So there is a folder
with the files that pages name, an environment that is only found once it is activated, and a
kubeconfig where kubectl looks for one.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.docs.test_examples import ROOT

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ACTIVATE = ". .venv/bin/activate"
_SAVED = re.compile(r"Save this as\s+`([^`]+)`")
_FOREVER = "up|scheduler|webhook"
_SECONDS = 10
"""How long a command that never ends is watched: long enough to read its flags and to connect."""
_SHELL = f"""\
set -eo pipefail
aliquot() {{
  case "$1" in
  scheduler) timeout --signal=INT {_SECONDS} aliquot "$@" --health-port 0 || [ $? = 124 ] ;;
  {_FOREVER}) timeout --signal=INT {_SECONDS} aliquot "$@" || [ $? = 124 ] ;;
  *) command aliquot "$@" ;;
  esac
}}
"""
"""A command that runs until Ctrl-C gets one after a while, and must not have ended before. Several
pages may run at a time, so no scheduler has the port of its probes for itself."""


@dataclass(frozen=True)
class Step:
    """A file to save, if it has a path; else commands to run."""

    text: str
    path: str = ""


def steps(page: Path) -> list[Step]:
    """What a page asks its reader to do, in order."""
    text = page.read_text()
    found = [Step(ACTIVATE)] if f"`{ACTIVATE}`" in text else []
    end = 0
    for match in BLOCK.finditer(text):
        language, body = match.groups()
        saved = _SAVED.findall(text[end : match.start()])
        if language == "yaml" and saved:
            found.append(Step(body, saved[-1]))
        elif language == "sh":
            found.append(Step(body))
        end = match.end()
    return found


def clone(folder: Path) -> Path:
    """The repository as its reader has it, as far as pages name its files."""
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    binaries = folder / ".venv" / "bin"
    binaries.mkdir(parents=True)
    own = Path(sys.executable).parent
    (binaries / "activate").write_text(f'export PATH="{own}:$PATH"\n')
    return folder


def play(
    kept: Sequence[Step], folder: Path, kubeconfig: Path
) -> "subprocess.CompletedProcess[str]":
    """Save the files and run the commands, in a shell that knows nothing else."""
    script = [_SHELL]
    for number, step in enumerate(kept):
        if step.path:
            (folder / f"step-{number}").write_text(step.text)
            script.append(f"mkdir -p $(dirname {step.path}) && mv step-{number} {step.path}")
        else:
            script.append(step.text)
    home = folder / "home" / ".kube"
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(kubeconfig, home / "config")
    tools = Path(shutil.which("kubectl") or "/usr/bin/kubectl").parent
    return subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env={"HOME": str(home.parent), "PATH": f"{tools}:/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def environment(kubeconfig: Path) -> dict[str, str]:
    """For kubectl against this cluster."""
    return {**os.environ, "KUBECONFIG": str(kubeconfig)}
