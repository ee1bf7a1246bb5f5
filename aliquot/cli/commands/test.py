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
    steps over time, and what is expected after each step. The exit code is 1 if anything differs,
    and 2 if a file or a Scenario is broken; the others are run all the same.

    \b
    Examples:
      aliquot test scenarios/
      aliquot test -o junit scenarios/ > results.xml
    """
    from aliquot.cli.show.verdicts import print_verdicts
    from aliquot.errors import AliquotError, InputError
    from aliquot.simulation import scenario

    found, unreadable = scenario.examine(paths)
    errors: list[AliquotError] = list(unreadable)
    verdicts = []
    for each in found:
        try:
            verdicts.append(scenario.run(each))
        except AliquotError as error:
            errors.append(InputError(each.place, "", str(error)))
    if verdicts:
        print_verdicts(verdicts, errors, output)
    for each_error in errors:
        click.echo(f"aliquot: {' '.join(str(each_error).split())}", err=True)
    context.exit(2 if errors else any(verdict.differences for verdict in verdicts))
