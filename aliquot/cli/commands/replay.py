"""`aliquot replay`: a recording fed to the engine again."""

from typing import TYPE_CHECKING, Any

import click

from aliquot.cli.commands.options import output_option

if TYPE_CHECKING:
    from aliquot.mirror.recording import Replay


@click.command()
@click.argument("file")
@output_option("table", "json")
@click.pass_context
def replay(context: click.Context, file: str, output: str) -> None:
    """Feed a recording to the engine, and compare its decisions.

    FILE was written by aliquot simulate --record or aliquot scheduler --record: a bug report that
    can be run. The exit code is 1 if any decision is another one.

    \b
    Examples:
      aliquot replay run.jsonl.gz
      aliquot replay run.jsonl.gz -o json
    """
    from aliquot.cli.show import documents
    from aliquot.errors import InputError
    from aliquot.mirror.recording import replay as feed
    from aliquot.validation import files

    contents = list(files.contents(file))
    if len(contents) != 1:
        raise InputError(file, "", f"expected one recording, found {len(contents)} files")
    found = feed(contents[0][0].splitlines(), contents[0][1])
    if output == "json":
        click.echo(documents.as_json(_plain(found)))
    else:
        click.echo(_words(found))
    context.exit(found.difference is not None)


def _plain(found: "Replay") -> dict[str, Any]:
    difference = None
    if found.difference is not None:
        from aliquot.dialects.core.times import seconds

        difference = {
            "line": found.difference.line,
            "at": seconds(found.difference.now),
            "recorded": found.difference.recorded,
            "replayed": found.difference.replayed,
        }
    return {
        "events": found.events,
        "cycles": found.cycles,
        "decisions": found.decisions,
        "difference": difference,
    }


def _words(found: "Replay") -> str:
    counts = f"{found.events} events, {found.cycles} cycles, {found.decisions} decisions"
    if found.difference is None:
        return f"Replayed {counts}: each as recorded"
    from aliquot.cli.show import documents

    told = _plain(found)["difference"]
    first = f"line {told['line']}, at {told['at']}s"
    recorded, replayed = (documents.as_json(told[word]) for word in ("recorded", "replayed"))
    return f"Replayed {counts}; others at {first}\nrecorded:\n{recorded}\nreplayed:\n{replayed}"
