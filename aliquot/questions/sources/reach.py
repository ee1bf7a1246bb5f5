"""How a live cluster is reached: what every question may name, and files never need.

Apart from `cluster`, so that a question to a file loads no HTTP client, which would be a sixth of
the time until it begins.
"""

from dataclasses import dataclass
from pathlib import Path

HOME = "aliquot-system"
"""The namespace in which Aliquot runs, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How to reach a cluster, and where on it Aliquot runs."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str = HOME
