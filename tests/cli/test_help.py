"""`--help`: it fits 80 columns, shows examples that can be copied, and names every default."""

import re
import shlex

import click
import pytest

from aliquot.cli.main import COMMANDS, cli

_WIDTHS = (80, 120)


def parents() -> click.Context:
    return click.Context(cli, info_name="aliquot", **cli.context_settings)


def help_of(name: str, width: int = 80) -> str:
    command = cli.commands[name] if name else cli
    parent = parents() if name else None
    settings = command.context_settings
    context = click.Context(
        command, parent, info_name=name or "aliquot", terminal_width=width, **settings
    )
    return command.get_help(context)


def examples(name: str) -> list[str]:
    """The lines of the paragraph `Examples:`."""
    found = re.search(r"^  Examples:\n((?:    .+\n)+)", help_of(name), re.MULTILINE)
    return found[1].splitlines() if found else []


def test_every_summary_is_complete_at_80_columns() -> None:
    text = help_of("")
    for name in COMMANDS:
        first = (cli.commands[name].help or "").splitlines()[0]
        assert f"  {name:<10}  {first}\n" in f"{text}\n"
    assert "..." not in text.partition("Commands:")[2]


@pytest.mark.parametrize("width", _WIDTHS)
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_no_line_is_too_wide_or_shows_an_escape(name: str, width: int) -> None:
    text = help_of(name, width)
    assert "\\b" not in text
    assert "\b" not in text
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_is_a_line_that_the_command_understands(name: str) -> None:
    lines = examples(name)
    assert len(lines) >= 2
    for line in lines:
        assert line.count("aliquot ") == 1, "one command, one line"
        words = shlex.split(re.split(r" [|>] (?!aliquot)", line[line.index("aliquot ") :])[0])
        assert words[:2] == ["aliquot", name]
        cli.commands[name].make_context(name, words[2:], parent=parents())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_is_and_what_it_defaults_to(name: str) -> None:
    text = " ".join(help_of(name, 400).split())
    for option in cli.commands[name].params:
        if not isinstance(option, click.Option):
            continue
        assert option.help, option.name
        has_default = isinstance(option.default, str | int) and not option.is_flag
        if has_default:
            assert f"[default: {option.default}" in text, option.name


@pytest.mark.parametrize("words", [("-h",), ("--help",), ()])
def test_help_comes_by_either_flag_and_without_a_command(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(list(words), prog_name="aliquot")
    assert end.value.code == 0
