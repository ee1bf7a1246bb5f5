"""Knobs of the Configuration that might let a pod start, each tried on an engine built anew.

A knob holds for the whole cluster, so it is proposed after what concerns the pod and its quota. On
a large cluster an engine built anew takes longer than a question may: there, none is tried.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec

from aliquot.dialects import configuration
from aliquot.dialects.core.documents import Document
from aliquot.engine import Explanation
from aliquot.errors import AliquotError
from aliquot.json import Body
from aliquot.questions import copies
from aliquot.questions.cures.changes import CONFIGURATION, patch
from aliquot.questions.cures.proposal import Cure
from aliquot.questions.moment import Moment
from aliquot.server.patch.merge import merge_patch

_MOST_OBJECTS = 4_000
"""Beyond this, reading the objects anew takes about a second."""
_FILE = "the Configuration"


def cures_by_knobs(
    moment: Moment,
    path: str,
    explanation: Explanation,
    anyway: Iterable[str],
    others: list[Cure],
) -> list[Cure]:
    """The knobs that let the pod start, each by itself."""
    if moment.is_large or (others and len(moment.source.documents) > _MOST_OBJECTS):
        return []
    found = []
    for words, body in _knobs(moment, explanation):
        evicts = _played(moment, path, body)
        if evicts is not None:
            gone = tuple(each for each in evicts if each not in set(anyway))
            step = patch((CONFIGURATION, "", ""), body)
            found.append(Cure(f"set the knob {words}", (step,), gone))
    return found


def _knobs(moment: Moment, explanation: Explanation) -> Iterator[tuple[str, Body]]:
    """The knobs that have to do with what refuses the pod."""
    refused = {gate.gate for gate in explanation.gates if not gate.passes}
    settings, policy = moment.source.settings, moment.policy
    if "Borrowing" in refused:
        yield f"{policy}.borrow: freeCapacity", {policy: {"borrow": "freeCapacity"}}
    if "QuotaAccess" in refused and policy == "hierarchy":
        yield "hierarchy.parentPods: implicitChild", {"hierarchy": {"parentPods": "implicitChild"}}
    if "Runtime" in refused and not settings.hierarchy.surplus:
        yield "hierarchy.surplus: true", {"hierarchy": {"surplus": True}}
    if settings.eviction.quotaless == "protected" and "Nodes" in refused:
        yield "eviction.quotaless: lowest", {"eviction": {"quotaless": "lowest"}}
    if str(settings.eviction.min_runtime) not in ("0", "0s") and explanation.no_preemption:
        yield "eviction.minRuntime: 0s", {"eviction": {"minRuntime": "0s"}}
    if settings.eviction.max_per_minute and "Holds" in refused:
        yield "eviction.maxPerMinute: 0", {"eviction": {"maxPerMinute": 0}}


def _played(moment: Moment, path: str, body: Body) -> list[str] | None:
    """Who is evicted under these settings, if the pod starts then."""

    def play() -> list[str] | None:
        source = moment.source
        before = msgspec.to_builtins(source.settings)
        head = {"apiVersion": "config.aliquot.dev/v1alpha1", "kind": CONFIGURATION}
        try:
            settings = configuration.read(Document(_FILE, merge_patch(head | before, body)))
            other = Moment(replace(source, settings=settings))
            other.simulation.settle()
        except AliquotError:
            return None
        record = other.pod(path)
        if record is None or record.phase != "Running":
            return None
        return [each.pod.path for each in other.evictions()]

    return copies.ask(play)
