"""`aliquot`: the entry point, and the one place where errors become exit codes.

0: fine. 1: the command worked and the answer is no (a check failed). 2: bad input or usage, said in
one line on stderr, with nothing on stdout.

A command's module is imported when the command is looked up, and the library only when the command
runs: `aliquot --version` and `--help` take no longer than Python and click.
"""

import io
import os
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from importlib import import_module

import click

from aliquot.collector import tune_collector
from aliquot.errors import AliquotError
from aliquot.version import KUBERNETES, __version__

COMMANDS = (
    "bench",
    "compare",
    "completion",
    "dashboard",
    "explain",
    "generate",
    "history",
    "manifests",
    "pause",
    "queue",
    "replay",
    "resume",
    "scheduler",
    "simulate",
    "snapshot",
    "test",
    "top",
    "tree",
    "up",
    "validate",
    "webhook",
    "what-if",
)
"""Each is the function of this name in the module of this name in `cli/commands/`, `_` for `-`."""


def _word(name: str) -> str:
    """A command's name as Python has it."""
    return name.replace("-", "_")


class _Commands(MutableMapping[str, click.Command]):
    """The commands by name; a command's module is imported on the first look at it."""

    def __init__(self) -> None:
        self._found: dict[str, click.Command | None] = dict.fromkeys(COMMANDS)

    def __getitem__(self, name: str) -> click.Command:
        found = self._found[name]
        if found is None:
            found = getattr(import_module(f"aliquot.cli.commands.{_word(name)}"), _word(name))
            self._found[name] = found
        return found

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._found[name] = command

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


@click.group(
    commands=_Commands(),
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.version_option(__version__, message=f"aliquot %(version)s (Kubernetes {KUBERNETES})")
@click.pass_context
def cli(context: click.Context) -> None:
    """Elastic quotas and fair sharing for shared GPU clusters.

    Exit codes: 0 fine; 1 the answer is no (a check or test failed); 2 bad input, said in one line.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def kubectl_plugin() -> None:
    """Run as `kubectl aliquot ...`: kubectl finds the program by its name."""
    main()


def main() -> None:
    """Run the command that the process was started with."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    tune_collector()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; every expected error is one line and exit code 2."""
    try:
        code = cli.main(list(arguments), prog_name="aliquot", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except click.Abort:
        return 130
    except click.ClickException as error:
        return _fail(error.format_message())
    except AliquotError as error:
        return _fail(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail(f"cannot write: {error.strerror}")


def _fail(message: str) -> int:
    click.echo(f"aliquot: {' '.join(message.split())}", err=True)
    return 2
