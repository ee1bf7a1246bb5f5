"""What is to be known of a source beside its answers: on stderr, so that programs read results."""

from collections.abc import Iterable

import click

from aliquot.dialects.core.findings import Finding
from aliquot.questions.sources.source import Source

_MOST = 5
"""Lines about objects that do not count, before a number says how many more there are."""


def print_notes(source: Source) -> None:
    """What could not be read of a cluster."""
    for note in source.notes:
        click.echo(f"note: {note}", err=True)


def print_left_out(findings: Iterable[Finding]) -> None:
    """The objects of a cluster that do not count, because they make no sense."""
    warnings = [each for each in findings if each.severity == "warning"]
    for each in warnings[:_MOST]:
        click.echo(f"warning: {each}", err=True)
    if len(warnings) > _MOST:
        click.echo(f"warning: {len(warnings) - _MOST} more", err=True)
