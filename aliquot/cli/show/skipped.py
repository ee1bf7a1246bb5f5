"""What a command says about kinds that have no part in scheduling."""

from collections.abc import Mapping

import click


def say_what_was_skipped(skipped: Mapping[str, int]) -> None:
    """On stderr, so that it is in nobody's way."""
    if skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(skipped.items()))
        click.echo(f"skipped, not read by a simulation: {kinds}", err=True)
