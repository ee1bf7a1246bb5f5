r"""Which mistakes in the engine would no fast test notice? `make mutation` asks.

    python tools/mutation.py --count 300 --seed 1 -o json > report.json
    python tools/mutation.py --survivors report.json      # once new tests are there
    python tools/mutation.py --only aliquot/engine/cycle.py:120

One small change at a time is made in the engine (tools/mutants.py says which), and the fast tests
that reach the changed statement run until one fails: the mutant is killed. If none does, it has
survived, and is shown with its line: a rule that no test states, code that does nothing, or a
change that nobody can see. The last kind is listed in equivalent_mutants.yaml, with the reason, and
is not tried again.

No file of the tree is changed. The tests are collected once; every mutant has a process of its own,
forked from there, in which the code of one function is replaced. A test that takes ten times its
usual CPU, and five seconds, is taken to hang, which kills the mutant as well. The same seed draws
the same mutants of the same tree, of every module in proportion.
"""

import contextlib
import difflib
import functools
import gc
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import click
import pytest
import yaml
from mutants import Mutant, find, sample
from reach import Probes, Reach, Recorder, load, product_version, save
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ROOT / "aliquot"
ENGINE = PRODUCT / "engine"
FAST = (
    "tests/engine",
    "tests/scenarios",
    "tests/properties",
    "tests/dialects",
    "tests/simulation",
    "tests/kube/test_audit.py",
)
"""Tests that need neither a server nor a process; those that are there."""
EQUIVALENT = Path(__file__).parent / "equivalent_mutants.yaml"
REACHED = ROOT / ".mutation_cache.json"
_MEMORY = 3 << 30
"""A mutant that collects without end must not take the machine with it; the tests need a tenth."""
_PYTEST = ("-o", "addopts=--strict-markers", "-p", "no:xdist", "-p", "no:cacheprovider", "-q")

KILLED, HUNG, SURVIVED, UNREACHED, EQUAL = "killed", "hung", "survived", "unreached", "equivalent"
_ALIVE = (SURVIVED, UNREACHED)
_NO_FAILURE, _FAILURE, _BROKEN = 0, 1, 2


@dataclass(frozen=True)
class Result:
    """What became of a mutant."""

    mutant: Mutant
    outcome: str
    by: str = ""
    """The test that killed it, or the reason why it is equivalent."""


def main(
    only: tuple[str, ...], count: int, seed: int, survivors: str | None, jobs: int, tests: list[str]
) -> tuple[list[Result], list[str]]:
    """All results, and what equivalent_mutants.yaml names that is no longer there."""
    modules = sorted(ENGINE.rglob("*.py"))
    mutants = [each for module in modules for each in find(module, ROOT)]
    equivalent, stale = _equivalent(mutants)
    if survivors is not None:
        report = json.loads(Path(survivors).read_text())
        alive = {_key(each) for each in report["mutants"] if each["outcome"] in _ALIVE}
        chosen = [each for each in mutants if each.key in alive]
    else:
        asked = [each for each in mutants if not only or any(_is_in(each, word) for word in only)]
        chosen = sample(asked, count, seed)
    known = record(tests, jobs)
    campaign = Campaign([each for each in chosen if each.key not in equivalent], known, jobs)
    _pytest(tests, campaign)
    spared = [
        Result(each, EQUAL, equivalent[each.key]) for each in chosen if each.key in equivalent
    ]
    results = [*campaign.results, *spared]
    return sorted(results, key=lambda each: (each.mutant.path, each.mutant.site)), stale


def record(tests: list[str], jobs: int) -> dict[str, Reach]:
    """Which test reaches what: as it was kept, and what is new."""
    known, product = load(REACHED), product_version(PRODUCT)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{part}.json" for part in range(jobs)]
        for part, file in enumerate(files):
            if not os.fork():
                _record(tests, known, product, part, file, jobs)
        ends = [os.wait()[1] for _ in files]
        if any(ends):
            raise click.ClickException("the tests fail without any mutant")
        for file in files:
            known |= load(file)
    save(REACHED, known)
    return known


def _record(
    tests: list[str], known: dict[str, Reach], product: str, part: int, file: Path, parts: int
) -> None:
    """In a process of its own, which ends here."""
    probes = Probes(ENGINE, ROOT)
    probes.install()
    recorder = Recorder(probes, known, product, part, parts)
    status = _BROKEN
    try:
        _pytest(tests, recorder)
        save(file, recorder.tests)
        for name in recorder.failed:
            print(f"fails without any mutant: {name}", file=sys.stderr)
        status = _FAILURE if recorder.failed else _NO_FAILURE
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


