"""What quotas could be changed so that a pod starts: a max or a min raised by exactly so much.

The amounts come from what the gates of the pod compare. A max rises by what the pod would exceed it
by. A min rises until the pod is within it, so that its quota may take back what others borrow; or
by what all quotas together are short of, so that nothing need be taken back. Where other pods of
its quota come before it, they would get all that: then it rises by what they ask for as well.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import Key
from aliquot.dialects.nos.gpu_memory import SPELLINGS
from aliquot.engine import GPU_MEMORY, Explanation, GateAnswer, GateFigure, QuotaSummary, quantity
from aliquot.json import Body
from aliquot.questions.cures.changes import Step, patch
from aliquot.questions.cures.proposal import Proposal
from aliquot.questions.moment import Moment

KINDS = ("ElasticQuota", "CompositeElasticQuota")


def proposals(moment: Moment, path: str, explanation: Explanation) -> Iterator[Proposal]:
    """Changes of quotas that might let the pod start."""
    record = moment.pod(path)
    assert record is not None
    quota = moment.engine.quota_of(record.pod)
    quotas = {each.name: each for each in moment.engine.summarise()}
    raised = _Raise(moment, quotas)
    for gates in (_behind_others(explanation), explanation.gates):
        yield from _of_gates(gates, raised, quotas, quota)
    if quota is not None and _refuses(explanation, "Nodes") and not raised.is_queue(quota):
        asks = _asks(explanation)
        wanted = {name: quotas[quota].used.get(name, 0) + n for name, n in asks.items()}
        yield from raised.min_of(quota, wanted)


def _behind_others(explanation: Explanation) -> tuple[GateAnswer, ...]:
    """The gates as if the claim asked for what those before it in its quota ask for as well."""
    ahead = explanation.place.asks_in_quota
    if not ahead:
        return ()
    return tuple(
        replace(
            gate,
            figures=tuple(
                replace(each, asks=each.asks + ahead.get(each.resource, 0)) for each in gate.figures
            ),
        )
        for gate in explanation.gates
    )


def _of_gates(
    gates: tuple[GateAnswer, ...],
    raised: "_Raise",
    quotas: Mapping[str, QuotaSummary],
    quota: str | None,
) -> Iterator[Proposal]:
    """The bounds that refuse, raised to hold what is asked for."""
    for gate in gates:
        short = [each for each in gate.figures if each.beyond > 0]
        if not short:
            continue
        match gate.gate:
            case "Max":
                yield from raised.maxes(short)
            case "Borrowing" if quota is not None:
                to = _within(quotas[quota], short)
                by = {e.resource: quotas[quota].min.get(e.resource, 0) + e.beyond for e in short}
                for wanted in sorted((by, to), key=lambda found: sum(found.values())):
                    yield from raised.min_of(quota, wanted)
            case "Runtime" | "Deserved" if quota is not None:
                yield from raised.shares(short)
            case "NonPreemptible" if quota is not None:
                yield from raised.min_of(quota, {e.resource: e.used + e.asks for e in short})


def _refuses(explanation: Explanation, gate: str) -> bool:
    return any(each.gate == gate and not each.passes for each in explanation.gates)


def _asks(explanation: Explanation) -> dict[str, int]:
    """What the claim asks for of each resource that its gates compare."""
    return {each.resource: each.asks for gate in explanation.gates for each in gate.figures}


def _within(summary: QuotaSummary, short: list[GateFigure]) -> dict[str, int]:
    """The min that holds what the quota uses, and what the claim asks for."""
    return {each.resource: summary.used.get(each.resource, 0) + each.asks for each in short}


class _Raise:
    """Raises bounds of quotas, each in the fields of its own kind of object."""

    def __init__(self, moment: Moment, quotas: Mapping[str, QuotaSummary]) -> None:
        self._objects = moment.simulation.world.mirror.store.objects
        self._quotas = quotas

    def key(self, quota: str) -> Key | None:
        """The object that a quota was read from; None for one that no object states."""
        namespace, _, name = quota.rpartition("/")
        keys = [(kind, namespace, name) for kind in KINDS] if namespace else []
        for key in [*keys, ("Queue", "", quota)]:
            if key in self._objects:
                return key
        return None

    def maxes(self, short: list[GateFigure]) -> Iterator[Proposal]:
        """Every max that the claim would exceed, raised by what it would exceed it by."""
        by_quota: dict[str, dict[str, int]] = {}
        for each in short:
            by_quota.setdefault(str(each.quota), {})[each.resource] = each.most + each.beyond
        steps, words = list[Step](), list[str]()
        for quota, most in by_quota.items():
            key = self.key(quota)
            if key is None:
                return
            field = "capability" if key[0] == "Queue" else "max"
            steps.append(patch(key, {"spec": {field: self._written(key, most)}}))
            words += [self._words("max", quota, name, n) for name, n in most.items()]
        if steps:
            yield Proposal(" and ".join(words), tuple(steps))

    def is_queue(self, quota: str) -> bool:
        """Is it a queue of Volcano?"""
        return (self.key(quota) or ("",))[0] == "Queue"

    def _words(self, word: str, quota: str, resource: str, to: int) -> str:
        bounds = self._quotas[quota].max if word == "max" else self._quotas[quota].min
        before, after = (quantity.text(resource, n) for n in (bounds.get(resource, 0), to))
        if self.is_queue(quota):
            field = "capability" if word == "max" else "guarantee"
            return f"raise {field} of queue {quota} from {before} to {after} {resource}"
        return f"raise {word} of quota {quota} from {before} to {after} {resource}"

    def _min_words(self, quota: str, resource: str, to: int) -> str:
        """A min that is raised, and its max with it where it is below."""
        most = self._quotas[quota].max.get(resource)
        words = self._words("min", quota, resource, to)
        if most is None or most >= to:
            return words
        before, after = quantity.text(resource, most), quantity.text(resource, to)
        field = "capability" if self.is_queue(quota) else "max"
        return f"{words}, and its {field} from {before} to {after}"

    def min_of(self, quota: str, wanted: Mapping[str, int]) -> Iterator[Proposal]:
        """A min raised to these amounts; where that is above max, max as well.

        The min of its ancestors too, where it is not enough for their children's.
        """
        if not wanted:
            return
        steps, words, below = list[Step](), list[str](), dict[str, int]()
        name: str | None = quota
        while name is not None and name in self._quotas:
            summary, key = self._quotas[name], self.key(name)
            if key is None or (name != quota and not summary.min):
                break
            if name == quota:
                to = dict(wanted)
            else:
                to = {r: self._children(name, r) + more for r, more in below.items()}
            to = {r: n for r, n in to.items() if n > summary.min.get(r, 0)}
            if not to:
                break
            steps.append(patch(key, self._min_patch(key, to, summary)))
            words += [self._min_words(name, r, n) for r, n in to.items()]
            below = {r: n - summary.min.get(r, 0) for r, n in to.items()}
            name = summary.parent
        if steps:
            yield Proposal(" and ".join(words), tuple(steps))

    def _min_patch(self, key: Key, to: Mapping[str, int], summary: QuotaSummary) -> Body:
        """The patch of a quota whose min rises to this; its max with it where it is below."""
        above = {r: n for r, n in to.items() if r in summary.max and n > summary.max[r]}
        low, high = self._written(key, to), self._written(key, above)
        if key[0] == "Queue":
            body: Body = {"guarantee": {"resource": low}} | ({"capability": high} if above else {})
        else:
            body = {"min": low} | ({"max": high} if above else {})
        return {"spec": body}

    def _written(self, key: Key, found: Mapping[str, int]) -> dict[str, str]:
        """Amounts as quantities; GPU memory in the spelling that the object has."""
        spec = str(self._objects[key].body.get("spec"))
        other = next((each for each in SPELLINGS if f"'{each}'" in spec), GPU_MEMORY)
        told = amounts.write(found)
        return {other if name == GPU_MEMORY else name: text for name, text in told.items()}

    def _children(self, parent: str, resource: str) -> int:
        mins = (q.min.get(resource, 0) for q in self._quotas.values() if q.parent == parent)
        return sum(mins)

    def shares(self, short: list[GateFigure]) -> Iterator[Proposal]:
        """The shares that the claim would exceed, raised to hold it: by min, or by `deserved`."""
        by_quota: dict[str, dict[str, int]] = {}
        for each in short:
            by_quota.setdefault(str(each.quota), {})[each.resource] = each.used + each.asks
        first = next(iter(by_quota), None)
        if first is None:
            return
        if not self.is_queue(first):
            yield from self.min_of(first, by_quota[first])
            return
        for field in ("deserved", "guarantee"):
            steps, words = list[Step](), list[str]()
            for quota, wanted in by_quota.items():
                key = self.key(quota)
                if key is None:
                    return
                fixed = self._objects[key].body.get("spec", {}).get("deserved")
                if field == "deserved" and not fixed:
                    continue
                told = self._written(key, wanted)
                body = (
                    {"deserved": told} if field == "deserved" else {"guarantee": {"resource": told}}
                )
                steps.append(patch(key, {"spec": body}))
                words.append(f"raise {field} of queue {quota} to {_listed(wanted)}")
            if steps:
                yield Proposal(" and ".join(words), tuple(steps))
        yield from self._weights(by_quota)

    def _weights(self, by_quota: Mapping[str, Mapping[str, int]]) -> Iterator[Proposal]:
        """The weight with which a queue's share of its siblings' would hold the claim."""
        for quota, wanted in list(by_quota.items())[:1]:
            summary, key = self._quotas[quota], self.key(quota)
            siblings = [q for q in self._quotas.values() if q.parent == summary.parent]
            for resource, needed in wanted.items():
                total = sum(q.runtime.get(resource, 0) for q in siblings)
                others = sum(q.weight.get(resource, 1) for q in siblings if q.name != quota)
                if key is None or needed >= total:
                    continue
                weight = -(-needed * others // (total - needed))
                if weight > summary.weight.get(resource, 1):
                    body: Body = {"spec": {"weight": weight}}
                    yield Proposal(
                        f"raise weight of queue {quota} to {weight}", (patch(key, body),)
                    )


def _listed(figures: Mapping[str, int]) -> str:
    return ", ".join(f"{quantity.text(name, n)} {name}" for name, n in figures.items())
