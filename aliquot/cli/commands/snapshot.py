"""`aliquot snapshot`: everything that decides, in one file."""

from typing import TYPE_CHECKING

import click

from aliquot.cli.commands.options import FILE, Question, source_options

if TYPE_CHECKING:
    from pathlib import Path

    from aliquot.questions.sources.origin import Origin


@click.command(cls=Question)
@click.option("-o", "--output", "file", type=FILE, required=True, help="The file to write.")
@source_options
def snapshot(origin: "Origin", file: "Path") -> None:
    """Write everything that decides into one file.

    To ask offline, and to attach to a bug report: any question reads it with --from, and so does
    aliquot simulate. Secrets, environment, commands and the names of images are left out. The file
    is JSON, compressed with gzip unless its name ends with .json.

    \b
    Examples:
      aliquot snapshot -o cluster.json.gz
      aliquot snapshot -o cluster.json.gz --from dump.yaml
    """
    import time

    from aliquot.cli.show.source import print_notes
    from aliquot.questions.sources.snapshot import write

    source = origin.read()
    print_notes(source)
    size = write(source, file, time.time_ns())
    objects = len(source.documents)
    click.echo(f"Wrote {objects} objects of {source.name} to {file} ({size:,} bytes)")