class Campaign:
    """A pytest plugin that tries mutants instead of running the tests it has collected."""

    def __init__(self, mutants: list[Mutant], known: dict[str, Reach], jobs: int) -> None:
        self._mutants = mutants
        self._known = known
        self._jobs = jobs
        self._limits: dict[str, float] = {}
        self.results: list[Result] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try every mutant, each in a process of its own, some at a time."""
        items = [item for item in session.items if item.nodeid in self._known]
        items.sort(key=lambda item: self._known[item.nodeid].seconds)
        reaching: dict[tuple[str, int], list[pytest.Item]] = {}
        for item in items:
            reach = self._known[item.nodeid]
            self._limits[item.nodeid] = 5 + 10 * reach.seconds
            for statement in reach.statements():
                reaching.setdefault(statement, []).append(item)
        functions, caches = _functions(), _caches()
        gc.collect()
        gc.freeze()
        with tempfile.TemporaryDirectory() as folder, _progress(len(self._mutants)) as advance:
            running: dict[int, tuple[Mutant, Path]] = {}
            for number, mutant in enumerate(self._mutants):
                those = reaching.get((mutant.path, mutant.statement))
                if those is None:
                    self.results.append(Result(mutant, UNREACHED))
                    advance()
                    continue
                if len(running) == self._jobs:
                    self._end(running)
                    advance()
                word = Path(folder) / str(number)
                if not (child := os.fork()):
                    for cache in caches:
                        cache.cache_clear()
                    _Trial(word, self._limits).run(mutant, functions, those)
                running[child] = mutant, word
            while running:
                self._end(running)
                advance()
        return True

    def _end(self, running: dict[int, tuple[Mutant, Path]]) -> None:
        """Wait for one of the processes to end, and note how."""
        child, status = os.wait()
        mutant, word = running.pop(child)
        by = word.read_text() if word.exists() else ""
        if os.WIFSIGNALED(status):
            outcome = HUNG
        elif os.WEXITSTATUS(status) == _BROKEN:
            raise click.ClickException(f"could not try {mutant}")
        else:
            outcome = KILLED if os.WEXITSTATUS(status) else SURVIVED
        self.results.append(Result(mutant, outcome, by))


class _Trial:
    """A mutant's own process: runs tests until one fails, and never returns."""

    def __init__(self, word: Path, limits: dict[str, float]) -> None:
        self._word = word
        self._limits = limits

    def run(
        self, mutant: Mutant, functions: dict[tuple[str, str, int], Any], items: list[pytest.Item]
    ) -> None:
        """Ends the process: with an error if a test has failed."""
        status = _BROKEN
        try:
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            _replace(mutant, functions)
            items[0].config.pluginmanager.register(self)
            for item in items:
                self._word.write_text(item.nodeid)
                signal.setitimer(signal.ITIMER_PROF, self._limits[item.nodeid])
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            self._word.write_text("")
            status = _NO_FAILURE
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One failure is enough."""
        if report.failed:
            os._exit(_FAILURE)


def _functions() -> dict[tuple[str, str, int], list[FunctionType]]:
    """All functions that there are, by file, qualified name and first line."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            code = each.__code__
            key = (code.co_filename, code.co_qualname, code.co_firstlineno)
            found.setdefault(key, []).append(each)
    return found


def _caches() -> list[Any]:
    """Answers that were given while tests were collected, before any mutant."""
    return [each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)]


def _replace(mutant: Mutant, functions: dict[tuple[str, str, int], list[FunctionType]]) -> None:
    """Let the function do what the mutant says."""
    file = str(ROOT / mutant.path)
    source = mutant.apply(Path(file).read_text())
    new = next(
        code
        for code in _codes(compile(source, file, "exec"))
        if (code.co_qualname, code.co_firstlineno) == mutant.outermost
    )
    for function in functions[(file, *mutant.outermost)]:
        function.__code__ = new


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


def _pytest(tests: list[str], plugin: object) -> None:
    """Collect the tests, in silence, and let the plugin do the rest."""
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        status = pytest.main([*_PYTEST, *tests], plugins=[plugin, _Examples()])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise click.ClickException(f"pytest could not collect {' '.join(tests)}: {status!r}")


