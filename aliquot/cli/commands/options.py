"""Arguments and options that several commands share: one name, one meaning, one help text."""

from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from aliquot.cli.commands.choices import NAMESPACE, POLICIES, LogFormat, LogLevel

if TYPE_CHECKING:
    from aliquot.questions.sources.origin import Origin

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
_PORT = click.IntRange(0, 65535)

optional_paths = click.argument("paths", nargs=-1, metavar="[PATH...]")
paths_argument = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
config_option = click.option(
    "--config", metavar="FILE", help="The Configuration: profiles, and knobs of the policies."
)

from_option = click.option(
    "--from",
    "sources",
    multiple=True,
    required=True,
    metavar="PATH",
    help="Manifests or a dump: a file, a folder, or - for standard input; may be repeated.",
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


class Question(click.Command):
    """A command whose repeatable options with the metavar `X...` take several values at once.

    So `--from *.yaml` does what the shell makes of it; the next option, or `--`, ends the values.
    """

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each of its values."""
        several = {
            name
            for each in self.params
            if isinstance(each, click.Option) and each.multiple and _takes_several(each)
            for name in each.opts
        }
        return super().parse_args(context, list(_repeated(args, several)))


def _takes_several(option: click.Option) -> bool:
    return option.metavar is not None and option.metavar.endswith("...")


def _repeated(args: list[str], several: set[str]) -> Iterator[str]:
    """The arguments, with an option of `several` before each of the values that follow it."""
    option, has_value = "", True
    for place, each in enumerate(args):
        if each == "--":
            yield from args[place:]
            return
        if each in several:
            option, has_value = each, False
        elif each.startswith("-") and each != "-":
            named = each.partition("=")[0]
            option, has_value = (named if named in several else ""), True
        elif option:
            if has_value:
                yield option
            has_value = True
        yield each


def trace_option(command: Command) -> Command:
    """Add `--trace`."""
    help = "A trace beside the PATHs: openb:NODES.csv,PODS.csv, or csv:PODS.csv."
    return click.option("--trace", metavar="TRACE", help=help)(command)


def report_option(command: Command) -> Command:
    """Add `--report`."""
    help = "Write a report as well: one HTML file, for a browser, without scripts."
    named = click.option("--report", type=FILE, metavar="FILE", help=help, callback=_in_a_folder)
    return named(command)


def _in_a_folder(_: click.Context, __: click.Parameter, file: Path | None) -> Path | None:
    """Refuse a file that could not be written before a long simulation, not after it."""
    if file is not None and not file.parent.is_dir():
        raise click.UsageError(f"--report: {str(file.parent)!r} is no folder")
    return file


def watch_option(command: Command) -> Command:
    """Add `--watch`."""
    help = "Show it anew every other second, as large as the terminal; q quits."
    return click.option("--watch", is_flag=True, help=help)(command)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says what a question is asked of; the command gets it as `origin`."""

    @wraps(command)
    def asked(
        *args: Any,
        from_paths: tuple[str, ...],
        kubeconfig: Path | None,
        context: str | None,
        namespace: str,
        policy: str | None,
        config: str | None,
        **others: Any,
    ) -> Any:
        chosen = _origin(from_paths, kubeconfig, context, namespace, policy, config)
        return command(*args, origin=chosen, **others)

    for add in (
        config_option,
        policy_option("The policy. Default: the cluster's, as its Configuration and objects say."),
        namespace_option("The namespace that Aliquot runs in, with its Configuration."),
        cluster_options,
        click.option(
            "--from",
            "from_paths",
            multiple=True,
            metavar="PATH...",
            help="Ask a snapshot, or manifests, instead of the live cluster.",
        ),
    ):
        asked = add(asked)
    return asked


def _origin(
    paths: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    policy: str | None,
    config: str | None,
) -> "Origin":
    from aliquot.questions.sources.origin import Origin
    from aliquot.questions.sources.reach import Reach

    if paths and (kubeconfig is not None or context is not None):
        raise click.UsageError("--from asks files: --kubeconfig and --context have no part in it")
    return Origin(paths, Reach(kubeconfig, context, namespace), config, policy)
