"""`aliquot test`: run scenarios and say what differs."""

import click

from aliquot.cli.commands.options import output_option, paths_argument


@click.command()
@paths_argument
@output_option("text", "json", "junit")
@click.pass_context
def test(context: click.Context, paths: tuple[str, ...], output: str) -> None:
    """Run scenarios and report what differs from their expectations.

    PATH is a file or folder with Scenarios, or - for standard input. A Scenario holds objects,
    steps over time, and what is expected after each step. The exit code is 1 if anything differs.

    \b
    Examples:
      aliquot test scenarios/
      aliquot test -o junit scenarios/ > results.xml
    """
    from aliquot.cli.show.verdicts import print_verdicts
    from aliquot.simulation import scenario

    verdicts = [scenario.run(each) for each in scenario.load(paths)]
    print_verdicts(verdicts, output)
    context.exit(any(verdict.differences for verdict in verdicts))