class _Examples:
    """The examples of property tests: always the same, and no time spent to make one smaller."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """After conftest.py has chosen its profile, before any test is imported."""
        from hypothesis import Phase, settings  # pytest wants to import it first

        settings.register_profile(
            "mutation",
            derandomize=True,
            database=None,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
            report_multiple_bugs=False,
        )
        settings.load_profile("mutation")


def _is_in(mutant: Mutant, word: str) -> bool:
    """Is a mutant in this folder or module, and on this line if one is named?"""
    name, _, line = word.partition(":")
    path = str(Path(name))
    return (mutant.path == path or mutant.path.startswith(f"{path}/")) and (
        not line or mutant.line == int(line)
    )


def _key(said: dict[str, str]) -> tuple[str, str, str]:
    return said["function"], said["text"], said["change"]


def _equivalent(mutants: list[Mutant]) -> tuple[dict[tuple[str, str, str], str], list[str]]:
    """The mutants that behave as the engine does, with the reason; and entries out of date."""
    entries = yaml.safe_load(EQUIVALENT.read_text()) if EQUIVALENT.exists() else None
    known = {_key(entry): entry["why"] for entry in entries or ()}
    there = {each.key for each in mutants}
    stale = [" | ".join(key) for key in known if key not in there]
    return known, stale


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Any]:
    columns = (
        TextColumn("mutants"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)


def share(results: Iterable[Result]) -> float:
    """Percent killed of those that are not equivalent."""
    counts = Counter(each.outcome for each in results)
    total = counts.total() - counts[EQUAL]
    return 100 * (counts[KILLED] + counts[HUNG]) / total if total else 100.0


def show(results: list[Result], console: Console) -> None:
    """A table by module, then every survivor with its line."""
    table = Table("module", "mutants", "killed", "equivalent", "alive", "% killed")
    for column in table.columns[1:]:
        column.justify = "right"
    by_path: dict[str, list[Result]] = {}
    for each in results:
        by_path.setdefault(each.mutant.path, []).append(each)
    for path, those in (*by_path.items(), ("all", results)):
        counts = Counter(each.outcome for each in those)
        figures = (
            counts.total(),
            counts[KILLED] + counts[HUNG],
            counts[EQUAL],
            counts[SURVIVED] + counts[UNREACHED],
        )
        name = path.removeprefix(f"{ENGINE.relative_to(ROOT)}/")
        table.add_row(name, *map(str, figures), f"{share(those):.1f}")
    console.print(table)
    for each in results:
        if each.outcome in _ALIVE:
            mutant = each.mutant
            untold = ", which no fast test reaches" if each.outcome == UNREACHED else ""
            console.print(
                f"\n{mutant.path}:{mutant.line} in {mutant.function}: {mutant.change}{untold}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
            console.print(_diff(mutant), markup=False, highlight=False, soft_wrap=True)


def _diff(mutant: Mutant) -> str:
    source = (ROOT / mutant.path).read_text()
    before, after = source.splitlines(), mutant.apply(source).splitlines()
    changed = difflib.unified_diff(before, after, lineterm="", n=0)
    return "\n".join(line for line in changed if not line.startswith(("---", "+++", "@@")))


def as_json(results: list[Result], seed: int, seconds: float) -> str:
    """The whole report; `--survivors` reads it again."""
    mutants = [
        {
            "path": each.mutant.path,
            "line": each.mutant.line,
            "function": each.mutant.function,
            "text": each.mutant.text,
            "change": each.mutant.change,
            "outcome": each.outcome,
            "by": each.by,
        }
        for each in results
    ]
    counts = Counter(each.outcome for each in results)
    report = {
        "seed": seed,
        "seconds": round(seconds),
        "counts": {word: counts[word] for word in (KILLED, HUNG, SURVIVED, UNREACHED, EQUAL)},
        "percentKilled": round(share(results), 1),
        "mutants": mutants,
    }
    return json.dumps(report, indent=2)


@click.command(help="Try small changes of the engine: which of them does no fast test notice?")
@click.option("--only", multiple=True, metavar="PATH[:LINE]", help="Only in this folder or module.")
@click.option("--count", default=300, show_default=True, help="How many mutants, sampled.")
@click.option("--seed", default=1, show_default=True, help="Another seed draws other mutants.")
@click.option("--survivors", metavar="FILE", help="Only those that survived, of a JSON report.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, help="Processes at a time.")
@click.option("--tests", multiple=True, metavar="PATH", help=f"Instead of {', '.join(FAST)}.")
@click.option("--at-least", default=95.0, show_default=True, help="Percent killed, else exit 1.")
@click.option("-o", "output", type=click.Choice(["table", "json"]), default="table")
def command(
    only: tuple[str, ...],
    count: int,
    seed: int,
    survivors: str | None,
    jobs: int,
    tests: tuple[str, ...],
    at_least: float,
    output: str,
) -> None:
    """Run a campaign and print what it found."""
    os.chdir(ROOT)
    began = time.monotonic()
    fast = list(tests) or [each for each in FAST if Path(each).exists()]
    results, stale = main(only, count, seed, survivors, jobs, fast)
    seconds = time.monotonic() - began
    to = Console(stderr=output == "json")
    show(results, to)
    for each in stale:
        to.print(f"{EQUIVALENT.name} names no mutant: {each}", markup=False, highlight=False)
    to.print(f"{len(results)} mutants, {share(results):.1f}% killed, {seconds / 60:.0f} minutes")
    if output == "json":
        click.echo(as_json(results, seed, seconds))
    sys.exit(bool(stale) or share(results) < at_least)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the same order of sets, whoever asks
        environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    command()
