"""`aliquot pause` and `resume`: what they refuse, in one line."""

from pathlib import Path

import pytest
import yaml

from aliquot.cli.main import run
from aliquot.server.credentials import kubeconfig


@pytest.mark.parametrize("command", ["pause", "resume"])
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["evictions", "--kubeconfig", "nowhere"], "nowhere"),
        (["evictions", "--context", "none"], "none"),
        (["binds"], "'binds' is not 'evictions'"),
        ([], "Missing argument"),
        (["evictions"], "127.0.0.1:9"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    command: str,
    words: list[str],
    problem: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig({"server": "http://127.0.0.1:9"}, "token")))
    reach = [] if "--kubeconfig" in words else ["--kubeconfig", str(file)]
    assert run([command, *words, *reach]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert problem in said.err


@pytest.mark.parametrize("lasts", ["soon", "-5m", "0s", ""])
def test_a_duration_that_is_none_is_refused(lasts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pause", "evictions", "--for", lasts]) == 2
    assert "--for" in capsys.readouterr().err
