"""Arguments and options that several commands share: one name, one meaning, one help text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from aliquot.cli.commands.choices import NAMESPACE, POLICIES, LogFormat, LogLevel

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(path_type=Path, dir_okay=False)
_PORT = click.IntRange(0, 65535)

paths_argument = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
config_option = click.option(
    "--config", metavar="FILE", help="The Configuration: profiles, and knobs of the policies."
)


def host_option(
    default: str, help: str = "The address to listen on."
) -> Callable[[Command], Command]:
    """Add `--host`."""
    return click.option("--host", default=default, metavar="ADDRESS", help=help)


def port_option(
    default: int | None, help: str = "The port to listen on.", name: str = "--port"
) -> Callable[[Command], Command]:
    """Add `--port`, or another port by its name."""
    return click.option(name, default=default, type=_PORT, metavar="PORT", help=help)


def health_port_option(default: int | None) -> Callable[[Command], Command]:
    """Add `--health-port`; without a default there are no probes and metrics."""
    help = "The port of probes and metrics." + ("" if default else " Default: none.")
    return port_option(default, help, "--health-port")


def metrics_auth_option(command: Command) -> Command:
    """Add `--metrics-auth`."""
    return click.option(
        "--metrics-auth",
        is_flag=True,
        help="Serve probes and metrics over TLS, and metrics only to those who may get /metrics.",
    )(command)


def namespace_option(help: str) -> Callable[[Command], Command]:
    """Add `--namespace`, the one that Aliquot runs in."""
    return click.option("--namespace", default=NAMESPACE, metavar="NAME", help=help)


def policy_option(help: str) -> Callable[[Command], Command]:
    """Add `--policy`; the help says what it overrides."""
    return click.option("--policy", type=click.Choice(POLICIES), help=help)


def output_option(*formats: str) -> Callable[[Command], Command]:
    """Add `-o`; the first format is the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], help="Output format."
    )


def cluster_options(command: Command) -> Command:
    """Add `--kubeconfig` and `--context`, which say how to reach the cluster."""
    context = click.option(
        "--context",
        metavar="NAME",
        help="The context of the kubeconfig to use. Default: its current one.",
    )
    file = click.option(
        "--kubeconfig",
        type=FILE,
        help="The kubeconfig. Default: KUBECONFIG, the pod's service account, ~/.kube/config.",
    )
    return file(context(command))


def log_options(command: Command) -> Command:
    """Add `--log-format` and `--log-level`."""
    format = click.option(
        "--log-format",
        type=click.Choice(get_args(LogFormat)),
        help="Format of log lines. Default: console on a terminal, else json.",
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
