"""`aliquot`: the entry point, and the one place where errors become exit codes.

0: fine. 1: the command worked and the answer is no (a check failed). 2: bad input or usage, said in
one line on stderr, with nothing on stdout.
"""

import sys

import click

from aliquot import __version__
from aliquot.cli.bench import bench
from aliquot.cli.simulate import simulate
from aliquot.cli.test import test
from aliquot.errors import AliquotError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="aliquot %(version)s")
def cli() -> None:
    """Elastic quotas and fair sharing for shared GPU clusters."""


cli.add_command(simulate)
cli.add_command(test)
cli.add_command(bench)


def main() -> None:
    """Run a command; every expected error is one line and exit code 2."""
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.Abort:
        sys.exit(130)
    except click.ClickException as error:
        _fail(error.format_message())
    except AliquotError as error:
        _fail(str(error))
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def _fail(message: str) -> None:
    click.echo(f"aliquot: {' '.join(message.split())}", err=True)
    sys.exit(2)
