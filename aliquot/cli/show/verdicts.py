"""The verdicts of `aliquot test`: as text, as JSON, and as JUnit XML for CI servers.

Broken files and scenarios have no verdict; each is an error beside the verdicts of the others.
"""

from collections.abc import Sequence
from xml.etree import ElementTree

import click
from rich.text import Text

from aliquot.cli.drawing.signs import console as make_console
from aliquot.cli.show.documents import as_json
from aliquot.errors import AliquotError
from aliquot.simulation.scenario import Verdict

Errors = Sequence[AliquotError]


def print_verdicts(verdicts: list[Verdict], errors: Errors, output: str) -> None:
    """Print the verdicts in this form: text, json or junit."""
    if output == "text":
        _print_text(verdicts, errors)
    else:
        write = _as_json if output == "json" else _as_junit
        click.echo(write(verdicts, errors))


def _print_text(verdicts: list[Verdict], errors: Errors) -> None:
    console = make_console(soft_wrap=True)
    for verdict in verdicts:
        passed = not verdict.differences
        mark = Text("pass", style="green") if passed else Text("FAIL", style="bold red")
        console.print(Text.assemble(mark, "  ", verdict.scenario.place))
        for difference in verdict.differences:
            console.print(Text(f"        {difference}"))
    failed = _failed(verdicts)
    broken = f", {len(errors)} broken" if errors else ""
    console.print(f"{len(verdicts) - failed} passed, {failed} failed{broken}")


def _as_json(verdicts: list[Verdict], errors: Errors) -> str:
    listed = [
        {
            "name": verdict.scenario.name,
            "place": verdict.scenario.place,
            "passed": not verdict.differences,
            "differences": verdict.differences,
        }
        for verdict in verdicts
    ]
    return as_json({"scenarios": listed, "errors": [str(error) for error in errors]})


def _as_junit(verdicts: list[Verdict], errors: Errors) -> str:
    numbers = {
        "tests": len(verdicts) + len(errors),
        "failures": _failed(verdicts),
        "errors": len(errors),
    }
    texts = {word: str(number) for word, number in numbers.items()}
    suite = ElementTree.Element("testsuite", {"name": "aliquot", **texts})
    for verdict in verdicts:
        case = ElementTree.SubElement(
            suite, "testcase", classname=verdict.scenario.place, name=verdict.scenario.name
        )
        if verdict.differences:
            failure = ElementTree.SubElement(case, "failure", message=verdict.differences[0])
            failure.text = "\n".join(verdict.differences)
    for error in errors:
        place = getattr(error, "place", "")
        case = ElementTree.SubElement(suite, "testcase", classname=place, name="can be read")
        ElementTree.SubElement(case, "error", message=str(error))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode")


def _failed(verdicts: list[Verdict]) -> int:
    return sum(bool(verdict.differences) for verdict in verdicts)
