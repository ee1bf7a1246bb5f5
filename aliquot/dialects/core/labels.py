"""Labels, annotations and selectors: maps of text.

Unquoted YAML such as `true` or `1` is no text. It is read as its author wrote it, and `validation`
warns that an API server would refuse it.
"""

from collections.abc import Mapping
from typing import Any

from aliquot.dialects.core.manifest import Manifest

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")
"""The labels by which pods name their Job."""
JOB_UID = "batch.kubernetes.io/controller-uid"
"""The label by which a Job selects its pods."""
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""The annotation of a CronJob's Job with the time for which it was made."""


def text_map(values: Mapping[str, Any] | None, manifest: Manifest, field: str) -> dict[str, str]:
    """The map with text values; an unquoted `true` or number is read as it was written."""
    found = {}
    for key, value in (values or {}).items():
        if type(value) is str:
            found[key] = value
            continue
        if isinstance(value, dict | list):
            manifest.refuse(f"{field}[{key}]", "must be text")
            continue
        found[key] = to_text(value)
    return found


def to_text(value: object) -> str:
    """A plain YAML value as its author wrote it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def unquoted_keys(values: Mapping[str, Any] | None) -> list[str]:
    """The keys whose values are no text, which an API server would refuse."""
    return [key for key, value in (values or {}).items() if not isinstance(value, str)]
