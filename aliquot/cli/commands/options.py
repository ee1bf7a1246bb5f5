"""The options of every command that works on a cluster: how to reach it, and how to log."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False)


def reaching(command: Command) -> Command:
    """Add `--kubeconfig` and `--context`."""
    context = click.option("--context", help="Of the kubeconfig, instead of its current one.")
    file = click.option(
        "--kubeconfig", type=_FILE, help="Default: KUBECONFIG, the pod's own account, ~/.kube."
    )
    return file(context(command))


def logging(command: Command) -> Command:
    """Add `--log-format` and `--log-level`."""
    form = click.option(
        "--log-format",
        type=click.Choice(["json", "console"]),
        help="Default: console on a terminal, else json.",
    )
    level = click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
    )
    return form(level(command))
