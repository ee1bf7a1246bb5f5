r"""The engine's decisions for streams of events, written down to be compared.

    python tools/decision_streams.py record before.txt --texts before
    python tools/decision_streams.py record after.txt --texts after
    python tools/decision_streams.py compare before.txt after.txt --texts before after

A change of structure must change no decision. `record` plays every scenario by the simulation, and
random clusters, the same in every version of the code; it writes one line a stream: its name, how
many decisions it has, and the SHA-256 of its text (every event, every cycle with its time,
decisions and next deadline). A second stream of each, `answers`, holds what the engine answers when
it is asked for its figures and for reasons; a copy of the process is asked, so that no question
can change a later decision. `compare` names the streams that differ.
"""

import gc
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import click
from streams.cluster import Cluster
from streams.profile import POLICIES
from streams.text import Nomination, decision_text, flat, plain, refusal_text

from aliquot.dialects import configuration
from aliquot.engine import Engine, Evict, Pod, PodSet, Reason, Wait
from aliquot.simulation import scenario
from aliquot.simulation.outcome import outcome
from aliquot.simulation.simulation import Simulation

SCENARIOS = Path(__file__).resolve().parent.parent / "tests" / "scenarios"
_BIG = 25
"""Every so many clusters one is larger: it costs ten times as much as a small one."""


class Stream:
    """The lines of one stream, and how many of them are decisions."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.decisions = 0
        self.seen: Counter[str] = Counter()

    def cycle(self, now: int, decisions: list[Any], deadline: int | None) -> None:
        """Write down a cycle."""
        self.lines.append(f"cycle {now}")
        for decision in flat(decisions):
            self.lines.append(f"  {decision_text(decision)}")
            self.decisions += 1
            self.seen[_kind(decision)] += 1
        self.lines.append(f"  deadline {deadline}")


def _kind(decision: Any) -> str:
    match decision:
        case Evict(_, _, reason):
            return f"evict {reason.value}"
        case Wait(_, refusal):
            return f"wait {refusal.reason.value}"
        case Nomination():
            return "nominate"
        case _:
            return "bind"


@contextmanager
def recording(stream: Stream) -> Iterator[None]:
    """Write down every event that an engine applies, and every cycle."""
    apply, load, cycle = Engine.apply, Engine.load, Engine.cycle

    def recorded_apply(self: Engine, event: Any) -> None:
        stream.lines.append(plain(event))
        apply(self, event)

    def recorded_load(self: Engine, pods: Sequence[Pod]) -> None:
        stream.lines += [plain(PodSet(pod)) for pod in pods]
        load(self, pods)

    def recorded_cycle(self: Engine, now: int = 0, bounded: bool = False) -> list[Any]:
        decisions = cycle(self, now, bounded)
        stream.cycle(now, decisions, self.next_deadline())
        return decisions

    Engine.apply = recorded_apply  # type: ignore[method-assign]
    Engine.load = recorded_load  # type: ignore[method-assign]
    Engine.cycle = recorded_cycle  # type: ignore[method-assign]
    try:
        yield
    finally:
        Engine.apply = apply  # type: ignore[method-assign]
        Engine.load = load  # type: ignore[method-assign]
        Engine.cycle = cycle  # type: ignore[method-assign]


def asked(question: Callable[[], str]) -> str:
    """The answer of a copy of this process, which nothing that happens here can see."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = question()
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        with os.fdopen(writer, "w") as pipe:
            pipe.write(answer)
            pipe.flush()
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def play_scenario(found: scenario.Scenario) -> tuple[Stream, Stream]:
    """The decisions of a scenario, and its outcome after each step."""
    stream, answers = Stream(), Stream()
    with recording(stream):
        knobs = configuration.knobs(found.settings)
        simulation = Simulation(found.inputs, found.policy, knobs)
        for at, _ in found.steps:
            simulation.run(at)
            answers.lines.append(f"at {at}")
            answers.lines.append(asked(lambda: json.dumps(outcome(simulation), indent=1)))
    return stream, answers


def play_random(seed: int) -> tuple[str, Stream, Stream]:
    """The policy, the decisions and the answers of a random cluster."""
    rng = Random(seed)
    policy = POLICIES[seed % len(POLICIES)]
    cluster = Cluster(rng, policy, big=seed % _BIG == _BIG - 1)
    stream, answers = Stream(), Stream()
    cycles = rng.randint(5, 40)
    asked_before, asked_after = Random(seed).randrange(cycles), cycles - 1
    with recording(stream):
        engine = Engine(policy, cluster.knobs)
        try:
            for number in range(cycles):
                for event in cluster.events():
                    engine.apply(event)
                if number == asked_before:
                    answers.lines += _answers(engine, cluster, f"before cycle {number}")
                cluster.take(engine.cycle(cluster.now))
                if number == asked_after:
                    answers.lines += _answers(engine, cluster, f"after cycle {number}")
                cluster.advance(engine.next_deadline())
        except Exception as error:
            stream.lines.append(f"error {type(error).__name__}: {error}")
            stream.seen["error"] += 1
    return policy, stream, answers


