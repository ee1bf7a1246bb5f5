"""`aliquot`: the entry point, and the one place where errors become exit codes.

0: fine. 1: the command worked and the answer is no (a check failed). 2: bad input or usage, said in
one line on stderr, with nothing on stdout.
"""

import io
import os
import sys
from collections.abc import Sequence

import click

from aliquot import __version__
from aliquot.cli.bench import bench
from aliquot.cli.manifests import manifests
from aliquot.cli.scheduler import scheduler
from aliquot.cli.simulate import simulate
from aliquot.cli.test import test
from aliquot.cli.up import up
from aliquot.cli.validate import validate
from aliquot.cli.webhook import webhook
from aliquot.collector import tune_collector
from aliquot.errors import AliquotError


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(__version__, message="aliquot %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Elastic quotas and fair sharing for shared GPU clusters.

    Exit codes: 0 fine; 1 the answer is no (a check or test failed); 2 bad input, said in one line.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


cli.add_command(simulate)
cli.add_command(validate)
cli.add_command(test)
cli.add_command(bench)
cli.add_command(up)
cli.add_command(scheduler)
cli.add_command(webhook)
cli.add_command(manifests)


def main() -> None:
    """Run the command that the process was started with."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    tune_collector()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command and tell its exit code; every expected error is one line and exit code 2."""
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
