"""Strategic merge patches: merge patches that know how the lists of a kind are to be merged."""

from typing import Any

from aliquot.dialects.documents import Body
from aliquot.errors import UnsupportedPatch


def strategic_merge_patch(body: Body, patch: Any, kind: str) -> Body:
    """Not for custom kinds, of whose lists nothing is known."""
    raise UnsupportedPatch(f"{kind} has no strategic merge patch")
