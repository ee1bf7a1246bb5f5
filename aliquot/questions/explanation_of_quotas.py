"""How a quota stands: the answer of `aliquot explain quota`, as plain data.

What it has, lends and borrows, from and to which quotas, which pods wait in it and why, and its way
up the tree with the figures that bound it at each step. As the scheduler's next cycle leaves it.
"""

from collections import Counter
from difflib import get_close_matches
from typing import Any

from aliquot.dialects.core import amounts
from aliquot.engine import QuotaSummary, natural
from aliquot.errors import ArgumentError
from aliquot.questions import copies
from aliquot.questions.moment import Moment
from aliquot.simulation import outcome

Result = dict[str, Any]
_ENTITLEMENT = {"hierarchy": "runtime", "queues": "deserved"}


def explain_quota(moment: Moment, name: str) -> Result:
    """Everything about one quota; nothing of the moment changes."""
    names = [each.name for each in moment.engine.summarise()]
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {len(names)} quotas"
        raise ArgumentError(f"there is no quota {name}{hint}")
    return copies.ask(lambda: _settled(moment, name))


def _settled(moment: Moment, name: str) -> Result:
    moment.settle()
    quotas = {each.name: each for each in moment.engine.summarise()}
    summary = quotas[name]
    return {
        "quota": outcome.quota(summary),
        "policy": moment.policy,
        "lends": amounts.write(_lent(quotas, summary)),
        "lendsTo": _borrowers(quotas, summary),
        "borrowsFrom": _lenders(quotas, summary),
        "path": [_step(moment, quotas, each) for each in _way_up(quotas, name)],
        "children": [each.name for each in quotas.values() if each.parent == name],
        "pods": _pods(moment, name),
        "waiting": _waiting(moment, name),
    }


def _way_up(quotas: dict[str, QuotaSummary], name: str) -> list[QuotaSummary]:
    """The quota and those above it, its own first."""
    found = [quotas[name]]
    while (above := found[-1].parent) is not None and above in quotas:
        found.append(quotas[above])
    return found


def _step(moment: Moment, quotas: dict[str, QuotaSummary], summary: QuotaSummary) -> Result:
    """The figures of one step of its way up, and what its siblings want of the same share."""
    siblings = [each for each in quotas.values() if each.parent == summary.parent]
    rows = []
    for resource in sorted({*summary.min, *summary.max, *summary.used, *summary.request}):
        figures: Result = {
            "resource": resource,
            **{
                word: amounts.write({resource: getattr(summary, word).get(resource, 0)})[resource]
                for word in ("min", "used", "request", "runtime", "weight")
                if resource in getattr(summary, word)
            },
        }
        if resource in summary.max:
            figures["max"] = amounts.write({resource: summary.max[resource]})[resource]
        shared = sum(each.runtime.get(resource, 0) for each in siblings)
        figures["siblings"] = len(siblings)
        figures["siblingsRuntime"] = amounts.write({resource: shared})[resource]
        rows.append(figures)
    return {"quota": summary.name, "parent": summary.parent, "resources": rows}


def _borrowed(summary: QuotaSummary) -> dict[str, int]:
    return {name: amount for name, amount in summary.borrowed.items() if amount > 0}


def _lent(quotas: dict[str, QuotaSummary], summary: QuotaSummary) -> dict[str, int]:
    """Its idle min that others use now: no more than all of them borrow together."""
    lent = {}
    for name, idle in summary.idle.items():
        total = sum(_borrowed(each).get(name, 0) for each in _leaves(quotas))
        if min(idle, total) > 0:
            lent[name] = min(idle, total)
    return lent


def _leaves(quotas: dict[str, QuotaSummary]) -> list[QuotaSummary]:
    parents = {each.parent for each in quotas.values()}
    return [each for each in quotas.values() if each.name not in parents]


def _borrowers(quotas: dict[str, QuotaSummary], summary: QuotaSummary) -> list[Result]:
    """The quotas that borrow what it lends; which of them borrows from whom is not told apart."""
    found = []
    for each in _leaves(quotas):
        figures = {n: a for n, a in _borrowed(each).items() if summary.idle.get(n, 0) > 0}
        if each.name != summary.name and figures:
            found.append({"quota": each.name, "borrows": amounts.write(figures)})
    return found


def _lenders(quotas: dict[str, QuotaSummary], summary: QuotaSummary) -> list[Result]:
    """The quotas whose idle min it may be using."""
    borrowed, found = _borrowed(summary), []
    for each in _leaves(quotas):
        figures = {n: a for n, a in each.idle.items() if n in borrowed and a > 0}
        if each.name != summary.name and figures:
            found.append({"quota": each.name, "idle": amounts.write(figures)})
    return found


def _pods(moment: Moment, name: str) -> Result:
    """How many of its pods run in-quota, over-quota, and wait."""
    over, count = moment.engine.over_quota_pods(), Counter[str]()
    for uid, record in moment.simulation.world.mirror.records.items():
        if record.alive and moment.engine.quota_of(record.pod) == name:
            running = record.phase == "Running"
            count["waiting" if not running else "overQuota" if uid in over else "inQuota"] += 1
    return {word: count[word] for word in ("inQuota", "overQuota", "waiting")}


def _waiting(moment: Moment, name: str) -> list[Result]:
    """Its waiting pods, each with the reason; pods alike share one answer."""
    engine, told, found = moment.engine, dict[object, Any](), []
    for uid, record in moment.simulation.world.mirror.records.items():
        if record.phase != "Pending" or engine.quota_of(record.pod) != name:
            continue
        kind = engine.kind_of_waiting(uid) or uid
        if kind not in told:
            told[kind] = engine.why(uid, moment.simulation.now)
        refusal = told[kind]
        if refusal is not None:
            reason, message = str(refusal.reason), refusal.message
            found.append({"pod": record.pod.path, "reason": reason, "message": message})
    return sorted(found, key=lambda each: natural(each["pod"]))
