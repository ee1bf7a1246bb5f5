"""The panels of the dashboard, and what they ask."""

from collections.abc import Iterator

from aliquot.json import Body
from aliquot.kube.monitoring.dashboard import dashboard


def panels() -> Iterator[Body]:
    """All panels but the headings, those of folded rows too."""
    for each in dashboard()["panels"]:
        yield from each.get("panels", ()) if each["type"] == "row" else (each,)


def queries() -> list[str]:
    """All expressions."""
    return [target["expr"] for panel in panels() for target in panel["targets"]]
