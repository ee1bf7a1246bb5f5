"""What is wrong with manifests, and what of them a simulation leaves out.

The report of `aliquot validate` goes to stdout; warnings of other commands go to stderr, so that
`-o json` stays one document.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import click
from rich.text import Text

from aliquot.cli.drawing.signs import console as make_console
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.times import seconds
from aliquot.validation.inputs import Inputs
from aliquot.validation.report import Report

_STYLES = {"error": "bold red", "warning": "yellow"}


def print_report(report: Report) -> None:
    """A line for each finding, under the file it is about; then how many there are."""
    console = make_console(soft_wrap=True)
    for file, findings in groupby(report.findings, key=lambda each: each.file):
        console.print(_printable(file), style="bold")
        for finding in findings:
            console.print(_line(finding))
        console.print()
    console.print(_summary(report))


def as_json(report: Report) -> dict[str, Any]:
    """The findings as `aliquot validate -o json` prints them."""
    return {"findings": [_as_json(each) for each in report.findings]}


def print_warnings(inputs: Inputs) -> None:
    """Say on stderr what is odd about objects that are simulated all the same."""
    for finding in inputs.findings:
        click.echo(f"warning: {finding}", err=True)
    skipped = (each for each in inputs.about_skipped if each.severity == "error")
    for objection in (*inputs.misshapen, *inputs.refusals, *skipped):
        click.echo(f"warning: {objection} (a cluster would refuse it)", err=True)


def print_skipped(skipped: Mapping[str, int]) -> None:
    """Say on stderr how many objects were skipped, by kind: kinds without a part in scheduling."""
    if skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(skipped.items()))
        click.echo(f"skipped, not read by a simulation: {kinds}", err=True)


def _as_json(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity,
        "file": finding.file,
        "place": finding.place,
        "line": finding.line or None,
        "object": finding.object,
        "field": finding.field,
        "problem": finding.problem,
        "at": seconds(finding.at),
    }


def _line(finding: Finding) -> Text:
    document = finding.place.removeprefix(finding.file).lstrip(",: ")
    said = finding.problem.startswith(f"unknown field {finding.field}")
    field = f"{finding.field}: " if finding.field and not said else ""
    if finding.line:
        document = f"{document} (line {finding.line})" if document else f"line {finding.line}"
    return Text.assemble(
        "  ",
        (f"{finding.severity:<8}", _STYLES[finding.severity]),
        *([(f" {_printable(document)}:", "bright_black")] if document else []),
        *([(f" {_printable(finding.object)}:", "bold")] if finding.object else []),
        f" {_printable(field + finding.problem)}",
        (f" (from {seconds(finding.at)}s on)" if finding.at else "", "bright_black"),
    )


def _printable(text: str) -> str:
    """The text on one line, without control characters that a terminal would act on."""
    line = " ".join(text.split())
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in line)


def _summary(report: Report) -> Text:
    objects = sum(1 for _ in report.inputs.manifests())
    files = len(set(report.inputs.files.values()))
    checked = f"{_count(objects, 'object')} in {_count(files, 'file')}: "
    words = [
        (_count(number, word), style if number else "green")
        for word, style in _STYLES.items()
        for number in [report.count(word)]
    ]
    return Text.assemble(checked, words[0], ", ", words[1])


def _count(number: int, word: str) -> str:
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"
