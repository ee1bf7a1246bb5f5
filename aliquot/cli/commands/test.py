"""`aliquot test`: run scenarios and say what differs."""

import json
from collections.abc import Callable
from xml.etree import ElementTree

import click
from rich.console import Console
from rich.text import Text

from aliquot.cluster import scenario
from aliquot.cluster.scenario import Verdict


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("-o", "--output", type=click.Choice(["text", "json", "junit"]), default="text")
@click.pass_context
def test(context: click.Context, paths: tuple[str, ...], output: str) -> None:
    """Run the scenarios in files or folders; exit code 1 if anything differs.

    A Scenario holds objects, steps over time, and what is expected after each step.
    """
    verdicts = [scenario.run(each) for each in scenario.load(paths)]
    _PRINT[output](verdicts)
    context.exit(any(verdict.differences for verdict in verdicts))


def _print_text(verdicts: list[Verdict]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for verdict in verdicts:
        passed = not verdict.differences
        mark = Text("pass", style="green") if passed else Text("FAIL", style="bold red")
        console.print(Text.assemble(mark, "  ", verdict.scenario.place))
        for difference in verdict.differences:
            console.print(Text(f"        {difference}"))
    failed = sum(bool(verdict.differences) for verdict in verdicts)
    console.print(f"{len(verdicts) - failed} passed, {failed} failed")


def _print_json(verdicts: list[Verdict]) -> None:
    listed = [
        {
            "name": verdict.scenario.name,
            "place": verdict.scenario.place,
            "passed": not verdict.differences,
            "differences": verdict.differences,
        }
        for verdict in verdicts
    ]
    click.echo(json.dumps({"scenarios": listed}, indent=2, ensure_ascii=False))


def _print_junit(verdicts: list[Verdict]) -> None:
    failed = sum(bool(verdict.differences) for verdict in verdicts)
    suite = ElementTree.Element(
        "testsuite", name="aliquot", tests=str(len(verdicts)), failures=str(failed)
    )
    for verdict in verdicts:
        case = ElementTree.SubElement(
            suite, "testcase", classname=verdict.scenario.place, name=verdict.scenario.name
        )
        if verdict.differences:
            failure = ElementTree.SubElement(case, "failure", message=verdict.differences[0])
            failure.text = "\n".join(verdict.differences)
    ElementTree.indent(suite)
    click.echo(ElementTree.tostring(suite, encoding="unicode"))


_PRINT: dict[str, Callable[[list[Verdict]], None]] = {
    "text": _print_text,
    "json": _print_json,
    "junit": _print_junit,
}
