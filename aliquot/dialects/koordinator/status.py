"""The annotations that Koordinator writes into a quota as its status, each a JSON map.

All figures are the engine's, also those by which no policy decides.
"""

import json
from collections.abc import Container, Mapping

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import KOORDINATOR_PREFIX
from aliquot.engine import Engine, Figures, QuotaSummary


def status_annotations(
    engine: Engine, summaries: Mapping[str, QuotaSummary]
) -> dict[str, dict[str, str]]:
    """The annotations of each quota; resources that the quota does not name are left out."""
    child_requests = engine.child_requests(summaries)
    asked, used = engine.not_preemptible()
    return {
        name: _annotations(
            {
                "runtime": summary.runtime,
                "request": summary.request,
                "child-request": child_requests[name],
                "non-preemptible-request": asked.get(name, {}),
                "non-preemptible-used": used.get(name, {}),
            },
            {*summary.min, *summary.max},
        )
        for name, summary in summaries.items()
    }


def _annotations(figures: Mapping[str, Figures], named: Container[str]) -> dict[str, str]:
    return {
        f"{KOORDINATOR_PREFIX}{key}": _json(each, named or each) for key, each in figures.items()
    }


def _json(figures: Figures, named: Container[str]) -> str:
    shown = {name: amount for name, amount in figures.items() if name in named}
    return json.dumps(amounts.write(shown), separators=(",", ":"))
