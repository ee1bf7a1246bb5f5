"""How the control plane says what it does: lines of JSON in a cluster, colours in a terminal.

Everything goes through one chain, what libraries log by the standard library included. Whatever
looks like a secret is blotted out at its end, tracebacks included: no caller has to think of it,
and no token ever gets into a log. Tracebacks never show the values of variables.
"""

import logging
import re
import sys
from typing import Any, Literal

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

Form = Literal["json", "console"]
Level = Literal["debug", "info", "warning", "error"]

_BLOT = "[secret]"
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
"""After a word that announces one; a signed token by its looks; a private key."""

_NOISY = ("aiohttp.access",)


def set_up(form: Form = "json", level: Level = "info") -> None:
    """Log in this form, to stderr, what is at least of this level; may be called again."""
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


def blot(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Blot out what looks like a secret, by its name or by itself, however deep it is."""
    return {name: _blotted(name, value) for name, value in event.items()}


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
            blot,
            renderer,
        ],
    )


def _blotted(name: str, value: Any) -> Any:
    if _SECRET_NAMES.search(name):
        return _BLOT if value else value
    if isinstance(value, str):
        return _SECRET_TEXTS.sub(_cover, value)
    if isinstance(value, dict):
        return {key: _blotted(str(key), each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_blotted("", each) for each in value]
    if isinstance(value, int | float | None):
        return value
    return _SECRET_TEXTS.sub(_cover, str(value))


def _cover(found: "re.Match[str]") -> str:
    return f"{found['before'] or ''}{_BLOT}"
