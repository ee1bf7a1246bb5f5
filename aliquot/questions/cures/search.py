"""Cures: the smallest sets of changes that let a waiting pod start, each asked of the engine.

What refuses the pod suggests changes (`quotas`, `queues`, `gpus`, `pods`, `nodes`, `knobs`), with
amounts from the very figures that its gates compare. None is believed: each is made in a copy of
the moment, where the engine decides, and it is a cure if the pod then starts. The evictions of that
copy are the ones the cure says. Where no single change will do, those that bring the pod on,
because something else refuses it then, are followed by what would cure that.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, islice

from aliquot.engine import Explanation
from aliquot.errors import AliquotError
from aliquot.questions import copies
from aliquot.questions.cures import changes, gpus, nodes, pods, queues, quotas
from aliquot.questions.cures.changes import Step
from aliquot.questions.cures.knobs import cures_by_knobs
from aliquot.questions.cures.proposal import Cure, Proposal
from aliquot.questions.cures.quotas import KINDS
from aliquot.questions.moment import Moment

_SOURCES = (queues, quotas, gpus, pods, nodes)
MOST_STEPS = 3
"""Changes in a cure: what takes more is a plan of its own."""
_MOST_ASKED = 16
"""Proposals tried at each number of changes, which bounds the time on a large cluster: each takes
some 30 ms there. More than this are proposed only where many nodes or quotas are alike."""
_MOST_ASKED_OF_MANY = 6
"""The same on a large cluster."""
_MOST_CYCLES = 3
"""Bounded cycles that a large cluster decides for one change: if the claims before the pod take
more, they, and not the pod, get what the change frees."""
_MOST_SHOWN = 8
"""Cures in an answer: what comes after these evicts more or changes more."""


@dataclass(slots=True)
class _Tried:
    """What became of a proposal."""

    proposal: Proposal
    starts: bool
    evicts: tuple[str, ...] = ()
    refused_by: tuple[str, ...] = ()
    """The gates that refuse the pod then."""
    further: list[Proposal] = field(default_factory=list)
    """What might be changed besides."""


def cures(
    moment: Moment,
    path: str,
    explanation: Explanation,
    proposals: list[Proposal],
    evicted_anyway: Iterable[str] = (),
) -> list[Cure]:
    """The cures of a waiting pod that is refused, the best first; none if there are none.

    `proposals` are those of the moment that the next cycle leaves, as is the explanation.
    """
    refused_by = tuple(gate.gate for gate in explanation.gates if not gate.passes)
    anyway, most = set(evicted_anyway), _MOST_ASKED_OF_MANY if moment.is_large else _MOST_ASKED
    moment.prepare()
    longer = list[Cure]()
    for number in range(1, MOST_STEPS + 1):
        tried = [
            _try(moment, path, each, anyway, number < MOST_STEPS and not moment.is_large)
            for each in islice(proposals, most)
        ]
        found = [
            Cure(each.proposal.summary, each.proposal.steps, each.evicts, each.proposal.remade)
            for each in tried
            if each.starts
        ]
        found += cures_by_knobs(moment, path, explanation, anyway, found) if number == 1 else []
        longer += found
        if any(len(each.steps) <= number for each in longer):
            break
        if moment.is_large:
            proposals = _pairs(proposals) if number == 1 else []
        else:
            proposals = _longer(tried, refused_by, number + 1)
    return _best(_without_others(moment, path, longer))


def _without_others(moment: Moment, path: str, found: list[Cure]) -> list[Cure]:
    """The cures without evictions that the next cycles of a large cluster would decide anyway.

    Those cycles are bounded, and so other claims may still preempt while a change is tried.
    """
    if not moment.is_large or not any(each.evicts for each in found):
        return found

    record = moment.pod(path)
    assert record is not None
    uid = record.pod.uid

    def play() -> set[str]:
        before = len(moment.simulation.history)
        moment.simulation.settle_for(uid, _MOST_CYCLES)
        return {each.pod.path for each in moment.evictions(before)}

    anyway = copies.ask(play)
    return [
        replace(cure, evicts=tuple(each for each in cure.evicts if each not in anyway))
        for cure in found
    ]


def _best(found: list[Cure]) -> list[Cure]:
    """The best cures first; of those that raise the same bounds the first, which is the least."""
    seen, kept = set[str](), list[Cure]()
    for cure in sorted(found, key=lambda cure: cure.order):
        alike = str((cure.evicts, [_outline(step) for step in cure.steps]))
        if alike not in seen:
            kept.append(cure)
        seen.add(alike)
    return kept[:_MOST_SHOWN]


def _outline(step: Step) -> object:
    """A change without its amounts, where it is a patch of a quota or adds nodes; else itself."""
    about = step["object"]
    if step["how"] == "add" and step["add"][0]["kind"] == "Node":
        return step["add"][0]
    if step["how"] != "patch" or about["kind"] not in KINDS:
        return step
    return about, sorted(_fields(step["patch"]["spec"]))


def _fields(body: object, at: str = "") -> Iterator[str]:
    if not isinstance(body, dict):
        yield at
        return
    for name, value in body.items():
        if (at, name) != ("", "max"):  # which rises where it is below the min
            yield from _fields(value, f"{at}.{name}" if at else name)


def proposals(moment: Moment, path: str, explanation: Explanation) -> Iterator[Proposal]:
    """The changes that what refuses the pod suggests, each once."""
    seen: list[tuple[Step, ...]] = []
    for source in _SOURCES:
        for each in source.proposals(moment, path, explanation):
            if each.steps not in seen and len(each.steps) <= MOST_STEPS:
                seen.append(each.steps)
                yield each


def _try(moment: Moment, path: str, proposal: Proposal, anyway: set[str], further: bool) -> _Tried:
    """What becomes of a proposal: asked of a copy of the moment."""

    def play() -> _Tried:
        simulation = moment.simulation
        before = len(simulation.history)
        try:
            if not changes.apply(moment, proposal.steps):
                return _Tried(proposal, starts=False)
            if not _decide(moment, path):
                return _Tried(proposal, starts=False)
        except AliquotError:
            return _Tried(proposal, starts=False)
        record = moment.pod(path)
        evicts = dict.fromkeys(each.pod.path for each in moment.evictions(before))
        gone = tuple(each for each in evicts if each not in anyway)
        if record is None or record.phase != "Pending":
            starts = record is not None and record.phase == "Running"
            return _Tried(proposal, starts, gone)
        if not further:
            return _Tried(proposal, starts=False)
        found = moment.engine.explain(record.pod.uid, simulation.now)
        gates = tuple(gate.gate for gate in found.gates if not gate.passes)
        more = list(islice(proposals(moment, path, found), _MOST_ASKED))
        return _Tried(proposal, False, gone, gates, more)

    return copies.ask(play)


def _decide(moment: Moment, path: str) -> bool:
    """Decide what the change leads to; false where a large cluster leaves no hope for the pod."""
    if not moment.is_large:
        moment.simulation.settle()
        return True
    record = moment.pod(path)
    if record is None or not moment.engine.may_start(record.pod.uid):
        return False
    moment.simulation.settle_for(record.pod.uid, _MOST_CYCLES)
    return True


def _pairs(proposals: list[Proposal]) -> list[Proposal]:
    """Two single changes at once: what a large cluster is asked in place of `_longer`.

    To explain in each copy what refuses the pod then takes longer than a question may.
    """
    single = [each for each in proposals if len(each.steps) == 1]
    joined = [one.followed_by(other) for one, other in combinations(single, 2)]
    return [each for each in joined if len(each.steps) == 2]


def _longer(tried: list[_Tried], refused_by: tuple[str, ...], steps: int) -> list[Proposal]:
    """Proposals of so many changes: those that opened a gate, with what would open the others."""
    found: list[Proposal] = []
    seen: list[list[Step]] = []
    for each in sorted(tried, key=lambda one: len(one.refused_by)):
        if not each.further or set(each.refused_by) >= set(refused_by):
            continue
        for more in each.further:
            if more.lowers and not each.proposal.lowers:
                continue
            joined = each.proposal.followed_by(more)
            known = sorted(joined.steps, key=str)
            if len(joined.steps) == steps and known not in seen:
                seen.append(known)
                found.append(joined)
    return found
