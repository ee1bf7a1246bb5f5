"""Commands in the documentation that cannot run here exist all the same, with the flags shown."""

import re
import shlex

import click
import pytest

from aliquot.cli.main import cli
from tests.docs.test_examples import blocks, ids

_END = {"|", ">", "&&", "&", ";", "||"}


def commands() -> list[tuple[str, str]]:
    """Every `aliquot ...` of every block that is not run, on one line, as far as it is its own."""
    return [
        (page, line[match.end() :])
        for page, block in blocks("sh")
        for line in block.replace("\\\n", " ").splitlines()
        for match in re.finditer(r"(?:^|\| *)aliquot ", line)
    ]


@pytest.mark.parametrize(("page", "line"), commands(), ids=ids)
def test_a_command_that_is_shown_is_understood(page: str, line: str) -> None:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    end = next((number for number, word in enumerate(words) if word in _END), len(words))
    name, *arguments = words[:end]
    command = cli.commands.get(name)
    if command is None:
        pytest.skip(f"NOT run: there is no command {name} yet")
    while isinstance(command, click.Group):
        command, *arguments = command.commands[arguments[0]], *arguments[1:]
    context = click.Context(command)
    _, left, _ = command.make_parser(context).parse_args(arguments)
    takes_paths = any(isinstance(each, click.Argument) for each in command.params)
    assert takes_paths or not left, (page, left)
