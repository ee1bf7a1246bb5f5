"""Warnings of a request, answered as `Warning` headers: kubectl prints them.

Rules and admission webhooks warn while a request is handled, also one that is refused in the end.
The limits are those of kube-apiserver: a text is sent once; if all texts together are too long,
each is cut, and what is still too long is left out. Outside a request, as in controllers, a warning
is dropped.
"""

from contextvars import ContextVar

_MOST = 4 * 1024
"""Characters of all warnings together."""
_LONGEST = 256
"""Characters of one warning, once all together would be too long."""

_texts: ContextVar[dict[str, None] | None] = ContextVar("warnings", default=None)


def begin() -> None:
    """A request begins: warnings from here on are its own."""
    _texts.set({})


def warn(text: str) -> None:
    """Warn of something; a text with control characters cannot be sent."""
    known = _texts.get()
    if known is not None and text and text.isprintable():
        known[text] = None


def headers() -> list[str]:
    """The values of the `Warning` headers, one for each text."""
    texts = list(_texts.get() or ())
    if sum(map(len, texts)) > _MOST:
        texts = _cut(texts)
    return [f"299 - {_quoted(text)}" for text in texts]


def _cut(texts: list[str]) -> list[str]:
    kept: list[str] = []
    length = 0
    for text in texts:
        if length >= _MOST:
            break
        kept.append(text[:_LONGEST])
        length += len(kept[-1])
    return kept


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
