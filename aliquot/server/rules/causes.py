"""What is wrong with an object, as an API server says it: field, reason and message, one by one."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_MOST_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing wrong with one field, as it stands in `details.causes` of a Status."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def wire(self) -> dict[str, str]:
        """The cause as JSON has it."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


def together(causes: Sequence[Cause]) -> str:
    """All of them in one sentence, as the message of a Status has them."""
    each = [str(cause) for cause in causes]
    return each[0] if len(each) == 1 else f"[{', '.join(each)}]"


def required(field: str, detail: str = "") -> Cause:
    """Something must be there."""
    return Cause(field, "FieldValueRequired", _joined("Required value", detail))


def invalid(field: str, value: Any, detail: str) -> Cause:
    """Something is there, and must not be so."""
    return Cause(field, "FieldValueInvalid", _joined(f"Invalid value: {shown(value)}", detail))


def wrong_type(field: str, value: Any, detail: str) -> Cause:
    """Text stands where a number should, or the like."""
    message = _joined(f"Invalid value: {shown(value)}", detail)
    return Cause(field, "FieldValueTypeInvalid", message)


def not_supported(field: str, value: Any, words: Iterable[Any]) -> Cause:
    """One of a few words is called for."""
    known = ", ".join(json.dumps(str(each)) for each in words)
    message = f"Unsupported value: {shown(value)}: supported values: {known}"
    return Cause(field, "FieldValueNotSupported", message)


def forbidden(field: str, detail: str) -> Cause:
    """It would be fine elsewhere, or at another time."""
    return Cause(field, "FieldValueForbidden", _joined("Forbidden", detail))


def duplicate(field: str, value: Any) -> Cause:
    """What must be there once is there twice."""
    return Cause(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def too_long(field: str, most: int) -> Cause:
    """A text is too long."""
    detail = f"Too long: may not be more than {most} bytes"
    return Cause(field, "FieldValueTooLong", detail)


def too_many(field: str, number: int, most: int) -> Cause:
    """A list has too many items."""
    message = f"Too many: {number}: must have at most {most} items"
    return Cause(field, "FieldValueTooMany", message)


def shown(value: Any) -> str:
    """A value as messages quote it, which may go on for megabytes."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


def _joined(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message
