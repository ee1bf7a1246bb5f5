"""`aliquot webhook`, as far as it gets without a cluster: what it is given must make sense."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Run


def kubeconfig(folder: Path) -> str:
    """A file that leads to a server that is not there."""
    named: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    file = folder / "kubeconfig"
    body = {"apiVersion": "v1", "kind": "Config", "current-context": "x", **named}
    file.write_text(yaml.safe_dump(body))
    return str(file)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--cert-file", "tls.crt"], "--cert-file and --key-file go together"),
        (["--url", "http://127.0.0.1:1"], "--url: 'http://127.0.0.1:1' must begin with https://"),
        (["--policy", "best"], "'best' is not one of"),
        (["--config", "nowhere.yaml"], "nowhere.yaml"),
        (["--kubeconfig", "nowhere"], "nowhere"),
        (["--port", "70000"], "70000"),
        (["--cert-file", "no.crt", "--key-file", "no.key"], "no.crt: No such file"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    aliquot: Run, tmp_path: Path, words: list[str], problem: str
) -> None:
    free = ["--port", "0", "--health-port", "0", "--host", "127.0.0.1"]
    reach = [] if "--kubeconfig" in words else ["--kubeconfig", kubeconfig(tmp_path)]
    ran = aliquot("webhook", *free, *reach, *words, "--log-level", "error")
    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err
    assert len(ran.err.strip().splitlines()) == 1
