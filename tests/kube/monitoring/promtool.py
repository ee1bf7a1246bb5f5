"""Prometheus and promtool, where they are installed; where not, tests that need them say so."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

PROMTOOL = shutil.which("promtool")
PROMETHEUS = shutil.which("prometheus")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="NOT run: there is no promtool on the PATH"
)
needs_prometheus = pytest.mark.skipif(
    PROMETHEUS is None, reason="NOT run: there is no prometheus on the PATH"
)


def promtool(*words: str | Path) -> str:
    """What promtool says; an error if it finds anything wrong."""
    command = [str(PROMTOOL), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def written(file: Path, body: Any) -> Path:
    """A YAML file."""
    file.write_text(yaml.safe_dump(body, sort_keys=False))
    return file
