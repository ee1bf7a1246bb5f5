"""The contracts of the layers notice every import that they forbid.

One copy of the tree gets a forbidden import in each place; `lint-imports` must name them all.
That the tree itself keeps the contracts is `make layers`.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PLANTS = [
    # what is planted, where, and how lint-imports names it
    ("engine/books/ledger.py", "import aiohttp"),
    ("engine/model/pod.py", "import secrets"),
    ("engine/placement/constraints.py", "import urllib.request"),
    ("engine/policies/capacity/policy.py", "import time"),
    ("engine/cycle.py", "import random"),
    ("dialects/core/pods.py", "import os"),
    ("dialects/volcano/queues.py", "import time"),
    ("dialects/configuration.py", "import socket"),
    ("mirror/store.py", "import pathlib"),
    ("validation/inputs.py", "import aiohttp"),
    ("simulation/world.py", "import time"),
    ("engine/model/quota.py", "import aliquot.engine.books.ledger"),
    ("engine/books/quota_tree.py", "import aliquot.engine.policies.gates"),
    ("engine/sharing/waterfill.py", "import aliquot.dialects.policy"),
    ("dialects/policy.py", "import aliquot.mirror.store"),
    ("mirror/mirror.py", "import aliquot.validation.inputs"),
    ("validation/report.py", "import aliquot.simulation.world"),
    ("server/api.py", "import aliquot.kube.api.client"),
    ("server/app.py", "import aliquot.simulation.world"),
    ("kube/control/scheduler.py", "import aliquot.server.api"),
    ("simulation/outcome.py", "import aliquot.kube.api.client"),
    ("local/cluster.py", "import aliquot.bench.figure"),
    ("bench/figure.py", "import aliquot.cli.main"),
    ("mirror/statuses.py", "import aliquot.engine.state"),
    ("kube/execution/executor.py", "import aliquot.kube.intake.intake"),
    ("kube/execution/pod_status.py", "import aliquot.mirror.mirror"),
    ("kube/execution/evictor.py", "import aliquot.kube.intake.feed"),
    ("kube/intake/intake.py", "import aliquot.kube.execution.executor"),
    ("kube/intake/feed.py", "import aliquot.kube.execution.pod_status"),
    ("kube/intake/pods.py", "import aliquot.kube.execution.binder"),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `lint-imports` says of a copy of the tree with all of these planted."""
    copy = tmp_path_factory.mktemp("planted")
    shutil.copytree(_ROOT / "aliquot", copy / "aliquot", ignore=shutil.ignore_patterns("__pyc*"))
    shutil.copytree(_ROOT / "tools", copy / "tools", ignore=shutil.ignore_patterns("__pyc*"))
    shutil.copy(_ROOT / "pyproject.toml", copy)
    for file, line in _PLANTS:
        place = copy / "aliquot" / file
        place.write_text(f"{place.read_text()}\n{line}\n")
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-cache"],
        cwd=copy,
        env={"PYTHONPATH": str(copy), "COLUMNS": "400", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return re.sub(r"\s+", " ", done.stdout)


@pytest.mark.parametrize(("file", "line"), _PLANTS)
def test_a_forbidden_import_is_named(report: str, file: str, line: str) -> None:
    module = "aliquot." + file.removesuffix(".py").replace("/", ".")
    imported = line.removeprefix("import ")
    external = f"{module} imports {imported.partition('.')[0]}"
    internal = f"{module} -> {imported}"
    assert external in report or internal in report
