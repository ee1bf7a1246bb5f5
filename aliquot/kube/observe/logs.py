"""Logging of the control plane: lines of JSON in a cluster, colours in a terminal.

All records go through one chain of processors, also those of libraries that use the standard
library. The last one redacts what looks like a secret, in tracebacks too: no token may ever get
into a log, whatever the caller does. Tracebacks never show the values of variables.
"""

import logging
import re
import sys
from typing import Any, Literal

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

Form = Literal["json", "console"]
Level = Literal["debug", "info", "warning", "error"]

_REDACTED = "[secret]"
_SECRET_NAMES = re.compile(
    r"authorization|cookie|credential|passw|secret|token|private.?key|client.?key", re.IGNORECASE
)
_SECRET_TEXTS = re.compile(
    r"(?P<before>\b(?:Bearer|Basic)\s+|\b(?:\w*token|password|client_secret)[\"']?\s*[=:]\s*[\"']?)"
    r"[\w.~+/=-]{6,}"
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.IGNORECASE | re.DOTALL,
)
"""A value after a word such as `Bearer` or `password=`; a JSON Web Token; a private key."""

_NOISY = ("aiohttp.access",)
"""Loggers with a line for each request: only their warnings are kept."""


def set_up(form: Form = "json", level: Level = "info") -> None:
    """Log to stderr in this form, from this level on; may be called again."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*_CHAIN, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(form))
    root = logging.getLogger()
    root.handlers, root.level = [handler], number
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
    logging.captureWarnings(True)


def redact(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Redact what looks like a secret by its name or its value, however deep it is nested."""
    return {name: _redacted(name, value) for name, value in event.items()}


_CHAIN: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def _formatter(form: Form) -> logging.Formatter:
    renderer: Processor = structlog.processors.JSONRenderer()
    if form == "console":
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_CHAIN, structlog.stdlib.ExtraAdder()],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            redact,
            renderer,
        ],
    )


def _redacted(name: str, value: Any) -> Any:
    if _SECRET_NAMES.search(name):
        return _REDACTED if value else value
    if isinstance(value, str):
        return _SECRET_TEXTS.sub(_replacement, value)
    if isinstance(value, dict):
        return {key: _redacted(str(key), each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted("", each) for each in value]
    if isinstance(value, int | float | None):
        return value
    return _SECRET_TEXTS.sub(_replacement, str(value))


def _replacement(found: "re.Match[str]") -> str:
    return f"{found['before'] or ''}{_REDACTED}"
