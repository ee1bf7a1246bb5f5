"""History: decisions as they were taken, from the control plane's decision log.

It is asked through the API server (`services/proxy` of Aliquot's Service), which needs no network
of its own; where that is not allowed or not possible, what Kubernetes keeps as events is read, and
that is said. A file is a decision log, or a recording of an engine.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec

from aliquot.dialects.core.times import moment, seconds, timestamp
from aliquot.errors import ApiError, InputError, UnreachableError
from aliquot.json import Body, seek
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import EVENTS, SERVICES
from aliquot.kube.install.installation import SCHEDULER
from aliquot.questions.sources.reach import Reach
from aliquot.validation import files

Result = dict[str, Any]
_PAGE = 2_000
_PORT = "metrics"
"""The port of the scheduler's Service."""
_ATTEMPTS = 6
"""The Service leads to any replica, of which two are usual, and only the leader decides."""
_LEARNT = "the decision log"
_COMPONENT = "aliquot"
_REASONS = {"Scheduled": "started", "Preempted": "evicted", "FailedScheduling": "waits"}
_REAL_TIME = 10 * 365 * 86_400 * 10**9
"""Times after this are of the wall clock; virtual time begins at 0."""
_decode = msgspec.json.Decoder(Body).decode


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which decisions: about a pod or a quota, not before a moment, at most the last so many."""

    of: str = ""
    since: int | None = None
    most: int = 0


def read_file(paths: Iterable[str], wanted: Wanted) -> Result:
    """The decisions of decision logs or recordings."""
    found = list[Body]()
    for path in paths:
        for content, name in files.contents(path):
            found += _lines(content.splitlines(), name)
    return _result(found, wanted, ", ".join(paths), "")


def read_cluster(reach: Reach, wanted: Wanted) -> Result:
    """The decisions of a cluster's control plane."""
    return asyncio.run(_read(reach, wanted))


async def _read(reach: Reach, wanted: Wanted) -> Result:
    found = access.find(reach.kubeconfig, reach.context)
    async with Client(found, connections=2) as client:
        try:
            lines = await _decision_log(client, reach.namespace)
            return _result(_lines(lines, _LEARNT), wanted, f"{_LEARNT} of {found.url}", "")
        except ApiError as error:
            note = f"the decision log cannot be read ({error}): from events, which are kept an hour"
        try:
            events = await _events(client)
        except ApiError as error:
            raise InputError(f"cluster {found.url}", "", str(error)) from None
    return _result(events, wanted, f"events of {found.url}", note)


async def decided(client: Client, namespace: str) -> list[Body]:
    """The entries of the decision log, the oldest first."""
    return list(_lines(await _decision_log(client, namespace), _LEARNT))


async def _decision_log(client: Client, namespace: str) -> list[bytes]:
    """The lines of the replica that leads; over TLS where metrics are protected."""
    try:
        return await _of_leader(client, _proxy(namespace, ""))
    except ApiError as error:
        if error.code in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            raise
        plain = error
    try:
        return await _of_leader(client, _proxy(namespace, "https:"))
    except ApiError as error:
        raise (error if error.code == HTTPStatus.UNAUTHORIZED else plain) from None


def _proxy(namespace: str, scheme: str) -> str:
    services = SERVICES.path(namespace)
    return f"{services}/{scheme}{SCHEDULER}:{_PORT}/proxy/debug/decisions"


async def _of_leader(client: Client, where: str) -> list[bytes]:
    lines = list[bytes]()
    for _ in range(_ATTEMPTS):
        head, *lines = (await client.call("GET", where)).splitlines() or [b"{}"]
        try:
            leads = bool(_decode(head).get("leader"))
        except msgspec.DecodeError as error:
            raise UnreachableError(f"{where}: not a decision log: {error}", sent=True) from None
        if leads:
            break
    return lines


async def _events(client: Client) -> list[Body]:
    """What events say of decisions, in order of time."""
    query = {"limit": _PAGE}
    found = list[Body]()
    while True:
        answer = await client.get(EVENTS.path(), query)
        found += filter(None, map(_of_event, answer.get("items") or ()))
        rest = seek(answer, "metadata", "continue")
        if not rest:
            return sorted(found, key=lambda each: str(each["at"]))
        query = {**query, "continue": rest}


def _of_event(event: Body) -> Body | None:
    """The decision that an event tells; None for events that tell none of ours."""
    what = _REASONS.get(str(event.get("reason")))
    about = event.get("involvedObject") or {}
    sender = seek(event, "source", "component") or event.get("reportingComponent")
    if what is None or about.get("kind") != "Pod" or sender != _COMPONENT:
        return None
    reason, _, message = str(event.get("message")).partition(": ")
    return {
        "at": event.get("lastTimestamp") or event.get("eventTime"),
        "what": what,
        "pod": f"{about.get('namespace')}/{about.get('name')}",
        "uid": about.get("uid") or "",
        "reason": reason if message else "",
        "message": message or reason,
    }


def _lines(lines: Iterable[bytes], name: str) -> Iterator[Body]:
    """The decisions of the lines of a decision log or a recording."""
    at: str | float = 0
    for number, line in enumerate(lines, start=1):
        try:
            body = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problem = f"not a decision log: {error}"
            raise InputError(f"{name}, line {number}", "", problem) from None
        if "what" in body:
            yield body
        elif "cycle" in body:
            at = _time(body["cycle"])
        else:
            decisions = body.get("decisions")
            yield from ({"at": at, **each} for each in decisions or () if isinstance(each, dict))


def _time(now: Any) -> str | float:
    """The time of a cycle: of the wall clock, or seconds of virtual time."""
    if type(now) is not int:
        return 0
    return moment(now) if now > _REAL_TIME else seconds(now)


def _result(found: Iterable[Body], wanted: Wanted, source: str, note: str) -> Result:
    chosen = [_entry(each) for each in found if _is_wanted(each, wanted)]
    decisions = chosen[-wanted.most :] if wanted.most else chosen
    return {"source": source, "note": note or None, "decisions": decisions}


def _is_wanted(entry: Body, wanted: Wanted) -> bool:
    about = (entry.get("pod"), entry.get("quota"), entry.get("for"))
    if wanted.of and wanted.of not in about:
        return False
    at = entry.get("at")
    if wanted.since is None or not isinstance(at, str):
        return True
    return (timestamp(at, "decision", "at") or 0) >= wanted.since


def _entry(found: Body) -> Body:
    """Every key of an entry, those that are not known as null."""
    plain = {word: found.get(word) for word in ("at", "what", "pod", "quota", "node", "for")}
    words = {word: found.get(word) or "" for word in ("uid", "reason", "message")}
    more = {"devices": found.get("devices") or [], "quotas": found.get("quotas") or {}}
    return {**plain, **words, **more}
