"""The verdicts of `aliquot test`: as text, as JSON, and as JUnit XML for CI servers."""

from xml.etree import ElementTree

import click
from rich.text import Text

from aliquot.cli.show.documents import as_json
from aliquot.cli.show.signs import console as make_console
from aliquot.simulation.scenario import Verdict


def print_verdicts(verdicts: list[Verdict], output: str) -> None:
    """Print the verdicts in this form: text, json or junit."""
    if output == "text":
        _print_text(verdicts)
    else:
        click.echo(_as_json(verdicts) if output == "json" else _as_junit(verdicts))


def _print_text(verdicts: list[Verdict]) -> None:
    console = make_console(soft_wrap=True)
    for verdict in verdicts:
        passed = not verdict.differences
        mark = Text("pass", style="green") if passed else Text("FAIL", style="bold red")
        console.print(Text.assemble(mark, "  ", verdict.scenario.place))
        for difference in verdict.differences:
            console.print(Text(f"        {difference}"))
    failed = _failed(verdicts)
    console.print(f"{len(verdicts) - failed} passed, {failed} failed")


def _as_json(verdicts: list[Verdict]) -> str:
    listed = [
        {
            "name": verdict.scenario.name,
            "place": verdict.scenario.place,
            "passed": not verdict.differences,
            "differences": verdict.differences,
        }
        for verdict in verdicts
    ]
    return as_json({"scenarios": listed})


def _as_junit(verdicts: list[Verdict]) -> str:
    suite = ElementTree.Element(
        "testsuite", name="aliquot", tests=str(len(verdicts)), failures=str(_failed(verdicts))
    )
    for verdict in verdicts:
        case = ElementTree.SubElement(
            suite, "testcase", classname=verdict.scenario.place, name=verdict.scenario.name
        )
        if verdict.differences:
            failure = ElementTree.SubElement(case, "failure", message=verdict.differences[0])
            failure.text = "\n".join(verdict.differences)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode")


def _failed(verdicts: list[Verdict]) -> int:
    return sum(bool(verdict.differences) for verdict in verdicts)
