"""The causes of a refusal: field, reason and message, in the words of kube-apiserver."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aliquot.errors import shortened


@dataclass(frozen=True, slots=True)
class Cause:
    """One problem of one field, as in `details.causes` of a Status."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def wire(self) -> dict[str, str]:
        """The cause as JSON."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


def join_causes(causes: Sequence[Cause]) -> str:
    """All causes in one text, as the message of a Status has them."""
    each = [str(cause) for cause in causes]
    return each[0] if len(each) == 1 else f"[{', '.join(each)}]"


def required(field: str, detail: str = "") -> Cause:
    """A required field is missing."""
    return Cause(field, "FieldValueRequired", _joined("Required value", detail))


def invalid(field: str, value: Any, detail: str) -> Cause:
    """A field has a value that a rule refuses."""
    return Cause(field, "FieldValueInvalid", _joined(f"Invalid value: {quoted(value)}", detail))


def wrong_type(field: str, value: Any, detail: str) -> Cause:
    """A field has a value of the wrong type."""
    message = _joined(f"Invalid value: {quoted(value)}", detail)
    return Cause(field, "FieldValueTypeInvalid", message)


def not_supported(field: str, value: Any, words: Iterable[Any]) -> Cause:
    """A field has a value outside its enumeration."""
    known = ", ".join(json.dumps(str(each)) for each in words)
    message = f"Unsupported value: {quoted(value)}: supported values: {known}"
    return Cause(field, "FieldValueNotSupported", message)


def forbidden(field: str, detail: str) -> Cause:
    """A field may not be set here, or not be changed now."""
    return Cause(field, "FieldValueForbidden", _joined("Forbidden", detail))


def duplicate(field: str, value: Any) -> Cause:
    """A list that must have unique items has this one twice."""
    return Cause(field, "FieldValueDuplicate", f"Duplicate value: {quoted(value)}")


def too_long(field: str, most: int) -> Cause:
    """A text is too long."""
    detail = f"Too long: may not be more than {most} bytes"
    return Cause(field, "FieldValueTooLong", detail)


def too_many(field: str, number: int, most: int) -> Cause:
    """A list has too many items."""
    message = f"Too many: {number}: must have at most {most} items"
    return Cause(field, "FieldValueTooMany", message)


def quoted(value: Any) -> str:
    """A value as messages quote it, shortened."""
    return shortened(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _joined(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message
