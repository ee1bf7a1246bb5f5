"""The krew manifest names the archive by its checksum, and a program of the package."""

import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

from aliquot import __version__

ROOT = Path(__file__).parents[2]


def test_the_manifest_of_a_release(tmp_path: Path) -> None:
    archive = tmp_path / "aliquot.tar.gz"
    archive.write_bytes(b"an archive")
    words = [sys.executable, "tools/krew.py", "--uri", "https://example.com/a.tar.gz", str(archive)]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    body = yaml.safe_load(ran.stdout)
    assert body["spec"]["version"] == f"v{__version__}"
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    for platform in body["spec"]["platforms"]:
        assert platform["sha256"] == hashlib.sha256(b"an archive").hexdigest()
        assert platform["bin"] in scripts
