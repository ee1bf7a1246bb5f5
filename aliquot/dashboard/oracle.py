"""What the page asks an engine of its own, as `aliquot explain` and `aliquot what-if` do.

A process of its own answers, by the same modules as the commands: open pages are told what changes
meanwhile, and a copy of the cluster for each cure costs this process nothing. The cluster is read
anew for a question unless it was read a moment ago, as while a slider is dragged.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import yaml

from aliquot.dialects.core import amounts
from aliquot.dialects.core.documents import Document
from aliquot.errors import AliquotError, ArgumentError
from aliquot.json import Body, fresh
from aliquot.questions.explanation import explain_pod
from aliquot.questions.moment import Moment
from aliquot.questions.overlay import identity
from aliquot.questions.sources.origin import Origin
from aliquot.questions.sources.source import Source
from aliquot.questions.what_if import Hypothesis, consequences

_FRESH_SECONDS = 3.0
"""How long what was read is asked again."""
_QUOTAS = ("ElasticQuota", "CompositeElasticQuota")
_MOST_NODES = 1000
_FIELDS = {"min": ("min",), "max": ("max",)}
_QUEUE_FIELDS = {"min": ("guarantee", "resource"), "max": ("capability",)}
_PLAIN = (*_QUOTAS, "Queue", "PodGroup", "ResourceQuota", "GPUResourceQuota")
"""Kinds whose patches hold no pod."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_OWN_METADATA = ("name", "namespace", "labels", "annotations")

Answer = dict[str, Any]


class EngineOracle:
    """Answers questions about the cluster or the files that an origin names."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._process: ProcessPoolExecutor | None = None

    async def explain(self, pod: str) -> Answer:
        """What `aliquot explain` says of a pod."""
        return await self._ask(_explain, pod)

    async def what_if(self, change: Answer) -> Answer:
        """What `aliquot what-if` says, and the change as YAML."""
        return await self._ask(_what_if, change)

    def close(self) -> None:
        """End the process that answers."""
        if self._process is not None:
            self._process.shutdown(wait=False, cancel_futures=True)
            self._process = None

    async def _ask(self, question: Callable[[Origin, Any], Answer], about: Any) -> Answer:
        if self._process is None:
            self._process = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        loop = asyncio.get_running_loop()
        found, problem = await loop.run_in_executor(
            self._process, _answered, question, self._origin, about
        )
        if problem:
            raise ArgumentError(problem)
        return found


_kept: tuple[Source, float] | None = None
"""What the answering process has read last, and when."""


def _answered(
    question: Callable[[Origin, Any], Answer], origin: Origin, about: Any
) -> tuple[Answer, str]:
    """The answer, or what is wrong with the question: errors do not cross processes as they are."""
    try:
        return question(origin, about), ""
    except AliquotError as error:
        return {}, str(error)


def _source(origin: Origin) -> Source:
    global _kept
    now = time.monotonic()
    if _kept is None or now - _kept[1] > _FRESH_SECONDS:
        _kept = origin.read(), now
    return _kept[0]


def _explain(origin: Origin, pod: str) -> Answer:
    moment = Moment(_source(origin))
    found = explain_pod(moment, pod, lambda path: list(origin.past(path)["decisions"]))
    for cure in found.get("cures") or ():
        cure["changes"] = [_without_pods(each) for each in cure["changes"]]
    return found


def _without_pods(change: Answer) -> Answer:
    """A change of a cure; not how pods change: that holds their images and environment."""
    kept = {word: change.get(word) for word in ("how", "object")}
    plain = change.get("how") == "patch" and (change.get("object") or {}).get("kind") in _PLAIN
    return {**kept, "patch": change["patch"]} if plain else kept


def _what_if(origin: Origin, change: Answer) -> Answer:
    source = _source(origin)
    changed = list(changed_quotas(source, _mapping(change.get("quotas", {}), "quotas")))
    number, like = change.get("addNodes", 0), change.get("like")
    if not isinstance(number, int) or not 0 <= number <= _MOST_NODES:
        raise ArgumentError(f"addNodes: {number!r:.40} is no number up to {_MOST_NODES}")
    hypothesis = Hypothesis(changed, add_nodes=number, like=like if number else None)
    written = yaml.safe_dump_all((each.body for each in changed), sort_keys=False)
    if number:
        written += f"# and {number} more nodes like {like}\n"
    return {**consequences(source, hypothesis), "yaml": written}


def changed_quotas(source: Source, bounds: Mapping[str, Any]) -> Iterator[Document]:
    """The objects of these quotas with other bounds, as a user would write them."""
    known = {key: each for each in source.documents if (key := identity(each)) is not None}
    for name, fields in bounds.items():
        namespace, _, bare = name.rpartition("/")
        keys = [(kind, namespace, bare) for kind in _QUOTAS if namespace]
        found = next((known[key] for key in [*keys, ("Queue", "", name)] if key in known), None)
        if found is None:
            raise ArgumentError(f"quota {name}: no object states it, so its bounds cannot change")
        yield replace(found, body=_with_bounds(found.body, _mapping(fields, name)))


def _with_bounds(old: Body, bounds: Mapping[str, Any]) -> Body:
    body: Body = fresh(old)
    kept = {name: value for name, value in body["metadata"].items() if name in _OWN_METADATA}
    if kept.get("annotations"):
        kept["annotations"].pop(_LAST_APPLIED, None)
    body = {key: body[key] for key in ("apiVersion", "kind")} | {
        "metadata": kept,
        "spec": body.get("spec") or {},
    }
    paths = _QUEUE_FIELDS if body["kind"] == "Queue" else _FIELDS
    for bound, figures in bounds.items():
        if bound not in paths:
            raise ArgumentError(f"{bound!r:.40} is no bound of a quota: min and max are")
        place = body["spec"]
        for field in paths[bound]:
            place = place.setdefault(field, {})
        place.update(amounts.write(_whole(_mapping(figures, bound))))
    return body


def _whole(figures: Mapping[str, Any]) -> dict[str, int]:
    for name, value in figures.items():
        if not isinstance(value, int) or value < 0:
            raise ArgumentError(f"{name}: {value!r:.40} is no whole number of at least 0")
    return dict(figures)


def _mapping(found: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise ArgumentError(f"{what}: {found!r:.40} is no object")
    return found
