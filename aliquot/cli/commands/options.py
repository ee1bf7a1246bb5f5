"""Arguments and options that several commands share: one name, one meaning, one help text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from aliquot.cli.commands.choices import POLICIES, LogFormat, LogLevel

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(path_type=Path, dir_okay=False)
PORT = click.IntRange(0, 65535)

paths_argument = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
config_option = click.option(
    "--config", metavar="FILE", help="The Configuration: profiles, and knobs of the policies."
)


def policy_option(help: str) -> Callable[[Command], Command]:
    """Add `--policy`; the help says what it overrides."""
    return click.option("--policy", type=click.Choice(POLICIES), help=help)


def output_option(*formats: str) -> Callable[[Command], Command]:
    """Add `-o`; the first format is the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], help="What to print."
    )


def cluster_options(command: Command) -> Command:
    """Add `--kubeconfig` and `--context`, which say how to reach the cluster."""
    context = click.option(
        "--context", metavar="NAME", help="A context of the kubeconfig, not its current one."
    )
    file = click.option(
        "--kubeconfig",
        type=FILE,
        help="Default: KUBECONFIG, the pod's service account, ~/.kube/config.",
    )
    return file(context(command))


def log_options(command: Command) -> Command:
    """Add `--log-format` and `--log-level`."""
    format = click.option(
        "--log-format",
        type=click.Choice(get_args(LogFormat)),
        help="Default: console on a terminal, else json.",
    )
    return format(log_level_option("info")(command))


def log_level_option(default: LogLevel) -> Callable[[Command], Command]:
    """Add `--log-level`."""
    return click.option(
        "--log-level",
        type=click.Choice(get_args(LogLevel)),
        default=default,
        help="The least severe lines to log, on stderr.",
    )
