"""The annotations that Koordinator writes into a quota as its status, each a JSON map.

All figures are the engine's, also those by which no policy decides.
"""

from collections.abc import Container, Iterable, Mapping

import msgspec

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import KOORDINATOR_PREFIX
from aliquot.engine import Engine, Figures, QuotaSummary


def status_annotations(
    engine: Engine, summaries: Mapping[str, QuotaSummary]
) -> dict[str, dict[str, str]]:
    """The annotations of each quota; resources that the quota does not name are left out."""
    child_requests = engine.child_requests(summaries)
    asked, used = engine.not_preemptible()
    guaranteed, allocated = engine.guarantees(summaries)
    return {
        name: _annotations(
            {
                "runtime": summary.runtime,
                "request": summary.request,
                "child-request": child_requests[name],
                "guaranteed": guaranteed[name],
                "allocated": allocated[name],
                "non-preemptible-request": asked.get(name, {}),
                "non-preemptible-used": used.get(name, {}),
            },
            {*summary.min, *summary.max},
        )
        for name, summary in summaries.items()
    }


def root_figures(
    engine: Engine, summaries: Mapping[str, QuotaSummary]
) -> tuple[Figures, dict[str, str]]:
    """What the root quota uses, and its annotations: sums over the first level of the default tree.

    Each quota there counts with what it asks for, up to its max. The root is no quota of the
    engine's: what it would bound is the cluster.
    """
    first = [each for each in summaries.values() if each.parent is None and each.tree is None]
    asked, used = engine.not_preemptible()
    sure, _ = engine.guarantees(summaries)
    requests = [_limited(each) for each in first]
    in_use = _sum(each.used for each in first)
    figures = {
        "request": _sum(requests),
        "child-request": _sum(requests),
        "guaranteed": _sum(sure[each.name] for each in first),
        "allocated": _sum(sure[each.name] for each in first),
        "non-preemptible-request": _sum(asked.get(each.name, {}) for each in first),
        "non-preemptible-used": _sum(used.get(each.name, {}) for each in first),
    }
    return in_use, _annotations(figures, ())


def _limited(summary: QuotaSummary) -> Figures:
    return {name: min(n, summary.max.get(name, n)) for name, n in summary.request.items()}


def _sum(several: Iterable[Figures]) -> Figures:
    total: Figures = {}
    for figures in several:
        for name, amount in figures.items():
            total[name] = total.get(name, 0) + amount
    return total


def _annotations(figures: Mapping[str, Figures], named: Container[str]) -> dict[str, str]:
    return {
        f"{KOORDINATOR_PREFIX}{key}": _json(each, named or each) for key, each in figures.items()
    }


def _json(figures: Figures, named: Container[str]) -> str:
    shown = {name: amount for name, amount in figures.items() if name in named}
    return msgspec.json.encode(amounts.write(shown)).decode()
