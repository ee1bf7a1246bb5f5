"""The Dockerfile, as far as one can tell without building it."""

import re
import shlex
from fnmatch import fnmatch
from pathlib import Path

from aliquot import __version__
from aliquot.kube.install import deployments
from aliquot.kube.install.installation import IMAGE, Installation

ROOT = Path(__file__).parents[3]
_STEPS = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())


def steps(word: str) -> list[str]:
    lines = (line.split(maxsplit=1) for line in _STEPS.splitlines() if line.strip())
    return [rest for first, rest in lines if first == word]


def copied() -> list[str]:
    found = [shlex.split(step) for step in steps("COPY")]
    return [source for words in found if not words[0].startswith("--") for source in words[:-1]]


def test_what_is_copied_is_there_and_not_left_out() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert len(copied()) >= 5
    for source in copied():
        assert (ROOT / source).exists(), source
        verdict = [not rule.startswith("!") for rule in rules if fnmatch(source, rule.lstrip("!"))]
        assert verdict[-1] is False, f"{source} is left out of what is sent to the builder"


def test_the_package_has_all_it_is_built_from() -> None:
    said = (ROOT / "pyproject.toml").read_text()
    for name in re.findall(r'^(?:readme = |license-files = \[)"([^"]+)"', said, re.MULTILINE):
        assert name in copied()


def test_what_is_uninstalled_is_what_only_builds() -> None:
    (step,) = (each for each in steps("RUN") if "uninstall" in each)
    gone = set(step.partition("--yes ")[2].split()) - {"pip"}
    pinned = re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert gone <= set(pinned)
    assert "hatchling" in gone


def test_it_runs_as_the_user_that_the_deployments_say() -> None:
    pod = deployments.scheduler(Installation())["spec"]["template"]["spec"]["securityContext"]
    assert steps("USER") == [f"{pod['runAsUser']}:{pod['runAsGroup']}"]
    assert steps("ENTRYPOINT") == ['["aliquot"]']


def test_one_version() -> None:
    assert f"aliquot:{__version__}" == IMAGE
    assert f"-t {IMAGE} ." in _STEPS