def _answers(engine: Engine, cluster: Cluster, when: str) -> Iterator[str]:
    """What the engine says when it is asked everything, each question of a copy of its own."""
    questions: dict[str, Callable[[], str]] = {
        "quotas": lambda: "\n".join(map(plain, engine.summarise())),
        "queues": lambda: "\n".join(map(plain, engine.queues())),
        "gangs": lambda: "\n".join(map(plain, engine.gangs())),
        "gpu quotas": lambda: "\n".join(map(plain, engine.gpu_quotas())),
        "over quota": lambda: plain(engine.over_quota_pods()),
        "not preemptible": lambda: plain(engine.not_preemptible()),
        "why": lambda: "\n".join(_reasons(engine, cluster)),
        "may resize": lambda: "\n".join(_resizes(engine, cluster)),
    }
    yield when
    for name, question in questions.items():
        yield f"{name}:"
        yield asked(question)


def _reasons(engine: Engine, cluster: Cluster) -> Iterator[str]:
    for uid, pod in cluster.pods.items():
        if pod.node is None and not cluster.is_binding(uid):
            yield f"{uid} {refusal_text(engine.why(uid))}"


def _resizes(engine: Engine, cluster: Cluster) -> Iterator[str]:
    for uid, pod in cluster.pods.items():
        if pod.node is not None:
            double = tuple((name, 2 * n if name != "pods" else n) for name, n in pod.shape.requests)
            shape = replace(pod.shape, requests=double, charges=())
            yield f"{uid} {refusal_text(engine.may_resize(uid, shape))}"


class Record:
    """The file with one line a stream, and the folder with their texts, if there is one."""

    def __init__(self, file: Path, texts: Path | None) -> None:
        self._lines: list[str] = []
        self._file = file
        self._texts = texts

    def add(self, name: str, stream: Stream) -> None:
        """Add a stream."""
        text = "\n".join([*stream.lines, ""])
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._lines.append(f"{name} {stream.decisions} {digest}")
        if self._texts is not None:
            path = self._texts / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def write(self) -> None:
        """Write the file."""
        self._file.write_text("\n".join([*self._lines, ""]))


@click.group()
def main() -> None:
    """Record the engine's decisions for streams of events, and compare two records."""


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--random", "count", default=1000, help="How many random clusters.")
@click.option(
    "--scenarios",
    multiple=True,
    type=click.Path(exists=True),
    help="Files or folders of scenarios, instead of tests/scenarios.",
)
@click.option("--texts", type=click.Path(path_type=Path), help="Where to write the texts.")
def record(file: Path, count: int, scenarios: tuple[str, ...], texts: Path | None) -> None:
    """Play all scenarios and random clusters, and write what was decided."""
    made = Record(file, texts)
    gc.disable()  # a collection would copy the memory of each process that answers
    for found in scenario.load(scenarios or [str(SCENARIOS)]):
        stream, answers = play_scenario(found)
        made.add(f"decisions/scenario/{found.name}", stream)
        made.add(f"answers/scenario/{found.name}", answers)
    seen: Counter[str] = Counter()
    for seed in range(count):
        policy, stream, answers = play_random(seed)
        made.add(f"decisions/random/{seed:04}-{policy}", stream)
        made.add(f"answers/random/{seed:04}-{policy}", answers)
        seen.update(stream.seen)
    made.write()
    click.echo(", ".join(f"{kind} {number}" for kind, number in sorted(seen.items())))
    reasons = {kind.partition(" ")[2] for kind in seen}
    missing = [reason.value for reason in Reason if reason.value not in reasons]
    click.echo(f"never: {', '.join(missing) or 'none'}")


@main.command()
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
@click.option("--texts", nargs=2, type=click.Path(exists=True, path_type=Path))
def compare(before: Path, after: Path, texts: tuple[Path, Path] | None) -> None:
    """Name the streams that differ, with texts also the first line that does."""
    old, new = _streams(before), _streams(after)
    both = [name for name in old if name in new]
    names = [name for name in both if old[name] != new[name]]
    for name in names:
        click.echo(name)
        if texts:
            click.echo(_first_difference(*(folder / f"{name}.txt" for folder in texts)))
    click.echo(f"{len(names)} of {len(both)} streams differ")
    alone = len(old) + len(new) - 2 * len(both)
    if alone:
        click.echo(f"{alone} streams are in one record only")
    sys.exit(1 if names or alone else 0)


def _streams(file: Path) -> dict[str, str]:
    """The number of decisions and the digest of each stream."""
    return dict(line.split(" ", 1) for line in file.read_text().splitlines())


def _first_difference(before: Path, after: Path) -> str:
    old, new = before.read_text().splitlines(), after.read_text().splitlines()
    for number in range(max(len(old), len(new))):
        pair = [lines[number] if number < len(lines) else "(end)" for lines in (old, new)]
        if pair[0] != pair[1]:
            return f"  line {number + 1}\n    before {pair[0]}\n    after  {pair[1]}"
    return "  the texts are equal"


if __name__ == "__main__":
    main()
