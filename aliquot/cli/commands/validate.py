"""`aliquot validate`: everything that is wrong with manifests, or worth a word, at once."""

import json
from itertools import groupby
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from aliquot.cli.show.skipped import say_what_was_skipped
from aliquot.cluster import inputs, validation
from aliquot.cluster.validation import Report
from aliquot.dialects.findings import Finding
from aliquot.dialects.times import seconds

_STYLES = {"error": "bold red", "warning": "yellow"}


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--config", metavar="FILE", help="A Configuration with the knobs.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def validate(
    context: click.Context, paths: tuple[str, ...], config: str | None, output: str
) -> None:
    r"""Check manifests and name everything that is wrong; exit code 1 if there is an error.

    PATH is a file or folder of Kubernetes manifests, or - for standard input.

    Errors are what `aliquot simulate` refuses; warnings are what it runs in spite of.

    \b
    aliquot validate quotas/
    kubectl get nodes,pods,elasticquotas -A -o yaml | aliquot validate -
    """
    report = validation.validate(paths, inputs.load_configuration(config))
    if output == "json":
        findings = [_as_json(each) for each in report.findings]
        click.echo(json.dumps({"findings": findings}, indent=2, ensure_ascii=False))
    else:
        _print(report)
    say_what_was_skipped(report.inputs.skipped)
    context.exit(report.count("error") > 0)


def _as_json(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity,
        "file": finding.file,
        "place": finding.place,
        "object": finding.object,
        "field": finding.field,
        "problem": finding.problem,
        "at": seconds(finding.at),
    }


def _print(report: Report) -> None:
    """A line for each finding, under the file it is about; then how many there are."""
    console = Console(highlight=False, soft_wrap=True)
    for file, findings in groupby(report.findings, key=lambda each: each.file):
        console.print(_printable(file), style="bold")
        for finding in findings:
            console.print(_line(finding))
        console.print()
    console.print(_summary(report))


def _line(finding: Finding) -> Text:
    document = finding.place.removeprefix(finding.file).lstrip(",: ")
    field = f"{finding.field}: " if finding.field else ""
    return Text.assemble(
        "  ",
        (f"{finding.severity:<8}", _STYLES[finding.severity]),
        *([(f" {_printable(document)}:", "bright_black")] if document else []),
        *([(f" {_printable(finding.object)}:", "bold")] if finding.object else []),
        f" {_printable(field + finding.problem)}",
        (f" (from {seconds(finding.at)}s on)" if finding.at else "", "bright_black"),
    )


def _printable(text: str) -> str:
    """On one line, and nothing that a terminal would obey."""
    line = " ".join(text.split())
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in line)


def _summary(report: Report) -> Text:
    objects = sum(1 for _ in report.inputs.manifests())
    files = len(set(report.inputs.files.values()))
    looked_at = f"{_count(objects, 'object')} in {_count(files, 'file')}: "
    words = [
        (_count(number, word), style if number else "green")
        for word, style in _STYLES.items()
        for number in [report.count(word)]
    ]
    return Text.assemble(looked_at, words[0], ", ", words[1])


def _count(number: int, word: str) -> str:
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"
