"""Decisions as entries for people and programs: what was decided about which pod, and why.

The lines of the decision log, of a recording, and of `aliquot history` are made of these. Where
pods are evicted, an entry holds the figures of the quotas on both sides at that moment.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from aliquot.dialects.core import amounts
from aliquot.engine import Bind, Decision, Engine, Evict, Nominate, Pod, Wait

What = Literal["started", "evicted", "nominated", "waits"]


class Figures(msgspec.Struct, omit_defaults=True):
    """A quota at the moment of a decision."""

    used: dict[str, str]
    min: dict[str, str]
    max: dict[str, str]
    runtime: dict[str, str] = {}


class Entry(msgspec.Struct, omit_defaults=True):
    """One decision about one pod."""

    what: What
    pod: str
    uid: str
    quota: str | None = None
    node: str | None = None
    devices: list[str] = []
    claimant: str | None = msgspec.field(default=None, name="for")
    """The pod that an evicted one makes way for."""
    reason: str = ""
    message: str = ""
    quotas: dict[str, Figures] = {}


def entries(engine: Engine, decisions: Iterable[Decision]) -> Iterator[Entry]:
    """The decisions of one cycle, one entry for each pod; victims before what they make way for."""
    figures: dict[str, Figures] = {}
    for decision in decisions:
        match decision:
            case Bind(pod, node, devices):
                yield _entry(engine, "started", pod, node=node, devices=list(devices))
            case Wait(pod, refusal):
                reason, message = str(refusal.reason), refusal.message
                yield _entry(engine, "waits", pod, reason=reason, message=message)
            case Evict():
                yield _evicted(engine, decision, figures)
            case Nominate(pods, nodes, victims):
                for victim in victims:
                    yield _evicted(engine, victim, figures)
                for pod, node in zip(pods, nodes, strict=True):
                    yield _entry(engine, "nominated", pod, node=node)


def _entry(
    engine: Engine,
    what: What,
    pod: Pod,
    node: str | None = None,
    devices: list[str] | None = None,
    reason: str = "",
    message: str = "",
) -> Entry:
    quota = engine.quota_of(pod)
    return Entry(what, pod.path, pod.uid, quota, node, devices or [], None, reason, message)


def _evicted(engine: Engine, evict: Evict, figures: dict[str, Figures]) -> Entry:
    found = _entry(engine, "evicted", evict.pod, node=evict.pod.node)
    found.reason, found.message = str(evict.reason), evict.message
    of: list[str | None] = [found.quota]
    if evict.claimant is not None:
        found.claimant = evict.claimant.path
        of.append(engine.quota_of(evict.claimant))
    if not figures:
        figures |= _figures(engine)
    found.quotas = {each: figures[each] for each in of if each is not None and each in figures}
    return found


def _figures(engine: Engine) -> dict[str, Figures]:
    return {
        each.name: Figures(
            *(amounts.write(found) for found in (each.used, each.min, each.max, each.runtime))
        )
        for each in engine.summarise()
    }
