"""`aliquot explain`: why a pod waits, runs or is gone, and how a quota stands."""

from typing import TYPE_CHECKING, Any

import click

from aliquot.cli.commands.options import Question, output_option, source_options

if TYPE_CHECKING:
    from aliquot.questions.sources.origin import Origin


@click.group()
def explain() -> None:
    """Say why a pod waits and what helps; how a quota stands.

    \b
    Examples:
      aliquot explain pod team-a/train --from examples/kep-9/story-1
      aliquot explain quota team-a/gpu --from cluster.yaml -o json
    """


@explain.command(cls=Question)
@click.argument("name", metavar="NAMESPACE/NAME")
@output_option("table", "json")
@source_options
def pod(origin: "Origin", name: str, output: str) -> None:
    """Say what keeps a pod from starting, gate by gate, and what would cure it.

    Every cure was tried on a copy of the cluster: it lets the pod start, and evicts the pods it
    names. Nothing is written anywhere.
    """
    from aliquot.cli.show import documents
    from aliquot.cli.show.explanation import print_explanation
    from aliquot.cli.show.source import print_left_out, print_notes
    from aliquot.collector import paused_collector
    from aliquot.questions.explanation import explain_pod
    from aliquot.questions.moment import Moment

    def past(path: str) -> list[dict[str, Any]]:
        found = origin.past(path)
        if found["note"]:
            click.echo(f"note: {found['note']}", err=True)
        decisions: list[dict[str, Any]] = found["decisions"]
        return decisions

    with paused_collector(tidy=False):
        source = origin.read()
        print_notes(source)
        moment = Moment(source)
    print_left_out(moment.inputs.findings)
    answer = explain_pod(moment, name, past)
    if output == "json":
        click.echo(documents.as_json(answer))
    else:
        print_explanation(answer)


@explain.command(cls=Question)
@click.argument("name", metavar="NAME")
@output_option("table", "json")
@source_options
def quota(origin: "Origin", name: str, output: str) -> None:
    """Say what a quota has, lends and borrows, and which pods wait in it and why.

    NAME is namespace/name, or the name of a queue.
    """
    from aliquot.cli.show import documents
    from aliquot.cli.show.explanation import print_quota_explanation
    from aliquot.cli.show.source import print_left_out, print_notes
    from aliquot.collector import paused_collector
    from aliquot.questions.explanation_of_quotas import explain_quota
    from aliquot.questions.moment import Moment

    with paused_collector(tidy=False):
        source = origin.read()
        print_notes(source)
        moment = Moment(source)
    print_left_out(moment.inputs.findings)
    answer = explain_quota(moment, name)
    if output == "json":
        click.echo(documents.as_json(answer))
    else:
        print_quota_explanation(answer)
